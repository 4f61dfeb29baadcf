// Mapping models of real apps written as text mappings: read again, they are equal.

import Diagnostics
import ManagedObjectModel
import SystemPackage
import Testing

@testable import MappingModel

@Suite(.enabled(if: Fixtures.isAvailable, Fixtures.absence))
struct TextMappingRealTests {
  @Test func everyMappingModelReadsBackFromItsText() throws {
    var compared = 0
    var refused: [String] = []
    for folder in Fixtures.cases(in: "mappings") {
      let name = folder.lastComponent?.string ?? ""
      guard let found = try MappingFileSearch.find(at: folder).first,
        let model = try ModelReader.findBundles(in: folder.appending("models")).first
      else {
        Issue.record("\(name): no mapping model")
        continue
      }
      let bundle = try ModelReader.read(at: model)
      let versions = bundle.versions.map { MappableVersion(modelName: bundle.name, model: $0) }
      let file = try MappingReader.read(at: found)
      let hops = MappingCatalog(files: [file]).hops(among: versions)
      guard let pair = hops.pairs.first else {
        Issue.record("\(name): fits no pair")
        continue
      }
      let (source, destination) = (versions[pair.source].model, versions[pair.destination].model)
      let mapping = try file.load(source: source, destination: destination).mapping
      let text = try mapping.text(source: source, destination: destination)
      do {
        let read = try TextMapping(text: text, file: mapping.path).resolved(source: source, destination: destination)
        let (again, wanted) = (said(read, destination), said(mapping, destination))
        #expect(again == wanted, "\(name)\n\(text)")
        compared += wanted.reduce(0) { $0 + $1.attributes.count + $1.relationships.count }
      } catch {
        // A mapping that cannot be followed in one form cannot be followed in the other.
        #expect(
          !MappingChecker.findings(in: [mapping], source: source, destination: destination).isEmpty, "\(name)\n\(error)"
        )
        refused.append(name)
      }
    }
    print("text mappings: \(compared) properties read back, refused as in their own form: \(refused)")
    #expect(compared > 500)
    #expect(refused.count <= 1)
  }

  /// Returns the content of a mapping. Properties without a value do not count, nor do those that the destination does
  /// not store. `mapping show` reports a name that the destination does not have; the text leaves it out.
  private func said(_ mapping: ExplicitMapping, _ destination: ManagedObjectModel) -> [ExplicitEntityMapping] {
    mapping.entityMappings.map { entity in
      let target = entity.destination.flatMap { destination.entity(named: $0) }
      let attributes = target.map { destination.allAttributes(of: $0) } ?? [:]
      return ExplicitEntityMapping(
        name: entity.name, type: entity.type, source: entity.source, destination: entity.destination,
        policy: entity.policy, userInfo: entity.userInfo, filter: entity.filter,
        attributes: entity.attributes.filter { $0.value != nil && attributes[$0.name]?.isTransient == false },
        relationships: entity.relationships.filter { $0.value != nil }
          .map { ExplicitPropertyMapping(name: $0.name, value: $0.value) }, grouping: entity.grouping)
    }
  }
}
