// A directory that its path stands for: while it is pinned, no exchange of folders or links leads a call elsewhere.

import CLinux
import Diagnostics
import DurableFiles
import Glibc
import SystemPackage
import Testing

@Suite struct OpenDirectoryTests {
  /// A folder with two tenants, `alice` and `bob`, each with a file `store`.
  private final class Room {
    let root: FilePath

    init() throws {
      var template = Array("/tmp/hopd-pins-XXXXXX".utf8CString)
      let made = template.withUnsafeMutableBufferPointer { buffer in buffer.baseAddress.flatMap { mkdtemp($0) } }
      root = try LinuxFileSystem().canonical(FilePath(String(cString: try #require(made))))
      for name in ["alice", "bob"] {
        try LinuxFileSystem().makeDirectory(root.appending(name), mode: 0o700)
        try LinuxFileSystem().createFile(root.appending("\(name)/store"), Array(name.utf8), mode: 0o600)
      }
    }

    deinit { try? LinuxFileSystem().removeTree(root, deepest: 5) }

    func path(_ name: String) -> FilePath { root.appending(name) }
    func read(_ name: String) throws -> String {
      String(decoding: try LinuxFileSystem().read(path(name), limit: 100), as: UTF8.self)
    }
    func rename(_ old: String, _ new: String) throws { try LinuxFileSystem().rename(path(old), to: path(new)) }
    func link(_ name: String, to target: String) throws {
      try #require(symlink(target, path(name).string) == 0)
    }
  }

  @Test func aPinnedPathStaysWhereItLedAtFirst() throws {
    let room = try Room()
    let alice = try CanonicalDirectory(resolving: room.path("alice"))
    try room.rename("alice", "old")
    try room.link("alice", to: "bob")
    #expect(try room.read("alice/store") == "alice")
    #expect(room.path("alice/store").linkStatus()?.st_ino == room.path("old/store").linkStatus()?.st_ino)
    try LinuxFileSystem().writeDurably(Array("new".utf8), to: room.path("alice/store"))
    try LinuxFileSystem().unlink(room.path("alice/store"))
    #expect(try LinuxFileSystem().names(in: room.path("old")).isEmpty)
    #expect(try room.read("bob/store") == "bob")
    #expect(try LinuxFileSystem().names(in: room.path("bob")) == ["store"])
    withExtendedLifetime(alice) {}
  }

  @Test func withoutAPinALinkIsRefused() throws {
    let room = try Room()
    do {
      let alice = try CanonicalDirectory(resolving: room.path("alice"))
      try room.rename("alice", "old")
      try room.link("alice", to: "bob")
      withExtendedLifetime(alice) {}
    }
    #expect(throws: HopdError.self) { try room.read("alice/store") }
    #expect(throws: HopdError.self) { try CanonicalDirectory(unresolved: room.path("alice")) }
    #expect(
      try CanonicalDirectory(resolving: room.path("alice")).path == room.path("bob"))
  }

  @Test func theDirectoryItselfIsAskedForByName() throws {
    let room = try Room()
    let alice = try CanonicalDirectory(resolving: room.path("alice"))
    let before = alice.identity
    try room.rename("alice", "old")
    try room.rename("bob", "alice")
    // So a job notices that the directory is another one now.
    #expect(try LinuxFileSystem().status(room.path("alice"))?.identity != before)
    #expect(try room.read("alice/store") == "alice")
    let error = #expect(throws: HopdError.self) {
      try CanonicalDirectory(OpenDirectory(canonical: room.root).directory("alice"))
    }
    #expect(error?.code == .directoryReplaced)
  }

  @Test func whatIsBelowAPinIsOpenedBelowIt() throws {
    let room = try Room()
    try LinuxFileSystem().makeDirectory(room.path("alice/deep"), mode: 0o700)
    try LinuxFileSystem().createFile(room.path("alice/deep/file"), Array("deep".utf8), mode: 0o600)
    let alice = try CanonicalDirectory(resolving: room.path("alice"))
    try room.rename("alice", "old")
    #expect(try room.read("alice/deep/file") == "deep")
    try room.rename("old/deep", "old/real")
    try room.link("old/deep", to: "../bob")
    #expect(throws: HopdError.self) { try room.read("alice/deep/store") }
    #expect(throws: HopdError.self) { try OpenDirectory(canonical: room.path("alice/deep")) }
    // A folder whose name only begins like the pinned one is another folder.
    try LinuxFileSystem().makeDirectory(room.path("alice2"), mode: 0o700)
    #expect(try LinuxFileSystem().names(in: room.path("alice2")).isEmpty)
    withExtendedLifetime(alice) {}
  }

  @Test func pinsAreCounted() throws {
    let room = try Room()
    var first: CanonicalDirectory? = try CanonicalDirectory(resolving: room.path("alice"))
    let second = try CanonicalDirectory(resolving: room.path("alice"))
    #expect(first == second)
    first = nil
    #expect(clinux_is_pinned(room.path("alice/store").string) == 1)
    withExtendedLifetime(second) {}
    #expect(clinux_is_pinned(room.path("bob/store").string) == 0)
  }

  @Test func everyDescriptorIsClosed() throws {
    let room = try Room()
    func count() throws -> Int {
      var count = 0
      try FilePath("/proc/self/fd").readEntries { _ in
        count += 1
        return true
      }
      return count
    }
    let before = try count()
    for _ in 0..<200 {
      let alice = try CanonicalDirectory(resolving: room.path("alice"))
      _ = try room.read("alice/store")
      _ = try? OpenDirectory(canonical: room.path("nothing"))
      withExtendedLifetime(alice) {}
    }
    #expect(try count() < before + 50, "other tests of this process open and close files meanwhile")
  }
}
