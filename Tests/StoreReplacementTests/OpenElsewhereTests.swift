// Programs that have the store open, hold no lock of it, and would go on with the old file after a rename.

import Diagnostics
import DurableFiles
import Glibc
import PersistentStore
import SQLite
import Synchronization
import SystemPackage
import Testing

@testable import StoreReplacement

/// Starts a script of the shell with a file as `$0`.
private func start(_ script: String, _ file: FilePath) throws -> pid_t {
  let texts: [String] = ["/bin/sh", "-c", script, file.string]
  var words: [UnsafeMutablePointer<CChar>?] = texts.map { strdup($0) }
  words.append(nil)
  defer { for word in words { free(word) } }
  var pid: pid_t = 0
  let code = posix_spawn(&pid, "/bin/sh", nil, nil, words, nil)
  guard code == 0 else { throw Errno(rawValue: code) }
  return pid
}

/// A program that has a file open until its time is over.
private final class Opener {
  private var pid: pid_t = 0

  /// Returns when the program has the file open.
  init(_ file: FilePath, seconds: Double) throws {
    let script = "exec 3<>\"$0\"; exec sleep \(seconds)"
    pid = try start(script, file)
    let wanted = try LinuxFileSystem().status(file)?.identity.inode
    var status = stat()
    while stat("/proc/\(pid)/fd/3", &status) != 0 || UInt64(status.st_ino) != wanted {
      guard kill(pid, 0) == 0 else { throw Errno.noSuchProcess }
      usleep(1000)
    }
  }

  deinit {
    kill(pid, SIGKILL)
    var status: Int32 = 0
    while waitpid(pid, &status, 0) == -1, errno == EINTR {}
  }
}

@Suite("Programs that have the store open", .serialized)
struct OpenElsewhereTests {
  @Test(
    "One that opens it while the new store is built, and stays, is not left with the old file",
    arguments: [
      SourceKind.rollback, .wal, .hotLog,
    ])
  func staysOpen(_ kind: SourceKind) throws {
    let world = try TestWorld(kind)
    var openers: [Opener] = []
    let error = code {
      try world.migrate(files: LinuxFileSystem(), patience: .milliseconds(300)) { _ in
        openers.append(try Opener(world.location.database, seconds: 60))
      }
    }
    #expect(error == .storeBusy && openers.count == 1)
    openers = []
    let found = try world.content()
    #expect(found.version == "one" && found.rows == TestWorld.rows)
    #expect(!world.names.contains { $0.contains(".hop") }, "\(world.names)")
    // And when it is gone, the retry finishes.
    try world.migrate(files: LinuxFileSystem(), job: "cd34", patience: .seconds(10))
    #expect(try world.content().version == "two")
  }

  #if DEBUG  // A release build has no way to make system calls fail.
    /// The kernel's errors for a file of another owner without CAP_LEASE, and on a file system without leases.
    @discardableResult private func withoutLeases<Result>(_ code: Int32, _ body: () throws -> Result) rethrows -> Result
    {
      try SystemCallFault.$answer.withValue({ $0 == "take a lease" ? code : nil }, operation: body)
    }

    @Test(
      "Where the system cannot tell who has the store open, a rename that was asked for is refused",
      arguments: [EACCES, EINVAL])
    func noLeaseNoRename(_ code: Int32) throws {
      let world = try TestWorld(.wal)
      var refusal: HopdError?
      withoutLeases(code) {
        do { try world.migrate(files: LinuxFileSystem(), patience: .milliseconds(300)) } catch {
          refusal = error as? HopdError
        }
      }
      #expect(refusal?.code == .cannotReplace)
      #expect(refusal?.hint?.contains("--replace in-place") == true)
      #expect(refusal?.hint?.contains("CAP_LEASE") == (code == EACCES))
      let found = try world.content()
      #expect(found.version == "one" && found.rows == TestWorld.rows)
      #expect(!world.names.contains { $0.contains(".hop") }, "\(world.names)")
    }

    @Test(
      "Where nobody asked for a rename, the store is replaced in place",
      arguments: [SourceKind.rollback, .wal, .hotLog])
    func noLeaseInPlace(_ kind: SourceKind) throws {
      let world = try TestWorld(kind)
      let before = try #require(try world.plain.status(world.location.database)).identity
      try withoutLeases(EACCES) {
        try world.migrate(files: LinuxFileSystem(), mode: nil, patience: .milliseconds(300))
      }
      #expect(try world.content().version == "two")
      #expect(try world.plain.status(world.location.database)?.identity == before, "the file itself stays")
      // With leases the same call renames.
      let other = try TestWorld(kind)
      let old = try #require(try other.plain.status(other.location.database)).identity
      try other.migrate(files: LinuxFileSystem(), mode: nil, patience: .milliseconds(300))
      #expect(try other.plain.status(other.location.database)?.identity != old)
    }
  #endif

  @Test("One that gives up in time is waited for")
  func givesUp() throws {
    let world = try TestWorld(.wal)
    var opener: Opener?
    try world.migrate(files: LinuxFileSystem(), patience: .seconds(60)) { _ in
      opener = try Opener(world.location.database, seconds: 0.3)
    }
    withExtendedLifetime(opener) {}
    #expect(try world.content().version == "two")
  }

  @Test("One that comes between the last look and the rename ends the swap, or finds the new store")
  func comesLate() throws {
    for step in [SwapStep.compared, .backedUp, .renamed] {
      let world = try TestWorld(.wal)
      var opener: pid_t = 0
      let file = world.location.database
      let error = code {
        try world.migrate(
          files: LinuxFileSystem(), patience: .seconds(10),
          observer: { done in
            guard done == step else { return }
            // It is blocked while the lease lasts, so this code must not wait for it.
            opener = try start("exec 3<>\"$0\"", file)
            // Time to come as far as the file; when it has not, the swap goes through, and that is right too.
            usleep(200_000)
          })
      }
      var status: Int32 = 0
      while waitpid(opener, &status, 0) == -1, errno == EINTR {}
      #expect(status == 0, "the program is not held up for ever")
      let found = try world.content()
      #expect(found.rows == TestWorld.rows)
      #expect(error == nil ? found.version == "two" : error == .storeBusy && found.version == "one", "\(step)")
      if step == .renamed { #expect(error == nil) }
    }
  }

  @Test("One that opens it between the last look and the rename, and closes it again, does not cost the migration")
  func shortInspection() throws {
    for step in [SwapStep.compared, .backedUp] {
      let world = try TestWorld(.wal)
      let file = world.location.database
      let inode = try #require(try world.plain.status(file)).identity.inode
      var opener: pid_t = 0
      defer {
        var status: Int32 = 0
        while waitpid(opener, &status, 0) == -1, errno == EINTR {}
      }
      try world.migrate(
        files: LinuxFileSystem(), patience: .seconds(60),
        observer: { done in
          guard done == step else { return }
          opener = try start("exec 3<\"$0\"", file)
          for _ in 0..<2000 where !Self.isAskedFor(inode) { usleep(2000) }
          #expect(Self.isAskedFor(inode))
        })
      #expect(try world.content().version == "two")
    }
  }

  /// Whether the kernel blocks a process that opens the file with that inode.
  private static func isAskedFor(_ inode: UInt64) -> Bool {
    let bytes = (try? LinuxFileSystem().read("/proc/locks", limit: 1 << 22)) ?? []
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").contains {
      $0.contains("LEASE") && $0.contains("BREAKING") && $0.contains(":\(inode) ")
    }
  }

  @Test(
    "One that opens the old file in the instant of the rename is waited for, but not for ever", arguments: [0.1, 60])
  func inTheInstant(_ seconds: Double) throws {
    let world = try TestWorld(.wal)
    let file = world.location.database
    let inode = try #require(try world.plain.status(file)).identity.inode
    let opener = Mutex<pid_t>(0)
    defer {
      let pid = opener.withLock { $0 }
      kill(pid, SIGKILL)
      var status: Int32 = 0
      while waitpid(pid, &status, 0) == -1, errno == EINTR {}
    }
    let wasAskedFor = Mutex(false)
    let files = HookedFileSystem(before: { call, path in
      guard call == "rename", path == file else { return }
      let pid = try start("exec 3<>\"$0\"; exec sleep \(seconds)", file)
      opener.withLock { $0 = pid }
      for _ in 0..<2000 where !wasAskedFor.withLock({ $0 }) {
        if Self.isAskedFor(inode) { wasAskedFor.withLock { $0 = true } } else { usleep(2000) }
      }
    })
    let result = try world.migrate(files: files, patience: .milliseconds(200))
    #expect(wasAskedFor.withLock { $0 }, "the program never came as far as the file: nothing is proved")
    let found = try world.content()
    #expect(found.version == "two" && found.rows == TestWorld.rows)
    let backup = try #require(result.backup)
    #expect(try world.content(of: backup).version == "one")
    #expect(try world.recover().decision == .nothingToDo)
  }
}
