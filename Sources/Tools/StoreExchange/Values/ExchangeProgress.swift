// The progress of an export or import, and its end on request.

import Diagnostics

/// Receives the number of objects that are done.
package struct ExchangeProgress {
  /// The objects of the whole work; 0 if the number is not known.
  package let total: Int64
  private let body: (_ done: Int64, _ total: Int64) -> Bool

  /// Creates a progress; the work stops if `body` returns false.
  package init(total: Int64, _ body: @escaping (_ done: Int64, _ total: Int64) -> Bool) {
    self.total = total
    self.body = body
  }

  /// Reports the objects so far.
  func report(_ done: Int64) throws(HopdError) {
    guard body(done, total) else { throw HopdError(.interrupted, "stopped on request", hint: "run the command again") }
  }

  /// Whether the work may continue.
  func mayContinue(_ done: Int64) -> Bool { body(done, total) }
}
