import Diagnostics
import DurableFiles
import Glibc
import PersistentStore
import SimulatedDisk
import SystemPackage
import Testing

@testable import StoreReplacement

@Suite("Space that is set aside")
struct StagedSpaceTests {
  private let mebibyte: Int64 = 1 << 20

  private func area(_ world: TestWorld, _ files: any DurableFileSystem = LinuxFileSystem()) -> StagingArea {
    StagingArea(location: world.location, job: "ab12", files: files)
  }

  @Test("It is on the disk from the first moment, counts as the job's, and is given back")
  func takenAndGivenBack() throws {
    let world = try TestWorld(.rollback)
    let area = area(world)
    let staged = try area.create(hop: 0, reserving: 4 * mebibyte)
    let status = try #require(try world.plain.status(staged))
    #expect(status.size == 0 && status.mode == 0o600)
    // tmpfs and ext4 can; on others only what is not asserted here differs.
    let canReserve = try world.plain.reserve(1, for: staged)
    try #require(canReserve, "no file system that can set space aside: nothing is proved")
    #expect(try area.allocatedBytes(hops: 0..<2) >= 4 * mebibyte)
    try area.reserveDiskSpace(2 * mebibyte, for: .nextStore)
    try area.reserveDiskSpace(3 * mebibyte, for: .commit)
    #expect(try area.allocatedBytes(hops: 0..<2) >= 9 * mebibyte)
    // Once more is no more.
    try area.reserveDiskSpace(3 * mebibyte, for: .commit)
    #expect(try area.allocatedBytes(hops: 0..<2) < 10 * mebibyte)
    try area.releaseDiskSpace(for: .nextStore)
    try area.releaseDiskSpace(for: .nextStore)
    #expect(try area.allocatedBytes(hops: 0..<2) < 8 * mebibyte)
    try area.giveBackReserve(hop: 0)
    try area.giveBackReserve(hop: 1)  // there is none
    let rest = try area.allocatedBytes(hops: 0..<2)
    #expect(rest >= 3 * mebibyte && rest < 4 * mebibyte)
    // The file that a kill leaves is removed like all scratch.
    #expect(try world.recover().decision == .startAgain([.dropStaged]))
    #expect(world.names == ["Library.sqlite"])
    #expect(try area.allocatedBytes(hops: 0..<2) == 0)
  }

  @Test("A file that an interrupted run left keeps what is in it")
  func resumed() throws {
    let world = try TestWorld(.rollback)
    let area = area(world)
    let staged = try world.leave(area, hop: 0)
    #expect(try area.create(hop: 0, reserving: mebibyte, resuming: true) == staged)
    #expect(try world.plain.read(staged, limit: 9) == [1, 2, 3])
    #expect(try area.allocatedBytes(hops: 0..<1) >= mebibyte)
    // Without a request, no space is reserved.
    #expect(try area.create(hop: 0, reserving: 0) == staged)
    #expect(try world.plain.status(staged)?.allocated == 0)
  }

  @Test("More than there is: told with what to free, before any work, and nothing new stays")
  func noSpace() throws {
    let world = try TestWorld(.rollback)
    let area = area(world)
    let far = try world.plain.freeBytes(at: world.stores).addingReportingOverflow(1 << 40).partialValue
    func refused(_ body: () throws -> Void) throws {
      do {
        try body()
        Issue.record("more space was set aside than there is")
      } catch let error as HopdError {
        #expect(error.code == .noSpace && error.place.store == world.location.database)
        #expect(error.message.contains("\(far) bytes") && error.hint?.contains("MiB on the file system of") == true)
      }
    }
    try refused { _ = try area.create(hop: 0, reserving: far) }
    try refused { try area.reserveDiskSpace(far, for: .nextStore) }
    #expect(world.names == ["Library.sqlite"])
    let staged = try world.leave(area, hop: 0)
    try refused { _ = try area.create(hop: 0, reserving: far, resuming: true) }
    #expect(try world.plain.read(staged, limit: 9) == [1, 2, 3], "what an interrupted run had made")
  }

  @Test("A disk that fails is told as one, and nothing new stays")
  func failing() throws {
    for call in 1...3 {
      let world = try TestWorld(.rollback)
      let files = FaultyFileSystem(.init(failAt: call))
      let area = area(world, files)
      let found = code {
        _ = try area.create(hop: 0, reserving: mebibyte)
        try area.reserveDiskSpace(mebibyte, for: .commit)
      }
      #expect(found == .inputOutput, "call \(call): \(files.calls)")
      #expect(world.names.count == (call < 3 ? 1 : 2), "call \(call): \(world.names)")
    }
  }

  @Test("A file system that cannot set space aside is worked on all the same")
  func cannot() throws {
    let world = try DiskWorld(DiskScenario(kind: .rollback))
    try world.disk.mounted {
      let area = StagingArea(location: world.location, job: "ab12", files: world.disk)
      let staged = try area.create(hop: 0, reserving: mebibyte)
      try area.reserveDiskSpace(mebibyte, for: .nextStore)
      #expect(try world.disk.status(staged)?.size == 0)
      try area.giveBackReserve(hop: 0)
      try area.removeAll()
      #expect(try world.leftovers().isEmpty)
    }
  }
}
