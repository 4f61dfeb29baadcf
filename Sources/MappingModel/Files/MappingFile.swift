// A mapping model as a file that has been read but not yet been set against models, whatever its form. What it serves
// is worked out version by version, each side by itself: a mapping model may fit any pair of many versions.

import Diagnostics
import ManagedObjectModel
import SystemPackage

/// One version of a model, as far as choosing mapping models needs it.
package struct MappableVersion: Sendable {
  /// Name of the model it belongs to, without extension.
  package let modelName: String
  package let model: ManagedObjectModel
  /// `model.versionHashes`, computed once.
  package let hashes: [String: VersionHash]

  /// Makes a version; the hashes are computed where they are not given.
  package init(modelName: String, model: ManagedObjectModel, hashes: [String: VersionHash]? = nil) {
    self.modelName = modelName
    self.model = model
    self.hashes = hashes ?? model.versionHashes
  }
}

/// Does a mapping model fit a version, on one of its two sides?
package enum MappingFit: Sendable {
  /// It was made for that version.
  case exact
  /// It was made for a version of that name in a model of another name; the remark says so.
  case loose(HopdError)
  /// It was made for that version in another state, or for one that is gone; each reason names what differs. Of several
  /// versions the one with the highest closeness (0 to 1) is the one that was meant.
  case stale([HopdError], closeness: Double)
  /// It has nothing to do with that version.
  case unrelated
}

/// A mapping model that was read.
package protocol MappingFile: Sendable {
  /// The file or folder.
  var path: FilePath { get }
  /// Its name without extension.
  var name: String { get }
  /// Which form it has.
  var form: MappingForm { get }
  /// Names of the source entities that it maps.
  var sourceEntities: Set<String> { get }
  /// Does it begin at that version?
  func fit(source version: MappableVersion) -> MappingFit
  /// Does it end at that version?
  func fit(destination version: MappableVersion) -> MappingFit
  /// Which of its entity mappings fit a pair of versions that it does not fit as a whole; nil where its form does not
  /// say it of each.
  func living(source: MappableVersion, destination: MappableVersion) -> LivingMappings?
  /// What relationships of the other mapping models of its hop may look for.
  func outlines(source: ManagedObjectModel, destination: ManagedObjectModel) throws(HopdError) -> [MappingOutline]
  /// The mapping as a `.cdm` would say it, in a hop with what the others make; names that lead nowhere are kept,
  /// `MappingChecker` finds them.
  ///
  /// Throws where it uses what is not supported.
  func load(
    source: ManagedObjectModel, destination: ManagedObjectModel, beside others: [MappingOutline]
  ) throws(HopdError) -> LoadedMapping
}

/// Something in one entity mapping that cannot be followed.
struct MappingProblem: Sendable {
  /// Position of the entity mapping.
  let entityMapping: Int
  let error: HopdError

  /// Throws what cannot be followed of a mapping model; what it is of entity mappings without effect does not matter.
  static func check(
    _ problems: [MappingProblem], isDead: (Int) -> Bool, _ file: some MappingFile, remedy: String
  ) throws(HopdError) {
    // Of very many only the first were noted; whose the others are is not known.
    let isCut = problems.count >= MappingLimits.findings
    let reasons = problems.filter { isCut || !isDead($0.entityMapping) }.map(\.error)
    guard let first = reasons.first?.hinting(remedy) else { return }
    throw reasons.count == 1
      ? first
      : HopdError(
        .invalidMapping, "the mapping model “\(file.name)” cannot be followed, for \(reasons.count) reasons",
        at: Place(file: file.path), hint: first.hint, reasons: reasons)
  }
}

/// The entity mappings of a mapping model that fit a pair of versions.
package struct LivingMappings: Sendable {
  /// How many there are.
  package var count = 0
  /// Does one of them join two states of an entity, so that it cannot be meant for just any pair of versions?
  package var joinsStates = false
  /// Their source entities.
  package var sources: Set<String> = []
}

extension MappingFile {
  package func living(source: MappableVersion, destination: MappableVersion) -> LivingMappings? { nil }

  /// The mapping as the only one of its hop.
  package func load(source: ManagedObjectModel, destination: ManagedObjectModel) throws(HopdError) -> LoadedMapping {
    try load(source: source, destination: destination, beside: [])
  }

  package func outlines(
    source: ManagedObjectModel, destination: ManagedObjectModel
  ) throws(HopdError) -> [MappingOutline] {
    try load(source: source, destination: destination).mapping.entityMappings.map(MappingOutline.init)
  }
}

/// What relationships must know of an entity mapping before it is resolved.
package struct MappingOutline: Sendable, Hashable {
  package let name: String
  package let source: String?
  package let destination: String?
  /// How many keys a `distinct_by` mapping has.
  package let keyCount: Int?

  /// Of the outlines of several mapping models, those that one with `own` can look for in the others: what it makes
  /// itself, and what it names itself, it means itself. Two that map one source are no parts of one hop.
  static func foreign(_ files: [[MappingOutline]], beside own: [MappingOutline]) -> [MappingOutline] {
    var names = Set(own.map(\.name))
    var sources = Set(own.compactMap(\.source))
    var result: [MappingOutline] = []
    for outlines in files {
      let fresh = outlines.filter { outline in
        !names.contains(outline.name) && outline.source.map { !sources.contains($0) } ?? true
      }
      result += fresh
      names.formUnion(fresh.map(\.name))
      sources.formUnion(outlines.compactMap(\.source))
    }
    return result
  }
}

extension MappingOutline {
  init(_ mapping: ExplicitEntityMapping) {
    self.init(
      name: mapping.name, source: mapping.source, destination: mapping.destination,
      keyCount: mapping.grouping.keyCount)
  }
}

/// A mapping with what was left out of it.
package struct LoadedMapping: Sendable {
  package let mapping: ExplicitMapping
  package internal(set) var warnings: [HopdError] = []
}
