import ManagedObjectModel
import PersistentStore
import Testing

@testable import MigrationEngine

@Suite struct SubjectNamesTests {
  private let schema = StoreSchema(
    model: SmallHop.model(
      "V1",
      [
        Entity(
          name: "Author",
          relationships: [
            Relationship(name: "books", destinationEntityName: "Book", inverseName: "authors", isToMany: true),
            Relationship(name: "home", destinationEntityName: "City", inverseName: "authors"),
          ]),
        Entity(
          name: "Book", attributes: [Attribute(name: "isbn", type: .string, isOptional: true)],
          relationships: [
            Relationship(name: "authors", destinationEntityName: "Author", inverseName: "books", isToMany: true)
          ], uniquenessConstraints: [["isbn"]]),
        Entity(name: "Novel", parentName: "Book"),
        Entity(
          name: "City",
          relationships: [
            Relationship(name: "authors", destinationEntityName: "Author", inverseName: "home", isToMany: true)
          ]),
      ]), frameworkVersion: 1344)

  @Test("What a hop writes has the names of entities and properties, not those of tables and indexes")
  func names() throws {
    let names = SubjectNames(schema)
    let join = try #require(schema.joinTables.first)
    #expect(["Author.books", "Book.authors"].contains(names[join.name]))
    let indexes = schema.indexes.map { names[$0.name] }
    #expect(indexes.count >= 4 && indexes.allSatisfy { $0.hasPrefix("index on ") && !$0.contains("Z") }, "\(indexes)")
    for words in ["index on Book.isbn", "index on Book", "index on Author.home"] { #expect(indexes.contains(words)) }
    #expect(names[schema.tables[0].name] == schema.tables[0].rootEntity)
    for subject in ["Book", "Author.home", "bookkeeping", "BookToBook"] { #expect(names[subject] == subject) }
  }
}
