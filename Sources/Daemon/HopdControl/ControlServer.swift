// The service's side: one thread waits for all clients. Calls go to a handler, which may reply from any thread; its
// replies come back through an outbox. A client has one call at a time; later calls wait.

import CLinux
import Diagnostics
import Dispatch
import Glibc
import Synchronization
import SystemPackage

/// The reason for which a client was disconnected.
package enum ControlProblem: String, Sendable, Hashable, CaseIterable {
  case garbage = "sent an invalid message"
  case tooLong = "sent a message of more than 64 KiB"
  case tooSlow = "sent no complete message in time"
  case unread = "did not read its replies"
  case tooMany = "exceeded the limit of clients"
}

/// Sends the replies to one call.
package struct ControlAnswer: Sendable {
  let server: ControlServer
  let client: UInt64
  let isWanted: Bool

  /// Sends a result; with `continues` more replies follow.
  package func reply(_ parameters: ControlValue, continues: Bool = false) {
    send(ControlReply(parameters, continues: continues))
  }

  /// Sends a result or an error.
  package func send(_ reply: ControlReply) { server.send(reply, to: client, isWanted: isWanted) }

  /// Whether the client is connected and has read all replies. A stream skips a client that has not.
  package var isReading: Bool { server.isReading(client) }
  /// Whether the client is disconnected.
  package var isGone: Bool { server.isGone(client) }
}

/// The control socket of a running daemon.
package final class ControlServer: Sendable {
  /// Limits for clients.
  package struct Limits: Sendable {
    /// Clients at once; the last `reserved` connections are for root and the daemon's own user.
    package var clients = 32
    package var reserved = 4
    /// Bytes of one message.
    package var message = 64 << 10
    /// Bytes of replies that a client has not read.
    package var unread = 1 << 20
    /// Time for a message, from its first byte or from the connection on.
    package var reading = Duration.seconds(5)
    /// Time between two calls.
    package var idle = Duration.seconds(60)
    /// Time in which a client with unread replies must read something.
    package var writing = Duration.seconds(5)

    /// The limits in docs/SECURITY.md.
    package init() {}
  }

  package typealias Handler = @Sendable (ControlCall, ControlPeer, ControlAnswer) -> Void

  private struct Shared {
    var outbox: [(client: UInt64, reply: ControlReply, isWanted: Bool)] = []
    /// Unread bytes of each connected client.
    var unread: [UInt64: Int] = [:]
    var isStopping = false
    /// Number of turns of the thread.
    var turns: UInt64 = 0
  }

  let limits: Limits
  private let listener: Int32
  private let wake: Int32
  private let shared = Mutex(Shared())
  private let ended = DispatchSemaphore(value: 0)

  /// Creates a socket at `path`, or uses the listening socket `activated`.
  package init(path: FilePath, activated: Int32? = nil, limits: Limits = Limits()) throws {
    self.limits = limits
    wake = clinux_eventfd()
    if let activated {
      listener = activated
      _ = fcntl(listener, F_SETFD, FD_CLOEXEC)
    } else {
      listener = try UnixSocket.listening(at: path)
    }
    _ = fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) | O_NONBLOCK)
  }

  deinit {
    close(wake)
    close(listener)
  }

  /// Serves on a thread of its own until `stop`.
  package func start(handler: @escaping Handler, problem: @escaping @Sendable (ControlProblem, ControlPeer?) -> Void) {
    DispatchQueue(label: "hopd.control").async { [self] in
      var loop = ControlLoop(server: self, listener: listener, wake: wake, handler: handler, problem: problem)
      while mayTurn() { loop.turn() }
      loop.end()
      ended.signal()
    }
  }

  private func mayTurn() -> Bool {
    shared.withLock { shared in
      shared.turns &+= 1
      return !shared.isStopping
    }
  }

  /// Number of turns of the thread so far.
  var turns: UInt64 { shared.withLock { $0.turns } }

  /// Closes every connection, and waits up to 2 s for it.
  package func stop() {
    shared.withLock { $0.isStopping = true }
    poke()
    _ = ended.wait(timeout: .now() + .seconds(2))
  }

  // MARK: Replies

  fileprivate func send(_ reply: ControlReply, to client: UInt64, isWanted: Bool) {
    shared.withLock { $0.outbox.append((client, reply, isWanted)) }
    poke()
  }

  fileprivate func isReading(_ client: UInt64) -> Bool {
    shared.withLock { shared in shared.unread[client] == 0 && !shared.outbox.contains { $0.client == client } }
  }

  fileprivate func isGone(_ client: UInt64) -> Bool { shared.withLock { $0.unread[client] == nil } }

  func takeOutbox() -> [(client: UInt64, reply: ControlReply, isWanted: Bool)] {
    shared.withLock { shared in
      defer { shared.outbox = [] }
      return shared.outbox
    }
  }

  func note(unread: Int?, of client: UInt64) { shared.withLock { $0.unread[client] = unread } }

  private func poke() {
    var one: UInt64 = 1
    _ = write(wake, &one, 8)
  }
}
