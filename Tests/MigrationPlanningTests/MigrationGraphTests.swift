import BlockingTests
import Diagnostics
import ManagedObjectModel
import MappingModel
import Testing

@testable import MigrationPlanning

@Suite(.blocking) struct MigrationGraphTests {
  private func versions(_ types: [AttributeType]) -> [CatalogedVersion] {
    let entities = types.map { [entity("E", [attribute("x", $0)])] }
    return ModelCatalog(bundles: [bundle(entities, name: "M")]).versions
  }

  /// Every chain of up to four versions over three shapes that can be inferred from each other: the chain never enters
  /// a version twice, ends at the target, and only goes forward.
  @Test func everySmallChainHasAForwardWayWithoutCircles() throws {
    let shapes = [[attribute("x")], [attribute("x"), attribute("y")], [attribute("x"), attribute("z")]]
    for count in 1...4 {
      for code in 0..<pow3(count) {
        let chosen = (0..<count).map { shapes[code / pow3($0) % 3] }
        let versions = ModelCatalog(bundles: [bundle(chosen.map { [entity("E", $0)] }, name: "M")]).versions
        let graph = MigrationGraph(versions: versions, infer: true)
        for start in versions {
          for target in versions where target.position >= start.position {
            let route = try graph.route(from: start, to: target)
            #expect(route.isEmpty == (start.versionHashes == target.versionHashes))
            var stops = [start.versionHashes]
            var position = start.position
            for edge in route {
              #expect(edge.source.versionHashes == stops.last)
              #expect(edge.destination.position > position)
              position = edge.destination.position
              stops.append(edge.destination.versionHashes)
            }
            #expect(stops.last == target.versionHashes)
            #expect(Set(stops).count == stops.count)
          }
        }
      }
    }
  }

  private func pow3(_ exponent: Int) -> Int { (0..<exponent).reduce(1) { value, _ in value * 3 } }

  @Test func consecutiveVersionsAreNeverSkipped() throws {
    let catalog = catalog(
      [entity("E")], [entity("E", [attribute("a")])], [entity("E", [attribute("b")])], [entity("E", [attribute("c")])])
    let route = try MigrationGraph(versions: catalog.versions.reversed(), infer: true)
      .route(from: catalog.versions[0], to: catalog.versions[3])
    #expect(route.map(\.mapping.sourceVersion) == ["V1", "V2", "V3"])
    #expect(route.map(\.mapping.destinationVersion) == ["V2", "V3", "V4"])
  }

  /// Inference leads back only if that is allowed, through the same versions.
  @Test func theWayBackIsInferredWhereItIsAllowed() throws {
    let catalog = catalog(
      [entity("E", [attribute("name")])], [entity("E", [attribute("title", id: "name")])],
      [entity("E", [attribute("title", id: "name"), attribute("more")])])
    let (first, last) = (catalog.versions[0], catalog.versions[2])
    let error = #expect(throws: HopdError.self) {
      try MigrationGraph(versions: catalog.versions, infer: true).route(from: last, to: first)
    }
    #expect(error?.code == .storeNewer && error?.hint?.contains("--allow-older") == true)
    let route = try MigrationGraph(versions: catalog.versions, infer: true, allowsOlder: true)
      .route(from: last, to: first)
    #expect(route.map(\.destination.model.name) == ["V2", "V1"])
    // A renaming identifier works in both directions.
    #expect(route.last?.mapping.entityMappings.first?.attributes.map(\.source) == ["title"])
    #expect(throws: HopdError.self) {
      try MigrationGraph(versions: catalog.versions, infer: false, allowsOlder: true).route(from: last, to: first)
    }
  }

  @Test func aMissingHopIsNotJumpedOver() {
    // V1 → V3 could be inferred; V1 → V2 and V2 → V3 cannot.
    let versions = versions([.string, .date, .string, .boolean])
    let graph = MigrationGraph(versions: Array(versions.prefix(2)) + [versions[3]], infer: true)
    let error = #expect(throws: HopdError.self) { try graph.route(from: versions[0], to: versions[3]) }
    #expect(error?.code == .noRoute)
    #expect(error?.reasons.map(\.place.hop) == ["V1 → V2", "V2 → V4"])
    #expect(error?.reasons.flatMap(\.reasons).map(\.place.property) == ["x", "x"])
    #expect(error?.message.contains("V1 → V2, V2 → V4") == true)
    #expect(error?.hint?.contains("--to") == true)
  }

  @Test func aWayBackIsRefused() {
    let catalog = catalog([entity("E")], [entity("E", [attribute("a")])])
    let error = #expect(throws: HopdError.self) {
      try MigrationGraph(versions: catalog.versions, infer: true)
        .route(from: catalog.versions[1], to: catalog.versions[0])
    }
    #expect(error?.code == .storeNewer)
  }

  @Test func withoutInferenceThereIsNoEdge() {
    let catalog = catalog([entity("E")], [entity("E", [attribute("a")])])
    let graph = MigrationGraph(versions: catalog.versions, infer: false)
    #expect(
      #expect(throws: HopdError.self) { try graph.route(from: catalog.versions[0], to: catalog.versions[1]) }?.code
        == .inferenceOff)
    #expect(throws: Never.self) { try graph.route(from: catalog.versions[0], to: catalog.versions[0]) }
  }
}
