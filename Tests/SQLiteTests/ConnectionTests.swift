import BlockingTests
import CSQLite
import Glibc
import SystemPackage
import Testing

@testable import SQLite

/// A directory for one test, removed with everything in it.
final class TemporaryDirectory {
  let path: FilePath

  init() throws {
    var template = Array("/tmp/hopd-sqlite-XXXXXX".utf8CString)
    let made = template.withUnsafeMutableBufferPointer { buffer in buffer.baseAddress.flatMap { mkdtemp($0) } }
    path = FilePath(String(cString: try #require(made)))
  }

  deinit {
    for name in names { _ = path.appending(name).withPlatformString { Glibc.unlink($0) } }
    _ = path.withPlatformString { rmdir($0) }
  }

  /// Names in the directory, sorted.
  var names: [String] {
    guard let directory = path.withPlatformString({ opendir($0) }) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  /// Size and time of every file, which a read must not change.
  var stamps: [String] {
    names.map { name in
      var status = stat()
      _ = path.appending(name).withPlatformString { lstat($0, &status) }
      return "\(name) \(status.st_ino) \(status.st_size) \(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec)"
    }
  }
}

@Suite(.blocking) struct ConnectionTests {
  @Test func namesOfAnyKindSurviveQuoting() throws {
    let connection = try Connection(path: "memory", access: .memory)
    for name in ["plain", "with \"quotes\"", "semi;colon", "select", "ключ", "a'b", "%s", " ", "a\"\u{301}b"] {
      let quoted = SQLiteIdentifier.quoted(name)
      try connection.execute("CREATE TABLE \(quoted) (\(quoted) INTEGER)")
      try connection.run("INSERT INTO \(quoted) VALUES (7)")
      #expect(try connection.integer("SELECT \(quoted) FROM \(quoted)") == 7)
      #expect(try connection.integer("SELECT count(*) FROM sqlite_master WHERE name = ?", [.text(name)]) == 1)
    }
  }

  @Test func onlyPlainCoreDataNamesStayBare() {
    #expect(SQLiteIdentifier.bareIfPossible("ZBOOK") == "ZBOOK")
    #expect(SQLiteIdentifier.bareIfPossible("Z_1BOOKS") == "Z_1BOOKS")
    #expect(SQLiteIdentifier.bareIfPossible("REFLEXIVE") == "REFLEXIVE")
    #expect(SQLiteIdentifier.bareIfPossible("ADD") == "\"ADD\"")
    #expect(SQLiteIdentifier.bareIfPossible("ZBÜCHER") == "\"ZBÜCHER\"")
    #expect(SQLiteIdentifier.bareIfPossible("Z B") == "\"Z B\"")
    #expect(SQLiteIdentifier.bareIfPossible("order") == "\"order\"")
  }

  @Test(arguments: [
    SQLiteValue.null, .integer(.min), .integer(.max), .integer(0), .real(-0.0), .real(1.5e300), .text(""),
    .text("it's \"quoted\""), .text("NUL\u{0}inside"), .text("日本語"), .blob([]), .blob([0, 255, 1]),
  ])
  func literalsAreTheValuesThatParametersBind(_ value: SQLiteValue) throws {
    let connection = try Connection(path: "memory", access: .memory)
    #expect(try connection.value("SELECT \(value.literal)") == value)
    #expect(try connection.value("SELECT ?", [value]) == value)
  }

  /// A statement returns its row before it commits: `PRAGMA journal_mode = WAL` returns `wal` on a full disk too, and
  /// fails at its end.
  @Test func aValueIsOnlyBelievedWhenItsStatementHasCommitted() throws {
    let connection = try Connection(path: "memory", access: .memory)
    try connection.execute(
      """
      PRAGMA foreign_keys = ON; CREATE TABLE parent (id INTEGER PRIMARY KEY);
      CREATE TABLE child (id INTEGER PRIMARY KEY, parent REFERENCES parent DEFERRABLE INITIALLY DEFERRED)
      """)
    let insert = "INSERT INTO child (parent) VALUES (9) RETURNING id"
    #expect(throws: SQLiteError.self) { try connection.integer(insert) }
    #expect(throws: SQLiteError.self) { try connection.text(insert) }
    #expect(throws: SQLiteError.self) { try connection.value(insert) }
    #expect(try connection.integer("SELECT count(*) FROM child") == 0)
    try connection.execute("INSERT INTO parent VALUES (9)")
    #expect(try connection.integer(insert) == 1)
  }

  /// A store whose rows are only in the log of a writer that died, in a folder that must not change.
  @Test func unlockedReadsALogWithoutTouchingTheFolder() throws {
    let directory = try TemporaryDirectory()
    let file = directory.path.appending("hot.sqlite")
    let copy = try TemporaryDirectory()
    do {
      let writer = try Connection(path: file, access: .create)
      try writer.execute(
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)")
      try writer.execute("INSERT INTO t VALUES (2)")
      // While the writer is open the log has content: the copy is as a dead writer would leave it.
      for name in ["hot.sqlite", "hot.sqlite-wal"] {
        try copyFile(directory.path.appending(name), to: copy.path.appending(name))
      }
    }
    let before = copy.stamps
    do {
      let reader = try Connection(path: copy.path.appending("hot.sqlite"), access: .unlocked)
      #expect(try reader.integer("SELECT sum(a) FROM t") == 3)
    }
    #expect(copy.stamps == before)
    do {
      let reader = try Connection(path: "memory", access: .memory)
      try reader.attachUnchanged(copy.path.appending("hot.sqlite"), as: "store", access: .unlocked)
      try reader.attach(directory.path.appending("hot.sqlite"), as: "other")
      try reader.execute("INSERT INTO other.t SELECT a FROM store.t")
      #expect(try reader.integer("SELECT sum(a) FROM other.t") == 6)
      #expect(throws: SQLiteError.self) { try reader.execute("INSERT INTO store.t VALUES (1)") }
    }
    #expect(copy.stamps == before)
  }

  @Test func immutableReadsACleanlyClosedLogStoreWithoutSideFiles() throws {
    let directory = try TemporaryDirectory()
    let file = directory.path.appending("clean.sqlite")
    do {
      let writer = try Connection(path: file, access: .create)
      try writer.execute(
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    }
    let before = directory.stamps
    #expect(directory.names == ["clean.sqlite"])
    do {
      let reader = try Connection(path: file, access: .immutable)
      #expect(try reader.integer("SELECT count(*) FROM t") == 1)
      #expect(directory.stamps == before)
    }
    #expect(directory.stamps == before)
  }

  @Test func symbolicLinksAreRefused() throws {
    let directory = try TemporaryDirectory()
    let file = directory.path.appending("real.sqlite")
    try Connection(path: file, access: .create).execute("CREATE TABLE t (a)")
    let link = directory.path.appending("link.sqlite")
    _ = file.withPlatformString { target in link.withPlatformString { symlink(target, $0) } }
    #expect(throws: SQLiteError.self) { try Connection(path: link, access: .readOnly) }
  }

  @Test func fileNamesOfAnyBytesOpen() throws {
    let directory = try TemporaryDirectory()
    for name in ["a b.sqlite", "100%.sqlite", "what?.sqlite", "hash#.sqlite", "new\nline.sqlite"] {
      try Connection(path: directory.path.appending(name), access: .create).execute("CREATE TABLE t (a)")
      #expect(directory.names.contains(name))
    }
  }

  @Test func aFailedTransactionLeavesNothing() throws {
    let connection = try Connection(path: "memory", access: .memory)
    try connection.execute("CREATE TABLE t (a UNIQUE)")
    #expect(throws: SQLiteError.self) {
      try connection.transaction {
        try connection.execute("INSERT INTO t VALUES (1)")
        try connection.execute("INSERT INTO t VALUES (1)")
      }
    }
    #expect(!connection.isInTransaction)
    #expect(try connection.integer("SELECT count(*) FROM t") == 0)
  }

  @Test func theProgressHandlerInterrupts() throws {
    let connection = try Connection(path: "memory", access: .memory)
    connection.setProgressHandler(every: 1000) { false }
    do {
      _ = try connection.integer(
        "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 10000000) SELECT count(*) FROM c")
      Issue.record("was not interrupted")
    } catch {
      #expect(error.isInterrupt)
    }
  }

  @Test func errorsNameTheStatementButNoValue() throws {
    let connection = try Connection(path: "memory", access: .memory)
    try connection.execute("CREATE TABLE t (a UNIQUE)")
    try connection.run("INSERT INTO t VALUES (?)", [.text("secret")])
    do {
      try connection.run("INSERT INTO t VALUES (?)", [.text("secret")])
      Issue.record("no error")
    } catch {
      #expect(error.code == SQLITE_CONSTRAINT)
      #expect(error.description.contains("INSERT INTO t"))
      #expect(!error.description.contains("secret"))
    }
  }

  private func copyFile(_ source: FilePath, to destination: FilePath) throws {
    let from = try FileDescriptor.open(source, .readOnly)
    let to = try FileDescriptor.open(destination, .writeOnly, options: .create, permissions: .ownerReadWrite)
    defer {
      try? from.close()
      try? to.close()
    }
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = try buffer.withUnsafeMutableBytes { try from.read(into: $0) }
      if count == 0 { break }
      _ = try to.writeAll(buffer.prefix(count))
    }
  }
}
