// How the daemon handles a file that has settled, as the watcher reports.

import Glibc
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
      for name in ["real/a.sqlite", "link", "real", ""] {
        _ = directory.appending(name).withPlatformString { remove($0) }
      }
    }
    let real = directory.appending("real")
    let link = directory.appending("link")
    try #require(real.withPlatformString { mkdir($0, 0o755) } == 0)
    try #require(link.withPlatformString { symlink("real", $0) } == 0)
    let store = real.appending("a.sqlite")
    let file = try FileDescriptor.open(store, .writeOnly, options: .create, permissions: .ownerReadWrite)
    try file.close()

    func found(_ path: FilePath) -> FoundStore? { FoundStore(SettledFile(watch: "w", path: path, size: 0)) }
    #expect(found(real.appending("b.sqlite")) == nil)
    let known = try #require(found(store))
    // No link is followed on the way to a store: this question ends with an error, as on a bad disk.
    let unknown = try #require(found(link.appending("a.sqlite")))
    #expect(unknown.key == known.key)
    #expect(unknown.mark != known.mark, "once the disk is well again, the store is another one to look at")
  }
}
