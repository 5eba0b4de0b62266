// libcrypto of OpenSSL: the one function that is used of it.
#pragma once
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stddef.h>

// HMAC-SHA256 (RFC 2104) of the data into 32 bytes; 1 on success.
static inline int larder_hmac_sha256(
    const void *key, int key_length, const void *data, size_t data_length, unsigned char *digest) {
  unsigned int digest_length = 0;
  return HMAC(EVP_sha256(), key, key_length, data, data_length, digest, &digest_length) != NULL &&
         digest_length == 32;
}
