// The files next to a database cannot lead SQLite to a foreign file; one test for each method that worked.

import BlockingTests
import CSQLite
import Glibc
import SystemPackage
import Testing

@testable import SQLite

@Suite(.blocking) struct StoreVFSTests {
  private func write(_ path: FilePath, _ bytes: [UInt8]) throws {
    let file = try FileDescriptor.open(path, .readWrite, options: [.create, .truncate], permissions: .ownerReadWrite)
    _ = try file.closeAfter { try file.writeAll(bytes) }
  }

  private func read(_ path: FilePath) throws -> [UInt8] {
    let file = try FileDescriptor.open(path, .readOnly)
    return try file.closeAfter {
      var bytes = [UInt8](repeating: 0, count: 1 << 20)
      let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0) }
      return Array(bytes.prefix(count))
    }
  }

  private func big(_ number: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) } }

  /// A rollback journal with one genuine page whose last bytes name `victim` as super-journal
  /// (sqlite.org/fileformat.html, section 3).
  private func plantJournal(beside database: FilePath, naming victim: FilePath) throws {
    let bytes = try read(database)
    let pageSize = Int(bytes[16]) << 8 | Int(bytes[17])
    let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
    let nonce: UInt32 = 0x1234_5678
    let page = Array(bytes.prefix(pageSize))
    var sum = nonce
    for index in stride(from: pageSize - 200, to: 0, by: -200) { sum = sum &+ UInt32(page[index]) }
    var header = magic + big(1) + big(nonce) + big(UInt32(bytes.count / pageSize)) + big(512) + big(UInt32(pageSize))
    header += [UInt8](repeating: 0, count: 512 - header.count)
    let name = Array(victim.string.utf8)
    let tail =
      big(UInt32(0x4000_0000 / pageSize + 1)) + name + big(UInt32(name.count))
      + big(name.reduce(UInt32(0)) { $0 &+ UInt32($1) }) + magic
    try write(FilePath(database.string + "-journal"), header + big(1) + page + big(sum) + tail)
  }

  private func database(in directory: TemporaryDirectory, named name: String = "a.sqlite", log: Bool = false) throws
    -> FilePath
  {
    let path = directory.path.appending(name)
    let writer = try Connection(path: path, access: .create)
    try writer.execute("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    if log {
      try writer.execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; INSERT INTO t VALUES (2)")
    }
    return path
  }

  @Test func aJournalCannotNameAFileToDelete() throws {
    let directory = try TemporaryDirectory()
    let path = try database(in: directory)
    let victim = directory.path.appending("victim")
    try write(victim, Array("somebody else's file".utf8))
    try plantJournal(beside: path, naming: victim)
    let before = directory.stamps
    for access in [Connection.Access.readWrite, .exclusive(keepsLog: false), .create] {
      let error = #expect(throws: SQLiteError.self) {
        try Connection(path: path, access: access).execute("BEGIN EXCLUSIVE; COMMIT")
      }
      #expect(error?.refusal == .superJournal, "\(access): \(error as Any)")
      #expect(directory.stamps == before, "\(access)")
    }
    // The reproduction is genuine: SQLite itself deletes the file.
    var plain: OpaquePointer?
    #expect(sqlite3_open(path.string, &plain) == SQLITE_OK)
    sqlite3_exec(plain, "SELECT * FROM t", nil, nil, nil)
    sqlite3_close(plain)
    #expect(!directory.names.contains("victim"))
  }

  /// A pipe of that name would block the process, a large file fill its memory.
  @Test func aSuperJournalIsNotOpened() throws {
    let directory = try TemporaryDirectory()
    let path = try database(in: directory)
    let victim = directory.path.appending("pipe")
    #expect(victim.withPlatformString { mkfifo($0, 0o600) } == 0)
    try plantJournal(beside: path, naming: victim)
    let error = #expect(throws: SQLiteError.self) {
      try Connection(path: path, access: .readWrite).integer("SELECT count(*) FROM t")
    }
    #expect(error?.refusal == .superJournal)
  }

  /// Each call refuses by itself: the next version of SQLite may call them in another order.
  @Test func eachCallRefusesAFileThatIsNoSideFile() throws {
    let directory = try TemporaryDirectory()
    let path = try database(in: directory)
    let connection = try Connection(path: path, access: .readWrite)
    let victim = directory.path.appending("victim")
    try write(victim, Array("somebody else's file".utf8))
    let vfs = try #require(sqlite3_vfs_find("hopd"))
    var isThere: Int32 = 0
    #expect(vfs.pointee.xAccess(vfs, victim.string, SQLITE_ACCESS_EXISTS, &isThere) != SQLITE_OK && isThere == 0)
    #expect(vfs.pointee.xDelete(vfs, victim.string, 0) != SQLITE_OK)
    let file = UnsafeMutableRawPointer.allocate(byteCount: Int(vfs.pointee.szOsFile), alignment: 16)
    defer { file.deallocate() }
    for kind in [SQLITE_OPEN_SUPER_JOURNAL, SQLITE_OPEN_MAIN_JOURNAL, SQLITE_OPEN_WAL] {
      let code = vfs.pointee.xOpen(
        vfs, victim.string, file.assumingMemoryBound(to: sqlite3_file.self), kind | SQLITE_OPEN_READWRITE, nil)
      #expect(code == SQLITE_CANTOPEN, "\(kind)")
    }
    #expect(try read(victim) == Array("somebody else's file".utf8))
    #expect(try connection.integer("SELECT count(*) FROM t") == 1)
  }

  @Test func aJournalOfADeadWriterIsRolledBack() throws {
    let directory = try TemporaryDirectory()
    let path = try database(in: directory)
    let dead = try TemporaryDirectory()
    let copy = dead.path.appending("a.sqlite")
    do {
      let writer = try Connection(path: path, access: .readWrite)
      try writer.execute("PRAGMA cache_size = 1; BEGIN; CREATE TABLE u (a)")
      try writer.execute(
        "INSERT INTO u WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT i FROM n")
      for suffix in ["", "-journal"] { try write(FilePath(copy.string + suffix), read(FilePath(path.string + suffix))) }
      try writer.execute("ROLLBACK")
    }
    do {
      let reader = try Connection(path: copy, access: .exclusive(keepsLog: false))
      #expect(try reader.rows("SELECT name FROM sqlite_schema") { $0.text(at: 0) } == ["t"])
    }
    #expect(dead.names == ["a.sqlite"])
  }

  @Test func aDirectoryExchangedForALinkChangesNothing() throws {
    let parent = try TemporaryDirectory()
    func path(_ name: String) -> FilePath { parent.path.appending(name) }
    for name in ["mine", "theirs"] { #expect(path(name).withPlatformString { mkdir($0, 0o700) } == 0) }
    let mine = path("mine").appending("a.sqlite")
    let theirs = path("theirs").appending("a.sqlite")
    for file in [mine, theirs] {
      try Connection(path: file, access: .create).execute("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    }
    let before = try read(theirs)
    let connection = try Connection(path: mine, access: .readWrite)
    try connection.execute("BEGIN IMMEDIATE")
    // Between two calls of SQLite the path becomes another directory.
    #expect(rename(path("mine").string, path("moved").string) == 0)
    #expect(symlink("theirs", path("mine").string) == 0)
    try connection.execute("INSERT INTO t VALUES (2)")
    #expect(access(path("theirs").appending("a.sqlite-journal").string, F_OK) != 0)
    #expect(access(path("moved").appending("a.sqlite-journal").string, F_OK) == 0)
    try connection.execute("COMMIT")
    #expect(try read(theirs) == before)
    #expect(try connection.integer("SELECT count(*) FROM t") == 2)
    #expect(access(path("moved").appending("a.sqlite-journal").string, F_OK) != 0)
    for name in ["moved/a.sqlite", "theirs/a.sqlite", "mine"] { #expect(unlink(path(name).string) == 0) }
    for name in ["moved", "theirs"] { #expect(rmdir(path(name).string) == 0) }
  }

  @Test func theOpenFileIsTheOneBelowItsDirectory() throws {
    let directory = try TemporaryDirectory()
    let path = try database(in: directory)
    let open = try #require(try Connection(path: path, access: .readOnly).openFile)
    var (file, folder) = (stat(), stat())
    #expect(lstat(path.string, &file) == 0 && lstat(directory.path.string, &folder) == 0)
    #expect(open.device == UInt64(file.st_dev) && open.inode == UInt64(file.st_ino))
    #expect(open.directoryDevice == UInt64(folder.st_dev) && open.directoryInode == UInt64(folder.st_ino))
    #expect(try Connection(path: path, access: .memory).openFile == nil)
  }

  /// If another process truncates a mapped file, this process ends.
  @Test func theIndexOfALogIsNeverMapped() throws {
    let directory = try TemporaryDirectory()
    let path = try database(in: directory, log: true)
    let index = FilePath(path.string + "-shm")
    try write(index, [UInt8](repeating: 7, count: 32_768))
    let connection = try Connection(path: path, access: .exclusive(keepsLog: true))
    #expect(try connection.integer("SELECT count(*) FROM t") == 2)
    #expect(truncate(index.string, 0) == 0)
    try connection.execute("INSERT INTO t VALUES (3)")
    #expect(try connection.integer("SELECT count(*) FROM t") == 3)
    // Without exclusive locking the index would have to be shared memory.
    #expect(throws: SQLiteError.self) {
      try Connection(path: database(in: directory, named: "b.sqlite", log: true), access: .readWrite)
        .integer("SELECT count(*) FROM t")
    }
    var maps = [UInt8]()
    let file = try FileDescriptor.open("/proc/self/maps", .readOnly)
    try file.closeAfter {
      var buffer = [UInt8](repeating: 0, count: 65_536)
      while case let count = try buffer.withUnsafeMutableBytes({ try file.read(into: $0) }), count > 0 {
        maps += buffer.prefix(count)
      }
    }
    #expect(!String(decoding: maps, as: UTF8.self).contains(directory.path.string))
  }

  @Test func aSideFileIsAPlainFile() throws {
    let directory = try TemporaryDirectory()
    let path = try database(in: directory)
    #expect(mkfifo(path.string + "-journal", 0o600) == 0)
    let error = #expect(throws: SQLiteError.self) {
      try Connection(path: path, access: .readWrite).execute("INSERT INTO t VALUES (2)")
    }
    #expect(error != nil)
  }

  @Test(arguments: [
    "'view', 'v' || i, 'v' || i, 0, 'CREATE VIEW v' || i || ' AS SELECT 1'",
    "'trigger', 'v' || i, 't', 0, 'CREATE TRIGGER v' || i || ' AFTER INSERT ON t BEGIN SELECT 1; END'",
  ])
  func aSchemaOfTensOfThousandsIsNotRead(_ entry: String) throws {
    let directory = try TemporaryDirectory()
    let path = try database(in: directory)
    var plain: OpaquePointer?
    #expect(sqlite3_open(path.string, &plain) == SQLITE_OK)
    // As rows of the schema's table: SQLite would take minutes to make them one by one.
    let sql = """
      PRAGMA writable_schema = ON;
      INSERT INTO sqlite_schema
        WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 70000) SELECT \(entry) FROM n
      """
    #expect(sqlite3_exec(plain, sql, nil, nil, nil) == SQLITE_OK, "\(String(cString: sqlite3_errmsg(plain)))")
    sqlite3_close(plain)
    for access in [Connection.Access.immutable, .unlocked, .readOnly, .exclusive(keepsLog: false)] {
      let error = #expect(throws: SQLiteError.self) {
        try Connection(path: path, access: access).integer("SELECT count(*) FROM t")
      }
      #expect(error?.refusal == .largeSchema, "\(access): \(error as Any)")
    }
    let error = #expect(throws: SQLiteError.self) {
      try Connection(path: path, access: .memory).attachUnchanged(path, as: "store", access: .immutable)
    }
    #expect(error?.refusal == .largeSchema)
  }

  @Test func aSchemaInTheLogIsBoundedToo() throws {
    let directory = try TemporaryDirectory()
    let path = try database(in: directory)
    let copy = try TemporaryDirectory()
    var plain: OpaquePointer?
    #expect(sqlite3_open(path.string, &plain) == SQLITE_OK)
    let sql = """
      PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA writable_schema = ON;
      INSERT INTO sqlite_schema WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
        SELECT 'view', 'v' || i, 'v' || i, 0, 'CREATE VIEW v' || i || ' AS SELECT 1' FROM n
      """
    #expect(sqlite3_exec(plain, sql, nil, nil, nil) == SQLITE_OK)
    for name in ["a.sqlite", "a.sqlite-wal"] {
      let file = try FileDescriptor.open(directory.path.appending(name), .readOnly)
      let size = try file.seek(offset: 0, from: .end)
      var bytes = [UInt8](repeating: 0, count: Int(size))
      _ = try bytes.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: 0, into: $0) }
      try file.close()
      try write(copy.path.appending(name), bytes)
    }
    sqlite3_close(plain)
    for access in [Connection.Access.unlocked, .exclusive(keepsLog: true)] {
      let error = #expect(throws: SQLiteError.self) {
        try Connection(path: copy.path.appending("a.sqlite"), access: access).integer("SELECT count(*) FROM t")
      }
      #expect(error?.refusal == .largeSchema, "\(access): \(error as Any)")
    }
  }

  /// For a view SQLite uses eighty times the memory of its text.
  @Test func aSchemaOfMegabytesIsNotRead() throws {
    let directory = try TemporaryDirectory()
    let path = try database(in: directory)
    var plain: OpaquePointer?
    #expect(sqlite3_open(path.string, &plain) == SQLITE_OK)
    let sql = """
      PRAGMA writable_schema = ON;
      INSERT INTO sqlite_schema
        WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
          SELECT 'view', 'v' || i, 'v' || i, 0, 'CREATE VIEW v' || i || ' AS SELECT 1' \
          || replace(hex(zeroblob(120000)), '00', ',1')
          FROM n
      """
    #expect(sqlite3_exec(plain, sql.replacing("120000", with: "900"), nil, nil, nil) == SQLITE_OK)
    #expect(try Connection(path: path, access: .immutable).integer("SELECT count(*) FROM t") == 1)
    #expect(sqlite3_exec(plain, "DELETE FROM sqlite_schema WHERE type = 'view'; " + sql, nil, nil, nil) == SQLITE_OK)
    sqlite3_close(plain)
    // Each is shorter than the longest statement; together they are larger than any schema that Core Data makes.
    #expect(throws: SQLiteError.self) {
      try Connection(path: path, access: .immutable).integer("SELECT count(*) FROM t")
    }
    #expect(throws: SQLiteError.self) {
      try Connection(path: path, access: .memory).attachUnchanged(path, as: "store", access: .immutable)
    }
  }

  /// Other schemas have two megabytes too, but not in one view.
  @Test func aViewOfMegabytesIsNotRead() throws {
    let directory = try TemporaryDirectory()
    for (count, isRead) in [(300_000, true), (1_000_000, false)] {
      let path = try database(in: directory, named: "\(count).sqlite")
      var plain: OpaquePointer?
      #expect(sqlite3_open(path.string, &plain) == SQLITE_OK)
      let sql = """
        PRAGMA writable_schema = ON;
        INSERT INTO sqlite_schema VALUES ('view', 'v', 'v', 0,
          'CREATE VIEW v AS SELECT 1 /*' || replace(hex(zeroblob(\(count))), '00', ',1') || '*/')
        """
      #expect(sqlite3_exec(plain, sql, nil, nil, nil) == SQLITE_OK)
      sqlite3_close(plain)
      let found = try? Connection(path: path, access: .immutable).integer("SELECT count(*) FROM t")
      #expect((found != nil) == isRead)
    }
  }

  @Test func anOrdinarySchemaOfThousandsIsRead() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path.appending("many.sqlite")
    do {
      let writer = try Connection(path: path, access: .create)
      try writer.execute("BEGIN")
      for index in 0..<2000 {
        try writer.execute("CREATE TABLE t\(index) (a); CREATE INDEX i\(index) ON t\(index) (a)")
      }
      try writer.execute("COMMIT")
    }
    // Rows of tables are not objects of the schema.
    let connection = try Connection(path: path, access: .readWrite)
    try connection.execute(
      "INSERT INTO t1 WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) SELECT i FROM n")
    #expect(try connection.integer("SELECT count(*) FROM t1") == 50_000)
  }

  @Test func namesOfAnyKindAreOpened() throws {
    let directory = try TemporaryDirectory()
    for name in ["a b.sqlite", "-x", "ü.sqlite", "a-journal", "x\nnew", "?vfs=unix", "%41"] {
      let path = directory.path.appending(name)
      let connection = try Connection(path: path, access: .create)
      try connection.execute("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
      #expect(directory.names == [name])
      #expect(unlink(path.string) == 0)
    }
  }
}
