// swift-tools-version: 6.2
// hopd: Core Data store migration on Linux.
//
// Targets stand in the order the data moves: a store file is located, identified, planned for, migrated, verified,
// put in place and reported. A target imports only what stands above it (docs/ARCHITECTURE.md §3); the build is run
// with `--explicit-target-dependency-import-check error`, so an import that is not listed here does not compile.

import PackageDescription

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let systemPackage: Target.Dependency = .product(name: "SystemPackage", package: "swift-system")

let package = Package(
  name: "hopd",
  products: [
    .executable(name: "hopd", targets: ["hopd"]),
    .executable(name: "hopctl", targets: ["hopctl"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/LebJe/TOMLKit", from: "0.6.0"),
  ],
  targets: [
    // MARK: 0 - System: C libraries and the calls that Swift cannot make by itself

    /// The system's SQLite.
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    /// The system's libsystemd: readiness, watchdog, journal.
    .systemLibrary(name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
    /// The system's expat: XML of models.
    .systemLibrary(name: "CExpat", pkgConfig: "expat", providers: [.apt(["libexpat1-dev"])]),
    /// Linux calls and SQLite entry points that are variadic or hidden behind _GNU_SOURCE.
    .target(name: "CLinux", dependencies: ["CSQLite"]),

    // MARK: 1 - Ground: files, databases, property lists, and how errors are told

    /// What went wrong, where, and what to type next: the one error value of the project.
    .target(name: "Diagnostics", dependencies: [systemPackage], swiftSettings: strict),
    /// A small exact wrapper over SQLite.
    .target(name: "SQLite", dependencies: ["CSQLite", "CLinux", systemPackage], swiftSettings: strict),
    /// Every file call whose order matters for crash safety, behind one protocol.
    .target(name: "DurableFiles", dependencies: ["CLinux", "Diagnostics", systemPackage], swiftSettings: strict),
    /// Binary and XML property lists as plain values, bounded in depth, count and size.
    .target(name: "PropertyLists", dependencies: ["CExpat", "Diagnostics"], swiftSettings: strict),

    // MARK: 2 - Core Data formats

    /// Models as immutable values, their readers, and their version hashes.
    .target(
      name: "ManagedObjectModel",
      dependencies: [
        "CExpat", "Diagnostics", "PropertyLists", systemPackage, .product(name: "Crypto", package: "swift-crypto"),
      ],
      swiftSettings: strict),
    /// How one version of a model becomes another: inferred entity and property mappings, or every reason why not.
    .target(name: "MappingModel", dependencies: ["Diagnostics", "ManagedObjectModel"], swiftSettings: strict),
    /// How a SQLite store is laid out, read and written.
    .target(
      name: "PersistentStore",
      dependencies: ["Diagnostics", "ManagedObjectModel", "PropertyLists", "SQLite", systemPackage],
      swiftSettings: strict),

    // MARK: 3 - The journey of one store

    /// Which version a store has, and which hops lead from there to the wanted one.
    .target(
      name: "MigrationPlanning",
      dependencies: [
        "Diagnostics", "ManagedObjectModel", "MappingModel", "PersistentStore", "SQLite", systemPackage,
      ],
      swiftSettings: strict),
    /// Writes the staged store of one hop, in chunks, with checkpoints.
    .target(
      name: "MigrationEngine",
      dependencies: [
        "Diagnostics", "ManagedObjectModel", "MappingModel", "MigrationPlanning", "PersistentStore", "SQLite",
        systemPackage,
      ],
      swiftSettings: strict),
    /// Is the staged store a proper store of the destination model, with nothing lost?
    .target(
      name: "StoreVerification",
      dependencies: [
        "Diagnostics", "ManagedObjectModel", "MappingModel", "MigrationPlanning", "PersistentStore", "SQLite",
        systemPackage,
      ],
      swiftSettings: strict),
    /// Puts a verified store in place of the old one, keeps the backup, and recovers after a crash.
    .target(
      name: "StoreReplacement",
      dependencies: [
        "CLinux", "Diagnostics", "DurableFiles", "PersistentStore", "SQLite", "StoreVerification", systemPackage,
      ],
      swiftSettings: strict),
    /// The stages in order for one store: events while it runs, a report or a failure at the end.
    .target(
      name: "MigrationPipeline",
      dependencies: [
        "CLinux", "Diagnostics", "DurableFiles", "ManagedObjectModel", "MappingModel", "MigrationEngine",
        "MigrationPlanning", "PersistentStore", "SQLite", "StoreReplacement", "StoreVerification", systemPackage,
      ],
      swiftSettings: strict),

    // MARK: 4 - The edges of the process

    /// Directories watched with inotify and rescans; knows nothing of Core Data.
    .target(name: "StoreWatching", dependencies: ["CLinux", "Diagnostics", systemPackage], swiftSettings: strict),
    /// Readiness, reload, status, watchdog; journal entries with stable fields and message ids.
    .target(
      name: "SystemdSupport",
      dependencies: ["CLinux", "CSystemd", "Diagnostics", .product(name: "Logging", package: "swift-log")],
      swiftSettings: strict),
    /// The configuration as one validated value; errors with file, line, key and remedy.
    .target(
      name: "HopdConfiguration",
      dependencies: ["Diagnostics", systemPackage, .product(name: "TOMLKit", package: "TOMLKit")],
      swiftSettings: strict),

    // MARK: 5 - Programs

    /// The daemon's wiring: watchers, queue, jobs, reports.
    .target(
      name: "HopdService",
      dependencies: [
        "CLinux", "Diagnostics", "DurableFiles", "HopdConfiguration", "ManagedObjectModel", "MigrationPipeline",
        "MigrationPlanning", "PersistentStore", "StoreReplacement", "StoreWatching", "SystemdSupport", systemPackage,
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
      ],
      swiftSettings: strict),
    /// The daemon.
    .executableTarget(
      name: "hopd",
      dependencies: ["HopdService", .product(name: "ArgumentParser", package: "swift-argument-parser")],
      swiftSettings: strict),
    /// The same engine for one store, from the command line.
    .executableTarget(
      name: "hopctl",
      dependencies: [
        "Diagnostics", "DurableFiles", "HopdConfiguration", "ManagedObjectModel", "MappingModel", "MigrationPipeline",
        "MigrationPlanning", "PersistentStore", "PropertyLists", "SQLite", "StoreReplacement", "StoreVerification",
        systemPackage, .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
  ]
)

// MARK: Tests: one target per folder below Tests that holds Swift files

import Foundation

let manifestFolder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
let only = Context.environment["HOPD_ONLY"].map { Set($0.split(separator: ",").map(String.init)) }
func names(_ target: Target) -> [String] {
  target.dependencies.compactMap { dependency in
    switch dependency {
    case .targetItem(let name, _), .byNameItem(let name, _): name
    default: nil
    }
  }
}
@MainActor func closure(_ start: [String]) -> Set<String> {
  var found: Set<String> = []
  var open = start
  while let next = open.popLast() {
    guard found.insert(next).inserted, let target = package.targets.first(where: { $0.name == next }) else { continue }
    open += names(target)
  }
  return found
}
let realStoreDependencies = Context.environment["HOPD_REAL"].map { $0.split(separator: ",").map(String.init) }
for folder in (try? FileManager.default.contentsOfDirectory(atPath: manifestFolder.appendingPathComponent("Tests").path))?.sorted() ?? [] {
  let files = (try? FileManager.default.contentsOfDirectory(atPath: manifestFolder.appendingPathComponent("Tests/\(folder)").path)) ?? []
  guard folder.hasSuffix("Tests"), files.contains(where: { $0.hasSuffix(".swift") }) else { continue }
  if let only, !only.contains(folder) { continue }
  let subject = String(folder.dropLast(5))
  let all = package.targets.filter { $0.type == .regular || $0.type == .system }.map(\.name)
  let libraries = all.contains(subject) ? closure([subject, "CLinux", "CSQLite", "Diagnostics", "SQLite"]) : closure(realStoreDependencies ?? all)
  package.targets.append(.testTarget(name: folder, dependencies: libraries.sorted().map { Target.Dependency(stringLiteral: $0) } + [systemPackage, .product(name: "Logging", package: "swift-log")], swiftSettings: strict))
}
if let only {
  let kept = closure(Array(only))
  package.targets = package.targets.filter { kept.contains($0.name) }
  package.products = []
}

// Each target's folder has a README that says what it does and what it never does.
for target in package.targets where target.type != .test {
  let folder = manifestFolder.appendingPathComponent("Sources/\(target.name)/README.md").path
  if FileManager.default.fileExists(atPath: folder) { target.exclude = ["README.md"] }
}
