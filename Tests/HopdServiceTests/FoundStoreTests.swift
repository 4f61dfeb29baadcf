// How the daemon handles a file that has settled, as the watcher reports.

import DurableFiles
import Glibc
import StoreReplacement
import StoreWatching
import SystemPackage
import Testing

@testable import HopdService

@Suite struct FoundStoreTests {
  /// A store whose disk gave one error during its inspection was forgotten until it changed: nothing was reported, and
  /// a rescan saw the same file and did not inspect it again.
  @Test func aFileThatCannotBeAskedAboutIsNotGone() throws {
    var template = Array("/tmp/hopd-found-XXXXXX".utf8CString)
    let made = template.withUnsafeMutableBufferPointer { buffer in buffer.baseAddress.flatMap { mkdtemp($0) } }
    let directory = FilePath(String(cString: try #require(made)))
    defer {
      for name in ["old/a.sqlite", "real/a.sqlite", "old", "real", ""] {
        _ = directory.appending(name).withPlatformString { remove($0) }
      }
    }
    let real = directory.appending("real")
    let store = real.appending("a.sqlite")
    func makeStore() throws {
      try #require(real.withPlatformString { mkdir($0, 0o755) } == 0)
      try FileDescriptor.open(store, .writeOnly, options: .create, permissions: .ownerReadWrite).close()
    }
    func found(_ path: FilePath, _ folder: OpenDirectory) -> FoundStore? {
      FoundStore(SettledFile(watch: "w", path: path, key: path, size: 0, folder: folder))
    }
    try makeStore()
    let first = try OpenDirectory(canonical: real)
    #expect(found(real.appending("b.sqlite"), first) == nil)
    let known = try #require(found(store, first))
    #expect(known.mark.place?.folder == first.identity)
    // A job is at work in the directory while another one takes its path: that cannot be asked about now.
    let job = try CanonicalDirectory(first)
    try #require(rename(real.string, directory.appending("old").string) == 0)
    try makeStore()
    let second = try OpenDirectory(canonical: directory).directory("real")
    try #require(second.identity != first.identity)
    let unknown = try #require(found(store, second))
    withExtendedLifetime(job) {}
    #expect(unknown.key == known.key)
    #expect(unknown.mark != known.mark, "once that job is done, the store is another one to look at")
  }
}
