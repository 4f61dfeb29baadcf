// The output of `hopctl mapping infer`, over random worlds: read again, the text must be the inferred mapping.

import Diagnostics
import Expressions
import ManagedObjectModel
import SystemPackage
import Testing

@testable import MappingModel

@Suite struct InferredTextTests {
  private static let seeds: ClosedRange<UInt64> = 1...60

  @Test func theTextReadAgainIsTheInferredMapping() throws {
    var compared = 0
    for seed in Self.seeds {
      var world = RandomModels(seed: seed)
      let before = world.model("V1")
      world.evolve()
      let after = world.model("V2")
      guard let inferred = try? MappingInference.infer(from: before, to: after) else { continue }
      let text = try InferredTextMapping.text(from: before, to: after)
      let read = try TextMapping(text: text, file: "/V1 to V2.hopmap.toml").resolved(source: before, destination: after)
      let wanted = ExplicitMapping(inferred: inferred, source: before, destination: after)
      let (found, expected) = (Self.said(read), Self.said(wanted))
      #expect(found == expected, "seed \(seed)\n\(text)")
      compared += expected.reduce(0) { $0 + $1.properties.count }
      // No entity with rows is missing.
      let sources = Set(read.entityMappings.compactMap(\.source))
      #expect(sources == Set(before.entities.filter { !$0.isAbstract }.map(\.name)), "seed \(seed)")
    }
    #expect(compared > 500)
  }

  /// With `isSkeleton` there is always a text, and it is TOML with the entity mappings that can be made.
  @Test func aSkeletonSaysWhatCouldNotBeInferred() throws {
    let before = ManagedObjectModel(
      name: "V1",
      entities: [Entity(name: "A", attributes: [Attribute(name: "size", type: .string, isOptional: true)])])
    let after = ManagedObjectModel(
      name: "V2",
      entities: [Entity(name: "A", attributes: [Attribute(name: "size", type: .integer32, isOptional: true)])])
    #expect(throws: HopdError.self) { _ = try InferredTextMapping.text(from: before, to: after) }
    let text = try InferredTextMapping.text(from: before, to: after, isSkeleton: true)
    #expect(text.contains("# TODO size: "))
    let mapping = try TextMapping(text: text, file: "/x.hopmap.toml")
    #expect(throws: HopdError.self) { _ = try mapping.resolved(source: before, destination: after) }
    let repaired = text + "attributes.size = \"CAST($source.size, 'Integer 32')\"\n"
    #expect(throws: Never.self) {
      _ = try TextMapping(text: repaired, file: "/x.hopmap.toml").resolved(source: before, destination: after)
    }
  }

  private struct Said: Equatable {
    let name: String
    let source: String?
    let destination: String?
    let properties: [ExplicitPropertyMapping]
  }

  /// Returns the content of a mapping; properties without a value do not count.
  private static func said(_ mapping: ExplicitMapping) -> [Said] {
    mapping.entityMappings.map { entity in
      Said(
        name: entity.name, source: entity.source, destination: entity.destination,
        properties: (entity.attributes + entity.relationships).filter { $0.value != nil }
          .map { ExplicitPropertyMapping(name: $0.name, value: $0.value) })
    }
  }
}
