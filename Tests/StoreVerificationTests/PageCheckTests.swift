// The check of pages in its own thread: the same results, also for a damaged file, and it stops when it is cancelled.

import BlockingTests
import FoundationEssentials
import Glibc
import OtherPrograms
import SQLite
import SystemPackage
import Testing

@testable import StoreVerification

@Suite(.blocking) struct PageCheckTests {
  private func withFile(_ body: (FilePath) throws -> Void) throws {
    let path = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-pages-\(UUID().uuidString).sqlite")
    defer { try? FileManager.default.removeItem(atPath: path.string) }
    do {
      let connection = try Connection(path: path, access: .create)
      try connection.execute(
        "PRAGMA page_size = 4096; CREATE TABLE t (k INTEGER PRIMARY KEY, b BLOB); CREATE INDEX i ON t (b);"
          + "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 6000)"
          + " INSERT INTO t SELECT n, randomblob(700) FROM c")
    }
    try body(path)
  }

  @Test(arguments: ["quick_check", "integrity_check"])
  func aSoundFileIsOK(_ pragma: String) throws {
    try withFile { path in
      let holder = try Connection(path: path, access: .readOnly)
      let check = try #require(PageCheck(reading: "main", of: holder, pragma: pragma))
      #expect(try check.finish { true } == ["ok"])
      // A second cancel has no effect.
      check.cancel()
    }
  }

  /// One page is damaged. The result is that of the same statement here: problems, or an error if the page stops the
  /// check itself.
  @Test func damageIsFound() throws {
    try withFile { path in
      let handle = try #require(FileHandle(path: path))
      try handle.spoil(page: 700)
      let here = answers {
        try Connection.ofApp(path, .readOnly).rows("PRAGMA quick_check(5)") { $0.text(at: 0) ?? "" }
      }
      let holder = try Connection(path: path, access: .readOnly)
      let check = try #require(PageCheck(reading: "main", of: holder, pragma: "quick_check"))
      #expect(answers { try check.finish { true } } == here)
      #expect(here != ["ok"])
    }
  }

  /// Through the file that another connection has open: the same results, no second descriptor, and the lock remains.
  @Test(arguments: [false, true]) func aBorrowedFileIsChecked(_ isSpoilt: Bool) throws {
    try withFile { path in
      if isSpoilt { try #require(FileHandle(path: path)).spoil(page: 700) }
      let holder = try Connection(path: path, access: .exclusive(keepsLog: false))
      try holder.execute("BEGIN EXCLUSIVE")
      let descriptors = try Self.descriptors(of: path)
      let check = try #require(PageCheck(reading: "main", of: holder, pragma: "quick_check"))
      #expect(try Self.descriptors(of: path) == descriptors)
      let found = answers { try check.finish { true } }
      #expect((found == ["ok"]) == !isSpoilt)
      #expect(try Self.descriptors(of: path) == descriptors)
      // Another process still finds the file locked, and this connection can still write to it.
      #expect(try Self.lockHolder(of: path) == getpid())
      try holder.execute("CREATE TABLE more (k); COMMIT")
    }
  }

  /// A database in memory has no file to read.
  @Test func databasesInMemoryAreLeftToTheCaller() throws {
    let holder = try Connection(path: "", access: .memory)
    #expect(PageCheck(reading: "main", of: holder, pragma: "quick_check") == nil)
  }

  private static func descriptors(of path: FilePath) throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count { name in
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")) == path.string
    }
  }

  /// Returns the process that has a lock on the file, from the kernel's list of locks.
  private static func lockHolder(of path: FilePath) throws -> Int32? {
    let inode = try FileManager.default.attributesOfItem(atPath: path.string)[.systemFileNumber] as? Int ?? 0
    let locks = String(decoding: try Data(contentsOf: URL(filePath: "/proc/locks")), as: UTF8.self)
    for line in locks.split(separator: "\n") {
      let words = line.split(separator: " ")
      if words.count > 5, words[1] == "POSIX", words[5].hasSuffix(":\(inode)") { return Int32(words[4]) }
    }
    return nil
  }

  private func answers(_ body: () throws -> [String]) -> [String] {
    do { return try body() } catch { return ["\(error)"] }
  }

  @Test func itEndsWhenItIsTold() throws {
    try withFile { path in
      let holder = try Connection(path: path, access: .readOnly)
      try #require(PageCheck(reading: "main", of: holder, pragma: "integrity_check")).cancel()
      // A check that is never cancelled ends with its owner.
      _ = PageCheck(reading: "main", of: holder, pragma: "integrity_check")
    }
  }

  @Test func smallFilesAreLeftToTheCaller() throws {
    try withFile { path in
      let small = FilePath(path.string + ".small")
      defer { try? FileManager.default.removeItem(atPath: small.string) }
      let holder = try Connection(path: small, access: .create)
      try holder.execute("CREATE TABLE t (k)")
      #expect(PageCheck(reading: "main", of: holder, pragma: "quick_check", isUrgent: true) == nil)
    }
  }
}

/// A file that is written without SQLite.
private struct FileHandle {
  private let descriptor: FileDescriptor

  init?(path: FilePath) {
    guard let descriptor = try? FileDescriptor.open(path, .readWrite) else { return nil }
    self.descriptor = descriptor
  }

  func spoil(page: Int64) throws {
    defer { try? descriptor.close() }
    _ = try [UInt8](repeating: 0xa5, count: 4096).withUnsafeBytes {
      try descriptor.writeAll(toAbsoluteOffset: (page - 1) * 4096, $0)
    }
  }
}
