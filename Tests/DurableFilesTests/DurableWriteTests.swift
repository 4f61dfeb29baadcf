import DurableFiles
import SystemPackage
import Testing

@Suite("Writing a small file durably")
struct DurableWriteTests {
  static let path: FilePath = "/state/record.json"
  static let old = Array("old content".utf8)
  static let new = Array("the new content".utf8)

  @Test("A power cut at any call leaves the old or the new file, whatever of the unsynced changes survives")
  func oldOrNewAtEachCall() throws {
    var sawOld = false
    for call in 1... {
      let start = SimulatedDisk()
      try start.makeDirectory("/state", mode: 0o700)
      try start.writeDurably(Self.old, to: Self.path)
      var found: [SimulatedDisk] = []
      var isFinished = false
      let disk = SimulatedDisk(start.snapshot, cutBefore: call)
      do {
        try disk.writeDurably(Self.new, to: Self.path)
        isFinished = true
      } catch is SimulatedDisk.PowerCut {}
      for survival in SimulatedDisk.Survival.allCases { found.append(disk.afterPowerCut(survival)) }
      for left in found {
        let content = try left.read(Self.path, limit: 100)
        #expect(content == Self.new || (!isFinished && content == Self.old), "cut before call \(call)")
        if content == Self.old { sawOld = true }
        // And a later attempt finishes over whatever lies about.
        try left.writeDurably(Self.new, to: Self.path)
        #expect(try left.afterPowerCut(.nothing).read(Self.path, limit: 100) == Self.new)
      }
      if isFinished {
        #expect(sawOld, "the cuts never came before the rename: the loop proves nothing")
        return
      }
    }
  }

  @Test("The simulated disk does lose a file that was renamed without syncs")
  func theDiskIsHonest() throws {
    let disk = SimulatedDisk()
    try disk.makeDirectory("/state", mode: 0o700)
    try disk.writeDurably(Self.old, to: Self.path)
    try disk.createFile("/state/x", Self.new, mode: 0o600)
    try disk.rename("/state/x", to: Self.path)
    #expect(try disk.afterPowerCut(.nothing).read(Self.path, limit: 100) == Self.old)
  }
}
