// Facts that are computed once and kept with the value they follow from: a daemon plans the same chain for ten thousand
// stores of an app. Each model and each catalog of models has a memo of its own; the facts end with them when a
// configuration is read again, so no fact can be out of date.

import Synchronization

/// Caches facts derived from an immutable value, by kind and key; thread-safe.
package final class Memo: Sendable {
  private struct Key: Hashable {
    let kind: ObjectIdentifier
    let key: AnyHashable
  }

  /// Recent facts, and older ones. A fact that is used again stays; the rest is dropped with its generation.
  private struct Generations {
    var young: [Key: any Sendable] = [:]
    var old: [Key: any Sendable] = [:]

    mutating func note(_ fact: any Sendable, as key: Key, _ limit: Int) {
      old[key] = nil
      if young.count >= max(1, limit / 2) { (old, young) = (limit > 1 ? young : [:], [:]) }
      young[key] = fact
    }
  }

  /// The largest number of facts in a table; a store that differs from all others must not fill the memory.
  private let limit: Int
  private let facts = Mutex(Generations())

  /// Makes an empty memo that holds at most `limit` facts.
  package init(limit: Int = 64) { self.limit = max(1, limit) }

  /// Returns the fact of that key; computes it with `make` if it is unknown. `make` depends only on the key and the
  /// owner of the memo; an error is not cached. Two threads may both compute it, and get equal facts.
  package func fact<Key: Hashable & Sendable, Fact: Sendable, Failure: Error>(
    _ key: Key, _ make: () throws(Failure) -> Fact
  ) throws(Failure) -> Fact {
    if let known: Fact = known(key) { return known }
    let fact = try make()
    facts.withLock { $0.note(fact, as: Memo.Key(kind: ObjectIdentifier(Key.self), key: AnyHashable(key)), limit) }
    return fact
  }

  private func known<Key: Hashable & Sendable, Fact: Sendable>(_ key: Key) -> Fact? {
    facts.withLock { facts in
      // A missing entry must not look like the fact nil.
      let key = Memo.Key(kind: ObjectIdentifier(Key.self), key: AnyHashable(key))
      if let value = facts.young[key] { return value as? Fact }
      guard let value = facts.old[key] else { return nil }
      facts.note(value, as: key, limit)
      return value as? Fact
    }
  }

  /// Number of cached facts.
  package var count: Int { facts.withLock { $0.young.count + $0.old.count } }
}
