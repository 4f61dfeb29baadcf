// The triggers of filtered counts in the stores of Photos, text by text.

import PersistentStore
import SQLite
import SystemPackage
import Testing

extension AppleStoreTests {
  /// Every trigger of this kind is predicted with its text, none is predicted that the store has not, and every value
  /// is the count.
  @Test(arguments: AppleStores.paths.filter { $0.lastComponent?.string.hasPrefix("Photos") == true })
  func filteredCountsAreThoseOfTheStore(path: FilePath) throws {
    try withCopy(of: path) { reader, model, framework in
      let schema = StoreSchema(model: model, frameworkVersion: framework)
      let stored = try reader.schemaObjects().filter { $0.type == "trigger" && $0.name.hasPrefix("ZT_") }
      let predicted = schema.filteredCounts.flatMap(\.triggers)
      #expect(predicted.count >= 14)
      #expect(Set(predicted.map(\.text)) == Set(stored.compactMap(\.sql)))
      for count in schema.filteredCounts {
        let wrong = try reader.connection.rows(count.comparison(qualified: reader.qualified)) { $0.integer(at: 1) }
        #expect(wrong == [0], "\(count.entity).\(count.attribute)")
      }
    }
  }
}
