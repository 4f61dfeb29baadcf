// The real file system. Every call first opens the parent directory with openat2 (no symbolic link in any component,
// below the pinned directory if there is one: `OpenDirectory`) and then names the file relative to that descriptor, so
// that the checked file is the one used.

import CLinux
import Diagnostics
import Glibc
import SystemPackage

/// File calls of Linux.
package struct LinuxFileSystem: DurableFileSystem {
  /// Whether files and directories are synced. False in a scratch folder, whose files are of no use after a crash.
  private let isDurable: Bool

  /// The file system of this process. Without `isDurable` nothing is synced: for scratch folders only.
  package init(isDurable: Bool = true) { self.isDurable = isDurable }

  package func canonical(_ path: FilePath) throws -> FilePath {
    let resolved: FilePath? = path.withPlatformString { name in
      guard let text = Glibc.realpath(name, nil) else { return nil }
      defer { free(text) }
      return FilePath(platformString: text)
    }
    guard let resolved else { throw HopdError(errno: Glibc.errno, "resolve the path", at: path) }
    return resolved
  }

  package func pin(_ directory: FilePath) throws -> PinnedDirectory? {
    try PinnedDirectory(OpenDirectory(canonical: directory))
  }

  package func status(_ path: FilePath) throws -> FileStatus? {
    var found = clinux_file_status()
    var isMissing = false
    try path.withPlatformString { text in
      guard text[0] == CChar(bitPattern: UInt8(ascii: "/")) else { throw Self.relative(path) }
      try call("read the status", at: path) {
        var name: UnsafePointer<CChar>?
        let parent = clinux_open_parent(text, &name)
        var code: Int32 = -1
        if parent >= 0 {
          code = clinux_status_at(parent, name, &found)
          let kept = Glibc.errno
          _ = Glibc.close(parent)
          Glibc.errno = kept
        }
        // What no name can stand for is not there. No error is made of it: most side files are not there.
        isMissing = code != 0 && (Glibc.errno == ENOENT || Glibc.errno == ENAMETOOLONG)
        return isMissing ? 0 : code
      }
    }
    return isMissing ? nil : FileStatus(found)
  }

  package func names(in directory: FilePath) throws -> [FilePath.Component] {
    let descriptor = try openDirectory(directory, flags: O_RDONLY)
    // fdopendir takes the descriptor over and closes it, so it gets its own.
    let own = try call("list the directory", at: directory) { Glibc.dup(descriptor.number) }
    let stream: OpaquePointer
    do {
      stream = try callForPointer("list the directory", at: directory) { fdopendir(own) }
    } catch {
      _ = Glibc.close(own)
      throw error
    }
    defer { closedir(stream) }
    var names: [FilePath.Component] = []
    while true {
      var next: UnsafeMutablePointer<dirent>?
      try call("list the directory", at: directory) {
        Glibc.errno = 0  // the end of the directory is not an error
        next = readdir(stream)
        return next == nil && Glibc.errno != 0 ? -1 : Int32(0)
      }
      guard let entry = next else { break }
      let component = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { FilePath.Component(platformString: $0) }
      }
      if let component, component.kind == .regular { names.append(component) }
    }
    return names.sorted { $0.string < $1.string }
  }

  package func read(_ path: FilePath, limit: Int) throws -> [UInt8] {
    let file = try open(path, "read", O_RDONLY | O_NONBLOCK)
    var content: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 16_384)
    while true {
      let count = try call("read", at: path) { Glibc.read(file.number, &buffer, buffer.count) }
      if count == 0 { return content }
      content += buffer.prefix(count)
      guard content.count <= limit else {
        throw HopdError(.unsuitableFile, "the file is larger than \(limit) bytes", at: Place(file: path))
      }
    }
  }

  package func freeBytes(at path: FilePath) throws -> Int64 {
    var found = statvfs()
    let descriptor = try open(path, "ask for free space", pathOnly)
    try call("ask for free space", at: path) { fstatvfs(descriptor.number, &found) }
    let (bytes, overflow) = UInt64(found.f_bavail).multipliedReportingOverflow(by: UInt64(found.f_frsize))
    return overflow ? .max : Int64(clamping: bytes)
  }

  package func checkWritable(_ path: FilePath) throws {
    try within(path) { parent, name in
      do {
        _ = try call("write here", at: path) { faccessat(parent, name, W_OK, AT_EACCESS) }
      } catch var error as HopdError where error.errno == .permissionDenied {
        let user = AccountName.ofUser(geteuid())
        error.message = "user \(user) cannot write here: \(Errno.permissionDenied) (EACCES)"
        error.hint = Self.rightToWrite(path, user: user, isOwner: try status(path)?.owner == geteuid())
        throw error
      }
    }
  }

  /// The command that gives a user the right to write a file.
  package static func rightToWrite(_ path: FilePath, user: String, isOwner: Bool) -> String {
    isOwner
      ? "it belongs to that user, but is read-only: chmod u+w \(path.quotedForShell)"
      : "chown \(user.quotedForShell) \(path.quotedForShell) gives it to that user"
  }

  package func isOpenElsewhere(_ path: FilePath, ifNot body: () throws -> Void) throws -> Bool? {
    let file = try open(path, "open", O_RDONLY | O_NONBLOCK)
    var attempts = 0
    while clinux_take_lease(file.number) != 0 {
      guard Glibc.errno == EAGAIN else { return nil }
      guard attempts < Self.attemptsAtOpenFile else { return true }
      attempts += 1
      usleep(Self.pauseBetweenAttempts)
    }
    defer { _ = clinux_drop_lease(file.number) }
    try body()
    return false
  }

  /// From fork to exec, a child of this process keeps the process's files open, and an inspection of a store holds it
  /// open for a moment. So a file must be open for a quarter of a second before it counts as open.
  private static let attemptsAtOpenFile = 50
  /// Microseconds.
  private static let pauseBetweenAttempts: UInt32 = 5_000

  package func createFile(_ path: FilePath, _ bytes: [UInt8], mode: UInt32) throws {
    try createFile(path, bytes, mode: mode, isSynced: true)
  }

  package func createUnsyncedFile(_ path: FilePath, _ bytes: [UInt8], mode: UInt32) throws {
    try createFile(path, bytes, mode: mode, isSynced: false)
  }

  private func createFile(_ path: FilePath, _ bytes: [UInt8], mode: UInt32, isSynced: Bool) throws {
    let file = try open(path, "create", O_WRONLY | O_CREAT | O_EXCL, mode: mode)
    do {
      try within(path) { parent, _ in try adopt(file.number, in: parent, path) }
      try write(bytes[...], to: file.number, path)
      if isSynced { try call("sync", at: path) { fsync(file.number) } }
    } catch {
      try? unlink(path)
      throw error
    }
  }

  package func reserve(_ bytes: Int64, for path: FilePath) throws -> Bool {
    let file = try open(path, "set space aside", O_WRONLY | O_NONBLOCK)
    // fallocate takes the free space before it reports that there is too little: every other program on the disk would
    // be out of space for that long.
    try requireSpace(for: bytes, of: file, at: path)
    do {
      try call("set \(bytes) bytes aside", at: path) { clinux_reserve(file.number, bytes) }
      return true
    } catch let error as HopdError where error.code != .noSpace && error.code != .inputOutput {
      return false
    } catch let error as HopdError where [.notSupported, .noFunction, .fileTooLarge].contains(error.errno) {
      return false
    } catch {
      // A quota, or another program was faster: the part that was taken is released.
      try? giveBackReserve(of: path)
      throw error
    }
  }

  /// Throws `.noSpace` where less is free than the file lacks to have `bytes` on the disk.
  private func requireSpace(for bytes: Int64, of file: borrowing Descriptor, at path: FilePath) throws {
    var found = stat()
    try call("read the size", at: path) { fstat(file.number, &found) }
    let missing = bytes.subtractingReportingOverflow(Int64(found.st_blocks) * 512).partialValue
    let free = try freeBytes(at: path)
    guard missing > free else { return }
    throw HopdError(
      .noSpace, "\(missing) bytes cannot be set aside: \(free) are free", at: Place(file: path),
      cause: Errno.noSpace, hint: "free space on the disk of \(path.removingLastComponent().printable)")
  }

  package func giveBackReserve(of path: FilePath) throws {
    let file = try open(path, "give space back", O_WRONLY | O_NONBLOCK)
    var found = stat()
    try call("read the size", at: path) { fstat(file.number, &found) }
    // Truncates to the present size: blocks beyond it are released (tools/README.md, "SQLite and files").
    try call("give space back", at: path) { ftruncate(file.number, found.st_size) }
  }

  package func makeDirectory(_ path: FilePath, mode: UInt32) throws {
    try within(path) { parent, name in
      _ = try call("make the directory", at: path) { mkdirat(parent, name, mode_t(mode)) }
      do { try adoptByDirectoryOwner(path) } catch {
        // A directory that its users cannot use must not remain.
        _ = unlinkat(parent, name, AT_REMOVEDIR)
        throw error
      }
    }
  }

  package func link(_ existing: FilePath, as new: FilePath) throws {
    try within(existing) { fromParent, from in
      try within(new) { toParent, to in
        _ = try call("link \(existing.lastComponent?.string ?? "") to this name", at: new) {
          linkat(fromParent, from, toParent, to, 0)
        }
      }
    }
  }

  package func rename(_ old: FilePath, to new: FilePath) throws { try rename(old, to: new, flags: 0) }

  package func renameNoReplace(_ old: FilePath, to new: FilePath) throws {
    try rename(old, to: new, flags: UInt32(CLINUX_RENAME_NOREPLACE))
  }

  package func unlink(_ path: FilePath) throws {
    try within(path) { parent, name in _ = try call("remove", at: path) { unlinkat(parent, name, 0) } }
  }

  package func removeDirectory(_ path: FilePath) throws {
    try within(path) { parent, name in
      _ = try call("remove the directory", at: path) { unlinkat(parent, name, AT_REMOVEDIR) }
    }
  }

  package func syncFile(_ path: FilePath) throws {
    guard isDurable else { return }
    let file = try open(path, "sync", O_RDONLY | O_NONBLOCK)
    try call("sync", at: path) { fsync(file.number) }
  }

  package func syncDirectory(_ path: FilePath) throws {
    guard isDurable else { return }
    let directory = try openDirectory(path, flags: O_RDONLY)
    try call("sync the directory", at: path) { fsync(directory.number) }
  }

  // MARK: Opening

  /// Runs `body` with a descriptor of the parent directory and the name in it.
  ///
  /// The path is split by its bytes: FilePath checks a path again at every step in debug builds, and every file call
  /// runs this.
  func within<Result>(
    _ path: FilePath, _ body: (Int32, UnsafePointer<CChar>) throws -> Result
  ) throws -> Result {
    try path.withPlatformString { text in
      guard let slash = strrchr(text, Int32(UInt8(ascii: "/"))) else { throw Self.relative(path) }
      let length = UnsafePointer(slash) - text
      let parent: [CChar] = Array(UnsafeBufferPointer(start: text, count: length)) + [0]
      let directory = Descriptor(try openDirectory(parent, at: path.removingLastComponent(), flags: pathOnly))
      return slash[1] == 0
        ? try ".".withPlatformString { try body(directory.number, $0) }
        : try body(directory.number, slash + 1)
    }
  }

  func openDirectory(_ path: FilePath, flags: Int32) throws -> Descriptor {
    Descriptor(try path.withPlatformString { try openDirectory($0, at: path, flags: flags) })
  }

  /// Opens the directory of that name; an empty one is the root.
  private func openDirectory(
    _ name: UnsafePointer<CChar>, at path: @autoclosure () -> FilePath, flags: Int32
  ) throws -> Int32 {
    guard name[0] == 0 || name[0] == CChar(bitPattern: UInt8(ascii: "/")) else { throw Self.relative(path()) }
    return try call("open the directory", at: path()) {
      name[0] == 0
        ? clinux_open_directory("/", flags | O_CLOEXEC) : clinux_open_directory(name, flags | O_CLOEXEC)
    }
  }

  private static func relative(_ path: FilePath) -> HopdError {
    HopdError(.internalError, "a path of a file call must be absolute", at: Place(file: path))
  }

  func open(_ path: FilePath, _ doing: String, _ flags: Int32, mode: UInt32 = 0) throws -> Descriptor {
    Descriptor(
      try within(path) { parent, name in
        do {
          return try call(doing, at: path) { clinux_openat_beneath(parent, name, flags | O_CLOEXEC, mode) }
        } catch var error as HopdError where error.errno == .noSpace {
          var found = statvfs()
          // Two shortages have the same error number; the operator has to know which one it is.
          if fstatvfs(parent, &found) == 0, found.f_files > 0, found.f_favail == 0 {
            error.message = "cannot \(doing): the file system has no inodes left (ENOSPC)"
            error.hint =
              "remove files there; `df -i \(path.removingLastComponent().quotedForShell)` shows how many are in use"
          }
          throw error
        }
      })
  }

  private func rename(_ old: FilePath, to new: FilePath, flags: UInt32) throws {
    try within(old) { fromParent, from in
      try within(new) { toParent, to in
        _ = try call("rename \(old.lastComponent?.string ?? "") to this name", at: new) {
          clinux_renameat2(fromParent, from, toParent, to, flags)
        }
      }
    }
  }

  // MARK: Content

  private func write(_ bytes: ArraySlice<UInt8>, to descriptor: Int32, _ path: FilePath) throws {
    var rest = bytes
    while !rest.isEmpty {
      let count = try call("write", at: path) {
        rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      }
      rest = rest.dropFirst(count)
    }
  }
}

/// O_PATH: names a file without opening it.
private let pathOnly = clinux_o_path()
