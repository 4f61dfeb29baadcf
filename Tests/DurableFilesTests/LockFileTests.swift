import Diagnostics
import DurableFiles
import Glibc
import Synchronization
import SystemPackage
import Testing

@Suite("Lock files")
struct LockFileTests {
  let files = LinuxFileSystem()
  let folder: TemporaryDirectory
  var path: FilePath { folder.path.appending("store-1.lock") }

  init() throws { folder = try TemporaryDirectory() }

  @Test("The file goes with the lock")
  func nothingStays() throws {
    for _ in 0..<3 {
      let lock = try FileLock(path: path)
      #expect(try files.names(in: folder.path).count == 1)
      lock.release()
      #expect(try files.names(in: folder.path).isEmpty)
    }
    do { _ = try FileLock(path: path) }
    #expect(try files.names(in: folder.path).isEmpty)
  }

  @Test("Another file under the name is not removed")
  func anotherFile() throws {
    let lock = try FileLock(path: path)
    try files.unlink(path)
    try files.createFile(path, [1], mode: 0o600)
    lock.release()
    #expect(try files.read(path, limit: 9) == [1])
  }

  /// A program that is just being started has a copy of every descriptor until its exec.
  @Test("A lock that was given back is free, whoever has a copy of its descriptor")
  func copies() throws {
    func copied(_ path: FilePath, _ body: () throws -> Void) throws {
      let wanted = try #require(try files.status(path)).identity.inode
      let copies = (3..<1024).filter { number in
        var found = stat()
        return fstat(number, &found) == 0 && UInt64(found.st_ino) == wanted
      }.map { dup($0) }
      defer { for copy in copies { close(copy) } }
      #expect(!copies.isEmpty)
      try body()
    }
    let directory = try #require(try DirectoryLock(folder.path))
    try copied(folder.path) {
      directory.release()
      let again = try DirectoryLock(folder.path)
      #expect(again != nil)
    }
    let lock = try FileLock(path: path)
    try copied(path) {
      lock.release()
      try FileLock(path: path).release()
    }
    let lines = folder.path.appending("lines")
    let (first, last) = (UInt8(ascii: "{"), UInt8(ascii: "}"))
    var file: AppendedFile? = try AppendedFile(path: lines, linesBeginWith: first, endWith: last)
    try copied(lines) {
      try file?.append(Array("{}\n".utf8))
      file = nil
      _ = try AppendedFile(path: lines, linesBeginWith: first, endWith: last)
    }
  }

  /// A lock on a file whose name has gone would be no lock: two would have it.
  @Test("However often it changes hands, one has it at a time")
  func race() async throws {
    final class Counters: Sendable {
      let state = Mutex((inside: 0, most: 0, taken: 0))
    }
    let (counters, path) = (Counters(), path)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask {
          for _ in 0..<2000 {
            guard let lock = try? FileLock(path: path) else { continue }
            counters.state.withLock { $0 = ($0.inside + 1, max($0.most, $0.inside + 1), $0.taken + 1) }
            counters.state.withLock { $0.inside -= 1 }
            lock.release()
          }
        }
      }
    }
    let state = counters.state.withLock { $0 }
    #expect(state.most == 1 && state.taken > 100, "\(state)")
    #expect(try files.names(in: folder.path).isEmpty)
  }

  #if DEBUG  // A release build has no way to make system calls fail.
    /// The race above hits the moment by chance; here it is certain.
    @Test("A file whose holder took its name away before the lock was granted is no lock")
    func nameless() throws {
      let isFirst = Mutex(true)
      let answer: @Sendable (String) -> Int32? = { [path] doing in
        let removes =
          doing == "lock"
          && isFirst.withLock { first in
            defer { first = false }
            return first
          }
        if removes { unlink(path.string) }
        return nil
      }
      let lock = try SystemCallFault.$answer.withValue(answer) { try FileLock(path: path) }
      #expect(isFirst.withLock { !$0 })
      #expect(try files.names(in: folder.path).count == 1)
      #expect(throws: HopdError.self) { try FileLock(path: path) }
      lock.release()
    }
  #endif

  @Test("Locks of processes that were killed are swept, those that are held are not")
  func sweep() throws {
    for number in 2...5 { try files.createFile(folder.path.appending("store-\(number).lock"), [], mode: 0o600) }
    try files.createFile(folder.path.appending("other"), [], mode: 0o600)
    let held = try FileLock(path: path)
    #expect(FileLock.sweep(folder.path) == 4)
    #expect(try files.names(in: folder.path).map(\.string) == ["other", "store-1.lock"])
    held.release()
  }

  #if DEBUG  // A release build has no way to make system calls fail.
    @Test("A full state directory is told as that, by its name")
    func full() throws {
      var error: HopdError?
      let answer: @Sendable (String) -> Int32? = { $0 == "open the lock file" ? ENOSPC : nil }
      SystemCallFault.$answer.withValue(answer) {
        do { _ = try FileLock(path: path) } catch let found as HopdError { error = found } catch {}
      }
      #expect(error?.code == .noSpace && error?.message.contains("state directory") == true)
      #expect(error?.hint?.contains("df -h -i \(folder.path)") == true)
    }
  #endif
}
