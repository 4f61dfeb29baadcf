// Which indexes a store gets from a model, and their text.

import BlockingTests
import Diagnostics
import Testing

@testable import ManagedObjectModel
@testable import PersistentStore

@Suite(.blocking) struct IndexLayoutTests {
  private func schema(
    _ indexes: [FetchIndex], _ frameworkVersion: Int64 = 1447, uniqueness: [[String]] = [], compound: [[String]] = []
  ) -> StoreSchema {
    var photo = Entity(
      name: "Photo",
      attributes: [
        Attribute(name: "favorite", type: .boolean), Attribute(name: "size", type: .integer32),
        Attribute(name: "made", type: .date), Attribute(name: "width", type: .double),
      ],
      relationships: [
        Relationship(name: "album", destinationEntityName: "Album", inverseName: "photos", maxCount: 1),
        Relationship(name: "tags", destinationEntityName: "Tag", inverseName: nil, isToMany: true),
      ], fetchIndexes: indexes)
    photo.uniquenessConstraints = uniqueness
    photo.compoundIndexes = compound
    photo.markIndexedAttributes()
    let entities = [
      photo,
      Entity(
        name: "Album",
        relationships: [
          Relationship(name: "photos", destinationEntityName: "Photo", inverseName: "album", isToMany: true)
        ]), Entity(name: "Tag"),
    ]
    return StoreSchema(model: ManagedObjectModel(name: "V1", entities: entities), frameworkVersion: frameworkVersion)
  }

  private func index(_ names: String..., partial: String? = nil) -> FetchIndex {
    FetchIndex(
      name: "i",
      elements: names.map { name in
        ["self", "entity", "self.entity"].contains(name) || name.contains("(")
          ? FetchIndex.Element(expression: name) : FetchIndex.Element(propertyName: name)
      }, partialPredicate: partial)
  }

  /// The statements of the indexes of photos, without that of the relationship's column.
  private func made(_ schema: StoreSchema) -> [String] {
    schema.indexes.filter { $0.name.hasPrefix("Z_Photo_") }.map(\.createStatement)
  }

  /// The index of an attribute of its own, which a partial one makes too: that of VUIndex.
  private static let plain = "CREATE INDEX Z_Photo_made ON ZPHOTO (ZMADE COLLATE BINARY ASC)"

  /// The texts are those of Photos' own stores, apart from the names.
  @Test(arguments: [
    ("favorite == 1", "ZFAVORITE = 1"), ("favorite == YES", "ZFAVORITE = 1"), ("size != 4", "ZSIZE <> 4"),
    ("size > 1", "ZSIZE > 1"), ("album != nil", "ZALBUM IS NOT NULL"), ("made == nil", "ZMADE IS NULL"),
    ("size == -1 AND favorite == 1", "(ZSIZE = -1 AND ZFAVORITE = 1)"),
    ("size == 2 OR size == 16 OR size == 65538", "(ZSIZE = 2 OR ZSIZE = 16 OR ZSIZE = 65538)"),
    (
      "made == nil AND size == 0 AND (width != 0 OR size > 3)",
      "(ZMADE IS NULL AND ZSIZE = 0 AND (ZWIDTH <> 0 OR ZSIZE > 3))"
    ), ("(favorite == 1)", "ZFAVORITE = 1"), ("SELF.favorite==1&&size==2", "(ZFAVORITE = 1 AND ZSIZE = 2)"),
  ])
  func partialIndexesHaveTheirCondition(predicate: String, sql: String) {
    let start = "CREATE INDEX Z_Photo_i ON ZPHOTO (ZMADE COLLATE BINARY ASC)"
    #expect(made(schema([index("made", partial: predicate)])) == [Self.plain, "\(start) WHERE \(sql)"])
    #expect(made(schema([index("made", partial: predicate)], 973)) == ["\(start) WHERE  \(sql)"])
  }

  /// What no store shows is left out, and the plan says so; the store works without it.
  @Test(arguments: [
    "size < 3", "size >= 3", "size IN {1, 2}", "size BETWEEN {1, 2}", "NOT size == 1", "made == CAST(0, \"NSDate\")",
    "album.photos == nil", "unknown == 1", "size == 1.5", "size ==", "(size == 1", "size == 1 AND", "", "size == 'a'",
    "tags == nil", "1 == size", "size == favorite",
  ])
  func partialIndexesOfAnotherFormAreLeftOut(predicate: String) {
    let schema = schema([index("made", partial: predicate)])
    #expect(made(schema) == [Self.plain])
    #expect(schema.unsupported.map(\.code) == [.indexLeftOut])
  }

  @Test func selfAndEntityAreColumnsOfEveryRow() {
    #expect(
      made(schema([index("made", "self", "self.entity")])) == [
        "CREATE INDEX Z_Photo_i ON ZPHOTO (ZMADE COLLATE BINARY ASC, Z_PK COLLATE BINARY ASC, Z_ENT COLLATE BINARY ASC)"
      ])
    #expect(
      made(schema([], compound: [["made", "entity"]])) == [
        "CREATE INDEX Z_Photo_made_entity ON ZPHOTO (ZMADE COLLATE BINARY ASC, Z_ENT COLLATE BINARY ASC)"
      ])
  }

  /// An index over one relationship makes none: 545 of 545 in stores that Apple's software made.
  @Test func oneRelationshipMakesNoIndex() {
    for name in ["album", "tags"] {
      let schema = schema([index(name)])
      #expect(made(schema) == [])
      #expect(schema.unsupported.isEmpty)
    }
    #expect(made(schema([index("album", "made")])).count == 1)
  }

  /// An index of which nothing can be made costs a warning, and never the model.
  @Test func whatCannotBeMadeIsLeftOut() {
    let unknown = [
      index("nowhere"), index("length(made)"), index("made", "tags"), FetchIndex(name: "i", elements: []),
      FetchIndex(name: "i", elements: [FetchIndex.Element()]),
      FetchIndex(name: "i", elements: [FetchIndex.Element(propertyName: "made", kind: .unknown)]),
    ]
    for index in unknown {
      let schema = schema([index])
      #expect(made(schema) == [])
      #expect(schema.unsupported.map(\.code) == [.indexLeftOut], "\(index)")
    }
    #expect(schema([], compound: [["nowhere"]]).unsupported.map(\.code) == [.indexLeftOut])
    let twice = schema([index("made"), index("size")])
    #expect(twice.unsupported.map(\.code) == [.indexLeftOut])
  }

  /// An index of one attribute also makes one that is named after the attribute, but not from fw 851 to 973.
  @Test(
    arguments: [
      (836, ["Z_Photo_made"]), (851, ["Z_Photo_i"]), (866, ["Z_Photo_i"]), (969, ["Z_Photo_i"]),
      (977, ["Z_Photo_made", "Z_Photo_i"]), (1447, ["Z_Photo_made", "Z_Photo_i"]),
    ] as [(Int64, [String])])
  func oneAttribute(framework: Int64, names: [String]) {
    let schema = schema([index("made")], framework)
    #expect(schema.indexes.map(\.name).filter { $0.hasPrefix("Z_Photo_") } == names)
  }

  @Test func uniquenessIsPartOfTheTableBeforeFramework866() throws {
    func table(_ framework: Int64) throws -> String {
      try #require(schema([], framework, uniqueness: [["size"]]).table(of: "Photo")).createStatement
    }
    #expect(try table(851).contains("ZSIZE INTEGER UNIQUE, "))
    #expect(try table(851).hasSuffix(" )"))
    #expect(try !table(866).contains("UNIQUE"))
    #expect(made(schema([], 851, uniqueness: [["size"]])) == [])
    #expect(
      made(schema([], 866, uniqueness: [["size"]])) == [
        "CREATE UNIQUE INDEX Z_Photo_UNIQUE_size ON ZPHOTO (ZSIZE COLLATE BINARY ASC)"
      ])
    let two = try #require(schema([], 851, uniqueness: [["size", "made"]]).table(of: "Photo"))
    #expect(two.createStatement.hasSuffix(", CONSTRAINT ZSIZE_ZMADE UNIQUE (ZSIZE, ZMADE))"))
  }

  /// Photos' GenericAsset, in whose stores the index is missing.
  @Test func theIndexOverEntityNumbersCanBeSwitchedOff() {
    func names(_ userInfo: [String: String]) -> [String] {
      let entities = [Entity(name: "Asset", userInfo: userInfo), Entity(name: "Movie", parentName: "Asset")]
      return StoreSchema(model: ManagedObjectModel(name: "V1", entities: entities), frameworkVersion: 1447).indexes
        .map(\.name)
    }
    #expect(names([:]) == ["ZASSET_Z_ENT_INDEX"])
    #expect(names(["_NSEntityOmitSubentityColumnIndex": "NO"]) == ["ZASSET_Z_ENT_INDEX"])
    #expect(names(["_NSEntityOmitSubentityColumnIndex": "YES"]) == [])
  }
}
