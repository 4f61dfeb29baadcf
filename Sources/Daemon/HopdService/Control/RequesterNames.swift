// The names of the users behind orders. The name service may wait for a directory server, and no order waits for that.

import Diagnostics
import Dispatch
import Synchronization

/// Looks up users by number, one at a time, on a thread of its own.
final class RequesterNames: Sendable {
  private let queue = DispatchQueue(label: "hopd.names")
  private let patience: DispatchTimeInterval
  private let lookUp: @Sendable (UInt32) -> String

  /// Looks up with `lookUp`, and waits at most `patience` for a name.
  init(
    patience: DispatchTimeInterval = .seconds(1),
    lookUp: @escaping @Sendable (UInt32) -> String = { AccountName.ofUser($0) }
  ) {
    (self.patience, self.lookUp) = (patience, lookUp)
  }

  /// The user as the journal names it, such as "user alice"; the number if there is no name, or if it does not come in
  /// time.
  func requester(_ user: UInt32) -> String {
    let name = Mutex<String?>(nil)
    let done = DispatchSemaphore(value: 0)
    queue.async { [lookUp] in
      let found = lookUp(user)
      name.withLock { $0 = found }
      done.signal()
    }
    _ = done.wait(timeout: .now() + patience)
    return "user \(name.withLock { $0 } ?? String(user))"
  }
}
