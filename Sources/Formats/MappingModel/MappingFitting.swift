// How one side of a mapping model fits the given versions, and the report on one that fits none of them.

import Diagnostics
import ManagedObjectModel

/// How one side of a mapping model fits the versions.
struct MappingSide {
  /// Versions that it fits, with a remark if only the name fits.
  private(set) var fitting: [(index: Int, remark: HopdError?)] = []
  /// The versions for which it was nearly made, all equally close.
  private(set) var nearest: [(index: Int, reasons: [HopdError])] = []

  /// How close the nearest versions are, 0 to 1.
  private var greatest = 0.0

  /// Finds the versions; those whose hashes are those of the mapping model's own copy take precedence, unless
  /// `byCopy` is false.
  init(_ versions: [MappableVersion], byCopy: Bool = true, _ fit: (MappableVersion) -> MappingFit) {
    var copied: [[String: VersionHash]: HopdError?] = [:]
    var exact: Set<[String: VersionHash]> = []
    var loose: [[String: VersionHash]: HopdError] = [:]
    for (index, version) in versions.enumerated() {
      switch fit(version) {
      case .copied(let remark):
        // Of several versions with these hashes, one that it names needs no remark.
        if remark == nil {
          copied.updateValue(nil, forKey: version.hashes)
          exact.insert(version.hashes)
        } else if copied[version.hashes] == nil {
          copied.updateValue(remark, forKey: version.hashes)
        }
      case .exact: exact.insert(version.hashes)
      case .loose(let remark): loose[version.hashes] = remark
      case .stale(let reasons, let closeness):
        if closeness > greatest { (nearest, greatest) = ([], closeness) }
        if closeness > 0, closeness == greatest { nearest.append((index, reasons)) }
      case .unrelated: break
      }
    }
    // Versions of equal hashes are one version with several names. A fit by name only must be unique.
    for (index, version) in versions.enumerated() {
      if byCopy, !copied.isEmpty {
        if let remark = copied[version.hashes] { fitting.append((index, remark)) }
      } else if exact.contains(version.hashes) {
        fitting.append((index, nil))
      } else if exact.isEmpty, loose.count == 1, let remark = loose[version.hashes] {
        fitting.append((index, remark))
      }
    }
  }

  /// Finds the version by elimination: if no version fits, but a single one beside those of the `other` side has
  /// everything that the mapping model names, it was meant. Only a step forward is found so: a version on the wrong
  /// side of the other one is that of another hop.
  mutating func eliminate(
    _ other: MappingSide, isSource: Bool, _ versions: [MappableVersion], _ file: any MappingFile
  ) {
    guard fitting.isEmpty, !other.fitting.isEmpty, greatest == 1 else { return }
    let taken = Set(other.fitting.map { versions[$0.index].hashes })
    let places = other.fitting.map(\.index)
    let left = nearest.filter { near in
      !taken.contains(versions[near.index].hashes)
        && places.contains { isSource ? near.index < $0 : near.index > $0 }
    }
    guard let first = left.first, Set(left.map { versions[$0.index].hashes }).count == 1 else { return }
    let version = versions[first.index]
    let remark = HopdError(
      .mappingGuess,
      "the mapping model is taken for “\(version.model.name)”, the only version with everything that it names: "
        + (first.reasons.first?.message ?? ""), at: Place(file: file.path),
      hint: "remove the mapping model or pass the version that it was created for, if this is wrong")
    fitting = left.map { ($0.index, remark) }
  }

  /// The versions that it fits, otherwise the nearest versions, each with the differences.
  var meant: [(index: Int, reasons: [HopdError])] { fitting.isEmpty ? nearest : fitting.map { ($0.index, []) } }
}

/// A mapping model that serves no pair of the given versions, but was nearly made for one.
package struct MappingMisfit: Sendable {
  /// The differences, by entity.
  package let error: HopdError
  /// The pair.
  package let pair: MappingHops.Pair

  init?(_ file: any MappingFile, _ sources: MappingSide, _ destinations: MappingSide) {
    // Both sides must be close: equal entity names alone occur in many models. Of equally close pairs, the shortest
    // step forward was meant.
    func distance(_ pair: (Int, Int)) -> (Int, Int) {
      pair.1 > pair.0 ? (0, pair.1 - pair.0) : pair.1 < pair.0 ? (1, pair.0 - pair.1) : (2, 0)
    }
    let pairs = sources.meant.flatMap { first in destinations.meant.map { (first, $0) } }
    guard
      let (source, destination) = pairs.min(by: { left, right in
        distance((left.0.index, left.1.index)) < distance((right.0.index, right.1.index))
      })
    else { return nil }
    let reasons = source.reasons + destination.reasons
    guard !reasons.isEmpty else { return nil }
    pair = MappingHops.Pair(source: source.index, destination: destination.index)
    error = HopdError(
      .staleMapping,
      "the mapping model “\(file.name)” was created for a different state of the models",
      at: Place(file: file.path),
      hint: "pass the models that it was created for, create the mapping model again for these, or convert it with "
        + "`hopctl mapping show FILE --models … --text`",
      reasons: Array(reasons.prefix(MappingLimits.findings)))
  }

  /// The warning in the plan of a hop for which the mapping model is not used.
  package var warning: HopdError {
    HopdError(
      .deadMapping, "the mapping model is not used: \(error.message)", at: error.place, hint: error.hint,
      reasons: error.reasons)
  }
}
