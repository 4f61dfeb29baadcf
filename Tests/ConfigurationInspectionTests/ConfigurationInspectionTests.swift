// What is found when everything that a configuration names is opened, and at which line it is told.

import Diagnostics
import Glibc
import HopdConfiguration
import SystemPackage
import Testing

@testable import ConfigurationInspection

@Suite struct ConfigurationInspectionTests {
  @Test("One remedy of several things is told once, with the last of them")
  func sharedHints() {
    func obstacle(_ message: String, _ hint: String?) -> HopdError {
      HopdError(.configurationInvalid, message, hint: hint)
    }
    var findings = ConfigurationInspection.Findings()
    findings.mistakes = [obstacle("a", "do this"), obstacle("b", "do that")]
    findings.obstacles = [obstacle("c", "do this"), obstacle("d", nil), obstacle("e", "do this")]
    let error = ConfigurationInspection.error(findings)
    #expect(error?.reasons.map(\.hint) == [nil, "do that", nil, nil, "do this"])
  }

  /// A folder with a model, two directories and a configuration.
  final class Place {
    let root: FilePath

    init() throws {
      var template = Array("/tmp/hopd-inspection-XXXXXX".utf8CString)
      try #require(mkdtemp(&template) != nil)
      root = FilePath(platformString: template)
      for name in ["a", "b", "a/below", "A.xcdatamodel"] { mkdir(root.appending(name).string, 0o755) }
      symlink("a", root.appending("link").string)
      try write(
        "A.xcdatamodel/contents",
        """
        <?xml version="1.0"?><model><entity name="Person">
        <attribute name="name" optional="YES" attributeType="String"/></entity></model>
        """)
    }

    deinit {
      for name in [
        "hopd.toml", "A.xcdatamodel/contents", "A.xcdatamodel", "link", "program", "a/below", "a", "b", "",
      ] {
        remove(root.appending(name).string)
      }
    }

    func write(_ name: String, _ text: String) throws {
      let file = try #require(fopen(root.appending(name).string, "w"))
      fputs(text, file)
      fclose(file)
    }

    /// The configuration of watches, each by name, directory and more lines.
    func load(_ watches: [(name: String, directory: String, more: String)], _ end: String = "") throws
      -> LoadedConfiguration
    {
      let tables = watches.map { watch in
        """
        [[watch]]
        name = "\(watch.name)"
        directory = "\(root.appending(watch.directory))"
        models = ["\(root.appending("A.xcdatamodel"))"]
        \(watch.more)

        """
      }
      try write("hopd.toml", tables.joined() + end)
      return try ConfigurationLoader.load(file: root.appending("hopd.toml"))
    }
  }

  private func error(_ loaded: LoadedConfiguration, waits: Bool = false, unit: UnitFile? = nil) -> HopdError? {
    ConfigurationInspection.error(ConfigurationInspection(loaded, unit: unit).findings(), waits: waits)
  }

  @Test func whatIsThereIsNoFinding() throws {
    let place = try Place()
    #expect(error(try place.load([("w", "a", ""), ("v", "b", "recursive = true")])) == nil)
  }

  @Test func modelsAreOpened() throws {
    let place = try Place()
    let loaded = try place.load([("w", "a", ""), ("v", "b", "target = \"B\"")])
    let found = try #require(error(loaded, waits: true))
    #expect(found.code.exit == .configuration)
    #expect(found.place.file == place.root.appending("hopd.toml") && found.place.line == 10, "\(found)")
    #expect(found.description.contains("the watch v is unavailable"))
    #expect(found.description.contains("no model of this watch has a version"))
    remove(place.root.appending("A.xcdatamodel/contents").string)
    remove(place.root.appending("A.xcdatamodel").string)
    let both = try #require(error(loaded, waits: true))
    #expect(both.reasons.map(\.place.line) == [4, 9], "\(both)")
  }

  @Test func directoriesMustBeThereButAReloadWaitsForThem() throws {
    let place = try Place()
    let loaded = try place.load([("w", "a", ""), ("v", "later", "")])
    let found = try #require(error(loaded))
    #expect(found.code.exit == .configuration && found.place.line == 8, "\(found)")
    #expect(found.message.contains("later: No such file or directory"))
    #expect(error(loaded, waits: true) == nil)
    // A folder for backups is made with the first of them.
    #expect(error(try place.load([("w", "a", "[watch.backup]\ndirectory = \"\(place.root)/new\"")])) == nil)
    #expect(error(try place.load([("w", "a", "[watch.backup]\ndirectory = \"/nowhere/new\"")]))?.place.line == 6)
  }

  @Test func directoriesThatTheServiceMayNotWriteAreRemarksWithTheNextCommand() throws {
    let place = try Place()
    let backup = "[watch.backup]\ndirectory = \"\(place.root)/b\""
    let loaded = try place.load([("w", "a", ""), ("v", "later", backup)])
    #expect(WriteAccess.remarks(in: loaded, dropIn: "the drop-in").isEmpty)
    let remarks = WriteAccess.remarks(in: loaded, dropIn: "the drop-in") { path in
      switch path.lastComponent?.string {
      case "a": .readOnlyFileSystem
      case "b": .permissionDenied
      default: .noSuchFileOrDirectory
      }
    }
    // A directory that is missing is waited for.
    #expect(remarks.map(\.place.line) == [3, 11], "\(remarks)")
    #expect(remarks.map(\.code) == [.directoryUnwritable, .directoryUnwritable])
    #expect(remarks[0].message == "hopd cannot write to \(place.root)/a: Read-only file system")
    #expect(remarks[0].hint == "the drop-in" && remarks[1].hint == "ls -lad \(place.root)/b")
  }

  @Test func programsOfCommandsMustBeThereAndRun() throws {
    let place = try Place()
    try place.write("program", "")
    let own = "on_failure = [\"\(place.root)/program\", \"x\"]"
    let all = "[daemon]\non_failure = [\"sh\"]\non_migrated = [\"/nowhere/tell\"]"
    let loaded = try place.load([("w", "a", own), ("v", "b", "")], all)
    let found = try #require(error(loaded, waits: true))
    // A command of [daemon] is one finding, at its own line, for all watches that take it.
    #expect(found.reasons.map(\.place.line) == [5, 13], "\(found)")
    #expect(found.description.contains("the program of `on_failure` is not an executable file: \(place.root)/program"))
    #expect(found.description.contains("the program of `on_migrated` does not exist: /nowhere/tell"))
    #expect(found.code.exit == .configuration && found.reasons.allSatisfy { $0.hint != nil })
    chmod(place.root.appending("program").string, 0o755)
    #expect(error(loaded, waits: true)?.place.line == 13)
    // The service must see them too.
    let unit = UnitFile(["[Service]\nPrivateTmp=yes\n"])
    let hidden = try place.load([("w", "b", own.replacing("on_failure", with: "on_migrated"))])
    #expect(
      error(hidden, waits: true, unit: unit)?.description.contains("/program is hidden from hopd.service") == true)
  }

  @Test func programsOfPoliciesMustBeThereAndRun() throws {
    let place = try Place()
    let policies = """
      [policies]
      Good = { command = ["sh"] }
      Gone = { command = ["/nowhere/program"] }
      Plain = { command = ["\(place.root)/program"] }
      """
    try place.write("program", "")
    chmod(place.root.appending("program").string, 0o644)
    let found = try #require(error(try place.load([("w", "a", "")], policies), waits: true))
    #expect(found.reasons.map(\.place.line) == [8, 9], "\(found)")
    #expect(found.description.contains("/nowhere/program"))
  }

  @Test(
    "Two watches that would serve the same stores",
    arguments: [
      ("a", "", "a", "", true), ("a", "", "link", "", true), ("a", "recursive = true", "a/below", "", true),
      ("a/below", "", "a", "recursive = true", true), ("a", "", "a/below", "", false), ("a", "", "b", "", false),
      ("link", "recursive = true", "a/below", "", true), ("a", "recursive = true", "a/later", "", true),
    ])
  func overlaps(_ first: String, _ more: String, _ second: String, _ secondMore: String, _ expected: Bool) throws {
    let place = try Place()
    let findings = WatchOverlap.findings(in: try place.load([("w", first, more), ("v", second, secondMore)]))
    #expect(findings.count == (expected ? 1 : 0), "\(findings)")
    guard let found = findings.first else { return }
    // Both lines are named.
    #expect(found.place.line == 8 && found.message.contains("hopd.toml:3"), "\(found)")
    #expect(found.code.exit == .configuration)
  }

  @Test(
    "A backup directory in a tree of stores is a remark, and stops nothing",
    arguments: [
      ("a/kept", "recursive = true", "", true), ("link/kept", "recursive = true", "", true),
      ("a", "recursive = true", "", true), ("b/later/kept", "", "recursive = true", true), ("a/kept", "", "", false),
      ("a/below", "", "recursive = true", false),
    ])
  func backupsInTrees(_ backups: String, _ more: String, _ secondMore: String, _ expected: Bool) throws {
    let place = try Place()
    let rule = "[watch.backup]\ndirectory = \"\(place.root.pushing(FilePath(backups)))\""
    let loaded = try place.load([("w", "a", "\(more)\n\(rule)"), ("v", "b", secondMore)])
    let remarks = BackupOverlap.remarks(in: loaded)
    #expect(remarks.count == (expected ? 1 : 0), "\(remarks)")
    #expect(BackupOverlap.mistakes(in: loaded).isEmpty)
    let findings = ConfigurationInspection(loaded).findings()
    #expect(findings.mistakes.isEmpty, "\(findings.mistakes)")
    #expect(findings.remarks.contains { $0.code == .backupsInWatch } == expected)
    guard let found = remarks.first else { return }
    #expect(found.code.severity == .warning && found.place.line == 7, "\(found)")
    #expect(found.message.contains("the watch \(secondMore.isEmpty ? "w" : "v") watches"), "\(found)")
  }

  @Test("A watch among backups is refused", arguments: ["a.sqlite-01.hopd-backups", "b/.a.hopd-backups/20300102T01"])
  func backupsAreNotWatched(_ directory: String) throws {
    let place = try Place()
    let loaded = try place.load([("w", "a", ""), ("v", directory, "")])
    #expect(BackupOverlap.mistakes(in: loaded).count == 1)
    let found = try #require(error(loaded, waits: true))
    #expect(found.code.exit == .configuration && found.place.line == 8, "\(found)")
    #expect(found.message.contains("is inside the backup directory"), "\(found)")
  }

  @Test func rulesForEntitiesOfNoVersionAreMistakes() throws {
    let place = try Place()
    func found(_ rules: String) throws -> HopdError? {
      error(try place.load([("w", "a", "[watch.migration]\ninvalid_rows = \(rules)"), ("v", "b", "")]), waits: true)
    }
    #expect(try found("{ Person = \"skip\", \"*\" = \"fail\" }") == nil)
    let mistake = try #require(try found("{ Persn = \"skip\", \"*\" = \"fail\" }"))
    #expect(mistake.place.line == 6 && mistake.place.key == "watch.w.migration.invalid_rows.Persn", "\(mistake)")
    let text = "\(mistake)"
    #expect(text.contains("the watch w has the entity Persn") && text.contains("use 'Person'"), "\(text)")
  }

  @Test func theUnitSaysWhereItMayWrite() {
    let unit = """
      [Unit]
      ReadWritePaths=/unit
      [Service]
      User=hopd
      ProtectSystem=strict
      ProtectHome=yes
      StateDirectory=hopd
      ReadWritePaths=/gone
      """
    let file = UnitFile([unit, "[Service]\nReadWritePaths=\nReadWritePaths=-/srv/library \"/srv/two\"\n"])
    #expect(file.user == "hopd")
    #expect(file.obstacle(to: "/srv/library") == nil && file.obstacle(to: "/srv/library/stores") == nil)
    #expect(file.obstacle(to: "/srv/two") == nil && file.obstacle(to: "/var/lib/hopd/spool") == nil)
    for path: FilePath in ["/gone", "/unit", "/srv", "/srv/libraryx"] {
      #expect(file.obstacle(to: path)?.contains("ReadWritePaths=") == true, "\(path)")
    }
    #expect(file.obstacle(to: "/home/me/stores")?.contains("ProtectHome=") == true)
    #expect(UnitFile(["[Service]\nExecStart=/bin/true\n"]).obstacle(to: "/srv") == nil)
  }

  @Test func aDirectoryThatTheUnitMayNotWriteIsReported() throws {
    let place = try Place()
    let loaded = try place.load([("w", "a", "")])
    let found = try #require(error(loaded, unit: UnitFile(["[Service]\nProtectSystem=strict\n"])))
    #expect(found.place.line == 3 && found.hint?.contains("hopctl check-config --drop-in") == true, "\(found)")
    #expect(error(loaded, unit: UnitFile(["[Service]\nProtectSystem=strict\nReadWritePaths=-\(place.root)\n"])) == nil)
  }

  @Test(.enabled(if: getpwnam("nobody").map { $0.pointee.pw_uid != geteuid() } ?? false, "there is no other user"))
  func aDirectoryThatTheServicesUserMayNotWriteIsReported() throws {
    let place = try Place()
    let loaded = try place.load([("w", "a", "")])
    let unit = UnitFile(["[Service]\nUser=nobody\n"])
    let directory = place.root.appending("a").string
    for path in [place.root.string, directory] { chmod(path, 0o755) }
    let found = try #require(error(loaded, unit: unit))
    #expect(found.place.line == 3 && found.message.contains("nobody cannot write to \(directory)"), "\(found)")
    #expect(found.hint?.contains("setfacl -m u:nobody:rwx \(directory)") == true)
    chmod(directory, 0o777)
    #expect(error(loaded, unit: unit) == nil)
  }

  @Test(.enabled(if: getpwnam("nobody").map { $0.pointee.pw_uid != geteuid() } ?? false, "there is no other user"))
  func modelsThatTheServiceCannotReadAreReported() throws {
    let place = try Place()
    let loaded = try place.load([("w", "a", "")])
    let unit = UnitFile(["[Service]\nUser=nobody\n"])
    for name in ["", "a"] { chmod(place.root.appending(name).string, 0o777) }
    #expect(error(loaded, unit: unit) == nil)
    // A file of the model, the model's folder, and a folder far above it.
    for (name, mode, usual) in [
      ("A.xcdatamodel/contents", 0o600, 0o644), ("A.xcdatamodel", 0o700, 0o755), ("", 0o700, 0o777),
    ] {
      let path = place.root.appending(name).string
      chmod(path, mode_t(mode))
      let found = try #require(error(loaded, waits: true, unit: unit))
      #expect(found.code.exit == .configuration && found.place.line == 4, "\(found)")
      #expect(
        found.message == "permission denied: nobody cannot read \(FilePath(path).lexicallyNormalized())", "\(found)")
      #expect(found.hint?.contains("setfacl -R -m u:nobody:rX") == true)
      chmod(path, mode_t(usual))
    }
    // As in /root of the packaged unit.
    let hidden = try #require(error(loaded, waits: true, unit: UnitFile(["[Service]\nPrivateTmp=yes\n"])))
    #expect(hidden.message.contains("A.xcdatamodel is hidden from hopd.service by PrivateTmp="), "\(hidden)")
  }

  @Test func theFolderOfTheMetricsIsInspected() throws {
    let place = try Place()
    for (folder, line) in [("a", 0), ("nowhere", 7)] {
      let loaded = try place.load(
        [("w", "a", "")], "[daemon]\nmetrics_file = \"\(place.root.appending(folder))/hopd.prom\"\n")
      let found = error(loaded)
      #expect((found == nil) == (line == 0) && (found?.place.line ?? 0) == line, "\(String(describing: found))")
      // hopd works without its metrics: a reload takes it.
      #expect(error(loaded, waits: true) == nil)
    }
    let loaded = try place.load(
      [("w", "a", "")], "[daemon]\nmetrics_file = \"\(place.root)/b/hopd.prom\"\n")
    let unit = UnitFile(["[Service]\nProtectSystem=strict\nReadWritePaths=\(place.root)/a\n"])
    #expect(error(loaded, unit: unit)?.message.contains("b is read-only for hopd.service") == true)
  }

  @Test func anInstanceIsCheckedAgainstItsOwnUnit() throws {
    let place = try Place()
    let units = place.root.appending("units")
    func write(_ name: String, _ text: String) throws {
      let file = units.pushing(FilePath(name))
      var folder = units
      for part in FilePath(name).removingLastComponent().components {
        mkdir(folder.string, 0o755)
        folder.append(part)
      }
      mkdir(folder.string, 0o755)
      let stream = try #require(fopen(file.string, "w"))
      fputs(text, stream)
      fclose(stream)
    }
    defer { removeTree(units.string) }
    let template = "[Service]\nProtectSystem=strict\nStateDirectory=hopd-%i\n"
    try write("usr/lib/systemd/system/hopd@.service", template)
    try write("etc/systemd/system/hopd@tenant.service.d/watches.conf", "[Service]\nReadWritePaths=/srv/100%%/%i\n")
    #expect(UnitFile.serving(nil, root: units) == nil)
    #expect(UnitFile.serving(units.appending("etc/hopd.toml"), root: units) == nil)
    let file = units.pushing("etc/hopd/tenant.toml")
    let unit = try #require(UnitFile.serving(file, root: units))
    #expect(unit.name == "hopd@tenant.service")
    #expect(unit.obstacle(to: "/srv/100%/tenant") == nil && unit.obstacle(to: "/var/lib/hopd-tenant") == nil)
    let obstacle = unit.obstacle(to: "/srv/other")
    #expect(obstacle == "is read-only for hopd@tenant.service: no ReadWritePaths= of the unit names it")
    let other = try #require(UnitFile.serving(units.pushing("etc/hopd/other.toml"), root: units))
    #expect(other.obstacle(to: "/srv/100%/tenant") != nil)
    let found = try #require(error(try place.load([("w", "a", "")]), unit: unit))
    #expect(found.hint?.contains("/etc/systemd/system/hopd@tenant.service.d/watches.conf") == true, "\(found)")
    #expect(found.hint?.contains("systemctl restart hopd@tenant`") == true, "\(found)")
    #expect(found.hint?.contains("hopctl check-config --drop-in --install \(place.root)/hopd.toml") == true, "\(found)")
  }

  private func removeTree(_ path: String) {
    guard let stream = opendir(path) else {
      unlink(path)
      return
    }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    closedir(stream)
    for name in names { removeTree("\(path)/\(name)") }
    rmdir(path)
  }
}
