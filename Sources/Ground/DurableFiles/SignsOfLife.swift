// Some file calls last as long as the file is large. Their caller sets one callback for everything below: it feeds a
// watchdog, and its result decides whether to continue. It is not a parameter of each call, as all steps between the
// run and the call would only pass it on.

import Diagnostics
import SystemPackage

/// The callback of this thread for long file calls.
/// Unchecked: it is set, called and forgotten on the thread of one job.
package struct SignsOfLife: @unchecked Sendable {
  @TaskLocal private static var current: SignsOfLife?
  private let keepAlive: () -> Bool

  /// Runs `body`; long file calls in it call `keepAlive` at least every few MiB, and give up when it returns false.
  package static func shown<Result>(
    to keepAlive: @escaping () -> Bool, during body: () throws -> Result
  ) rethrows -> Result {
    try $current.withValue(SignsOfLife(keepAlive: keepAlive), operation: body)
  }

  /// Calls the callback; throws `.interrupted` when the work is to stop.
  package static func show(at path: @autoclosure () -> FilePath) throws {
    guard let current, !current.keepAlive() else { return }
    throw HopdError(.interrupted, "stopped on request while copying a file", at: Place(file: path()))
  }
}
