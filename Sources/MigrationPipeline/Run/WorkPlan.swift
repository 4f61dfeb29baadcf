// The estimated work of a plan, before its first row is written: the pieces that the model of the work begins with.

import MappingModel
import MigrationEngine
import MigrationPlanning
import PersistentStore
import StoreReplacement
import StoreVerification

extension WorkModel {
  /// The work of a plan that was made in so many seconds.
  init(
    _ plan: MigrationPlan, passes: Passes, settings: MigrationSettings, replaces: Bool, at time: Double
  ) {
    let rows = plan.hops.first.map { Double(max(0, $0.rowsToRead)) } ?? 0
    self.init(
      Self.pieces(of: plan, passes: passes, settings: settings, replaces: replaces), at: time,
      planning: WorkCost.planning(rows: rows, bytes: Double(max(0, plan.estimate.bytes))) + WorkCost.least,
      verified: plan.hops.isEmpty ? nil : (plan.hops.count - 1, settings.verification == .full))
  }

  /// The pieces of a plan. Each pass is one piece until its program is known.
  private static func pieces(
    of plan: MigrationPlan, passes: Passes, settings: MigrationSettings, replaces: Bool
  ) -> [Piece] {
    var pieces: [Piece] = []
    var result = HopOutline.Result()
    let bytes = Double(max(0, plan.estimate.bytes))
    for group in passes.groups {
      guard let last = group.hops.last else { continue }
      let hop = plan.hops[last]
      let rows = Double(max(0, Passes.rows(of: group, in: plan)))
      let isProgram = hop.mapped?.policies.isEmpty == false
      let isLast = last == plan.hops.count - 1
      result.rows = rows
      result.entries = isLast ? rows * Double(hop.destinationSchema.indexes.count) / tables(of: hop) : 0
      result.bytes = bytes
      let closing = result.entries * WorkCost.indexed + bytes * WorkCost.sealedByte + WorkCost.least
      if group.execution == .copyAndAlter {
        pieces.append(
          Piece(
            part: .copying, hop: last, step: HopOutline.copyOfStore, seconds: bytes * WorkCost.byte + WorkCost.least))
        pieces.append(Piece(part: .indexing, hop: last, step: nil, seconds: closing))
      } else {
        let copying = isProgram ? rows * WorkCost.policyRow : rows * WorkCost.row + bytes * WorkCost.rowByte
        pieces.append(
          Piece(
            part: .copying, hop: last, step: nil, seconds: copying + closing, worker: isProgram ? .program : .machine))
      }
    }
    guard !plan.hops.isEmpty else { return pieces }
    let isFull = settings.verification == .full
    pieces.append(
      Piece(part: .verifying, hop: nil, step: 0, seconds: WorkCost.verification(result, isFull: isFull)))
    if isFull {
      pieces.append(Piece(part: .verifying, hop: nil, step: 1, seconds: WorkCost.lookUps(result), isUneven: true))
    }
    return pieces + replacement(of: bytes, settings: settings, replaces: replaces)
  }

  /// The cost of putting the new store in place: nothing but a name, or a sync and a check of what was written. In
  /// place the old store is copied and checked, the new one is written twice and checked.
  private static func replacement(of bytes: Double, settings: MigrationSettings, replaces: Bool) -> [Piece] {
    func piece(_ step: Int, _ seconds: Double, _ worker: Worker = .disk) -> Piece {
      Piece(part: .replacing, hop: nil, step: step, seconds: seconds + WorkCost.least, worker: worker)
    }
    guard replaces else { return [piece(0, 0)] }
    guard settings.replacement == .inPlace else { return [piece(0, bytes * WorkCost.replacedByte)] }
    return [
      piece(0, bytes * WorkCost.backedUpByte), piece(1, bytes * WorkCost.committedByte),
      piece(2, bytes * WorkCost.confirmedByte, .machine),
    ]
  }

  private static func tables(of hop: Hop) -> Double { Double(max(1, hop.destinationSchema.tables.count)) }
}
