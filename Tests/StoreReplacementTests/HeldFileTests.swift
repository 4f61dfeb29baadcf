// An inspection of a store that a job of the same process holds, under any name, would drop the job's lock: it is
// refused.

import Diagnostics
import DurableFiles
import Glibc
import OtherPrograms
import PersistentStore
import SQLite
import SystemPackage
import Testing

@testable import StoreReplacement

@Suite struct HeldFileTests {
  private func room() throws -> FilePath {
    var template = Array("/tmp/hold-XXXXXX".utf8CString)
    let made = template.withUnsafeMutableBufferPointer { buffer in buffer.baseAddress.flatMap { mkdtemp($0) } }
    return FilePath(String(cString: try #require(made)))
  }

  private func makeStore(_ path: FilePath, mode: String) throws {
    let connection = try Connection.ofApp(path, .create)
    try #require(try connection.text("PRAGMA journal_mode = \(mode)") == mode.lowercased())
    try connection.execute("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
  }

  @Test(arguments: ["WAL", "DELETE"])
  func anInspectionUnderAnotherNameIsRefusedAndTheLockStays(_ mode: String) throws {
    let folder = try room()
    let store = folder.appending("a.sqlite")
    let other = folder.appending("b.sqlite")
    try makeStore(store, mode: mode)
    defer { for name in [store, other] { _ = name.withPlatformString { unlink($0) } } }
    let lockedStore = try LockedStore(location: CanonicalStoreLocation(resolving: store), lockDirectory: folder)
    defer { lockedStore.release() }
    _ = store.withPlatformString { from in other.withPlatformString { link(from, $0) } }
    for name in [store, other] {
      do {
        try StoreReader.withUnchangedStore(at: StoreLocation(database: name)) { _ in }
        Issue.record("\(name) was looked at while it is held")
      } catch let error as HopdError {
        #expect(error.code == .storeBusy)
      }
    }
    // Another process asks the kernel: the lock is still there.
    let child = try #require(popen("sqlite3 '\(store.string)' 'INSERT INTO t VALUES (2)' 2>&1", "r"))
    var buffer = [CChar](repeating: 0, count: 512)
    var said = ""
    while fgets(&buffer, 512, child) != nil {
      said += String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
    pclose(child)
    #expect(said.contains("locked"), "sqlite3 said: \(said)")
    // The second name is noticed before anything is renamed.
    #expect(throws: HopdError.self) { try lockedStore.requireRenameKeepsEverything() }
  }

  @Test func afterTheReleaseItCanBeInspectedAgain() throws {
    let folder = try room()
    let store = folder.appending("a.sqlite")
    try makeStore(store, mode: "DELETE")
    defer { _ = store.withPlatformString { unlink($0) } }
    let lockedStore = try LockedStore(location: CanonicalStoreLocation(resolving: store), lockDirectory: folder)
    lockedStore.release()
    let rows = try StoreReader.withUnchangedStore(at: StoreLocation(database: store)) {
      try $0.connection.integer("SELECT count(*) FROM t")
    }
    #expect(rows == 1)
  }
}
