// Copies of many files: each is synced, some at a time, and an error of the disk reaches the caller.

import Diagnostics
import DurableFiles
import FoundationEssentials
import SystemPackage
import Testing

@Suite struct FileCopiesTests {
  private static let count = FileCopies.unsyncedMax * 2 + 7

  /// Makes a folder of files and copies all of it.
  private func copy(_ files: FaultyFileSystem, _ check: (FilePath) throws -> Void = { _ in }) throws {
    let root = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-copies-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: root.appending("to").string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: root.string) }
    var copies = FileCopies(files)
    for number in 0..<Self.count {
      let file = root.appending("f\(number)")
      try Data("content of \(number)".utf8).write(to: URL(filePath: file.string))
      try copies.copy(from: file, to: root.appending("to").appending("f\(number)"))
    }
    try copies.finish()
    try check(root.appending("to"))
  }

  @Test func eachCopyIsSyncedAndFewWait() throws {
    let files = FaultyFileSystem()
    try copy(files) { folder in
      for number in 0..<Self.count {
        let bytes = try Data(contentsOf: URL(filePath: folder.appending("f\(number)").string))
        #expect(bytes == Data("content of \(number)".utf8))
      }
    }
    var waiting: Set<Substring> = []
    var most = 0
    for call in files.calls {
      let words = call.split(separator: " ")
      if words.first == "copy" { waiting.insert(words[2]) }
      if words.first == "sync" { #expect(waiting.remove(words[1]) != nil, "\(call)") }
      most = max(most, waiting.count)
    }
    #expect(waiting.isEmpty)
    #expect(most == FileCopies.unsyncedMax)
    #expect(files.calls.count == Self.count * 2)
  }

  @Test func noFailureOfASyncIsLost() throws {
    for failing in Array(stride(from: 1, to: Self.count * 2, by: 11)) + [Self.count * 2] {
      let files = FaultyFileSystem(.init(failAt: failing))
      #expect(throws: HopdError.self, "call \(failing)") { try copy(files) }
      #expect(files.calls.count == failing, "nothing is done after a failure")
    }
  }
}
