// Each system call behind the file calls fails in its turn, on the real file system: by the seam where they can be
// failed at will (debug builds), and by real means where there are some.

import Diagnostics
import Glibc
import Synchronization
import SystemPackage
import Testing

@testable import DurableFiles

@Suite("System calls that fail")
struct SystemCallFaultTests {
  let files = LinuxFileSystem()
  let folder: TemporaryDirectory
  var base: FilePath { folder.path }

  init() throws { folder = try TemporaryDirectory() }

  private func code(_ body: () throws -> Void) -> HopdError.Code? {
    do {
      try body()
      return nil
    } catch { return (error as? HopdError)?.code }
  }

  #if DEBUG
    /// Every file call, in a directory of its own with the files `file`, `other` and the directory `empty`.
    static let calls: [(name: String, body: @Sendable (LinuxFileSystem, FilePath) throws -> Void)] = [
      ("status", { _ = try $0.status($1.appending("file")) }),
      ("names", { _ = try $0.names(in: $1) }),
      ("read", { _ = try $0.read($1.appending("file"), limit: 99) }),
      ("attributes", { _ = try $0.attributes(of: $1.appending("file")) }),
      ("free space", { _ = try $0.freeBytes(at: $1) }),
      ("writable", { try $0.checkWritable($1.appending("file")) }),
      ("reserve", { _ = try $0.reserve(1 << 16, for: $1.appending("file")) }),
      ("give back", { try $0.giveBackReserve(of: $1.appending("file")) }),
      ("open elsewhere", { _ = try $0.isOpenElsewhere($1.appending("file")) }),
      ("create", { try $0.createFile($1.appending("new"), [1, 2, 3], mode: 0o600) }),
      ("create unsynced", { try $0.createUnsyncedFile($1.appending("new"), [1, 2, 3], mode: 0o600) }),
      ("copy", { try $0.copyFile(from: $1.appending("file"), to: $1.appending("new")) }),
      ("copy empty", { try $0.copyFile(from: $1.appending("other"), to: $1.appending("new")) }),
      (
        "set attributes",
        {
          var wanted = try $0.attributes(of: $1.appending("file"))
          wanted.mode = 0o640
          if getuid() == 0 { wanted.owner = 4321 }
          try $0.setAttributes(wanted, of: $1.appending("other"))
        }
      ),
      ("make directory", { try $0.makeDirectory($1.appending("new"), mode: 0o700) }),
      ("ensure directory", { try $0.ensureDirectory($1.appending("new")) }),
      ("link", { try $0.link($1.appending("file"), as: $1.appending("new")) }),
      ("rename", { try $0.rename($1.appending("file"), to: $1.appending("other")) }),
      ("rename without replacing", { try $0.renameNoReplace($1.appending("file"), to: $1.appending("new")) }),
      ("unlink", { try $0.unlink($1.appending("file")) }),
      ("remove directory", { try $0.removeDirectory($1.appending("empty")) }),
      ("sync", { try $0.syncFile($1.appending("file")) }),
      ("sync directory", { try $0.syncDirectory($1) }),
      ("durable write", { try $0.writeDurably([1, 2, 3], to: $1.appending("file")) }),
      (
        "lock",
        {
          let lock = try FileLock(path: $1.appending("new"))
          // Giving it back cannot fail: at worst the file stays, and the next one takes it.
          SystemCallFault.$answer.withValue(nil) { lock.release() }
        }
      ),
    ]

    /// Makes the system call with that number fail inside `body`; returns the thrown error, and whether the call was
    /// reached.
    private func failing(_ number: Int, _ errno: Int32, _ body: () throws -> Void) -> (error: (any Error)?, isMet: Bool)
    {
      let count = Mutex(0)
      let answer: @Sendable (String) -> Int32? = { _ in
        count.withLock {
          $0 += 1
          return $0 == number ? errno : nil
        }
      }
      var thrown: (any Error)?
      SystemCallFault.$answer.withValue(answer) {
        do { try body() } catch { thrown = error }
      }
      return (thrown, count.withLock { $0 } >= number)
    }

    private func world(_ name: String) throws -> FilePath {
      let path = base.appending(name)
      try files.makeDirectory(path, mode: 0o700)
      try files.createFile(path.appending("file"), Array("content".utf8), mode: 0o600)
      try files.createFile(path.appending("other"), [], mode: 0o600)
      try files.makeDirectory(path.appending("empty"), mode: 0o700)
      return path
    }

    @Test("A failure of any of them is told with place and cause, and leaves no half-made file")
    func eachFails() throws {
      for (name, body) in Self.calls {
        var failures = 0
        for number in 1... {
          let path = try world("\(name) \(number)")
          let (error, isMet) = failing(number, EIO) { try body(files, path) }
          if isMet {
            failures += 1
            let reported = try #require(error as? HopdError, "\(name): call \(number) failed, and nobody was told")
            #expect(reported.code == .inputOutput && reported.errno == .ioError, "\(name): call \(number): \(reported)")
            #expect(
              reported.place.file?.starts(with: base) == true || reported.place.file == "/", "\(name): \(reported)")
            // A file under construction is whole or gone. A copy and a made file were not synced: they are gone.
            if name.hasPrefix("c") {
              #expect(try files.status(path.appending("new")) == nil, "\(name): call \(number)")
            }
            if name == "durable write" {
              let content = try files.read(path.appending("file"), limit: 99)
              #expect(content == [1, 2, 3] || content == Array("content".utf8))
              #expect(try files.status(path.appending("file.new")) == nil || failures > 2, "\(name): call \(number)")
            }
          }
          try TemporaryDirectory.remove(path)
          if !isMet { break }
        }
        #expect(failures >= (name == "status" ? 1 : 2), "\(name): no call of it could be failed")
      }
    }

    @Test("A signal interrupts nothing")
    func interrupted() throws {
      for (name, body) in Self.calls {
        for number in 1...20 {
          let path = try world("\(name) \(number)")
          let (error, isMet) = failing(number, EINTR) { try body(files, path) }
          #expect(error == nil, "\(name): \(error.map { "\($0)" } ?? "")")
          try TemporaryDirectory.remove(path)
          if !isMet { break }
        }
      }
    }

    @Test("A kernel that cannot copy between two files leaves it to reading and writing")
    func fallback() throws {
      let path = try world("fallback")
      for (index, errno) in [EINVAL, EXDEV, EOPNOTSUPP, ENOSYS, EBADF].enumerated() {
        let target = path.appending("copy \(index)")
        let answer: @Sendable (String) -> Int32? = { $0 == "copy into" ? errno : nil }
        try SystemCallFault.$answer.withValue(answer) { try files.copyFile(from: path.appending("file"), to: target) }
        #expect(try files.read(target, limit: 99) == Array("content".utf8))
      }
    }

    @Test("Space that cannot be set aside is done without; a full or failing disk is told")
    func reserve() throws {
      let path = try world("reserve").appending("file")
      for (errno, expected) in [
        (EOPNOTSUPP, nil), (ENOSYS, nil), (EFBIG, nil), (EINVAL, nil), (EPERM, nil), (ENOSPC, HopdError.Code.noSpace),
        (EDQUOT, .noSpace), (EIO, .inputOutput),
      ] {
        let answer: @Sendable (String) -> Int32? = { $0.hasSuffix("bytes aside") ? errno : nil }
        SystemCallFault.$answer.withValue(answer) {
          var isReserved = true
          let found = code { isReserved = try files.reserve(1 << 20, for: path) }
          #expect(found == expected, "\(Errno(rawValue: errno))")
          #expect(isReserved == (expected != nil), "\(Errno(rawValue: errno))")
        }
      }
      #expect(try files.read(path, limit: 99) == Array("content".utf8))
    }

    @Test("A file system without extended attributes has none")
    func withoutAttributes() throws {
      let path = try world("plain")
      let answer: @Sendable (String) -> Int32? = { $0 == "list the extended attributes" ? EOPNOTSUPP : nil }
      try SystemCallFault.$answer.withValue(answer) {
        #expect(try files.attributes(of: path.appending("file")).extended.isEmpty)
        try files.copyAttributes(from: path.appending("file"), to: path.appending("other"))
      }
    }

    @Test("Attributes that are taken and not kept are an error")
    func notKept() throws {
      let path = try world("kept")
      var wanted = try files.attributes(of: path.appending("file"))
      wanted.mode = 0o100_640  // the kernel takes the bits of permissions only
      #expect(code { try files.setAttributes(wanted, of: path.appending("file")) } == .noPermission)
    }
  #endif

  @Test("What no file call can do is refused: relative paths, what is no file, what is not a directory")
  func misuse() throws {
    #expect(code { _ = try files.status("relative") } == .internalError)
    #expect(code { try files.syncDirectory("relative") } == .internalError)
    #expect(code { try files.writeDurably([1], to: "/") } == .internalError)
    try files.makeDirectory(base.appending("folder"), mode: 0o700)
    #expect(code { try files.copyFile(from: base.appending("folder"), to: base.appending("copy")) } == .unsuitableFile)
    try files.createFile(base.appending("file"), [], mode: 0o600)
    #expect(code { try files.ensureDirectory(base.appending("file")) } == .unsuitableFile)
    try files.ensureDirectory(base.appending("folder"))
    #expect(code { _ = try files.names(in: base.appending("file")) } == .unsuitableFile)
    let long = String(repeating: "n", count: 256)
    do {
      try files.createFile(base.appending(long), [], mode: 0o600)
      Issue.record("a name of 256 bytes was taken")
    } catch let error as HopdError {
      #expect(error.code == .unsuitableFile && error.hint?.contains("shorten") == true)
    }
  }

  @Test("A full disk is told, and what was begun is taken away again")
  func full() throws {
    guard getuid() == 0, (try? mount()) != nil else {
      withKnownIssue("no mounts here: not tried") { throw Errno.notPermitted }
      return
    }
    defer { umount(base.string) }
    let many = [UInt8](repeating: 7, count: 300_000)
    #expect(code { try files.createFile(base.appending("large"), many, mode: 0o600) } == .noSpace)
    #expect(try files.names(in: base).isEmpty)
    try files.createFile(base.appending("half"), Array(many.prefix(40_000)), mode: 0o600)
    #expect(code { try files.copyFile(from: base.appending("half"), to: base.appending("copy")) } == .noSpace)
    #expect(try files.names(in: base).map(\.string) == ["half"])
    #expect(code { try files.writeDurably(many, to: base.appending("half")) } == .noSpace)
    #expect(try files.read(base.appending("half"), limit: 99_999).count == 40_000)
  }

  private func mount() throws {
    guard Glibc.mount("none", base.string, "tmpfs", 0, "size=64k") == 0 else { throw Errno(rawValue: errno) }
  }

  @Test("What root makes in another user's directory is that user's")
  func adopted() throws {
    guard getuid() == 0 else { return }
    let state = base.appending("state")
    try files.makeDirectory(state, mode: 0o700)
    try #require(chown(state.string, 4321, 4322) == 0)
    try files.ensureDirectory(state.appending("intents"))
    #expect(try files.status(state.appending("intents"))?.owner == 4321)
    let lock = try FileLock(path: state.appending("lock"))
    #expect(try files.status(state.appending("lock"))?.group == 4322)
    lock.release()
    lock.release()
  }
}
