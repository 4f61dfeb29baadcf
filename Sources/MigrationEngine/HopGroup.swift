// Which hops of a plan are one pass over the rows. Decided from the plan alone, so that `plan` can show it before anything runs.

import Diagnostics
import MigrationPlanning

/// Consecutive hops that are one pass over the rows: all but the last are views.
package struct HopGroup: Sendable, Hashable {
  /// How the pass is made.
  package enum Execution: Sendable, Hashable {
    /// By statements over ranges of keys.
    case chunks
    /// By a copy of the file and changes of its schema.
    case copyAndAlter
  }

  /// Positions of the hops in the plan.
  package let hops: Range<Int>
  /// How the pass is made.
  package let execution: Execution
  /// Why the next hop is not part of it, in a sentence; nil for the last group.
  package let boundary: String?

  /// Makes a group.
  package init(hops: Range<Int>, execution: Execution = .chunks, boundary: String?) {
    self.hops = hops
    self.execution = execution
    self.boundary = boundary
  }
}

/// Decides which hops are fused.
package enum HopFusion {
  /// The groups of a plan, in order; with `options.fusesHops` false every hop is one by itself.
  package static func groups(of plan: MigrationPlan, options: EngineOptions) throws(HopdError) -> [HopGroup] {
    let last = plan.hops.count - 1
    return plan.hops.indices.map { index in
      HopGroup(hops: index..<(index + 1), boundary: index == last ? nil : "every hop is made by itself")
    }
  }
}
