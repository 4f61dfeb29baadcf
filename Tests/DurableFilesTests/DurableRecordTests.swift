import Diagnostics
import DurableFiles
import FoundationEssentials
import SimulatedDisk
import SystemPackage
import Testing

@Suite("A record in a file of its own")
struct DurableRecordTests {
  private struct Note: Codable, Equatable {
    var format = 1
    var text: String
  }

  /// A disk with a directory for the record.
  private func start() throws -> (disk: SimulatedDisk, record: DurableRecord<Note>) {
    let disk = SimulatedDisk()
    let path = disk.root.appending("state/note.json")
    try disk.makeDirectory(path.removingLastComponent(), mode: 0o700)
    disk.settle()
    let record = DurableRecord<Note>(
      "the note", at: path, newestFormat: 1, limit: 1000, hints: ("mend it", "update"), files: disk)
    return (disk, record)
  }

  @Test("What was written is read, and what was removed is gone, also after a power cut")
  func comesAndGoes() throws {
    let (disk, record) = try start()
    let reads = try record.read().get()
    #expect(reads == nil)
    for note in [Note(text: "one"), Note(text: "two")] {
      try record.write(note)
      disk.settle()
      #expect(try record.read().get() == note)
    }
    #expect(
      String(decoding: try disk.read(record.path, limit: 1000), as: UTF8.self)
        .filter { !$0.isWhitespace } == #"{"format":1,"text":"two"}"#)
    #expect(try record.remove())
    #expect(try !record.remove())
    let reported = disk.moment
    var cuts = PowerCuts(CutPlan(seed: 1))
    try cuts.forEach(of: disk, reported: reported) { image in
      let after = DurableRecord<Note>("the note", at: record.path, files: image.disk)
      let note = try after.read().get()
      #expect(note == nil || (image.moment < reported && note?.text == "two"))
      return true
    }
  }

  @Test("Garbage, another kind of file and a newer record are told apart")
  func findings() throws {
    let (disk, record) = try start()
    func fails(_ code: HopdError.Code, _ message: String, _ hint: String) {
      let error = #expect(throws: HopdError.self) { try record.read().get() }
      #expect(
        error?.code == code && error?.message == message && error?.hint == hint && error?.place.file == record.path)
    }
    for text in ["", "null", "{}", #"{"format":1}"#, #"{"format":"#] {
      try disk.writeDurably(Array(text.utf8), to: record.path)
      fails(.recordUnreadable, "the note cannot be read", "mend it")
    }
    try disk.writeDurably(Array(repeating: 0x20, count: 1001), to: record.path)
    fails(.recordUnreadable, "the note is too large", "mend it")
    // Whatever else a newer record holds, it is newer.
    for text in [#"{"format":2,"text":"a"}"#, #"{"format":2,"words":[]}"#] {
      try disk.writeDurably(Array(text.utf8), to: record.path)
      fails(.recordNewer, "the note has format 2; this hopd supports 1", "update")
    }
    try disk.unlink(record.path)
    try disk.makeDirectory(record.path, mode: 0o700)
    fails(.recordUnreadable, "the note must be a file", "mend it")
  }
}
