// Values that are computed once and kept with what they follow from: a daemon plans the same chain for ten thousand
// stores of an app. Each model and each catalog of models has a cache of its own, which ends with it when a
// configuration is read again, so no cached value can be out of date.

import Synchronization

/// Caches values derived from an immutable value, by kind and key; thread-safe.
package final class Cache: Sendable {
  private struct Key: Hashable {
    let kind: ObjectIdentifier
    let key: AnyHashable
  }

  /// Recent values, and older ones. A value that is used again stays; the rest is dropped with its generation.
  private struct Generations {
    var young: [Key: any Sendable] = [:]
    var old: [Key: any Sendable] = [:]

    mutating func note(_ value: any Sendable, as key: Key, _ limit: Int) {
      old[key] = nil
      if young.count >= max(1, limit / 2) { (old, young) = (limit > 1 ? young : [:], [:]) }
      young[key] = value
    }
  }

  /// The largest number of values in a table; a store that differs from all others must not fill the memory.
  private let limit: Int
  private let values = Mutex(Generations())

  /// Creates an empty cache that holds at most `limit` values.
  package init(limit: Int = 64) { self.limit = max(1, limit) }

  /// Returns the value of that key; computes it with `make` if it is unknown. `make` depends only on the key and the
  /// owner of the cache; an error is not cached. Two threads may both compute it, and get equal values.
  package func value<Key: Hashable & Sendable, Value: Sendable, Failure: Error>(
    for key: Key, _ make: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    if let known: Value = known(key) { return known }
    let value = try make()
    values.withLock { $0.note(value, as: Cache.Key(kind: ObjectIdentifier(Key.self), key: AnyHashable(key)), limit) }
    return value
  }

  private func known<Key: Hashable & Sendable, Value: Sendable>(_ key: Key) -> Value? {
    values.withLock { values in
      // A missing entry must not look like the value nil.
      let key = Cache.Key(kind: ObjectIdentifier(Key.self), key: AnyHashable(key))
      if let value = values.young[key] { return value as? Value }
      guard let value = values.old[key] else { return nil }
      values.note(value, as: key, limit)
      return value as? Value
    }
  }

  /// Number of cached values.
  package var count: Int { values.withLock { $0.young.count + $0.old.count } }
}
