// What the source shows beyond the models: mistakes and a frozen copy.

import Diagnostics
import ManagedObjectModel
import SwiftDataReading
import SwiftDataSource
import SystemPackage
import Testing

@Suite(.enabled(if: TestReader.program != nil, TestReader.absence)) struct SourceFindingTests {
  private static let shop = """
    enum SchemaV1: VersionedSchema {
      static let versionIdentifier = Schema.Version(1, 0, 0)
      static var models: [any PersistentModel.Type] { [Item.self, Note.self] }
      @Model class Note { var name: String; init() { name = "" } }
    }
    enum SchemaV2: VersionedSchema {
      static let versionIdentifier = Schema.Version(1, 0, 0)
      static var models: [any PersistentModel.Type] { [Item.self, Tag.self] }
    }
    enum SchemaV3: VersionedSchema {
      static let versionIdentifier = Schema.Version(3, 0, 0)
      static var models: [any PersistentModel.Type] { [Item.self, Tag.self] }
    }
    enum Plan: SchemaMigrationPlan {
      static var schemas: [any VersionedSchema.Type] { [SchemaV1.self, SchemaV2.self, SchemaV3.self] }
      static var stages: [MigrationStage] {
        [.custom(fromVersion: SchemaV1.self, toVersion: SchemaV2.self, willMigrate: nil, didMigrate: nil)]
      }
    }
    enum Kind: String, Codable { case box = "b", bag, `default` }
    enum Look: Codable { case plain, fancy }
    struct Size: Codable { var width: Double; var kinds: [Kind]?; var parts: Parts? }
    struct Parts: Codable { var names: [String]; let count: Int }
    @Model final class Item {
      #Index<Item>([\\.name])
      @Attribute(.unique) var id: UUID = UUID()
      @Attribute(originalName: "title") var name: String = "a \\"b\\""
      var kind: Kind; var look: Look?; var size: Size; var tint: Color.Resolved
      var list: [String] = []; var price: Decimal = 1.5; var when: Date?
      @Relationship(deleteRule: .cascade, inverse: \\Tag.items) var tags: [Tag]? = []
      @Relationship var owner: Item?
      @Transient var cache: Int = 0
      init() {}
    }
    @Model final class Tag { var name: String; var level: Int; var items: [Item]? ; init() {} }
    """

  @Test func whatTheSourceShowsIsFound() throws {
    let models = try SourceModels(TestReader.target(["Models.swift": Self.shop]))
    let codes = models.findings.map(\.code)
    #expect(
      codes == [
        .liveType, .liveType, .versionsAlike, .versionsAlike, .stageMissing, .casesCount, .frozenDefault,
      ])
    #expect(models.appStages.map(\.source) == ["SchemaV1"] && models.appStages.map(\.destination) == ["SchemaV2"])
    #expect(models.appStages.allSatisfy { $0.place.line != nil })
    let texts = models.findings.map(\.message)
    #expect(texts[0].contains("2 of its 3 models") && texts[0].contains("Item, Tag"))
    #expect(models.findings.allSatisfy { $0.place.line != nil && $0.hint != nil })
  }

  @Test func aFrozenVersionHasTheSameHashes() throws {
    let target = try TestReader.target(["Models.swift": Self.shop])
    let models = try SourceModels(target, schema: "SchemaV3")
    let (version, derived) = try #require(models.versions.first)
    let text = try FrozenSchema(version, derived, of: target).text(name: "Frozen", origin: "v1")
    let again = try SourceModels(TestReader.target(["Frozen.swift": text]))
    #expect(again.versions.map(\.version.name) == ["Frozen"])
    let frozen = try #require(again.versions.first?.derived.model, "\(again.versions.map(\.derived.refusals)) \(text)")
    #expect(frozen.versionHashes == derived.model?.versionHashes)
    // Beside the live classes too.
    let both = try SourceModels(TestReader.target(["Frozen.swift": text, "Models.swift": Self.shop]), schema: "Frozen")
    #expect(both.versions.first?.derived.model?.versionHashes == derived.model?.versionHashes)
  }

  @Test("A stage that cannot be read is told, because it may run code of the app")
  func stagesAreReadOrTold() throws {
    func models(_ stages: String, _ more: String = "") throws -> SourceModels {
      let versions = (1...2).map { number in
        """
        enum V\(number): VersionedSchema {
          static let versionIdentifier = Schema.Version(\(number), 0, 0)
          static var models: [any PersistentModel.Type] { [Item.self] }
          @Model class Item { var p\(number): Int }
        }
        """
      }
      let plan = """
        enum Plan: SchemaMigrationPlan {
          static var schemas: [any VersionedSchema.Type] { [V1.self, V2.self] }
          \(stages)
          static let step = MigrationStage.custom(
            fromVersion: V1.self, toVersion: V2.self, willMigrate: nil, didMigrate: nil)
        }
        \(more)
        """
      return try SourceModels(TestReader.target(["A.swift": versions.joined(separator: "\n"), "P.swift": plan]))
    }
    let custom = [
      "static var stages: [MigrationStage] { [step] }", "static let stages: [MigrationStage] = [Self.step]",
      "static var stages: [MigrationStage] { all }; static let all: [MigrationStage] = [Plan.step]",
      "static var stages: [MigrationStage] { [] + [step] }", "static var stages: [MigrationStage] { return [step] }",
    ]
    for stages in custom {
      let found = try models(stages)
      #expect(found.appStages.count == 1 && found.findings.isEmpty, "\(stages): \(found.findings) \(found.remarks)")
      #expect(found.appStages.first?.place.file == "P.swift")
    }
    for stages in [
      "static var stages: [MigrationStage] { make() }", "static var stages: [MigrationStage] { [make()] }", "",
    ] {
      let found = try models(stages)
      #expect(found.appStages.isEmpty && found.findings.isEmpty)
      #expect(found.remarks.contains { $0.message.contains("the stages of Plan cannot be read") }, "\(stages)")
    }
  }

  @Test("A frozen copy has the constant defaults, and tells the others")
  func defaultsAreFrozen() throws {
    let source = """
      enum Colour: String, Codable { case red = "r", green, `default`; static let favourite = Colour.green }
      struct Size: Codable { var width = 1.0 }
      @Model final class Item {
        var one: Colour = Colour.red
        var two: Colour? = .green
        var three = Colour.default
        var price: Decimal = Decimal(string: "1.5") ?? 0
        var when: Date = Date(timeIntervalSince1970: 5)
        var now: Date = .now
        var list: [String] = ["a", "b"]
        var most: Int = Int.max
        var size: Size = Size(width: 2)
        var four: Colour = Colour.favourite
        init() {}
      }
      let s = Schema([Item.self])
      """
    let target = try TestReader.target(["Models.swift": source])
    let (version, derived) = try #require(SourceModels(target).versions.first)
    let text = try FrozenSchema(version, derived, of: target).text(name: "SchemaV3", origin: "v1")
    for line in [
      "var one: Colour = Colour.red\n", "var two: Colour? = .green\n", "var three: Colour = Colour.`default`\n",
      "var when: Date = Date(timeIntervalSince1970: 5)\n", "var now: Date = .now\n",
      "var list: [String] = [\"a\", \"b\"]\n", "var most: Int = Int.max\n",
      "// Shipped with the default Size(width: 2), which is code of the app.\n    var size: Size\n",
      "// Shipped with the default Colour.favourite, which is code of the app.\n    var four: Colour\n",
    ] { #expect(text.contains(line), "\(line)\n\(text)") }
    #expect(text.contains("Schema.Version(3, 0, 0)"))
    let again = try SourceModels(TestReader.target(["Frozen.swift": text])).versions.first?.derived.model
    #expect(again?.versionHashes == derived.model?.versionHashes)
  }

  @Test(
    "A frozen version has the number of its tag, otherwise of its name",
    arguments: [
      ("SchemaV1", "v1.2", "1, 2, 0"), ("SchemaV2", "release-3", "3, 0, 0"), ("SchemaV2", nil, "2, 0, 0"),
      ("SchemaV2_1", "main", "2, 1, 0"), ("Old", "v1.2.3.4", "1, 0, 0"), ("Old", nil, "1, 0, 0"),
      ("SchemaV2", "1.4.0-beta", "2, 0, 0"),
    ])
  func frozenVersionsHaveNumbers(_ name: String, _ tag: String?, _ numbers: String) throws {
    let target = try TestReader.target(["A.swift": "@Model class A { var n: Int }\nlet s = Schema([A.self])"])
    let (version, derived) = try #require(SourceModels(target).versions.first)
    let frozen = try FrozenSchema(version, derived, of: target)
    #expect(frozen.text(name: name, origin: "x", tag: tag).contains("Schema.Version(\(numbers))"))
    #expect(frozen.text(name: name, origin: "x", tag: tag, identifier: "7.0.1").contains("Schema.Version(7, 0, 1)"))
  }
}
