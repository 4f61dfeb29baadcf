// Suspects that come after all other stores.

import SystemPackage

/// Suspects that wait until all other work is done.
struct QuarantinedStores {
  private var stores: [FoundStore] = []
  /// When a file last settled, suspect or not: more may follow.
  private var lastFound: ContinuousClock.Instant?
  private var since: ContinuousClock.Instant?

  /// How long no file must have been found before a suspect has its turn.
  private static let quiet = Duration.seconds(1)
  /// How long a suspect waits at most while there is other work.
  private static let patience = Duration.seconds(600)

  var count: Int { stores.count }

  mutating func noteFound(now: ContinuousClock.Instant) { lastFound = now }

  mutating func append(_ store: FoundStore, now: ContinuousClock.Instant) {
    remove(store.key)
    stores.append(store)
    if since == nil { since = now }
  }

  mutating func remove(_ key: FilePath) {
    stores.removeAll { $0.key == key }
    if stores.isEmpty { since = nil }
  }

  mutating func removeAll() -> [FoundStore] {
    defer { (stores, since) = ([], nil) }
    return stores
  }

  /// When the next suspect may have its turn; nil while none waits.
  func due(isIdle: Bool) -> ContinuousClock.Instant? {
    guard let since, !stores.isEmpty else { return nil }
    return isIdle ? (lastFound ?? since).advanced(by: Self.quiet) : since.advanced(by: Self.patience)
  }

  /// Removes and returns the first suspect.
  mutating func next(now: ContinuousClock.Instant) -> FoundStore? {
    guard !stores.isEmpty else { return nil }
    defer { since = stores.isEmpty ? nil : now }
    return stores.removeFirst()
  }
}
