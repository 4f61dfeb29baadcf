// hopctl run by root beside the stores of the daemon's user: the daemon can use all files that it leaves, and no number
// of a backup is given twice, also where a label cannot be read.

import Diagnostics
import DurableFiles
import FoundationEssentials
import Glibc
import OtherPrograms
import PersistentStore
import SystemPackage
import Testing

@testable import StoreReplacement

@Suite("What root makes beside another user's store")
struct OwnedByOthersTests {
  @Test(
    "Everything that migrations, restores and pins make belongs to the owner of the store and its directory",
    .enabled(if: geteuid() == 0, "only root can stand for two users"),
    arguments: [ReplacementMode.rename, .inPlace])
  func owners(_ mode: ReplacementMode) throws {
    let world = try TestWorld(.wal, externalFiles: ["A0B1"])
    try run("/bin/chown", "-R", "20002:20003", world.home.string)
    let backup = try #require(try world.migrate(files: world.plain, job: "a1", mode: mode).backup)
    try world.restore(backup, job: "b2")
    var found = 0
    var folders = [world.home]
    while let folder = folders.popLast() {
      for name in try world.plain.names(in: folder) {
        let path = folder.appending(name)
        let status = try #require(try world.plain.status(path))
        if status.kind == .directory { folders.append(path) }
        found += 1
        #expect(status.owner == 20_002 && status.group == 20_003, "\(path)")
      }
    }
    #expect(found > 10)
  }

  @Test("A number is given once, also where labels cannot be read", arguments: [1, 2])
  func numbers(_ unreadable: Int) throws {
    let world = try TestWorld(.rollback)
    for job in ["a1", "b2", "c3"] {
      try world.migrate(files: world.plain, job: job, backup: BackupRule(keep: 9), now: 1_000_000)
    }
    let old = try world.backups().generations()
    #expect(old.compactMap(\.record?.number) == [3, 2, 1])
    var labels: [(FilePath, [UInt8])] = []
    for generation in old.prefix(unreadable) {
      labels.append((generation.label, try world.plain.read(generation.label, limit: 65_536)))
      try world.plain.unlink(generation.label)
      try world.plain.createFile(generation.label, Array("{".utf8), mode: 0o600)
    }
    // No older one counts as the newest, and the label is reported.
    #expect(try world.backups().generations().first?.record == nil)
    #expect(try world.backups().unreadableLabels().count == unreadable)
    // The clock is put back meanwhile.
    for (job, now) in [("d4", 2_000_000), ("e5", 500)] {
      let result = try world.migrate(files: world.plain, job: job, backup: BackupRule(keep: 9), now: Int64(now))
      #expect(result.warnings.filter { $0.code == .recordUnreadable }.count == unreadable)
    }
    for (label, bytes) in labels {
      try world.plain.unlink(label)
      try world.plain.createFile(label, bytes, mode: 0o600)
    }
    let records = try world.backups().generations().compactMap(\.record)
    #expect(records.map(\.job) == ["e5", "d4", "c3", "b2", "a1"])
    #expect(Set(records.map(\.number)).count == 5)
  }
}
