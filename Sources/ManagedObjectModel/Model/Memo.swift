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

  /// Facts of late, and those from before. What is asked for again stays; the rest goes with its generation.
  private struct Generations {
    var young: [Key: any Sendable] = [:]
    var old: [Key: any Sendable] = [:]

    mutating func note(_ fact: any Sendable, as key: Key, _ limit: Int) {
      old[key] = nil
      if young.count >= max(1, limit / 2) { (old, young) = (limit > 1 ? young : [:], [:]) }
      young[key] = fact
    }
  }

  /// A table holds at most so many facts; a store that differs from all others must not fill the memory.
  private let limit: Int
  private let facts = Mutex(Generations())

  /// An empty memo that holds at most `limit` facts.
  package init(limit: Int = 64) { self.limit = max(1, limit) }

  /// The fact of that key, worked out by `make` where it is not known. `make` depends on nothing but the key and the
  /// owner of the memo; an error is not remembered. Two threads may both work it out, and get equal facts.
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
      // A missing entry must not pass for the fact nil.
      let key = Memo.Key(kind: ObjectIdentifier(Key.self), key: AnyHashable(key))
      if let value = facts.young[key] { return value as? Fact }
      guard let value = facts.old[key] else { return nil }
      facts.note(value, as: key, limit)
      return value as? Fact
    }
  }

  /// How many facts are known.
  package var count: Int { facts.withLock { $0.young.count + $0.old.count } }
}
