import BlockingTests
import ManagedObjectModel
import PersistentStore
import Testing

@testable import MigrationPlanning

@Suite(.blocking) struct DanglingReferencesTests {
  /// Each kind of storage separately: a to-one, a many-to-many with either end missing, a to-many without inverse.
  @Test func everyKindOfStorageIsCounted() throws {
    let model = ManagedObjectModel(
      name: "V1",
      entities: [
        entity("A", [], [toOne("b", "B"), toMany("many", "B", inverse: "back"), toMany("own", "B")]),
        entity("B", [], [toMany("back", "A", inverse: "many")]),
      ])
    let rows = """
      INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZB) VALUES (1, 1, 1, 1), (2, 1, 1, NULL);
      INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT, Z1OWN) VALUES (1, 2, 1, 1), (2, 2, 1, NULL);
      INSERT INTO Z_1MANY VALUES (1, 1), (1, 2), (2, 1);
      """
    for (sql, expected) in [
      ("", [String: Int64]()), ("UPDATE ZA SET ZB = 9", ["A.b": 2]),
      ("UPDATE ZB SET Z1OWN = 9 WHERE Z_PK = 2", ["A.own": 1]),
      ("DELETE FROM ZB WHERE Z_PK = 2", ["A.many": 1]), ("DELETE FROM ZA WHERE Z_PK = 2", ["A.many": 1]),
      ("DELETE FROM ZB", ["A.b": 1, "A.many": 3]),
      ("DELETE FROM ZA; DELETE FROM ZB", ["A.many": 3]),
    ] {
      let store = try SmallStore(model, rows + sql)
      try StoreReader.withUnchangedStore(at: store.location) { reader in
        let found = try StoreCensus(schema: store.schema, reader: reader).danglingReferences()
        let counts = Dictionary(uniqueKeysWithValues: found.map { ("\($0.entity).\($0.relationship)", $0.count) })
        #expect(counts == expected, "\(sql)")
      }
    }
  }
}
