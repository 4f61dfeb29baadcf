// Random source of the proven forms: the model that is derived from it is read back from a store that is made of it,
// and its frozen copy has the same hashes.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SeededRandom
import SwiftDataReading
import SwiftDataSource
import SystemPackage
import Testing

@Suite(.enabled(if: TestReader.program != nil, TestReader.absence)) struct RandomSourceTests {
  @Test(arguments: 1...30) func theModelComesBackFromAStore(_ seed: UInt64) throws {
    var random = RandomSource(seed: seed)
    let source = random.text()
    let target = try TestReader.target(["Models.swift": source])
    let (version, derived) = try #require(SourceModels(target).versions.first)
    let model = try #require(derived.model, "\(derived.refusals)\n\(source)")
    #expect(derived.refusals.isEmpty && derived.forms.isEmpty)

    let frozen = try FrozenSchema(version, derived, of: target).text(name: "Frozen", origin: "v\(seed)")
    let again = try SourceModels(TestReader.target(["Frozen.swift": frozen]))
    #expect(again.versions.first?.derived.model?.versionHashes == model.versionHashes, "\(source)\n\(frozen)")

    let path = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-random-\(UUID().uuidString).store")
    defer {
      for end in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path.string + end) }
    }
    let schema = StoreSchema(model: model, frameworkVersion: 1526)
    try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: seed)).make(at: path, rows: 20, seed: seed)
    let held = try StoreModels.bundle(ofStoreAt: path)
    let read = try #require(held.versions.first)
    #expect(read.versionHashes == model.versionHashes, "\(source)")
    #expect(read.versionIdentifiers == ["2.0.0"] && read.configurations == model.configurations)
    let catalog = ModelCatalog(bundles: [
      ModelBundle(name: "App", path: "App", versions: [model], currentVersionName: nil)
    ])
    let found = try StoreIdentifier.identify(StoreLocation(database: path), catalog: catalog, countsRows: false)
    #expect(found.version?.model.name == "SchemaV2")
  }
}

/// Source of the forms whose models are proven.
private struct RandomSource {
  private var dice: Dice
  private static let plain = [
    "String", "Int", "Int64", "UInt64", "Int32", "UInt32", "Int16", "UInt8", "Double", "TimeInterval", "Float",
    "CGFloat", "Bool", "Date", "Data", "UUID", "Decimal", "[String]", "[Int]", "Array<Data>", "Foundation.Date",
  ]

  init(seed: UInt64) { dice = Dice(seed: seed) }

  mutating func text() -> String {
    let count = 1 + dice.below(5)
    var bodies = (0..<count).map { _ in [String]() }
    for index in 0..<count { bodies[index] = properties() }
    for number in 0..<dice.below(5) { relate(number, count, &bodies) }
    var lines = [
      "enum Grade: String, Codable { case low, high = \"top\" }", "enum Level: Int, Codable { case one = 1, two }",
      "enum Look: Codable { case plain, fancy, odd }",
      "struct Size: Codable { var width: Double; let note: String?; var names: [String]; var grades: [Grade]"
        + "; var grade: Grade?"
        + "; static let zero = 1 }",
    ]
    let isNested = dice.chance(50)
    let models = bodies.enumerated().map { "@Model final class E\($0) {\n\($1.map { "  \($0)\n" }.joined())}" }
    let list = (0..<count).map { "E\($0).self" }.joined(separator: ", ")
    let nested = isNested ? models.joined(separator: "\n") : ""
    lines.append(
      "enum SchemaV2: VersionedSchema {\nstatic let versionIdentifier = Schema.Version(2, 0, 0)\n"
        + "static var models: [any PersistentModel.Type] { [\(list)] }\n\(nested)\n}")
    if !isNested { lines += models }
    return lines.joined(separator: "\n")
  }

  private mutating func properties() -> [String] {
    var lines: [String] = []
    for number in 0...dice.below(8) {
      let name = dice.pick(["", "_", "is", "Z"]) + "p\(number)"
      let mark = dice.chance(40) ? "?" : ""
      switch dice.below(10) {
      case 0: lines.append("var \(name): \(dice.pick(["Grade", "Level", "Look"]))\(mark)")
      case 1: lines.append("var \(name): Size?")
      case 2: lines.append("var \(name): Color.Resolved\(mark)")
      case 3: lines.append("@Attribute(.externalStorage) var \(name): Data\(mark)")
      case 4: lines.append("@Attribute(.unique, originalName: \"old\(number)\") var \(name): String\(mark)")
      case 5: lines.append("@Transient var \(name): Int = 0")
      case 6: lines += ["var \(name): Int = \(dice.below(100))", "#Index<Self>([\\.\(name)])"]
      case 7: lines.append("var \(name) = \"text \(number)\"")
      default: lines.append("var \(name): \(dice.pick(Self.plain))\(mark)")
      }
    }
    return lines + ["var always: Int"]
  }

  /// Adds a relationship, with its other end if it has one.
  private mutating func relate(_ number: Int, _ count: Int, _ bodies: inout [[String]]) {
    let (from, to) = (dice.below(count), dice.below(count))
    let (one, two) = ("r\(number)", "back\(number)")
    func type(_ entity: Int, _ form: Int) -> String { ["E\(entity)?", "[E\(entity)]", "[E\(entity)]?"][form] }
    let first = type(to, dice.below(3))
    if dice.chance(30) {
      bodies[from].append("@Relationship(deleteRule: .cascade) var \(one): \(first)")
      return
    }
    bodies[from].append("@Relationship(deleteRule: .nullify, inverse: \\E\(to).\(two)) var \(one): \(first)")
    bodies[to].append("var \(two): \(type(from, dice.below(3)))")
  }
}
