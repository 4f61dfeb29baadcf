// What errors of a trial mean: something wrong with the model, a limit of hopd, or a machine that is at its end.

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import Synchronization

extension StoreTrial {
  /// What hopd cannot do and Core Data perhaps can: no proof that the model is wrong.
  static let limits: Set<HopdError.Code> = [
    .layoutUnsupported, .derivationUnsupported, .joinTableNameUncertain, .mappingUnsupported,
  ]

  /// Is it about this machine, so that nothing can be said of the model?
  static func isOfTheMachine(_ error: HopdError) -> Bool {
    switch error.code.exit {
    case .temporaryFailure, .inputOutput, .noPermission, .unavailable: true
    default: false
    }
  }

  /// The single causes of an error, each with what is known of its place.
  static func leaves(of error: HopdError, isOfTrial: Bool = true, depth: Int = 0) -> [HopdError] {
    guard !error.reasons.isEmpty, depth < 8 else {
      var leaf = error
      // A store that was made for the trial is gone, with all its rows.
      leaf.place.store = nil
      if isOfTrial { leaf.place.row = nil }
      return [leaf]
    }
    return error.reasons.flatMap { reason in
      var reason = reason
      reason.place = reason.place.filled(from: Place(hop: error.place.hop))
      return leaves(of: reason, isOfTrial: isOfTrial, depth: depth + 1)
    }
  }

  /// What a run has dropped, by the hops of its report.
  static func drops(_ report: MigrationReport) -> [CheckDrop] {
    report.dropped.filter { $0.nonNull > 0 }.map { drop in
      let hop = report.hops.indices.contains(drop.hop) ? report.hops[drop.hop] : nil
      return CheckDrop(
        hop: hop.map { "\($0.source) → \($0.destination)" } ?? "", entity: drop.entity, property: drop.property,
        count: drop.nonNull)
    }
  }
}

extension Place {
  /// Do two places name the same part of a model?
  func isSameThing(as other: Place) -> Bool {
    hop == other.hop && entity == other.entity && property == other.property
  }
}

/// What has stopped every store of a version, whatever its rows were: found once, for all versions whose way leads over
/// the same hop.
final class KnownFailures: Sendable {
  private struct Key: Hashable {
    let code: HopdError.Code
    let hop, entity, property: String?

    init(_ error: HopdError) {
      code = error.code
      (hop, entity, property) = (error.place.hop, error.place.entity, error.place.property)
    }
  }

  private let keys = Mutex<Set<Key>>([])

  /// Notes failures.
  func note(_ errors: [HopdError]) {
    let found = errors.filter { $0.place.hop != nil }.map(Key.init)
    keys.withLock { $0.formUnion(found) }
  }

  /// Are these all known?
  func hold(_ errors: [HopdError]) -> Bool {
    let found = errors.map(Key.init)
    return !found.isEmpty && keys.withLock { $0.isSuperset(of: found) }
  }
}
