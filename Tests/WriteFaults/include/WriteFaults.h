#pragma once

// The library is loaded before a program, not linked: there is nothing to call.
