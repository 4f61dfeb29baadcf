// The restore of a set: what one release did to many stores comes back in one command, which continues after failures
// and kills, and pins the stores as one group.

import BlockingTests
import DurableFiles
import FoundationEssentials
import Glibc
import PersistentStore
import StoreReplacement
import SystemPackage
import Testing

extension Room {
  /// Writes a configuration with a watch for the folder of stores, and returns its path.
  func watch(_ name: String = "zoo", _ more: String = "") throws -> String {
    try file(
      "\(name).toml",
      """
      [[watch]]
      name = "\(name)"
      directory = "\(path("stores"))"
      models = ["\(model)"]
      \(more)
      """)
    return path("\(name).toml")
  }
}

@Suite(
  "Restore of a set", .blocking, .enabled(if: Program.isBuilt, Program.absence),
  .enabled(if: access("/usr/bin/sqlite3", X_OK) == 0, "sqlite3 is not there"))
struct SetRestoreTests {
  private func migrated(_ room: Room, _ name: String, _ more: String...) throws -> String {
    let store = room.path("stores/\(name)")
    if access(store, F_OK) != 0 { try room.store(name) }
    let outcome = try room.run(words: ["migrate", store, "--models", room.model] + more)
    try #require(outcome.status == 0, "\(outcome.errors)")
    return store
  }

  private func version(_ room: Room, _ store: String) throws -> String? {
    try room.run("identify", store, "--models", room.model, "--json").json().version?.text
  }

  /// The results of a run by the file names of the stores.
  private func results(_ outcome: Outcome) throws -> [String: JSON] {
    let stores = try outcome.json().stores?.list ?? []
    return Dictionary(
      stores.map { (FilePath($0.store?.text ?? "").lastComponent?.string ?? "", $0) }, uniquingKeysWith: { $1 })
  }

  private func restore(_ room: Room, _ more: String...) throws -> Outcome {
    try room.run(words: ["restore", "--watch", "zoo", "--config", room.path("zoo.toml")] + more)
  }

  @Test("One command restores the stores that went to a version, as one group, and the group is released as one")
  func undo() throws {
    let room = try Room()
    let configuration = try room.watch()
    // Several backups, one backup, migrated to another version, never migrated.
    for name in ["a.sqlite", "b.sqlite", "c.sqlite"] { _ = try migrated(room, name, "--to", "Zoo 2") }
    let a = try migrated(room, "a.sqlite", "--backup", "5")
    let b = try migrated(room, "b.sqlite")
    try room.store("d.sqlite")
    try room.sql(a, "UPDATE ZANIMAL SET ZNAME = 'WRITTEN AFTER' WHERE Z_PK = 1")
    let before = try room.snapshot()

    let dry = try restore(room, "--to-version", "Zoo 10", "--dry-run")
    #expect(dry.status == 0 && dry.output.contains("Zoo 10 → Zoo 2") && dry.output.contains("2 to restore"), "\(dry)")
    #expect(dry.output.contains("a.sqlite") && dry.output.contains("b.sqlite"))
    #expect(!dry.output.contains("c.sqlite") && !dry.output.contains("d.sqlite"))
    let silent = try restore(room, "--to-version", "Zoo 10")
    #expect(silent.status == 64 && silent.errors.contains("2 stores") && silent.errors.contains("--yes"), "\(silent)")
    #expect(try room.snapshot() == before)

    let done = try restore(room, "--to-version", "Zoo 10", "--from-version", "Zoo 2", "--yes", "--json")
    try #require(done.status == 0, "\(done.errors)")
    let stores = try results(done)
    let group = try #require(try done.json().group?.text)
    #expect(group.hasPrefix("zoo-2") && stores.keys.sorted() == ["a.sqlite", "b.sqlite"])
    for result in stores.values {
      #expect(result.result?.text == "restored" && result.from?.text == "Zoo 10" && result.to?.text == "Zoo 2")
      #expect(result.pin?.group?.text == group && result.error == .null)
    }
    let kept = try #require(stores["a.sqlite"]?.backup?.text)
    #expect(try room.sql(kept, "SELECT ZNAME FROM ZANIMAL WHERE Z_PK = 1") == "WRITTEN AFTER")
    #expect(try version(room, a) == "Zoo 2" && version(room, b) == "Zoo 2")
    #expect(try version(room, room.path("stores/d.sqlite")) == "Zoo")

    // Again: nothing is left to do, and the group stays.
    let again = try restore(room, "--to-version", "Zoo 10", "--json")
    #expect(try again.status == 0 && again.json().group?.text == group, "\(again)")
    #expect(try results(again).values.allSatisfy { $0.result?.text == "already-restored" })
    let identified = try room.run("identify", a, "--models", room.model)
    #expect(identified.output.contains("(group \(group))"), "\(identified.output)")
    #expect(identified.output.contains("hopctl resume --group \(group)"), "\(identified.output)")
    #expect(try room.run("backups", room.path("stores")).output.contains("group \(group)"))

    let other = try room.run("resume", "--group", "zoo-1", "--config", configuration)
    #expect(other.status == 66, "\(other)")
    let released = try room.run("resume", "--group", group, "--config", configuration, "--json")
    #expect(try released.status == 0 && released.json().stores?.list.compactMap { $0.store?.text } == [a, b])
    #expect(try room.run("identify", a, "--models", room.model, "--json").json().pin == .null)
    #expect(try room.run("resume", "--group", group, "--config", configuration).status == 66)
  }

  @Test("--since selects by the time of the migration, in local time or with a zone")
  func since() throws {
    let room = try Room()
    _ = try room.watch()
    let old = try migrated(room, "old.sqlite")
    usleep(1_200_000)
    let store = try migrated(room, "new.sqlite")
    let backups = try room.run("backups", store, "--json").json().stores?.list.first?.backups?.list
    let stamp = try #require(backups?.first?.createdAt?.text)
    let local = stamp.dropLast().split(separator: "T").joined(separator: " ")
    func names(_ since: String, zone: String = "UTC0") throws -> [String] {
      let words = ["restore", "--watch", "zoo", "--config", room.path("zoo.toml"), "--since", since, "--dry-run"]
      let outcome = try room.run(words: words + ["--json"], variables: ["TZ=\(zone)"])
      #expect(outcome.status == 0 || outcome.status == 66, "\(since): \(outcome.errors)")
      return try results(outcome).keys.sorted()
    }
    let both = ["new.sqlite", "old.sqlite"]
    #expect(try names(stamp) == ["new.sqlite"] && names(local) == ["new.sqlite"])
    // Nine hours ahead of UTC, the same text is a moment nine hours earlier.
    #expect(try names(local, zone: "XXX-9") == both && names(stamp, zone: "XXX-9") == ["new.sqlite"])
    for since in [
      "-1h", "1h ago", "60 minutes ago", "1 hour 30min ago", "2 days ago", "yesterday", "2001-02-03",
      "2001-02-03 04:05", "2001-02-03T04:05:06+01:00", "@1",
    ] {
      #expect(try names(since) == both, "\(since)")
    }
    for since in ["soon", "2001-13-01", "2001-02-30", "25:00", "1:2", "-1", "", "9999-01-01", "ago", "2 moons ago"] {
      #expect(try restore(room, "--since", since, "--dry-run").status == 64, "\(since)")
    }
    // Neither a selection nor a set, a store and a set, an option for one store.
    for words in [
      ["restore"], ["restore", "--watch", "zoo"], ["restore", store, "--watch", "zoo", "--since", "-1h"],
      ["restore", store, "--since", "-1h"], ["restore", "--watch", "zoo", "--since", "-1h", "--anyway"],
      ["restore", "--watch", "none", "--since", "-1h", "--config", room.path("zoo.toml")],
    ] { #expect(try room.run(words: words).status == 64, "\(words)") }
    let none = try restore(room, "--to-version", "Zoo 11", "--yes")
    #expect(none.status == 66 && none.errors.contains("hopctl backups"), "\(none)")
    // A folder instead of a watch, and no configuration at all.
    let folder = try room.run("restore", "--watch", room.path("stores"), "--since", stamp, "--yes")
    #expect(folder.status == 0 && folder.output.contains("pinned as the group stores-"), "\(folder)")
    #expect(try version(room, store) == "Zoo" && version(room, old) == "Zoo 10")
    let group = try #require(
      folder.output.split(whereSeparator: { " :\n".contains($0) }).first { $0.hasPrefix("stores-") })
    let released = try room.run("resume", room.path("stores"), "--group", String(group))
    #expect(released.status == 0 && released.output.contains("1 store unpinned"), "\(released)")
  }

  @Test("Failures are told by store, the others are restored, and the same command continues")
  func failures() throws {
    let room = try Room()
    _ = try room.watch()
    let names = ["a", "busy", "damaged", "gone", "label", "moved"].map { "\($0).sqlite" }
    var backups: [String: FilePath] = [:]
    for name in names {
      let store = try migrated(room, name, "--to", "Zoo 2")
      backups[name] = try #require(
        try BackupSet(
          location: CanonicalStoreLocation(resolving: FilePath(store)), rule: BackupRule(), files: LinuxFileSystem()
        ).generations().first?.database)
    }
    let moved = try migrated(room, "moved.sqlite", "--backup", "5")
    let damaged = try #require(backups["damaged.sqlite"])
    let data = try Data(contentsOf: URL(filePath: damaged.string))
    try data.prefix(data.count / 2).write(to: URL(filePath: damaged.string))
    #expect(unlink(room.path("stores/gone.sqlite")) == 0)
    let label = try #require(backups["label.sqlite"]).removingLastComponent().appending("backup.json")
    try Data("{".utf8).write(to: URL(filePath: label.string))
    // As hopd locks a store that it works on.
    let busy = room.path("stores/busy.sqlite")
    let lock = try LockedStore.lock(
      CanonicalStoreLocation(resolving: FilePath(busy)), lockDirectory: FilePath(room.path("state/locks")),
      files: LinuxFileSystem())

    let first = try restore(room, "--to-version", "Zoo 2", "--yes", "--json")
    lock.release()
    #expect(first.status == 75, "\(first.errors)")
    let found = try results(first)
    let group = try first.json().group?.text
    #expect(
      found.mapValues { $0.result?.text ?? "" } == [
        "a.sqlite": "restored", "busy.sqlite": "waiting", "damaged.sqlite": "failed", "gone.sqlite": "missing",
        "label.sqlite": "failed", "moved.sqlite": "failed",
      ])
    #expect(found["damaged.sqlite"]?.error?.code?.text == "store-damaged")
    #expect(found["label.sqlite"]?.error?.code?.text == "record-unreadable")
    #expect(found["moved.sqlite"]?.error?.code?.text == "other-version")
    #expect(first.errors.contains("damaged.sqlite") && first.errors.contains("moved.sqlite"))
    #expect(try version(room, moved) == "Zoo 10" && version(room, room.path("stores/damaged.sqlite")) == "Zoo 2")
    #expect(access(room.path("stores/gone.sqlite"), F_OK) != 0)

    let second = try restore(room, "--to-version", "Zoo 2", "--yes", "--json")
    #expect(second.status == 65, "\(second.errors)")
    let rest = try results(second)
    #expect(rest["a.sqlite"]?.result?.text == "already-restored" && rest["busy.sqlite"]?.result?.text == "restored")
    #expect(try second.json().group?.text == group && rest["busy.sqlite"]?.pin?.group?.text == group)
  }

  @Test("After a kill the same command continues, and all stores are one group")
  func killed() throws {
    let room = try Room()
    _ = try room.watch()
    let stores = try (1...12).map { try migrated(room, "s\($0).sqlite") }
    let words = ["restore", "--watch", "zoo", "--config", room.path("zoo.toml"), "--since", "-1h", "--yes", "--json"]
    let started = try room.start(words)
    let pins = stores.map { store in
      FilePath(store).removingLastComponent().appending(
        ".\(FilePath(store).lastComponent?.string ?? "").hopd-backups/pin.json"
      ).string
    }
    for _ in 0..<4000 where pins.count(where: { access($0, F_OK) == 0 }) < 3 { usleep(1000) }
    kill(started.process, SIGKILL)
    _ = try room.wait(started)
    let done = try room.run(words: words)
    try #require(done.status == 0, "\(done.errors)")
    #expect(try results(done).values.allSatisfy { ["restored", "already-restored"].contains($0.result?.text) })
    for store in stores {
      #expect(try version(room, store) == "Zoo", "\(store)")
      #expect(try room.sql(store, "PRAGMA integrity_check") == "ok")
    }
    let groups = try room.run("backups", room.path("stores"), "--json").json().stores?.list.map { $0.pin?.group?.text }
    #expect(groups?.count == 12 && Set(groups ?? []).count == 1, "\(groups ?? [])")
    let left = try FileManager.default.contentsOfDirectory(atPath: room.path("stores"))
    #expect(!left.contains { $0.contains(".hop-") }, "\(left)")
  }

  @Test("The backups of a watch with a backup directory, and only stores that the watch includes")
  func elsewhere() throws {
    let room = try Room()
    try FileManager.default.createDirectory(atPath: room.path("vault"), withIntermediateDirectories: true)
    let configuration = try room.watch(
      "zoo", "exclude = [\"x*\"]\n[watch.backup]\ndirectory = \"\(room.path("vault"))\"")
    for name in ["a.sqlite", "x.sqlite"] {
      let store = try room.store(name)
      try #require(try room.run("migrate", store, "--config", configuration).status == 0)
    }
    let done = try restore(room, "--since", "-1h", "--yes", "--json")
    #expect(done.status == 0, "\(done.errors)")
    let stores = try results(done)
    #expect(stores.keys.sorted() == ["a.sqlite"])
    #expect(stores["a.sqlite"]?.restored?.text?.hasPrefix(room.path("vault")) == true)
    let group = try #require(try done.json().group?.text)
    let released = try room.run("resume", "--group", group, "--config", configuration)
    #expect(released.status == 0 && released.output.contains("1 store unpinned"), "\(released)")
  }
}
