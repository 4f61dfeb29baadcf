// Aggregate functions of hopd: SQLite keeps a few bytes per group of rows, which hold a reference to the group's state
// from its first row to its end.

import CSQLite

/// The state of one group of rows.
final class AggregateGroup {
  /// Processes a row; false if it failed.
  let step: ([SQLiteValue]) -> Bool
  /// The result; nil if it failed.
  let finish: () -> SQLiteValue?

  init(step: @escaping ([SQLiteValue]) -> Bool, finish: @escaping () -> SQLiteValue?) {
    self.step = step
    self.finish = finish
  }
}

/// One registered aggregate function.
final class AggregateBox {
  let start: () -> AggregateGroup
  init(_ start: @escaping () -> AggregateGroup) { self.start = start }

  private typealias Slot = UnsafeMutablePointer<UnsafeMutableRawPointer?>

  /// The memory for the group's reference: SQLite zeroes it before the first row.
  private static func slot(of context: OpaquePointer, isMade: Bool) -> Slot? {
    let size = isMade ? Int32(MemoryLayout<UnsafeMutableRawPointer?>.size) : 0
    return sqlite3_aggregate_context(context, size)?.assumingMemoryBound(to: UnsafeMutableRawPointer?.self)
  }

  /// The callback for the end of a group.
  typealias Finish = @convention(c) (OpaquePointer?) -> Void

  static let step: FunctionBox.Call = { context, count, arguments in
    guard let context, let data = sqlite3_user_data(context) else { return }
    guard let slot = AggregateBox.slot(of: context, isMade: true) else { return sqlite3_result_error_nomem(context) }
    let group: AggregateGroup
    if let known = slot.pointee {
      group = Unmanaged<AggregateGroup>.fromOpaque(known).takeUnretainedValue()
    } else {
      group = Unmanaged<AggregateBox>.fromOpaque(data).takeUnretainedValue().start()
      slot.pointee = Unmanaged.passRetained(group).toOpaque()
    }
    let values = (0..<Int(count)).map { FunctionBox.value(of: arguments?[$0]) }
    if !group.step(values) { FunctionBox.answer(nil, to: context) }
  }

  /// Called once per group by SQLite, also after a failed step and when the statement is abandoned.
  static let finish: Finish = { context in
    guard let context, let data = sqlite3_user_data(context) else { return }
    let group: AggregateGroup
    if let slot = AggregateBox.slot(of: context, isMade: false), let known = slot.pointee {
      group = Unmanaged<AggregateGroup>.fromOpaque(known).takeRetainedValue()
      slot.pointee = nil
    } else {
      group = Unmanaged<AggregateBox>.fromOpaque(data).takeUnretainedValue().start()
    }
    FunctionBox.answer(group.finish(), to: context)
  }
}
