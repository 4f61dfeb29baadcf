// The refusal of a plan that passes code of the app which nothing replaces.

import Diagnostics
import ManagedObjectModel

extension MigrationPlan {
  /// Throws if stores would pass a stage of the app whose code nothing replaces.
  package func requireStages() throws(HopdError) { try warnings.requireStages() }
}

extension ModelCatalog {
  /// Throws if stores on these hops would pass a stage of the app whose code nothing replaces.
  package func requireStages(on edges: [MigrationGraph.Edge]) throws(HopdError) {
    try stagesLeftOut(on: edges).requireStages()
  }
}

extension [HopdError] {
  fileprivate func requireStages() throws(HopdError) {
    let left = filter { $0.code == .stageNeedsProgram }.map { warning in
      HopdError(.stageWithoutProgram, warning.message, at: warning.place, hint: warning.hint)
    }
    guard let first = left.first else { return }
    guard left.count > 1 else { throw first }
    throw HopdError(
      .stageWithoutProgram, "\(left.count) stages run code of the app, which hopd does not have", at: first.place,
      hint: first.hint, reasons: left)
  }
}

extension HopdError.Code {
  /// A migration would leave out code that the app runs in a stage.
  package static let stageWithoutProgram = HopdError.Code("stage-without-program", exit: .configuration)
}
