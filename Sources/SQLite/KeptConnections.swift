// The connections that small stores use one after the other. Opening a connection, reading a schema, making views and
// compiling statements is more work than the rows of a small store, and for the stores of one app it is the same work.
//
// A store's file stays with the connection that has its lock. A kept connection gets a copy of the file's bytes; it is
// never open on a file.

import CLinux
import CSQLite
import Synchronization

/// Connections without a store, for stores of at most 512 KiB: in a larger one the rows are most of the work. Each
/// serves one store at a time.
package final class KeptConnections: Sendable {
  /// What a connection does with a store. Each use has a connection of its own: what builds a store does not check it.
  package enum Use: Sendable, Hashable {
    /// Identifies its version.
    case look
    /// Plans and builds the migrated store.
    case build
    /// Checks the migrated store.
    case check
  }

  /// `@unchecked Sendable`: a connection is here only while no task has it, and SQLite allows any thread to use it
  /// then.
  private struct Idle: @unchecked Sendable {
    let connection: Connection
    let shelf: Shelf
    let use: Use
  }

  private struct State: Sendable {
    var idle: [Idle] = []
    /// The uses that were asked for. The first store of a kind may be the only one: it gets no connection.
    var seen: [(shelf: Shelf, use: Use)] = []
  }

  private let state = Mutex(State())
  /// As many as the runs at a time need; more would only take memory.
  private static let most = 32

  /// The largest store that a kept connection reads, in bytes.
  package static let largestStore: Int64 = 512 << 10

  /// Makes an empty collection.
  package init() {}

  /// Returns the connections for stores of the same models. `models` is an object that such stores have in common.
  package func shelf(of models: any AnyObject & Sendable) -> Shelf { Shelf(all: self, models: models) }

  /// Closes all connections that are not in use.
  package func release() {
    // Closed without the lock.
    let closed = state.withLock { state in
      defer { state = State() }
      return state
    }
    _ = closed
  }

  /// The connections for stores of the same models.
  package struct Shelf: Sendable {
    fileprivate let all: KeptConnections
    fileprivate let models: any AnyObject & Sendable

    private func isSame(_ other: Shelf) -> Bool { models === other.models }

    /// Returns a connection to a copy of a small store. `content` returns the store's bytes, nil if it is not small.
    /// Returns nil for the first store, and for one that cannot be read in this way: the caller opens the file, and
    /// reports what is wrong with it.
    package func take(_ use: Use, _ content: () throws -> [UInt8]?) rethrows -> Connection? {
      let isKnown = all.state.withLock { state in
        if state.seen.contains(where: { $0.use == use && isSame($0.shelf) }) { return true }
        if state.seen.count >= KeptConnections.most { state.seen.removeFirst() }
        state.seen.append((self, use))
        return false
      }
      guard isKnown, let image = try content() else { return nil }
      let known = all.state.withLock { state in
        state.idle.lastIndex { $0.use == use && isSame($0.shelf) }.map { state.idle.remove(at: $0) }
      }
      // After an error, or where it does not fit, the connection is dropped.
      if let connection = known?.connection, (try? connection.exchange("main", for: image)) == true {
        return connection
      }
      return try? Connection(keptFor: image, builds: use == .build)
    }

    /// Takes back a connection whose work has succeeded; after an error it is to be dropped.
    package func putBack(_ connection: Connection, _ use: Use) {
      connection.finishStore()
      let idle = Idle(connection: connection, shelf: self, use: use)
      all.state.withLock { state in
        if state.idle.count >= KeptConnections.most { state.idle.removeFirst() }
        state.idle.append(idle)
      }
    }

    /// Runs `body` with a connection to a copy of a small store; nil without a call where there is none.
    package func with<Result>(
      _ use: Use, _ content: () throws -> [UInt8]?, _ body: (Connection) throws -> Result
    ) throws -> Result? {
      guard let connection = try take(use, content) else { return nil }
      let result = try body(connection)
      putBack(connection, use)
      return result
    }
  }
}
