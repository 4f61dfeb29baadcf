// Where a worker finds the store of a line: no link is followed, and after a walk only the file that it found counts.

import Diagnostics
import DurableFiles
import Glibc
import PersistentStore
import StoreFleet
import StoreReplacement
import SystemPackage
import Testing

@Suite struct StoreLineTests {
  private final class Room {
    let path: FilePath

    init() throws {
      var template = Array("/tmp/hopd-line-XXXXXX".utf8CString)
      let made = template.withUnsafeMutableBufferPointer { buffer in buffer.baseAddress.flatMap { mkdtemp($0) } }
      path = try LinuxFileSystem().canonical(FilePath(String(cString: try #require(made))))
      for folder in ["in", "in/sub", "bob"] { try LinuxFileSystem().makeDirectory(path.appending(folder), mode: 0o700) }
      for store in ["in/sub/a.sqlite", "bob/a.sqlite"] {
        let bytes = [UInt8](repeating: 0x78, count: 200)
        try LinuxFileSystem().createFile(path.appending(store), bytes, mode: 0o600)
      }
    }

    deinit { try? LinuxFileSystem().removeTree(path, deepest: 6) }

    /// The line of the one store that a walk of `in` finds.
    func walked() throws -> StoreLine {
      var walk = try StoreWalk([path.appending("in")])
      let found = walk.next(10)
      try #require(found.count == 1 && walk.unreadable.isEmpty)
      return StoreLine(found[0])
    }

    func exchange() throws {
      try LinuxFileSystem().rename(path.appending("in/sub"), to: path.appending("in/.sub"))
      try #require(symlink("../bob", path.appending("in/sub").string) == 0)
    }
  }

  private func code(_ body: () throws -> CanonicalStoreLocation) -> HopdError.Code? {
    do {
      _ = try body()
      return nil
    } catch { return (error as? HopdError)?.code }
  }

  @Test("A worker refuses a folder that was exchanged for a link since the walk")
  func folderAsLink() throws {
    let room = try Room()
    let line = try room.walked()
    #expect(try line.location().database == room.path.appending("in/sub/a.sqlite"))
    try room.exchange()
    #expect(code(line.location) == .storeReplaced)
  }

  @Test("A worker refuses another folder or file in the place of the one that the walk found")
  func replaced() throws {
    let room = try Room()
    let line = try room.walked()
    try LinuxFileSystem().rename(room.path.appending("in/sub"), to: room.path.appending("in/old"))
    try LinuxFileSystem().rename(room.path.appending("bob"), to: room.path.appending("in/sub"))
    #expect(code(line.location) == .storeReplaced)
    try LinuxFileSystem().removeTree(room.path.appending("in/sub"), deepest: 2)
    #expect(code(line.location) == .notFound)
  }

  @Test("The path of a manifest is not resolved: a link in it is refused, and the hint prints the path without links")
  func manifest() throws {
    let room = try Room()
    let path = room.path.appending("in/sub/a.sqlite")
    #expect(try StoreLine(store: path.string).location().database == path)
    try room.exchange()
    let error = #expect(throws: HopdError.self) { try StoreLine(store: path.string).location() }
    #expect(error?.code == .storeReplaced && error?.hint?.contains("realpath -- \(path.string)") == true)
    // A store that was replaced since the manifest was written is an ordinary store.
    #expect(code(StoreLine(store: room.path.appending("in/.sub/a.sqlite").string).location) == nil)
  }

  @Test("A walk does not enter a folder that was exchanged for a link")
  func walk() throws {
    let room = try Room()
    var walk = try StoreWalk([room.path.appending("in")])
    try room.exchange()
    #expect(walk.next(10).isEmpty)
  }
}
