// Where a job finds its store: below the root of the watch, and only the file that the scan found.

import Diagnostics
import DurableFiles
import Glibc
import PersistentStore
import StoreReplacement
import StoreWatching
import Synchronization
import SystemPackage
import Testing

@testable import HopdService

@Suite struct StoreOrderTests {
  /// A watched directory `in` with a store in `in/sub`, and another tenant's directory with a store of the same name.
  private final class Room {
    let path: FilePath
    let watch: WatchRoot

    init() throws {
      var template = Array("/tmp/hopd-order-XXXXXX".utf8CString)
      let made = template.withUnsafeMutableBufferPointer { buffer in buffer.baseAddress.flatMap { mkdtemp($0) } }
      path = try LinuxFileSystem().canonical(FilePath(String(cString: try #require(made))))
      watch = WatchRoot(path.appending("in"))
      for folder in ["in", "in/sub", "bob"] { try LinuxFileSystem().makeDirectory(path.appending(folder), mode: 0o700) }
      for store in ["in/sub/a.sqlite", "bob/a.sqlite"] { try write(store) }
    }

    deinit { try? LinuxFileSystem().removeTree(path, deepest: 6) }

    func write(_ name: String) throws {
      try LinuxFileSystem().createFile(path.appending(name), Array(name.utf8), mode: 0o600)
    }
    func rename(_ old: String, _ new: String) throws {
      try LinuxFileSystem().rename(path.appending(old), to: path.appending(new))
    }
    func link(_ name: String, to target: String) throws {
      try #require(symlink(target, path.appending(name).string) == 0)
    }

    /// The store as a scan finds it.
    func found() throws -> FoundStore {
      let folder = try watch.open().directory("sub")
      let key = folder.path.appending("a.sqlite")
      return try #require(FoundStore(SettledFile(watch: "w", path: key, key: key, size: 0, folder: folder)))
    }

    /// The location that a job of this store works on.
    func located(_ store: FoundStore) throws -> CanonicalStoreLocation {
      let found = Mutex<CanonicalStoreLocation?>(nil)
      let order = StoreOrder(store: store, root: watch) { location in
        found.withLock { $0 = location }
        return nil
      }
      do { _ = try order.request() } catch {
        if error.code != .internalError { throw error }
      }
      return try #require(found.withLock { $0 })
    }

    func refusal(_ store: FoundStore) throws -> HopdError? {
      do {
        let location = try located(store)
        Issue.record("located at \(location.database)")
        return nil
      } catch { return error as? HopdError }
    }
  }

  @Test("A job works on the file that the scan found")
  func theSameFile() throws {
    let room = try Room()
    let store = try room.found()
    let location = try room.located(store)
    #expect(location.database == room.path.appending("in/sub/a.sqlite"))
    #expect(try location.place() == store.mark.place)
  }

  @Test("A folder that was exchanged for a link is refused", arguments: ["../bob", "/", "."])
  func folderAsLink(_ target: String) throws {
    let room = try Room()
    let store = try room.found()
    try room.rename("in/sub", "in/.sub")
    try room.link("in/sub", to: target)
    let error = try #require(try room.refusal(store))
    #expect(error.code == .storeReplaced && error.place.store == store.path)
  }

  @Test("Another folder in the place of the scanned one is refused, also with the same file in it")
  func anotherFolder() throws {
    let room = try Room()
    let store = try room.found()
    try room.rename("in/sub", "in/old")
    try LinuxFileSystem().makeDirectory(room.path.appending("in/sub"), mode: 0o700)
    try room.rename("in/old/a.sqlite", "in/sub/a.sqlite")
    #expect(try room.refusal(store)?.code == .storeReplaced)
  }

  @Test("Another file under the store's name is refused")
  func anotherFile() throws {
    let room = try Room()
    let store = try room.found()
    try room.rename("in/sub/a.sqlite", "in/sub/old")
    try room.write("in/sub/a.sqlite")
    #expect(try room.refusal(store)?.code == .storeReplaced)
    try LinuxFileSystem().unlink(room.path.appending("in/sub/a.sqlite"))
    try room.link("in/sub/a.sqlite", to: "../../bob/a.sqlite")
    #expect(try room.refusal(store)?.code == .storeReplaced)
  }

  @Test("A store that no longer exists is reported as missing")
  func missing() throws {
    let room = try Room()
    let store = try room.found()
    try LinuxFileSystem().unlink(room.path.appending("in/sub/a.sqlite"))
    #expect(try room.refusal(store)?.code == .notFound)
    try LinuxFileSystem().removeDirectory(room.path.appending("in/sub"))
    let error = try #require(try room.refusal(store))
    #expect(error.code == .notFound && error.place.store == store.path && error.place.file == nil)
  }

  @Test("A root that leads elsewhere is not opened")
  func rootAsLink() throws {
    let room = try Room()
    let store = try room.found()
    try room.rename("in", "real")
    try room.link("in", to: "bob")
    #expect(try room.refusal(store)?.code == .storeReplaced)
    var places: [FilePath] = []
    do throws(WatchRoot.Failure) {
      _ = try room.watch.open()
    } catch {
      if case .moved(let from, let to) = error { places = [from, to] }
    }
    #expect(places == [room.path.appending("in"), room.path.appending("bob")])
  }
}
