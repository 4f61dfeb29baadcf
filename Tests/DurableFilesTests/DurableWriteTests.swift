import DurableFiles
import SimulatedDisk
import SystemPackage
import Testing

@Suite("Writing a small file durably")
struct DurableWriteTests {
  static let old = Array("old content".utf8)
  static let new = Array("the new content".utf8)

  /// A disk with a directory and the old record in it, all safe.
  private func start() throws -> (disk: SimulatedDisk, path: FilePath) {
    let disk = SimulatedDisk()
    let path = disk.root.appending("state/record.json")
    try disk.makeDirectory(path.removingLastComponent(), mode: 0o700)
    try disk.createFile(path, Self.old, mode: 0o600)
    disk.settle()
    return (disk, path)
  }

  @Test("A power cut at any moment leaves the old or the new file, whatever of the unsynced changes survives")
  func oldOrNewAtEachMoment() throws {
    let (disk, path) = try start()
    try disk.writeDurably(Self.new, to: path)
    let reported = disk.moment
    var (old, new) = (0, 0)
    var cuts = PowerCuts(CutPlan(seed: 1))
    try cuts.forEach(of: disk, reported: reported) { image in
      let content = try image.disk.read(path, limit: 100)
      let isNew = content == Self.new
      #expect(isNew || (image.moment < reported && content == Self.old), "\(image.kind) after \(image.moment)")
      (old, new) = (old + (isNew ? 0 : 1), new + (isNew ? 1 : 0))
      // And a later attempt finishes over any leftovers.
      image.disk.settle()
      try image.disk.writeDurably(Self.new, to: path)
      var later = PowerCuts(CutPlan(seed: 2))
      let end = image.disk.moment
      try later.forEach(of: image.disk, reported: end) { after in
        let content = try after.disk.read(path, limit: 100)
        #expect(content == Self.new || (after.moment < end && content == Self.old))
        return true
      }
      return true
    }
    #expect(old > 3 && new > 1, "the cuts never came before the rename: the loop proves nothing")
  }

  @Test("The simulated disk does lose a file that was renamed without its syncs", arguments: [1, 2])
  func theDiskIsHonest(_ skipped: Int) throws {
    let (disk, path) = try start()
    disk.skipSync(skipped)
    try disk.writeDurably(Self.new, to: path)
    let reported = disk.moment
    var broken = 0
    var cuts = PowerCuts(CutPlan(seed: 1))
    cuts.forEach(of: disk, reported: reported) { image in
      let content = (try? image.disk.read(path, limit: 100)) ?? []
      if content != Self.new, content != Self.old || image.moment >= reported { broken += 1 }
      return true
    }
    #expect(broken > 0, "\(disk.lastFault) was left out")
  }

  @Test("A call that fails leaves the old or the new file, and nothing else after the next attempt")
  func eachCallFails() throws {
    for call in 1... {
      let (disk, path) = try start()
      disk.fail(at: call)
      let isDone = (try? disk.writeDurably(Self.new, to: path)) != nil
      let isMet = disk.calls >= call
      disk.heal()
      let content = try disk.read(path, limit: 100)
      #expect(content == Self.new || content == Self.old, "call \(call): \(disk.lastFault)")
      if isDone { #expect(content == Self.new) }
      try disk.writeDurably(Self.new, to: path)
      #expect(try disk.names(in: path.removingLastComponent()).map(\.string) == ["record.json"])
      if !isMet { return }
    }
  }

  @Test("A file system that cannot set space aside says so, and keeps the file")
  func withoutReserve() throws {
    let (disk, path) = try start()
    #expect(try disk.reserve(1 << 20, for: path) == false)
    try disk.giveBackReserve(of: path)
    #expect(try disk.read(path, limit: 100) == Self.old)
  }
}
