// Checks the architecture. The build checks that a target imports only what Package.swift lists for it; this checks
// that the list itself follows docs/ARCHITECTURE.md, and that dangerous calls are only in their own targets.

import FoundationEssentials
import Testing

@Suite struct ArchitectureTests {
  static let root: String = {
    var parts = #filePath.split(separator: "/", omittingEmptySubsequences: false)
    parts.removeLast(3)
    return parts.joined(separator: "/")
  }()

  /// The layers, lowest first (docs/ARCHITECTURE.md, "Layers"); within a layer a target imports only earlier ones.
  static let layers: [[String]] = [
    ["CSQLite", "CSystemd", "CExpat", "CZlib", "CCrypto", "CLinux"],
    ["Diagnostics", "SQLite", "DurableFiles", "PropertyLists", "TOMLDocuments"],
    ["ManagedObjectModel", "PersistentStore", "Expressions", "MappingModel", "SwiftDataSource", "MigrationPolicy"],
    [
      "MigrationPlanning", "MigrationEngine", "PolicyMigration", "StoreVerification", "StoreReplacement",
      "MigrationPipeline", "MigrationChecking", "StoreFleet", "StoreExchange",
    ],
    ["StoreWatching", "SystemdSupport", "HopdConfiguration", "PolicyHost", "ServiceState", "HopdControl"],
    ["SwiftDataReading", "ConfigurationInspection", "HopdService", "hopd", "hopctl"],
  ]

  /// The folders of Sources and the targets in them (docs/ARCHITECTURE.md, "Layers").
  static let groups: [String: [String]] = [
    "Ground": layers[0] + layers[1],
    "Formats": layers[2],
    "Migration": [
      "MigrationPlanning", "MigrationEngine", "PolicyMigration", "StoreVerification", "StoreReplacement",
      "MigrationPipeline", "PolicyHost",
    ],
    "Daemon": [
      "StoreWatching", "SystemdSupport", "HopdConfiguration", "ServiceState", "HopdControl", "ConfigurationInspection",
      "HopdService", "hopd",
    ],
    "Tools": ["MigrationChecking", "StoreFleet", "StoreExchange", "SwiftDataReading", "hopctl"],
  ]

  /// The folder of a target, from the root.
  static func path(of target: String) -> String {
    "Sources/\(groups.first { $0.value.contains(target) }?.key ?? "")/\(target)"
  }

  struct Source {
    let target: String
    /// Path of the folder within the target; empty at the top.
    let folder: String
    let name: String
    let text: String

    var imports: Set<String> {
      Set(
        text.split(separator: "\n").compactMap { line in
          let words = line.split(separator: " ")
          guard let index = words.firstIndex(of: "import"), index <= 1, index + 1 < words.count else { return nil }
          return index == 0 || words[0].hasPrefix("@") ? String(words[index + 1]) : nil
        })
    }

    /// The text without comments, so that a word in a sentence is not a finding.
    var code: String {
      text.split(separator: "\n").filter { !$0.drop { $0 == " " }.hasPrefix("//") }.joined(separator: "\n")
    }
  }

  static let sources: [Source] = {
    var found: [Source] = []
    for target in layers.joined() {
      let top = "\(root)/\(path(of: target))"
      for path in (try? FileManager.default.subpathsOfDirectory(atPath: top))?.sorted() ?? []
      where path.hasSuffix(".swift") {
        guard let data = FileManager.default.contents(atPath: "\(top)/\(path)") else { continue }
        let parts = path.split(separator: "/").map { String($0) }
        found.append(
          Source(
            target: target, folder: parts.dropLast().joined(separator: "/"), name: parts.last ?? "",
            text: String(decoding: data, as: UTF8.self)))
      }
    }
    return found
  }()

  private static func text(_ path: String) -> String {
    String(decoding: FileManager.default.contents(atPath: "\(root)/\(path)") ?? Data(), as: UTF8.self)
  }

  @Test func everyFolderIsInThePicture() throws {
    let groups = try FileManager.default.contentsOfDirectory(atPath: "\(Self.root)/Sources").sorted()
    #expect(groups == Self.groups.keys.sorted())
    let folders = try groups.flatMap { group in
      try FileManager.default.contentsOfDirectory(atPath: "\(Self.root)/Sources/\(group)")
    }.sorted()
    #expect(folders == Self.layers.joined().sorted() && folders == Self.groups.values.joined().sorted())
    let picture = Self.text("docs/ARCHITECTURE.md")
    for folder in folders { #expect(picture.contains(folder), "docs/ARCHITECTURE.md does not name \(folder)") }
    #expect(Self.sources.count > 100)
  }

  /// Every file, folder and type that "Where to change what" names is there.
  @Test func whereToChangeWhatIsTrue() throws {
    let document = Self.text("docs/ARCHITECTURE.md")
    let section = try #require(document.ranges(of: "Where to change what").last)
    let paths = try ["Examples", "Sources", "Tests", "config", "docs", "python", "systemd"].flatMap { top in
      try [top] + FileManager.default.subpathsOfDirectory(atPath: "\(Self.root)/\(top)").map { "\(top)/\($0)" }
    }
    let names = Set(Self.sources.map(\.name))
    let declared = Set(
      Self.sources.flatMap { source in
        source.text.split(whereSeparator: { !$0.isLetter && !$0.isNumber }).map { String($0) }
      })
    var checked = 0
    for line in document[section.upperBound...].split(separator: "\n") where line.hasPrefix("|") {
      for (index, word) in line.split(separator: "`").enumerated() where index % 2 == 1 {
        guard let first = word.first, first.isUppercase || word.contains("/") else { continue }
        checked += 1
        let isPath =
          word.contains("/")
          && paths.contains { path in
            let name = "/\(path)"
            return name.hasSuffix("/\(word)") || name.hasSuffix("/\(word).swift") || "\(name)/".hasSuffix("/\(word)")
          }
        let isFile = names.contains("\(word).swift") || paths.contains { $0.hasSuffix("/\(word).swift") }
        let isType = word.split(separator: ".").allSatisfy { declared.contains(String($0)) } && !word.contains("/")
        #expect(isPath || isFile || isType, "\(word) is not there")
      }
    }
    #expect(checked > 30)
  }

  @Test func importsGoDownwards() {
    let layer = Dictionary(
      Self.layers.enumerated().flatMap { layer in layer.element.map { ($0, layer.offset) } },
      uniquingKeysWith: { first, _ in first })
    for source in Self.sources {
      for name in source.imports {
        guard let imported = layer[name], let own = layer[source.target] else { continue }
        #expect(imported <= own, "\(source.target)/\(source.name) imports \(name) from a higher layer")
        let order = Self.layers[own].firstIndex(of: name) ?? -1
        let place = Self.layers[own].firstIndex(of: source.target) ?? 0
        #expect(order <= place, "\(source.target)/\(source.name) imports \(name), which stands behind it in its layer")
        if own == 4 { #expect(imported < 4, "the edges do not import one another: \(source.target)/\(source.name)") }
      }
    }
  }

  /// The verifier shares no code with the engine, and only the verifier's result can be put in place.
  @Test func theVerifierDoesNotKnowTheEngine() {
    for source in Self.sources where source.target == "StoreVerification" {
      #expect(!source.imports.contains("MigrationEngine"))
    }
    for source in Self.sources where source.target == "StoreReplacement" {
      #expect(!source.imports.contains("MigrationEngine") && !source.imports.contains("MigrationPlanning"))
    }
    #expect(!Self.text("\(Self.path(of: "StoreVerification"))/VerifiedStore.swift").contains("package init(staged"))
  }

  /// Authors of policies link only messages and hooks, and only one target starts programs.
  @Test func policiesStandAlone() {
    for source in Self.sources {
      if source.target == "MigrationPolicy" { #expect(source.imports.isSubset(of: ["Glibc"]), "\(source.name)") }
      guard source.target != "PolicyHost" else { continue }
      #expect(!source.imports.contains("Subprocess"), "\(source.target)/\(source.name) starts programs")
      for call in [" fork(", " vfork(", " execve(", " posix_spawn(", " system("] {
        #expect(!source.code.contains(call), "\(source.target)/\(source.name) calls\(call)…)")
      }
      if layersBelowPrograms.contains(source.target) {
        #expect(
          !source.imports.contains("PolicyHost"), "\(source.target)/\(source.name): only programs have policies run")
      }
    }
  }

  private var layersBelowPrograms: Set<String> { Set(Self.layers.dropLast().joined()) }

  @Test func nothingImportsFullFoundation() {
    for source in Self.sources { #expect(!source.imports.contains("Foundation"), "\(source.target)/\(source.name)") }
  }

  @Test func librariesDoNotLog() {
    for source in Self.sources where !["SystemdSupport", "HopdService", "hopd", "hopctl"].contains(source.target) {
      #expect(!source.imports.contains("Logging"), "\(source.target)/\(source.name)")
      for call in ["print(", "debugPrint(", "fputs(", "perror("] {
        #expect(!source.code.contains(" \(call)"), "\(source.target)/\(source.name) writes to the terminal")
      }
    }
  }

  /// fsync, rename, link and unlink are called in one target each.
  @Test func dangerousCallsStandInOnePlace() {
    let calls = ["fsync(", "fdatasync(", "renameat(", "renameat2(", "linkat(", "unlinkat(", "ftruncate("]
    for source in Self.sources where !["DurableFiles", "CLinux"].contains(source.target) {
      for call in calls { #expect(!source.code.contains(call), "\(source.target)/\(source.name) calls \(call)…)") }
    }
  }

  /// A path is resolved where somebody typed or configured it, and nowhere else: from the scan to the report a store is
  /// an open directory and a name (docs/SECURITY.md).
  @Test func pathsAreResolvedWhereTheyEnter() {
    let entries: [String: Set<String>] = [
      "realpath(": ["DurableFiles/LinuxFileSystem.swift", "Diagnostics/FolderEntries.swift"],
      "files.canonical(": [
        "DurableFiles/CanonicalDirectory.swift",  // for the last line
        "MigrationPipeline/MigrationRun+Copying.swift",  // whether the output is the store itself
      ],
      "FileSystem().canonical(": [
        "StoreWatching/WatchRoot.swift",  // once for each watch; what it leads to later is only compared
        "HopdService/DaemonCoordinator.swift",  // the name of a store in an order, to find the store by
        "StoreFleet/StoreLine.swift",  // the working directory
      ],
      "(resolving:": [
        "DurableFiles/CanonicalDirectory.swift", "StoreReplacement/CanonicalStoreLocation.swift",
        "StoreReplacement/BackupSet.swift",  // the configured folder of backups
        "MigrationPipeline/ScratchDirectory.swift", "MigrationPipeline/MigrationRun+Rehearsing.swift",  // of our own
        "MigrationPipeline/MigrationRun+Copying.swift",  // the output
        "HopdService/Daemon.swift",  // the state directory
        "StoreFleet/ResultFiles.swift",  // folders of results
      ],
    ]
    for source in Self.sources where source.target != "hopctl" {
      let file = "\(source.target)/\(source.name)"
      for (call, files) in entries where source.code.contains(call) {
        #expect(files.contains(file), "\(file) resolves a path: \(call)…)")
      }
      if ["HopdService", "MigrationPipeline", "StoreFleet"].contains(source.target) {
        for call in ["StoreLocation(database:", "lstat(", "opendir("] where source.code.contains(call) {
          // The name of a store in an order or an error, and files of hopd's own in /dev/shm.
          let others = ["DaemonCoordinator.swift", "CrashSuspects.swift", "HopdError+Any.swift", "ClaimFile.swift"]
          #expect(others.contains(source.name), "\(file) names a store without its directory: \(call)…)")
        }
      }
    }
  }

  /// Every connection to a file uses the VFS that restricts SQLite to the database's own files (CLinux/storevfs.c).
  @Test func noConnectionOpensAFileByOtherMeans() {
    for source in Self.sources {
      let opens = source.code.ranges(of: "sqlite3_open").count
      let isTheOne = source.target == "SQLite" && source.name == "Connection.swift"
      #expect(opens == (isTheOne ? 1 : 0), "\(source.target)/\(source.name) opens databases")
      for word in ["vfs: nil", "vfs=unix", "unix-none", "unix-excl", "nolock=1"] {
        #expect(!source.code.contains(word), "\(source.target)/\(source.name) names another VFS: \(word)")
      }
    }
    let connection = Self.text("\(Self.path(of: "SQLite"))/Connection.swift")
    #expect(connection.contains("sqlite3_open_v2(name, &opened, flags, vfs)"))
    #expect(connection.contains("busyTimeout: busyTimeout, vfs: CLINUX_STORE_VFS)"))
  }

  /// docs/SECURITY.md names the test of each line; a removed or renamed test is reported here.
  @Test func theThreatModelNamesTestsThatExist() throws {
    let manager = FileManager.default
    let suites = Set(
      try manager.subpathsOfDirectory(atPath: "\(Self.root)/Tests").compactMap {
        $0.split(separator: "/").last.map { String($0) }
      })
    let cases = try manager.contentsOfDirectory(atPath: "\(Self.root)/Tests/StoreCases")
    var named = 0
    for line in Self.text("docs/SECURITY.md").split(separator: "\n") where line.hasPrefix("| ") || line.hasPrefix("- ")
    {
      for word in line.split(separator: "`", omittingEmptySubsequences: false).enumerated() where word.offset % 2 == 1 {
        let name = String(word.element)
        if name.hasSuffix("Tests") {
          named += 1
          let isFolder = manager.fileExists(atPath: "\(Self.root)/Tests/\(name)")
          #expect(isFolder || suites.contains("\(name).swift"), "docs/SECURITY.md names \(name)")
        } else if name.hasSuffix("-…") {
          named += 1
          #expect(cases.contains { $0.hasPrefix(name.dropLast()) }, "docs/SECURITY.md names StoreCases \(name)")
        }
      }
    }
    #expect(named > 10)
  }

  /// An input that reaches a trap is a bug of the highest severity, so no trap is written at all.
  @Test func noTrapsAreWritten() {
    for source in Self.sources {
      for word in ["fatalError(", "preconditionFailure(", "try!", "as! ", "precondition(", "assertionFailure("] {
        #expect(!source.code.contains(word), "\(source.target)/\(source.name): \(word)")
      }
    }
  }

  /// No text of this project mentions where it was made.
  @Test func theProjectSpeaksOfItselfAlone() throws {
    var texts = Self.sources.map { (name: "\($0.target)/\($0.name)", text: $0.text) }
    for folder in [
      "docs", "docs/decisions", "Examples", "Examples/Books", "Examples/Mappings", "Examples/Policies", ".",
    ] {
      for name in try FileManager.default.contentsOfDirectory(atPath: "\(Self.root)/\(folder)")
      where name.hasSuffix(".md") || name == "Makefile" {
        texts.append((name: "\(folder)/\(name)", text: Self.text("\(folder)/\(name)")))
      }
    }
    #expect(texts.count > Self.sources.count + 25)
    for (name, text) in texts {
      for word in ["/work/", "/tmp/hopd-", ".library/", "helper-"] {
        #expect(!text.contains(word), "\(name): \(word)")
      }
    }
  }
}
