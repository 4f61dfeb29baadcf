// A mapping model that was read from a file but not yet resolved against models, in any form. Each side is compared
// with each version separately: a mapping model may fit any pair of many versions.

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

  /// Creates a version; computes the hashes if they are not given.
  package init(modelName: String, model: ManagedObjectModel, hashes: [String: VersionHash]? = nil) {
    self.modelName = modelName
    self.model = model
    self.hashes = hashes ?? model.versionHashes
  }
}

/// How well one side of a mapping model fits a version.
package enum MappingFit: Sendable {
  /// Its copy of the model has the hashes of that version; the remark says so if its path names another.
  case copied(HopdError?)
  /// It was made for that version.
  case exact
  /// It was made for a version of that name in a model of another name; the remark reports this.
  case loose(HopdError)
  /// It was made for that version in another state, or for one that no longer exists; each reason names a difference.
  /// Of several versions, the one with the highest closeness (0 to 1) was meant.
  case stale([HopdError], closeness: Double)
  /// It has nothing to do with that version.
  case unrelated
}

/// A mapping model that was read from a file.
package protocol MappingFile: Sendable {
  /// The file or folder.
  var path: FilePath { get }
  /// Its name without extension.
  var name: String { get }
  /// Its form.
  var form: MappingForm { get }
  /// Names of the source entities that it maps.
  var sourceEntities: Set<String> { get }
  /// Returns how well its source side fits that version.
  func fit(source version: MappableVersion) -> MappingFit
  /// Returns how well its destination side fits that version.
  func fit(destination version: MappableVersion) -> MappingFit
  /// Returns the entity mappings that fit a pair of versions that the mapping model does not fit as a whole; nil if its
  /// form cannot distinguish them.
  func living(source: MappableVersion, destination: MappableVersion) -> LivingMappings?
  /// Returns its entity mappings as relationships in other mapping models of the hop may look them up.
  func outlines(source: ManagedObjectModel, destination: ManagedObjectModel) throws(HopdError) -> [MappingOutline]
  /// Returns the mapping as a `.cdm` would contain it, in a hop with the outlines of `others`. It keeps unknown names,
  /// which `MappingChecker` finds.
  ///
  /// Throws if it uses an unsupported feature.
  func load(
    source: ManagedObjectModel, destination: ManagedObjectModel, beside others: [MappingOutline]
  ) throws(HopdError) -> LoadedMapping
}

/// A part of one entity mapping that cannot be followed.
struct MappingProblem: Sendable {
  /// Position of the entity mapping.
  let entityMapping: Int
  let error: HopdError

  /// Throws the problems of a mapping model; those of entity mappings without effect do not count.
  static func check(
    _ problems: [MappingProblem], isDead: (Int) -> Bool, _ file: some MappingFile, remedy: String
  ) throws(HopdError) {
    // If the list was cut, the entity mappings of the missing problems are unknown.
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
  /// The number of these entity mappings.
  package var count = 0
  /// Whether one of them joins two different states of an entity; then it was made for particular pairs of versions.
  package var joinsStates = false
  /// Their source entities.
  package var sources: Set<String> = []
}

extension MappingFile {
  package func living(source: MappableVersion, destination: MappableVersion) -> LivingMappings? { nil }

  /// Returns the mapping as the only one of its hop.
  package func load(source: ManagedObjectModel, destination: ManagedObjectModel) throws(HopdError) -> LoadedMapping {
    try load(source: source, destination: destination, beside: [])
  }

  package func outlines(
    source: ManagedObjectModel, destination: ManagedObjectModel
  ) throws(HopdError) -> [MappingOutline] {
    try load(source: source, destination: destination).mapping.entityMappings.map(MappingOutline.init)
  }
}

/// The facts about an entity mapping that look-ups need before it is resolved.
package struct MappingOutline: Sendable, Hashable {
  package let name: String
  package let source: String?
  package let destination: String?
  /// How many keys a `distinct_by` mapping has.
  package let keyCount: Int?

  /// Returns the outlines of other mapping models that a mapping model with the outlines `own` can look up. Its own
  /// names and its own source entities take precedence. Two files that map the same source are not parts of one hop.
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

/// A mapping with the warnings about parts that were left out.
package struct LoadedMapping: Sendable {
  package let mapping: ExplicitMapping
  package internal(set) var warnings: [HopdError] = []
}
