// Facts that are worked out once and kept with the value they follow from: a daemon plans the same migration path for
// ten thousand stores of an app. A model has a memo of its own, and so has a catalog of models; with them the facts go
// when a configuration is read again, so nothing can be out of date.

import Synchronization

/// Remembers what was worked out of an immutable value, by kind and key; for use from any thread.
package final class Memo: Sendable {
  private struct Key: Hashable {
    let kind: ObjectIdentifier
    let key: AnyHashable
  }

  /// A table holds at most so many facts; a store that differs from all others must not fill the memory.
  private let limit: Int
  private let facts = Mutex<[Key: any Sendable]>([:])

  /// An empty memo that holds at most `limit` facts.
  package init(limit: Int = 64) { self.limit = max(1, limit) }

  /// The fact of that key, worked out by `make` where it is not known. `make` depends on nothing but the key and the
  /// owner of the memo; an error is not remembered. Two threads may both work it out, and get equal facts.
  package func fact<Key: Hashable & Sendable, Fact: Sendable, Failure: Error>(
    _ key: Key, _ make: () throws(Failure) -> Fact
  ) throws(Failure) -> Fact {
    if let known: Fact = known(key) { return known }
    let fact = try make()
    facts.withLock { facts in
      // Forgetting all is as good as forgetting the oldest: what is needed comes again with the next store.
      if facts.count >= limit { facts.removeAll() }
      facts[Memo.Key(kind: ObjectIdentifier(Key.self), key: AnyHashable(key))] = fact
    }
    return fact
  }

  private func known<Key: Hashable & Sendable, Fact: Sendable>(_ key: Key) -> Fact? {
    facts.withLock { facts in
      // A missing entry must not pass for the fact nil.
      guard let value = facts[Memo.Key(kind: ObjectIdentifier(Key.self), key: AnyHashable(key))] else { return nil }
      return value as? Fact
    }
  }

  /// How many facts are known.
  package var count: Int { facts.withLock { $0.count } }
}
