// The meaning of errors in a trial: a mistake in the model, a limit of hopd, or an exhausted machine.

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import Synchronization

extension StoreTrial {
  /// Parts of a version without which no store of it can be made for a trial. Core Data makes them, so they prove no
  /// mistake in the model.
  static let limits: Set<HopdError.Code> = [.layoutUnsupported, .derivationUnsupported]

  /// Whether the error is about this machine, so that it proves nothing about the model.
  static func isOfTheMachine(_ error: HopdError) -> Bool {
    switch error.code.exit {
    case .temporaryFailure, .inputOutput, .noPermission, .unavailable: true
    default: false
    }
  }

  /// Returns the single causes of an error, each with all that is known of its place.
  static func leaves(of error: HopdError, isOfTrial: Bool = true, depth: Int = 0) -> [HopdError] {
    guard !error.reasons.isEmpty, depth < 8 else {
      var leaf = error
      // The trial's store no longer exists, nor do its rows.
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

  /// Returns the drops of a run, by the hops of its report.
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
  /// Whether two places name the same part of a model.
  func isSameThing(as other: Place) -> Bool {
    hop == other.hop && entity == other.entity && property == other.property
  }
}

/// Failures that stop every store of a version, whatever its rows are: found once, for all versions whose chain has the
/// same hop.
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

  /// Records failures.
  func note(_ errors: [HopdError]) {
    let found = errors.filter { $0.place.hop != nil }.map(Key.init)
    keys.withLock { $0.formUnion(found) }
  }

  /// Whether all of these failures are recorded.
  func hold(_ errors: [HopdError]) -> Bool {
    let found = errors.map(Key.init)
    return !found.isEmpty && keys.withLock { $0.isSuperset(of: found) }
  }
}
