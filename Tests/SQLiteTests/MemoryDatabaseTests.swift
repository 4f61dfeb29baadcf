import BlockingTests
import SystemPackage
import Testing

@testable import SQLite

@Suite(.blocking) struct MemoryDatabaseTests {
  private let statements = [
    "CREATE TABLE m.T (A INTEGER PRIMARY KEY, B)", "INSERT INTO m.T VALUES (1, 'one'), (2, zeroblob(9000))",
    "CREATE INDEX m.I ON T (B)", "DELETE FROM m.T WHERE A = 1",
  ]

  @Test func theImageIsTheFileThatTheSameStatementsMake() throws {
    let directory = try TemporaryDirectory()
    for autoVacuum in 0...2 {
      let settings = "PRAGMA m.page_size = 2048; PRAGMA m.auto_vacuum = \(autoVacuum);"
      let onDisk = try Connection(path: directory.path, access: .memory)
      _ = try Connection(path: directory.path.appending("disk\(autoVacuum)"), access: .create)
      try onDisk.attach(directory.path.appending("disk\(autoVacuum)"), as: "m")
      let inMemory = try Connection(path: directory.path, access: .memory)
      try inMemory.attachMemory(as: "m", for: .image)
      #expect(try inMemory.isInMemory("m"))
      #expect(try !onDisk.isInMemory("m"))
      for connection in [onDisk, inMemory] {
        try connection.execute(settings)
        for statement in statements { try connection.run(statement) }
      }
      let image = try inMemory.image(of: "m")
      // Page size, file format, encoding and the version of SQLite, as in a file.
      let wanted = try onDisk.image(of: "m")
      #expect(image.count == wanted.count)
      #expect(
        image[16..<24] == wanted[16..<24] && image[44..<60] == wanted[44..<60] && image[96..<100] == wanted[96..<100])
    }
  }

  @Test func anImageIsTakenForADatabaseThatGrowsWithinItsBound() throws {
    let directory = try TemporaryDirectory()
    let first = try Connection(path: directory.path, access: .memory)
    try first.attachMemory(as: "m", for: .image)
    try first.execute("PRAGMA m.page_size = 2048; PRAGMA m.auto_vacuum = 2")
    for statement in statements { try first.run(statement) }
    let image = try first.image(of: "m")
    for _ in 0..<2 {
      let connection = try Connection(path: directory.path, access: .memory)
      try connection.attachMemory(as: "m", for: .image)
      try connection.load(image, into: "m")
      #expect(try connection.image(of: "m") == image)
      #expect(try connection.isInMemory("m"))
      #expect(try connection.integer("PRAGMA m.page_size") == 2048 && connection.integer("PRAGMA m.auto_vacuum") == 2)
      try connection.limitSize(of: "m", toBytes: 120_000)
      // The rows and their index exist; and the loaded bytes are a copy of the connection's own.
      #expect(try connection.integer("SELECT A FROM m.T WHERE B = zeroblob(9000)") == 2)
      try connection.run("INSERT INTO m.T VALUES (3, zeroblob(20000))")
      #expect(try connection.image(of: "m").count > image.count + 20_000)
      #expect(try connection.text("PRAGMA m.integrity_check") == "ok")
      let error = #expect(throws: SQLiteError.self) {
        try connection.run("INSERT INTO m.T VALUES (4, zeroblob(200000))")
      }
      #expect(error?.isFull == true)
      #expect(throws: SQLiteError.self) { try connection.load(image, into: "nothing") }
    }
  }

  @Test func growingBeyondTheBoundIsAFullDisk() throws {
    let directory = try TemporaryDirectory()
    let connection = try Connection(path: directory.path, access: .memory)
    for purpose in [MemoryPurpose.scratch, .image] {
      try connection.attachMemory(as: "m", for: purpose)
      try connection.execute("CREATE TABLE m.T (A)")
      try connection.limitSize(of: "m", toBytes: 1 << 20)
      try connection.run("INSERT INTO m.T VALUES (zeroblob(500000))")
      let error = #expect(throws: SQLiteError.self) {
        try connection.run("INSERT INTO m.T VALUES (zeroblob(600000))")
      }
      #expect(error?.isFull == true)
      try connection.detach("m")
    }
  }
}
