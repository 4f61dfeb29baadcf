// Models compiled by Apple's compiler, compared with their sources, and with the hashes that the compiler wrote beside
// them.

import Diagnostics
import ManagedObjectModel
import MigrationPlanning
import PropertyLists
import SystemPackage
import Testing

@Suite(.enabled(if: Fixtures.isAvailable, Fixtures.absence))
struct CompiledModelRealTests {
  private func sample() throws -> (source: FilePath, compiled: FilePath) {
    let chain = try #require(Fixtures.root).appending("chains/coredataplus-samplemodel")
    return (
      chain.appending("models/SampleModel.xcdatamodeld"), chain.appending("compiled/SampleModel.momd")
    )
  }

  @Test func aCompiledBundleEqualsItsSource() throws {
    let paths = try sample()
    let source = try ModelReader.read(at: paths.source)
    let compiled = try ModelReader.read(at: paths.compiled)
    #expect(compiled.versions.map(\.name) == ["SampleModel", "SampleModel2", "SampleModel3"])
    #expect(compiled.warnings.isEmpty)
    #expect(compiled.currentVersionName == "SampleModel")
    for version in compiled.versions {
      let twin = try #require(source.version(named: version.name))
      expectSame(version, twin)
      #expect(version.compiledForm == (try Fixtures.bytes(of: paths.compiled.appending(version.name + ".mom"))))
      #expect(twin.compiledForm == nil)
    }
  }

  /// Derivations with canonical:, now() and a count, and a fetched property: a compiled model is read as its source is,
  /// and the source is archived with the compiler's expressions and request.
  @Test(.enabled(if: Fixtures.isFolder(derivedFolder), "no compiled model with derivations beside the fixtures"))
  func derivationsAndFetchedPropertiesEqualTheirSource() throws {
    let bytes = try Fixtures.bytes(of: Self.derivedFolder.appending("Model 2.mom"))
    let compiled = try ModelReader.read(compiled: bytes, name: "Model 2").model
    let source = try ModelReader.read(
      contents: Fixtures.bytes(of: Self.derivedFolder.appending("contents")), name: "Model 2"
    ).model
    #expect(compiled.versionHashes == source.versionHashes)
    for (entity, twin) in zip(compiled.entities, source.entities) {
      #expect(entity.attributes.map(\.derivationExpression) == twin.attributes.map(\.derivationExpression))
    }
    let graphs = try [bytes, source.archived(frameworkVersion: 1344)].map { ArchiveGraph(try PropertyList.decode($0)) }
    let (real, own) = (try #require(graphs[0]), try #require(graphs[1]))
    // In a store's copy an entity has its own objects for inherited properties: these parts have none of them.
    for (entity, property, key) in [
      ("ChildEntity", "canonicalOptionalString", "NSDerivationExpression"),
      ("ChildEntity", "now", "NSDerivationExpression"), ("ChildEntity", "derivedCount", "NSDerivationExpression"),
      ("MainEntity", "fetchedProperty", "NSFetchRequest"),
    ] {
      let keys = ["NSEntities", entity, "NSProperties", property, key]
      let differences = try #require(own.part(keys)).differences(from: try #require(real.part(keys)))
      #expect(differences.allSatisfy { $0.hasPrefix(".NSEntity") }, "\(property): \(differences)")
    }
  }

  private static let derivedFolder =
    Fixtures.root?.appending("apple/derived-canonical-now-compiled") ?? FilePath("/nonexistent")

  /// A compiled vector whose source is among the vectors of the same model: all pairs with equal hashes must be equal
  /// values.
  @Test func everyCompiledVectorWithASourceEqualsIt() throws {
    var sources: [ManagedObjectModel] = []
    var compiled: [ManagedObjectModel] = []
    for folder in Fixtures.cases(in: "hash-vectors") {
      let contents = folder.appending("contents")
      if Fixtures.exists(contents) {
        sources.append(try ModelReader.read(contents: Fixtures.bytes(of: contents), name: folder.string).model)
      } else {
        compiled += try ModelReader.read(at: folder.appending("model.mom")).versions
      }
    }
    for part in ["chains", "stores", "mappings"] {
      for folder in Fixtures.cases(in: part) {
        for name in ["models", "model"] where Fixtures.isFolder(folder.appending(name)) {
          for path in try ModelReader.findBundles(in: folder.appending(name)) {
            sources += try ModelReader.read(at: path).versions
          }
        }
      }
    }
    var pairs = 0
    var different = 0
    for model in compiled {
      let twins = sources.filter { $0.versionHashes == model.versionHashes }
      guard !twins.isEmpty else { continue }
      pairs += 1
      // Defaults and indexes are not in hashes: one of the revisions with these hashes is the source.
      if !twins.contains(where: { same($0, model) }) {
        different += 1
        print("compiled model without an equal source: \(model.name), \(model.entities.map(\.name))")
        for twin in twins.prefix(1) { expectSame(model, twin, isKnown: true) }
      }
    }
    print("compiled vectors with a source of the same hashes: \(pairs), of which \(different) differ in value")
    #expect(pairs >= 1)
  }

  @Test func aCompiledFormBesideItsSourceIsOneModel() throws {
    let paths = try sample()
    let (source, compiled) = (try ModelReader.read(at: paths.source), try ModelReader.read(at: paths.compiled))
    for merged in [try source.merged(with: compiled), try compiled.merged(with: source)] {
      #expect(merged.path == paths.source)
      #expect(merged.versions.map(\.versionHashes) == source.versions.map(\.versionHashes))
      #expect(merged.versions.allSatisfy { $0.compiledForm != nil })
    }
  }

  @Test func aCatalogHoldsBothFormsAsOneModel() throws {
    let paths = try sample()
    for order in [[paths.source, paths.compiled], [paths.compiled, paths.source]] {
      let catalog = try ModelCatalog.load(order)
      #expect(catalog.bundles.map(\.path) == [paths.source])
      #expect(catalog.versions.count == 3)
    }
  }

  private func same(_ left: ManagedObjectModel, _ right: ManagedObjectModel) -> Bool {
    left.entities.map(withoutClasses) == right.entities.map(withoutClasses)
      && left.configurations == right.configurations
  }

  private func expectSame(_ compiled: ManagedObjectModel, _ source: ManagedObjectModel, isKnown: Bool = false) {
    for (one, other) in zip(compiled.entities, source.entities) {
      let (left, right) = (withoutClasses(one), withoutClasses(other))
      guard left != right else { continue }
      for (a, b) in zip(left.attributes, right.attributes) where a != b { print("  \(one.name): \(a)\n  \(b)") }
      for (a, b) in zip(left.relationships, right.relationships) where a != b { print("  \(one.name): \(a)\n  \(b)") }
      if !isKnown { #expect(left == right, "\(compiled.name), \(one.name)") }
    }
    guard !isKnown else { return }
    #expect(same(compiled, source), "\(compiled.name)")
    #expect(compiled.versionIdentifiers == source.versionIdentifiers)
  }

  /// Classes are never compared: the compiler may add the module's name before them.
  private func withoutClasses(_ entity: Entity) -> Entity {
    var copy = entity
    copy.className = nil
    for index in copy.attributes.indices { copy.attributes[index].customClassName = nil }
    return copy
  }
}
