// The parts of an insertion that other code reads instead of its text.

import BlockingTests
import ManagedObjectModel
import PersistentStore
import SQLite
import Testing

@testable import MigrationEngine

@Suite(.blocking) struct InsertionTests {
  @Test func columnsComeInTheOrderOfTheirTable() throws {
    let book = Entity(
      name: "Book", attributes: ["c", "a", "b"].map { Attribute(name: $0, type: .string, isOptional: true) })
    let schema = StoreSchema(model: ManagedObjectModel(name: "V1", entities: [book]), frameworkVersion: 1344)
    let table = try #require(schema.table(of: "Book"))
    #expect(table.columns.map(\.name) == ["Z_PK", "Z_ENT", "Z_OPT", "ZA", "ZB", "ZC"])
    let columns = ["ZB", "Z_OPT", "Z_PK"].map { Insertion.Column($0, .value(.text($0))) }
    let ordered = Insertion.inOrder(columns, of: table)
    #expect(ordered.map(\.name) == ["Z_PK", "Z_ENT", "Z_OPT", "ZA", "ZB"])
    #expect(ordered.map(\.value.text) == ["'Z_PK'", "NULL", "'Z_OPT'", "NULL", "'ZB'"])
    // SQLite must refuse a column that the table does not have, or that occurs twice.
    for odd in [columns + [Insertion.Column("ZX", "1")], columns + [Insertion.Column("ZB", "2")]] {
      #expect(Insertion.inOrder(odd, of: table) == odd)
    }
    #expect(Insertion.inOrder(columns, of: nil) == columns)
  }
}
