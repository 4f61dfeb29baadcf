// Chains over mapping models: every small set of edges, compared with the rules (docs/formats/migration-semantics.md,
// "Finding a chain").

import BlockingTests
import Diagnostics
import ManagedObjectModel
import SystemPackage
import Testing

@testable import MappingModel
@testable import MigrationPlanning

/// Mapping models without files: one for each pair of positions.
struct FakeMappings: MappingSource, HopMappings {
  var pairs: Set<[Int]>
  var ambiguous: Set<[Int]> = []

  var isEmpty: Bool { pairs.isEmpty }

  func hops(among versions: [CatalogedVersion]) -> any HopMappings { self }

  func hop(
    from source: CatalogedVersion, to destination: CatalogedVersion
  ) throws(HopdError) -> (hop: MappedHop, warnings: [HopdError])? {
    let pair = [source.position, destination.position]
    if ambiguous.contains(pair) { throw HopdError(.ambiguousMapping, "two of them") }
    guard pairs.contains(pair) else { return nil }
    return (FakeMappings.hop(source.model, destination.model), [])
  }

  func nearMisses(from source: CatalogedVersion, to destination: CatalogedVersion) -> [HopdError] {
    [HopdError(.staleMapping, "made for others")]
  }

  static func hop(_ source: ManagedObjectModel, _ destination: ManagedObjectModel) -> MappedHop {
    MappedHop(mappings: [
      ExplicitMapping(
        name: "\(source.name)to\(destination.name)", path: "/maps/x.cdm", sourceVersion: source.name,
        destinationVersion: destination.name,
        entityMappings: [
          ExplicitEntityMapping(name: "EToE", type: .transform, source: "E", destination: "E")
        ])
    ])
  }
}

@Suite(.blocking) struct MappedGraphTests {
  /// Returns versions that are all different; a bit tells whether the hop to the next one can be inferred.
  private func versions(_ count: Int, inferable: Int) -> [CatalogedVersion] {
    var type = AttributeType.string
    let models = (0..<count).map { index -> [Entity] in
      if index > 0, inferable >> (index - 1) & 1 == 0 { type = type == .string ? .date : .string }
      return [entity("E", [attribute("x", type), attribute("a\(index)")])]
    }
    return ModelCatalog(bundles: [bundle(models, name: "M")]).versions
  }

  /// Whether one version can be inferred from another: the attribute has the same type in both.
  private func canInfer(_ from: Int, _ to: Int, _ inferable: Int) -> Bool {
    (from..<to).filter { inferable >> $0 & 1 == 0 }.count % 2 == 0
  }

  /// Whether the union of edges leads from one version to the last.
  private func leads(_ from: Int, _ to: Int, _ inferable: Int, _ pairs: Set<[Int]>) -> Bool {
    if from == to { return true }
    return (from + 1...to).contains {
      (canInfer(from, $0, inferable) || pairs.contains([from, $0])) && leads($0, to, inferable, pairs)
    }
  }

  @Test func everySmallGraphIsCrossedByTheRules() throws {
    let all = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    for inferable in 0..<8 {
      let versions = versions(4, inferable: inferable)
      for code in 0..<64 {
        let pairs = Set(all.enumerated().filter { code >> $0.offset & 1 == 1 }.map(\.element))
        let graph = MigrationGraph(versions: versions, infer: true, mappings: FakeMappings(pairs: pairs))
        let title: Comment = "inferable \(inferable), mappings \(pairs.sorted { $0.lexicographicallyPrecedes($1) })"
        guard leads(0, 3, inferable, pairs) else {
          let error = #expect(throws: HopdError.self, title) { try graph.route(from: versions[0], to: versions[3]) }
          #expect(error?.code == .noRoute, title)
          #expect(error?.reasons.isEmpty == false, title)
          for reason in error?.reasons ?? [] {
            // Only hops that nothing spans are missing, and each has its reasons.
            let index = try #require(
              versions.firstIndex { reason.place.hop == "\($0.model.name) → V\($0.position + 2)" })
            #expect(inferable >> index & 1 == 0 && !pairs.contains([index, index + 1]), title)
            #expect(reason.reasons.contains { $0.place.property == "x" }, title)
            #expect(reason.reasons.contains { $0.code == .staleMapping } == !pairs.isEmpty, title)
          }
          continue
        }
        let route = try graph.route(from: versions[0], to: versions[3])
        var at = 0
        for edge in route {
          #expect(edge.source.position == at, title)
          let to = edge.destination.position
          let next = inferable >> at & 1 == 1 || pairs.contains([at, at + 1])
          if to == at + 1 {
            #expect(edge.mapped != nil || !pairs.contains([at, at + 1]), title)
          } else {
            // Versions are skipped only if no hop leads through them; by a mapping model first, otherwise with a note.
            #expect(edge.warnings.contains { $0.code == .versionsSkipped } == (edge.mapped == nil), title)
            #expect(!next || !leads(at + 1, 3, inferable, pairs), title)
            for other in (at + 2)..<(edge.mapped == nil ? 4 : to) {
              #expect(!pairs.contains([at, other]) || !leads(other, 3, inferable, pairs), title)
            }
            for shorter in (at + 2)..<to where edge.mapped == nil {
              #expect(!canInfer(at, shorter, inferable) || !leads(shorter, 3, inferable, pairs), title)
            }
          }
          at = to
        }
        #expect(at == 3, title)
      }
    }
  }

  /// Direct is one hop or none; shortest has the fewest hops of all chains.
  @Test func theRulesOfRoutesOverASmallWorld() throws {
    let all = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    func fewest(_ from: Int, _ inferable: Int, _ pairs: Set<[Int]>) -> Int? {
      if from == 3 { return 0 }
      return (from + 1...3).compactMap { to in
        canInfer(from, to, inferable) || pairs.contains([from, to]) ? fewest(to, inferable, pairs).map { $0 + 1 } : nil
      }.min()
    }
    for inferable in 0..<8 {
      let versions = versions(4, inferable: inferable)
      for code in 0..<64 {
        let pairs = Set(all.enumerated().filter { code >> $0.offset & 1 == 1 }.map(\.element))
        func route(_ rule: RouteRule) -> [MigrationGraph.Edge]? {
          try? MigrationGraph(
            versions: versions, rules: RouteRules(route: rule), mappings: FakeMappings(pairs: pairs)
          ).route(from: versions[0], to: versions[3])
        }
        let title: Comment = "inferable \(inferable), mappings \(pairs.sorted { $0.lexicographicallyPrecedes($1) })"
        let isDirect = canInfer(0, 3, inferable) || pairs.contains([0, 3])
        #expect(route(.direct)?.count == (isDirect ? 1 : nil), title)
        #expect(route(.shortest)?.count == fewest(0, inferable, pairs), title)
        #expect((route(.progressive) == nil) == (route(.shortest) == nil), title)
      }
    }
  }

  @Test func onlyMappingModelsLeadBack() throws {
    let versions = versions(3, inferable: 3)
    let all = [[2, 1], [1, 0], [2, 0]]
    for code in 0..<8 {
      let pairs = Set(all.enumerated().filter { code >> $0.offset & 1 == 1 }.map(\.element))
      let graph = MigrationGraph(versions: versions, infer: true, mappings: FakeMappings(pairs: pairs))
      let expected: [Int]? =
        pairs.isSuperset(of: [[2, 1], [1, 0]]) ? [1, 0] : pairs.contains([2, 0]) ? [0] : nil
      if let expected {
        #expect(try graph.route(from: versions[2], to: versions[0]).map(\.destination.position) == expected)
      } else {
        let error = #expect(throws: HopdError.self) { try graph.route(from: versions[2], to: versions[0]) }
        #expect(error?.code == .storeNewer)
      }
    }
  }

  @Test func withoutInferenceMappingModelsStillLead() throws {
    let versions = versions(3, inferable: 3)
    let whole = MigrationGraph(versions: versions, infer: false, mappings: FakeMappings(pairs: [[0, 1], [1, 2]]))
    #expect(try whole.route(from: versions[0], to: versions[2]).allSatisfy { $0.mapped != nil })
    let half = MigrationGraph(versions: versions, infer: false, mappings: FakeMappings(pairs: [[0, 1]]))
    let error = #expect(throws: HopdError.self) { try half.route(from: versions[0], to: versions[2]) }
    #expect(error?.code == .inferenceOff)
    #expect(error?.reasons.map(\.place.hop) == ["V2 → V3"])
  }

  @Test func ambiguityIsNeverSettledByInference() {
    let versions = versions(2, inferable: 1)
    let graph = MigrationGraph(
      versions: versions, infer: true, mappings: FakeMappings(pairs: [[0, 1]], ambiguous: [[0, 1]]))
    let error = #expect(throws: HopdError.self) { try graph.route(from: versions[0], to: versions[1]) }
    #expect(error?.code == .ambiguousMapping)
  }
}
