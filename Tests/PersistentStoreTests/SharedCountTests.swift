// Counting by two threads: every number, error and stop is as with one.

import BlockingTests
import FoundationEssentials
import ManagedObjectModel
import OtherPrograms
import SQLite
import SeededRandom
import SystemPackage
import Testing

@testable import PersistentStore

@Suite(.blocking) struct SharedCountTests {
  private static let rows: Int64 = 45_000

  /// Makes a store in a file that is large enough, with some changes that no app makes.
  private func withStore(_ seed: UInt64, _ body: (FilePath, String) throws -> Void) throws {
    let path = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-count-\(UUID().uuidString).sqlite")
    defer { try? FileManager.default.removeItem(atPath: path.string) }
    var random = Dice(seed: seed)
    var log: [String] = []
    do {
      let schema = StoreCensusTests.schema
      let writer = try Connection(path: path, access: .create)
      try writer.execute("BEGIN")
      for table in schema.tables {
        try writer.execute(table.createStatement)
        let numbers = table.entities.filter { schema.model.entity(named: $0)?.isAbstract == false }
          .compactMap { schema.number(of: $0) }.map(String.init)
        let entity = numbers.count == 1 ? numbers[0] : "CASE n % 2 WHEN 0 THEN \(numbers[0]) ELSE \(numbers[1]) END"
        let step = seed.isMultiple(of: 2) ? 2 : 1
        try writer.execute(
          "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < \(Self.rows)) INSERT INTO"
            + " \(table.name) (Z_PK, Z_ENT, Z_OPT) SELECT n * \(step), \(entity), 1 FROM c")
      }
      for join in schema.joinTables { try writer.execute(join.createStatement) }
      try writer.execute("UPDATE ZBOOK SET ZTITLE = printf('%.60c', 'x') WHERE Z_PK % 7 <> 0")
      for _ in 0..<12 {
        log.append(StoreCensusTests.change(&random, rows: Self.rows))
        try writer.execute(log.last ?? "")
      }
      try writer.execute("COMMIT")
    }
    try body(path, "seed \(seed): \(log)")
  }

  private func reader(_ path: FilePath, byTwo: Bool = true) throws -> StoreReader {
    var reader = StoreReader(connection: try Connection(path: path, access: .readOnly))
    reader.isReadBeside = byTwo
    return reader
  }

  @Test(arguments: [UInt64](1...4)) func everyNumberIsThatOfAPlainStatement(_ seed: UInt64) throws {
    try withStore(seed) { path, what in
      let reader = try reader(path)
      #expect(ConnectionThread.isWorthIt(reading: "main", of: reader.connection))
      try StoreCensusTests.compare(reader, together: true, what)
    }
  }

  /// A second thread registers what conditions call.
  @Test func filtersAreCountedWithTheRows() throws {
    try withStore(1) { path, _ in
      let memory = RowCountCache()
      var reader = StoreReader(
        connection: try Connection(path: path, access: .readOnly), space: .schema("main"), memory: memory)
      reader.isReadBeside = true
      let filter = "s.Z_PK % 10 = half(4)"
      try StoreCensus(schema: StoreCensusTests.schema, reader: reader).take(
        .rows, filters: ["ZBOOK": [filter]],
        functions: { connection throws(SQLiteError) in
          try connection.registerFunction("half", argumentCount: 1) { values in
            if case .integer(let value)? = values.first { .integer(value / 2) } else { .null }
          }
        })
      let plain = try reader.connection.integer("SELECT count(*) FROM ZBOOK WHERE Z_PK % 10 = 2")
      #expect(memory.count(filter, in: reader.qualified("ZBOOK")) == plain)
      #expect(plain ?? 0 > 4000)
    }
  }

  private func outcome(_ body: () throws -> Void) -> String {
    do {
      try body()
      return "no error"
    } catch { return "\(error)" }
  }

  @Test(arguments: [0.2, 0.5, 0.9]) func damageIsTheSameError(_ place: Double) throws {
    try withStore(2) { path, _ in
      let size = try #require(try FileManager.default.attributesOfItem(atPath: path.string)[.size] as? Int)
      let file = try FileDescriptor.open(path, .readWrite)
      try file.closeAfter {
        _ = try [UInt8](repeating: 0xa5, count: 4096).withUnsafeBytes {
          try file.writeAll(toAbsoluteOffset: Int64(Double(size / 4096) * place) * 4096, $0)
        }
      }
      let errors = try [false, true].map { byTwo in
        let reader = try reader(path, byTwo: byTwo)
        return outcome { try StoreCensus(schema: StoreCensusTests.schema, reader: reader).take([.rows, .orderKeys]) }
      }
      #expect(errors[0] == errors[1])
      #expect(errors[0] != "no error")
    }
  }

  @Test func itStopsOnRequest() throws {
    try withStore(1) { path, _ in
      let reader = try reader(path)
      reader.connection.setProgressHandler(every: 10_000) { false }
      let error = #expect(throws: SQLiteError.self) {
        try StoreCensus(schema: StoreCensusTests.schema, reader: reader).take(.all)
      }
      #expect(error?.isInterrupt == true)
    }
  }
}
