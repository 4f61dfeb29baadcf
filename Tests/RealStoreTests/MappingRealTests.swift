// Mapping models that apps have shipped, compared with the results of an independent reader; and those that Apple's
// compiler made, compared with their sources.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import MappingModel
import SystemPackage
import Testing

/// The expected output of `hopctl mapping show --json`.
private struct ExpectedMapping: Decodable, Equatable {
  struct Entity: Decodable, Equatable {
    let name: String
    let type: String
    let source: String?
    let destination: String?
    let policy: String?
    let filter: String?
    let attributes: [String: String?]
    let relationships: [String: String?]
  }

  let name: String
  let sourceVersion: String
  let destinationVersion: String
  let entityMappings: [Entity]

  init(_ mapping: ExplicitMapping) {
    func texts(_ properties: [ExplicitPropertyMapping]) -> [String: String?] {
      Dictionary(properties.map { ($0.name, $0.value?.description) }, uniquingKeysWith: { first, _ in first })
    }
    name = mapping.name
    sourceVersion = mapping.sourceVersion
    destinationVersion = mapping.destinationVersion
    entityMappings = mapping.entityMappings.map {
      Entity(
        name: $0.name, type: $0.type.word, source: $0.source, destination: $0.destination, policy: $0.policy,
        filter: $0.filter?.text, attributes: texts($0.attributes), relationships: texts($0.relationships))
    }
  }

  /// Returns the facts that differ, as "entity mapping: what", and the number of compared facts.
  func compare(with other: ExpectedMapping) -> (different: [String], count: Int) {
    var different: [String] = []
    var count = 0
    func fact(_ isEqual: Bool, _ what: @autoclosure () -> String) {
      count += 1
      if !isEqual { different.append(what()) }
    }
    fact(sourceVersion == other.sourceVersion, "source version")
    fact(destinationVersion == other.destinationVersion, "destination version")
    fact(entityMappings.map(\.name) == other.entityMappings.map(\.name), "names and order")
    for (left, right) in zip(entityMappings, other.entityMappings) {
      fact(left.type == right.type, "\(left.name): type \(left.type) and \(right.type)")
      fact(left.source == right.source, "\(left.name): source")
      fact(left.destination == right.destination, "\(left.name): destination")
      fact(left.policy == right.policy, "\(left.name): policy")
      fact(left.filter == right.filter, "\(left.name): filter")
      for (one, two) in [(left.attributes, right.attributes), (left.relationships, right.relationships)] {
        for name in Set(one.keys).union(two.keys).sorted() {
          fact(one.keys.contains(name) && two.keys.contains(name) && one[name] == two[name], "\(left.name).\(name)")
        }
      }
    }
    return (different, count)
  }
}

/// Mapping models of the fixtures with the versions next to them.
enum MappingFixtures {
  struct Case: Sendable {
    let folder: FilePath
    let file: any MappingFile
    let versions: [MappableVersion]
    let hops: MappingHops

    var title: String { "\(folder.lastComponent?.string ?? "")/\(file.path.lastComponent?.string ?? "")" }
    /// Returns the mapping for the only pair that it fits.
    func loaded() throws -> (pair: MappingHops.Pair, mapping: ExplicitMapping) {
      let pair = try #require(hops.pairs.first, "\(title) fits no pair of versions")
      return (pair, try #require(try hops.loaded(pair).first).mapping)
    }
  }

  /// Read once: every suite uses all of them.
  static func cases() throws -> [Case] { try read.get() }

  private static let read = Result { try readAll() }

  private static func readAll() throws -> [Case] {
    try Fixtures.cases(in: "mappings").flatMap { folder in
      let versions = try ModelReader.findBundles(in: folder.appending("models")).flatMap { path in
        let bundle = try ModelReader.read(at: path)
        return bundle.versions.map { MappableVersion(modelName: bundle.name, model: $0) }
      }
      return try Fixtures.names(in: folder).map { folder.appending($0) }.filter { MappingForm($0) != nil }
        .map { path in
          let file = try MappingReader.read(at: path)
          return Case(
            folder: folder, file: file, versions: versions, hops: MappingCatalog(files: [file]).hops(among: versions))
        }
    }
  }

  /// Counts the mapping models with the expected result, of all with a known one.
  static func expected() throws -> (equal: Int, all: Int, exceptions: [String]) {
    var result = (equal: 0, all: 0, exceptions: [String]())
    for one in try cases() {
      let expected = try Fixtures.json(ExpectedMapping.self, at: one.folder.appending("expected.json"))
      let actual = ExpectedMapping(try one.loaded().mapping)
      // A folder may hold a second mapping model, for which there is no expected result.
      let isOther = try cases().filter { $0.folder == one.folder }.count > 1 && actual.name != expected.name
      if isOther { continue }
      result.all += 1
      let differences = actual.compare(with: expected).different
      if differences.isEmpty { result.equal += 1 } else { result.exceptions.append("\(one.title): \(differences)") }
    }
    return result
  }

  /// Counts the facts of compiled mapping models that their sources, compiled here, give too.
  static func compiledFacts() throws -> (equal: Int, all: Int, exceptions: [String]) {
    var result = (equal: 0, all: 0, exceptions: [String]())
    let all = try cases()
    for compiled in all where compiled.file.form == .compiled {
      let right = ExpectedMapping(try compiled.loaded().mapping)
      let hashes = compiled.versions.map(\.hashes)
      // The source of the same revision is in its own folder, next to the same versions.
      let sources = all.filter {
        $0.file.form == .source && $0.file.name == compiled.file.name && $0.versions.map(\.hashes) == hashes
      }
      let compared = try sources.map { ExpectedMapping(try $0.loaded().mapping).compare(with: right) }
      guard let best = compared.min(by: { $0.different.count < $1.different.count }) else {
        result.exceptions.append("\(compiled.title): no source")
        continue
      }
      result.all += best.count
      result.equal += best.count - best.different.count
      result.exceptions += best.different.map { "\(compiled.title): \($0)" }
    }
    return result
  }

  /// Counts the compiled mapping models that fit exactly one pair of versions.
  static func compiledFits() throws -> (equal: Int, all: Int, exceptions: [String]) {
    var result = (equal: 0, all: 0, exceptions: [String]())
    for one in try cases() where one.file.form == .compiled {
      result.all += 1
      if one.hops.pairs.count == 1 { result.equal += 1 } else { result.exceptions.append(one.title) }
    }
    return result
  }
}

@Suite(.enabled(if: Fixtures.isAvailable, Fixtures.absence))
struct MappingRealTests {
  @Test func everyMappingModelSaysWhatIsExpected() throws {
    let result = try MappingFixtures.expected()
    print("mapping models as expected: \(result.equal) of \(result.all)")
    #expect(result.exceptions.isEmpty)
    #expect(result.all > 0)
  }

  @Test func sourcesCompileToWhatAppleMadeOfThem() throws {
    let result = try MappingFixtures.compiledFacts()
    print("facts of compiled mapping models: \(result.equal) of \(result.all)")
    #expect(result.exceptions.isEmpty)
    #expect(result.all > 0)
  }

  @Test func eachFitsExactlyOnePair() throws {
    for one in try MappingFixtures.cases() {
      let pairs = one.hops.pairs
      #expect(pairs.count == 1, "\(one.title) fits \(pairs)")
      #expect(one.hops.stale.isEmpty)
    }
  }

  /// The parts of these files that cannot be followed are listed by name; all others can.
  @Test func onlyTheseAreRefused() throws {
    var refused: [String: [String]] = [:]
    for one in try MappingFixtures.cases() {
      guard let pair = one.hops.pairs.first else { continue }
      do {
        _ = try one.hops.hop(pair)
      } catch {
        let name = one.folder.lastComponent?.string ?? ""
        refused[name, default: []] += error.reasons.map { "\($0.place.entity ?? "").\($0.place.property ?? "")" }
      }
    }
    guard Fixtures.isStandardSet else { return }
    #expect(
      refused == [
        // An attribute that the destination does not have.
        "loopkit-modelv1tov3": ["CachedGlucoseObject.uploadState"]
      ])
  }

  /// A mapping model of one pair of versions is distinguished from the same one for an edited version: an entity
  /// mapping that was compiled for the edited entity is never followed.
  @Test func oneChangedEntityMakesItsEntityMappingDead() throws {
    var count = 0
    for one in try MappingFixtures.cases() where one.file.form == .compiled {
      let pair = try one.loaded().pair
      let mapped = one.file.sourceEntities
      for entity in one.versions[pair.source].model.entities where mapped.contains(entity.name) {
        let edited = one.versions.map { version in
          version.model.name == one.versions[pair.source].model.name
            ? MappableVersion(modelName: version.modelName, model: version.model.editing(entity.name)) : version
        }
        let hops = MappingCatalog(files: [one.file]).hops(among: edited)
        // Either no part of it fits any more, or its other entity mappings do and this one is dead.
        let dead =
          hops.pairs.contains(pair)
          ? try hops.loaded(pair).flatMap(\.mapping.entityMappings).compactMap(\.deadness?.reason) : []
        let reasons = dead + hops.stale.flatMap(\.reasons).map(\.message)
        #expect(!hops.pairs.isEmpty || !hops.stale.isEmpty)
        let hash = try #require(one.versions[pair.source].hashes[entity.name])
        #expect(reasons.contains { $0.contains("\(hash)") }, "\(one.file.path), \(entity.name)")
        count += 1
      }
    }
    #expect(count > 0)
  }
}

extension ManagedObjectModel {
  /// Returns a copy with another attribute in one entity.
  fileprivate func editing(_ name: String) -> ManagedObjectModel {
    ManagedObjectModel(
      name: self.name, versionIdentifiers: versionIdentifiers,
      entities: entities.map { entity in
        var copy = entity
        if entity.name == name { copy.attributes.append(Attribute(name: "editedByAccident", type: .boolean)) }
        return copy
      }, configurations: configurations, composites: composites)
  }
}
