// swift-tools-version: 6.2
// hopd: Core Data store migration on Linux.
//
// Targets stand in the order the data moves: a store file is located, identified, planned for, migrated, verified, put
// in place and reported. A target imports only what stands above it (docs/ARCHITECTURE.md, "Layers"); the build is
// run with `--explicit-target-dependency-import-check error`, so an import that is not listed here does not compile.

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
    .library(name: "MigrationPolicy", targets: ["MigrationPolicy"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.2"),
  ],
  targets: [
    // MARK: 0 - System: C libraries and the calls that Swift cannot make by itself

    /// The system's SQLite.
    .systemLibrary(
      name: "CSQLite", path: "Sources/Ground/CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    /// The system's libsystemd: readiness, watchdog, journal.
    .systemLibrary(
      name: "CSystemd", path: "Sources/Ground/CSystemd", pkgConfig: "libsystemd",
      providers: [.apt(["libsystemd-dev"])]),
    /// The system's expat: XML of models.
    .systemLibrary(
      name: "CExpat", path: "Sources/Ground/CExpat", pkgConfig: "expat", providers: [.apt(["libexpat1-dev"])]),
    /// The system's zlib: the compressed model inside a store.
    .systemLibrary(name: "CZlib", path: "Sources/Ground/CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    /// The system's libcrypto: SHA-2 for version hashes and digests of content.
    .systemLibrary(
      name: "CCrypto", path: "Sources/Ground/CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
    /// Linux calls and SQLite entry points that are variadic or hidden behind _GNU_SOURCE.
    .target(
      name: "CLinux", dependencies: ["CSQLite"], path: "Sources/Ground/CLinux",
      cSettings: Context.environment["HOPD_COMMIT"].map { [.define("HOPD_COMMIT", to: "\"\($0)\"")] }),

    // MARK: 1 - Ground: files, databases, property lists, and how errors are told

    /// What went wrong, where, and what to type next: the one error value of the project.
    .target(
      name: "Diagnostics", dependencies: ["CLinux", systemPackage], path: "Sources/Ground/Diagnostics",
      swiftSettings: strict),
    /// A small exact wrapper over SQLite.
    .target(
      name: "SQLite", dependencies: ["CLinux", "CSQLite", systemPackage], path: "Sources/Ground/SQLite",
      swiftSettings: strict),
    /// Every file call whose order matters for crash safety, behind one protocol.
    .target(
      name: "DurableFiles", dependencies: ["CLinux", "Diagnostics", systemPackage], path: "Sources/Ground/DurableFiles",
      swiftSettings: strict),
    /// Binary and XML property lists as plain values, bounded in depth, count and size.
    .target(
      name: "PropertyLists", dependencies: ["CExpat", "Diagnostics"], path: "Sources/Ground/PropertyLists",
      swiftSettings: strict),
    /// TOML that people write by hand: values that know their line and column.
    .target(
      name: "TOMLDocuments", dependencies: ["Diagnostics", systemPackage], path: "Sources/Ground/TOMLDocuments",
      swiftSettings: strict),

    // MARK: 2 - Core Data formats

    /// Models as immutable values, their readers, and their version hashes.
    .target(
      name: "ManagedObjectModel",
      dependencies: ["CCrypto", "CExpat", "Diagnostics", "PropertyLists", systemPackage],
      path: "Sources/Formats/ManagedObjectModel", swiftSettings: strict),
    /// How a SQLite store is laid out, read and written.
    .target(
      name: "PersistentStore",
      dependencies: [
        "CLinux", "CSQLite", "CZlib", "Diagnostics", "DurableFiles", "ManagedObjectModel", "PropertyLists", "SQLite",
        systemPackage,
      ],
      path: "Sources/Formats/PersistentStore", swiftSettings: strict),

    /// Value expressions and predicates: read, checked, printed, evaluated on an instance, compiled to SQL.
    .target(
      name: "Expressions",
      dependencies: [
        "Diagnostics", "ManagedObjectModel", "PersistentStore", "PropertyLists", "SQLite", systemPackage,
      ],
      path: "Sources/Formats/Expressions", swiftSettings: strict),
    /// How one version of a model becomes another: mapping models read, or mappings inferred, or every reason why not.
    .target(
      name: "MappingModel",
      dependencies: [
        "CExpat", "Diagnostics", "Expressions", "ManagedObjectModel", "PropertyLists", "TOMLDocuments", systemPackage,
      ],
      path: "Sources/Formats/MappingModel", swiftSettings: strict),
    /// Models of SwiftData derived from the facts of Swift source.
    .target(
      name: "SwiftDataSource", dependencies: ["Diagnostics", "ManagedObjectModel", "PropertyLists", systemPackage],
      path: "Sources/Formats/SwiftDataSource", swiftSettings: strict),
    /// What an author of a migration policy sees, and the messages between engine and policy. Stands alone.
    .target(name: "MigrationPolicy", path: "Sources/Formats/MigrationPolicy", swiftSettings: strict),

    // MARK: 3 - The migration path of one store

    /// Which version a store has, and which hops lead from there to the wanted one.
    .target(
      name: "MigrationPlanning",
      dependencies: [
        "Diagnostics", "Expressions", "ManagedObjectModel", "MappingModel", "PersistentStore", "PropertyLists",
        "SQLite",
        systemPackage,
      ],
      path: "Sources/Migration/MigrationPlanning", swiftSettings: strict),
    /// Writes the staged store of one hop, in chunks, with checkpoints.
    .target(
      name: "MigrationEngine",
      dependencies: [
        "Diagnostics", "Expressions", "ManagedObjectModel", "MappingModel", "MigrationPlanning", "PersistentStore",
        "PropertyLists", "SQLite", systemPackage,
      ],
      path: "Sources/Migration/MigrationEngine", swiftSettings: strict),
    /// Hops whose objects an app's migration policies make.
    .target(
      name: "PolicyMigration",
      dependencies: [
        "Diagnostics", "Expressions", "ManagedObjectModel", "MappingModel", "MigrationEngine", "MigrationPlanning",
        "MigrationPolicy", "PersistentStore", "PropertyLists", "SQLite", systemPackage,
      ],
      path: "Sources/Migration/PolicyMigration", swiftSettings: strict),
    /// Is the staged store a proper store of the destination model, with nothing lost?
    .target(
      name: "StoreVerification",
      dependencies: [
        "Diagnostics", "ManagedObjectModel", "MappingModel", "MigrationPlanning", "PersistentStore", "PropertyLists",
        "SQLite", systemPackage,
      ],
      path: "Sources/Migration/StoreVerification", swiftSettings: strict),
    /// Puts a verified store in place of the old one, keeps the backup, and recovers after a crash.
    .target(
      name: "StoreReplacement",
      dependencies: [
        "Diagnostics", "DurableFiles", "PersistentStore", "SQLite", "StoreVerification", systemPackage,
      ],
      path: "Sources/Migration/StoreReplacement", swiftSettings: strict),
    /// The stages in order for one store: events while it runs, a report or a failure at the end.
    .target(
      name: "MigrationPipeline",
      dependencies: [
        "CLinux", "Diagnostics", "DurableFiles", "Expressions", "ManagedObjectModel", "MappingModel", "MigrationEngine",
        "PolicyMigration",
        "MigrationPlanning", "MigrationPolicy", "PersistentStore", "SQLite", "StoreReplacement", "StoreVerification",
        systemPackage,
      ],
      path: "Sources/Migration/MigrationPipeline", swiftSettings: strict),

    /// Every version of a model to the current one, tried with stores that are made for it.
    .target(
      name: "MigrationChecking",
      dependencies: [
        "Diagnostics", "DurableFiles", "ManagedObjectModel", "MappingModel", "MigrationEngine", "MigrationPipeline",
        "MigrationPlanning", "MigrationPolicy", "PersistentStore", "PropertyLists", "SQLite", "StoreReplacement",
        "TOMLDocuments", systemPackage,
      ],
      path: "Sources/Tools/MigrationChecking", swiftSettings: strict),

    /// Many stores: the manifest, the share of each worker, the work on it, and the report of all.
    .target(
      name: "StoreFleet",
      dependencies: [
        "Diagnostics", "DurableFiles", "ManagedObjectModel", "MigrationChecking", "MigrationPipeline",
        "MigrationPlanning", "PersistentStore", "StoreReplacement", systemPackage,
      ],
      path: "Sources/Tools/StoreFleet", swiftSettings: strict),

    /// Data in and out: JSON lines, CSV, clean SQLite.
    .target(
      name: "StoreExchange",
      dependencies: [
        "Diagnostics", "DurableFiles", "Expressions", "ManagedObjectModel", "PersistentStore", "PropertyLists",
        "SQLite", "StoreReplacement", "StoreVerification", "TOMLDocuments", systemPackage,
      ],
      path: "Sources/Tools/StoreExchange", swiftSettings: strict),

    // MARK: 4 - The edges of the process

    /// Policy programs: started with limits, talked to in batches, ended.
    .target(
      name: "PolicyHost",
      dependencies: [
        "CLinux", "Diagnostics", "MigrationPolicy", systemPackage,
        .product(name: "Subprocess", package: "swift-subprocess"),
      ],
      path: "Sources/Migration/PolicyHost", swiftSettings: strict),

    /// Directories watched with inotify and rescans; knows nothing of Core Data.
    .target(
      name: "StoreWatching",
      dependencies: [
        "CLinux", "Diagnostics", "DurableFiles", systemPackage,
        .product(name: "HeapModule", package: "swift-collections"),
      ],
      path: "Sources/Daemon/StoreWatching", swiftSettings: strict),
    /// Readiness, reload, status, watchdog; journal entries with stable fields and message ids.
    .target(
      name: "SystemdSupport",
      dependencies: ["CSystemd", "Diagnostics", .product(name: "Logging", package: "swift-log")],
      path: "Sources/Daemon/SystemdSupport", swiftSettings: strict),
    /// The configuration as one validated value; errors with file, line, key and remedy.
    .target(
      name: "HopdConfiguration",
      dependencies: [
        "Diagnostics", "MappingModel", "MigrationEngine", "MigrationPipeline", "MigrationPlanning", "StoreReplacement",
        "TOMLDocuments", systemPackage,
      ],
      path: "Sources/Daemon/HopdConfiguration", swiftSettings: strict),

    /// What the daemon remembers of its stores and jobs, in one file that may be lost.
    .target(
      name: "ServiceState", dependencies: ["Diagnostics", "DurableFiles", "SQLite", systemPackage],
      path: "Sources/Daemon/ServiceState", swiftSettings: strict),

    /// The control socket: Varlink messages, bounded clients, the interface's description.
    .target(
      name: "HopdControl", dependencies: ["CLinux", "Diagnostics", "DurableFiles", systemPackage],
      path: "Sources/Daemon/HopdControl", swiftSettings: strict),

    // MARK: 5 - Programs

    /// Folders of Swift source, and the tags of a repository, as models: files, the reader's process, its facts.
    .target(
      name: "SwiftDataReading",
      dependencies: [
        "Diagnostics", "ManagedObjectModel", "PolicyHost", "SwiftDataSource", "TOMLDocuments", systemPackage,
      ],
      path: "Sources/Tools/SwiftDataReading", swiftSettings: strict),
    /// Opens what a configuration names: models, programs, directories, the unit's writable paths.
    .target(
      name: "ConfigurationInspection",
      dependencies: [
        "Diagnostics", "DurableFiles", "HopdConfiguration", "ManagedObjectModel", "MappingModel", "MigrationEngine",
        "MigrationPipeline", "MigrationPlanning",
        "MigrationPolicy", "PersistentStore", "PolicyHost", "StoreReplacement", "SwiftDataReading", systemPackage,
      ],
      path: "Sources/Daemon/ConfigurationInspection", swiftSettings: strict),
    /// The daemon's wiring: watchers, queue, jobs, reports.
    .target(
      name: "HopdService",
      dependencies: [
        "ConfigurationInspection", "Diagnostics", "DurableFiles", "HopdConfiguration", "HopdControl",
        "ManagedObjectModel", "MappingModel", "MigrationEngine", "MigrationPipeline", "MigrationPlanning",
        "MigrationPolicy", "PersistentStore", "PolicyHost", "SQLite", "ServiceState", "StoreReplacement",
        "StoreVerification",
        "StoreWatching", "SystemdSupport", systemPackage,
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "HeapModule", package: "swift-collections"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
      ],
      path: "Sources/Daemon/HopdService", swiftSettings: strict),
    /// The daemon.
    .executableTarget(
      name: "hopd",
      dependencies: [
        "Diagnostics", "HopdService", .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "Sources/Daemon/hopd", swiftSettings: strict),
    /// The same engine for one store, from the command line.
    .executableTarget(
      name: "hopctl",
      dependencies: [
        "ConfigurationInspection", "Diagnostics", "DurableFiles", "Expressions", "HopdConfiguration", "HopdControl",
        "ManagedObjectModel", "MappingModel", "MigrationChecking", "MigrationEngine", "MigrationPipeline",
        "MigrationPlanning", "MigrationPolicy", "PersistentStore", "PolicyHost", "PropertyLists", "SQLite",
        "ServiceState", "StoreExchange", "StoreFleet", "StoreReplacement", "StoreVerification", "StoreWatching",
        "SwiftDataReading", "SwiftDataSource", systemPackage,
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "Sources/Tools/hopctl", swiftSettings: strict),

    // MARK: Examples: policy programs, which the tests run

    /// A policy of a real app in Swift; its twin in Python lies beside it.
    .executableTarget(
      name: "BookToBookPolicy", dependencies: ["MigrationPolicy"], path: "Examples/Policies/Swift/BookToBookPolicy",
      swiftSettings: strict),
    /// The stages of an example in Swift; their twins in Python lie beside them.
    .executableTarget(
      name: "TripStages", dependencies: ["MigrationPolicy"], path: "Examples/Stages/TripStages",
      swiftSettings: strict),

    // MARK: What tests stand on

    /// A disk in memory with a SQLite VFS on it, and every image that a power cut could leave of it.
    .target(
      name: "CSimulatedDisk", dependencies: ["CSQLite"], path: "Tests/Support/CSimulatedDisk",
      cSettings: [.unsafeFlags(["-O2"])]),
    /// That disk as the file system of the replacement.
    .target(
      name: "SimulatedDisk",
      dependencies: ["CSimulatedDisk", "Diagnostics", "DurableFiles", "SeededRandom", systemPackage],
      path: "Tests/Support/SimulatedDisk", swiftSettings: strict),

    /// The trait of tests that block their thread.
    .target(name: "BlockingTests", path: "Tests/Support/BlockingTests", swiftSettings: strict),
    /// Random numbers that follow from a seed.
    .target(name: "SeededRandom", path: "Tests/Support/SeededRandom", swiftSettings: strict),

    /// Policies in the process of the test.
    .target(
      name: "LocalPolicies", dependencies: ["MigrationPolicy"], path: "Tests/Support/LocalPolicies",
      swiftSettings: strict),
    /// Other programs that use a store while hopd works.
    .target(
      name: "OtherPrograms", dependencies: ["SQLite", systemPackage], path: "Tests/Support/OtherPrograms",
      swiftSettings: strict),

    // MARK: Tests: one target per library, a file per type; then the suites that look across

    .testTarget(
      name: "SQLiteTests", dependencies: ["BlockingTests", "CSQLite", "OtherPrograms", "SQLite", systemPackage],
      swiftSettings: strict),
    .testTarget(
      name: "DurableFilesTests",
      dependencies: [
        "BlockingTests",
        "CLinux", "Diagnostics", "DurableFiles", "SimulatedDisk", systemPackage,
      ],
      swiftSettings: strict),
    .testTarget(name: "PropertyListsTests", dependencies: ["Diagnostics", "PropertyLists"], swiftSettings: strict),
    .testTarget(
      name: "TOMLDocumentsTests", dependencies: ["Diagnostics", "SeededRandom", "TOMLDocuments", systemPackage],
      swiftSettings: strict),
    .testTarget(
      name: "ManagedObjectModelTests",
      dependencies: [
        "Diagnostics", "ManagedObjectModel", systemPackage,
      ],
      swiftSettings: strict),
    .testTarget(
      name: "ExpressionsTests",
      dependencies: [
        "BlockingTests",
        "Diagnostics", "Expressions", "ManagedObjectModel", "PersistentStore", "PropertyLists", "SQLite",
        "SeededRandom", systemPackage,
      ],
      swiftSettings: strict),
    .testTarget(
      name: "MappingModelTests",
      dependencies: [
        "Diagnostics", "Expressions", "ManagedObjectModel", "MappingModel", "PropertyLists", systemPackage,
      ],
      swiftSettings: strict),
    .testTarget(
      name: "MigrationPolicyTests", dependencies: ["LocalPolicies", "MigrationPolicy"], swiftSettings: strict),
    .testTarget(
      name: "PolicyHostTests",
      dependencies: [
        "BlockingTests", "BookToBookPolicy", "Diagnostics", "MigrationPolicy", "PolicyHost", systemPackage,
      ],
      swiftSettings: strict),
    .testTarget(
      name: "PersistentStoreTests",
      dependencies: [
        "BlockingTests",
        "OtherPrograms", "SeededRandom",
        "Diagnostics", "ManagedObjectModel", "PersistentStore", "SQLite", systemPackage,
      ],
      swiftSettings: strict),
    .testTarget(
      name: "StoreFleetTests",
      dependencies: [
        "Diagnostics", "DurableFiles", "MigrationPipeline", "PersistentStore", "SeededRandom", "StoreFleet",
        "StoreReplacement",
        systemPackage,
      ],
      swiftSettings: strict),
    .testTarget(
      name: "StoreExchangeTests",
      dependencies: [
        "Diagnostics", "ManagedObjectModel", "PersistentStore", "PropertyLists", "SQLite", "SeededRandom",
        "StoreExchange", "StoreReplacement", "StoreVerification", systemPackage,
      ],
      swiftSettings: strict),
    .testTarget(
      name: "MigrationPlanningTests",
      dependencies: [
        "BlockingTests",
        "OtherPrograms", "SeededRandom",
        "Diagnostics", "Expressions", "ManagedObjectModel", "MappingModel", "MigrationPlanning", "PersistentStore",
        "PropertyLists",
        "SQLite", systemPackage,
      ],
      swiftSettings: strict),
    .testTarget(
      name: "MigrationEngineTests",
      dependencies: [
        "BlockingTests",
        "OtherPrograms", "SeededRandom",
        "Diagnostics", "Expressions", "ManagedObjectModel", "MappingModel", "MigrationEngine", "MigrationPlanning",
        "MigrationPolicy", "PersistentStore", "PropertyLists", "SQLite", systemPackage,
      ],
      swiftSettings: strict),
    .testTarget(
      name: "PolicyMigrationTests",
      dependencies: [
        "BlockingTests", "LocalPolicies",
        "OtherPrograms", "PolicyHost",
        "Diagnostics", "Expressions", "ManagedObjectModel", "MappingModel", "MigrationEngine", "MigrationPlanning",
        "MigrationPolicy", "PolicyMigration", "PersistentStore", "PropertyLists", "SeededRandom", "SQLite",
        systemPackage,
      ],
      swiftSettings: strict),
    .testTarget(
      name: "StoreVerificationTests",
      dependencies: [
        "BlockingTests",
        "OtherPrograms",
        "Diagnostics", "ManagedObjectModel", "MigrationPlanning", "PersistentStore", "SQLite", "StoreVerification",
        systemPackage,
      ],
      swiftSettings: strict),
    .testTarget(
      name: "StoreReplacementTests",
      dependencies: [
        "BlockingTests",
        "OtherPrograms", "SeededRandom",
        "Diagnostics", "DurableFiles", "PersistentStore", "SQLite", "SimulatedDisk", "StoreReplacement",
        "StoreVerification",
        systemPackage,
      ],
      swiftSettings: strict),
    .testTarget(
      name: "StoreWatchingTests",
      dependencies: [
        "Diagnostics", "DurableFiles", "StoreWatching", systemPackage,
      ],
      swiftSettings: strict),
    .testTarget(
      name: "SystemdSupportTests",
      dependencies: [
        "SystemdSupport", .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "HopdConfigurationTests",
      dependencies: [
        "Diagnostics", "HopdConfiguration", "MigrationEngine", "MigrationPipeline", "MigrationPlanning",
        "StoreReplacement", "TOMLDocuments", systemPackage,
      ],
      swiftSettings: strict),
    .testTarget(
      name: "ConfigurationInspectionTests",
      dependencies: ["ConfigurationInspection", "Diagnostics", "DurableFiles", "HopdConfiguration", systemPackage],
      swiftSettings: strict),
    .testTarget(
      name: "HopdServiceTests",
      dependencies: [
        "ConfigurationInspection", "Diagnostics", "DurableFiles", "HopdConfiguration", "HopdControl", "HopdService",
        "ManagedObjectModel", "MigrationEngine",
        "MigrationPipeline",
        "MigrationPlanning", "PersistentStore", "SQLite", "SeededRandom", "ServiceState", "StoreReplacement",
        "StoreWatching",
        "SystemdSupport", systemPackage,
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "HopdControlTests", dependencies: ["BlockingTests", "Diagnostics", "HopdControl", systemPackage],
      swiftSettings: strict),
    .testTarget(
      name: "ServiceStateTests", dependencies: ["Diagnostics", "SQLite", "ServiceState", systemPackage],
      swiftSettings: strict),
    /// The same result by every path, over random models and chains.
    .testTarget(
      name: "ConformanceTests",
      dependencies: [
        "BlockingTests", "LocalPolicies", "OtherPrograms", "SeededRandom",
        "Diagnostics", "Expressions", "ManagedObjectModel", "MappingModel", "MigrationEngine", "MigrationPipeline",
        "MigrationPlanning", "MigrationPolicy", "PersistentStore", "PolicyHost", "SQLite", "StoreExchange",
        "StoreReplacement", "StoreVerification", systemPackage,
      ],
      swiftSettings: strict),
    /// The stores and models that Apple's software made, where their folder is there.
    .testTarget(
      name: "RealStoreTests",
      dependencies: [
        "BlockingTests",
        "OtherPrograms",
        "BookToBookPolicy", "Diagnostics", "Expressions", "ManagedObjectModel", "MappingModel", "MigrationChecking",
        "MigrationEngine",
        "MigrationPipeline",
        "MigrationPlanning", "MigrationPolicy", "PersistentStore", "PolicyHost", "PropertyLists", "SQLite",
        "StoreExchange", "StoreReplacement", "StoreVerification", systemPackage,
      ],
      swiftSettings: strict),
    /// Models derived from Swift source, by the rules and by known pairs.
    .testTarget(
      name: "SwiftDataReadingTests",
      dependencies: [
        "SeededRandom",
        "Diagnostics", "ManagedObjectModel", "MigrationPlanning", "PersistentStore", "PolicyHost", "SwiftDataReading",
        "SwiftDataSource", systemPackage,
      ],
      swiftSettings: strict),
    /// The built hopctl, from outside: exit statuses and JSON.
    .testTarget(
      name: "HopctlTests",
      dependencies: [
        "BlockingTests", "DurableFiles", "PersistentStore", "SeededRandom", "ServiceState", "StoreReplacement",
        "TripStages",
        systemPackage,
      ],
      swiftSettings: strict),
    /// The house itself: who imports whom, and where dangerous calls stand.
    .testTarget(name: "ArchitectureTests", swiftSettings: strict),
  ]
)

// What tools/fuzz builds, in a folder of its own: parsers between libFuzzer and the bounds that they promise. Left out
// of every other build, because these programs have libFuzzer's main instead of one of their own.
if Context.environment["HOPD_FUZZ"] != nil {
  /// One program per parser, made of the parser's libraries and one function.
  func fuzzer(_ name: String, _ parser: [Target.Dependency]) -> Target {
    .executableTarget(
      name: name, dependencies: ["Diagnostics", "FuzzBounds"] + parser, path: "Fuzzing/\(name)",
      swiftSettings: strict + [.unsafeFlags(["-parse-as-library"])])
  }
  package.targets += [
    .target(name: "FuzzBounds", path: "Fuzzing/FuzzBounds"),
    fuzzer("FuzzConfiguration", ["HopdConfiguration", systemPackage]),
    fuzzer("FuzzControlMessage", ["HopdControl"]),
    fuzzer("FuzzDelimitedText", ["StoreExchange", systemPackage]),
    fuzzer("FuzzExpression", ["Expressions", "ManagedObjectModel"]),
    fuzzer("FuzzFleetLines", ["StoreFleet", systemPackage]),
    fuzzer("FuzzImportMapping", ["StoreExchange"]),
    fuzzer("FuzzJSONLines", ["StoreExchange", systemPackage]),
    fuzzer("FuzzKeyedArchive", ["ManagedObjectModel"]),
    fuzzer("FuzzLockFile", ["MigrationChecking", systemPackage]),
    fuzzer("FuzzMappingArchive", ["ManagedObjectModel", "MappingModel", systemPackage]),
    fuzzer("FuzzMappingSource", ["ManagedObjectModel", "MappingModel", systemPackage]),
    fuzzer("FuzzModelCache", ["ManagedObjectModel", "PersistentStore"]),
    fuzzer("FuzzModelElements", ["ManagedObjectModel"]),
    fuzzer("FuzzPolicyMessage", ["MigrationPolicy"]),
    fuzzer("FuzzPropertyList", ["PropertyLists"]),
    fuzzer("FuzzTextMapping", ["ManagedObjectModel", "MappingModel", systemPackage]),
    fuzzer("FuzzXMLModel", ["ManagedObjectModel"]),
  ]
}

// The named targets with their dependencies and nothing else: both programs for `make release`, in one build, so that
// the processors do not wait for the last module of each; some tests for tools/coverage and tools/simulate.
if let named = Context.environment["HOPD_ONLY"] {
  let targets = Dictionary(package.targets.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
  var kept: Set<String> = []
  var open = named.split(separator: " ").map(String.init)
  while let name = open.popLast() {
    guard let target = targets[name], kept.insert(name).inserted else { continue }
    for case .byNameItem(let needed, _) in target.dependencies { open.append(needed) }
  }
  package.targets.removeAll { !kept.contains($0.name) }
  package.products.removeAll()
}

// What tools/swift-tests and `make demo` build, each in a directory of its own and in the release configuration: hopd
// without optimization over libraries with it. In a debug build of swift-system each look at a path checks the whole
// path again, and the tests spend nine tenths of their time there. Optimization is three quarters of a release build.
let unoptimized: [SwiftSetting] =
  if Context.environment["HOPD_TESTS_BUILD"] != nil {
    [.define("DEBUG"), .unsafeFlags(["-Onone", "-enable-testing"])]
  } else if Context.environment["HOPD_DEMO_BUILD"] != nil { [.unsafeFlags(["-Onone"])] } else { [] }
for target in package.targets { target.swiftSettings = target.swiftSettings.map { $0 + unoptimized } }

// Each target's folder has a README that says what it does and what it never does.
for target in package.targets where target.type == .regular || target.type == .executable {
  if target.name != "CLinux", target.path?.hasPrefix("Sources/") == true { target.exclude = ["README.md"] }
}
