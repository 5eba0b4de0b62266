// swift-tools-version: 6.2
import PackageDescription

let common: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .treatAllWarnings(as: .error),
]

/// Not where several C modules meet (Backends, tests, tools): which of them the compiler holds for
/// the owner of a structure of the system's changes with the order it loads them in.
let memberImportVisibility = SwiftSetting.enableUpcomingFeature("MemberImportVisibility")

/// For the targets that serve: the checks for overlapping access to class properties cost a fifth of
/// a hit's own instructions. Every debug build, and so every test, keeps them.
let withoutExclusivityChecks = SwiftSetting.unsafeFlags(
  ["-enforce-exclusivity=unchecked"], .when(configuration: .release))

/// A system library whose module map lies inside Sources/Backends, the only target that may import it.
func systemLibrary(
  _ name: String, pkgConfig: String, apt: String, brew: String
) -> Target {
  .systemLibrary(
    name: name, path: "Sources/Backends/\(name)", pkgConfig: pkgConfig,
    providers: [.apt([apt]), .brew([brew])])
}

let package = Package(
  name: "larder",
  platforms: [.macOS(.v15)],
  products: [
    .executable(name: "larder", targets: ["larder"]),
    // For tests, which have larder load them first.
    .library(name: "CountingAllocator", type: .dynamic, targets: ["CountingAllocator"]),
    .library(name: "WriteFaults", type: .dynamic, targets: ["WriteFaults"]),
  ],
  targets: [
    systemLibrary("CCurl", pkgConfig: "libcurl", apt: "libcurl4-openssl-dev", brew: "curl"),
    systemLibrary("CCrypto", pkgConfig: "libcrypto", apt: "libssl-dev", brew: "openssl@3"),
    systemLibrary("CLMDB", pkgConfig: "lmdb", apt: "liblmdb-dev", brew: "lmdb"),
    systemLibrary("CUV", pkgConfig: "libuv", apt: "libuv1-dev", brew: "libuv"),
    .target(
      name: "CachePolicy",
      swiftSettings: common + [memberImportVisibility, .strictMemorySafety()]),
    // C, since a handler of signals may run nothing of Swift's.
    .target(
      name: "CMapGuard", dependencies: ["CLMDB"], path: "Sources/Backends/CMapGuard",
      cSettings: [.unsafeFlags(["-Wall", "-Wextra", "-Werror"])]),
    .target(
      name: "Backends",
      dependencies: ["CachePolicy", "CCurl", "CCrypto", "CLMDB", "CMapGuard", "CUV"],
      exclude: ["CCurl", "CCrypto", "CLMDB", "CMapGuard", "CUV"],
      swiftSettings: common + [withoutExclusivityChecks]),
    .target(
      name: "Proxy", dependencies: ["CachePolicy", "Backends"],
      exclude: ["Command"],
      swiftSettings: common + [memberImportVisibility, withoutExclusivityChecks]),
    .executableTarget(
      name: "larder", dependencies: ["Proxy"], path: "Sources/Proxy/Command",
      swiftSettings: common + [memberImportVisibility]),
    .target(
      name: "Support", dependencies: ["CachePolicy", "Backends", "Proxy"], path: "Tests/Support",
      swiftSettings: common),
    // Tools of script/bench: the limit that libuv sets, and load that wrk cannot make.
    .executableTarget(
      name: "BareServer", dependencies: ["CUV"], path: "Tests/BareServer", swiftSettings: common),
    .executableTarget(
      name: "LoadTool", dependencies: ["CUV", "CCurl"], path: "Tests/LoadTool",
      swiftSettings: common + [withoutExclusivityChecks]),
    // What finding a route costs, by the number of routes.
    .executableTarget(
      name: "RouteBench", dependencies: ["CachePolicy", "CountingAllocator"],
      path: "Tests/RouteBench", swiftSettings: common),
    // How many requests each way of evicting leaves as hits.
    .executableTarget(
      name: "EvictionBench", path: "Tests/EvictionBench", swiftSettings: common),
    .target(name: "CountingAllocator", path: "Tests/CountingAllocator"),
    .target(name: "WriteFaults", path: "Tests/WriteFaults"),
    .testTarget(
      name: "CachePolicyTests", dependencies: ["CachePolicy", "Support"], swiftSettings: common),
    .testTarget(
      name: "BackendsTests", dependencies: ["Backends", "CachePolicy", "StoreStress", "Support"],
      swiftSettings: common),
    // Writes to a store until BackendsTests kills it.
    .executableTarget(
      name: "StoreStress", dependencies: ["Backends", "CachePolicy"], path: "Tests/StoreStress",
      swiftSettings: common),
    .testTarget(
      name: "ProxyTests", dependencies: ["Proxy", "Backends", "CachePolicy"], swiftSettings: common
    ),
    .testTarget(
      name: "ScenarioTests",
      dependencies: ["Support", "Proxy", "Backends", "CachePolicy", "larder"],
      swiftSettings: common),
  ],
  swiftLanguageModes: [.v6]
)
