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
        .liveType, .liveType, .versionsAlike, .versionsAlike, .stageMissing, .stageNeedsProgram, .casesCount,
        .frozenDefault,
      ])
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
}
