// A table of the hop. Core Data's policies keep such data in the manager's userInfo; here it is on the engine's disk,
// so it may grow with the store. No other policy runs during a call, so reads and writes are cached until the call
// ends; then the writes are sent and the cache is cleared.

/// Keys and values that live as long as the hop. All policies of the hop share them.
public final class PolicyTable {
  let name: String
  private unowned let manager: MigrationManager
  /// The cached values, by the key's bytes on disk: texts with different bytes are different keys, and NaN equals NaN.
  private var known: [[UInt8]: PolicyValue] = [:]
  /// The keys with values not yet sent, in the order of their first writing.
  private var unsent: [PolicyValue] = []
  private var isUnsent: Set<[UInt8]> = []

  init(_ name: String, manager: MigrationManager) {
    self.name = name
    self.manager = manager
  }

  /// Returns the value of a key; `null` if there is none.
  public func value(for key: PolicyValue) throws -> PolicyValue {
    let place = key.json
    if let value = known[place] { return value }
    guard case .value(let value) = try manager.question(.plain(.lookup(table: name, key: key))) else {
      throw PolicyError("hopd gave no proper answer to a lookup in \(name)")
    }
    known[place] = value
    return value
  }

  /// Stores a value under a key.
  public func setValue(_ value: PolicyValue, for key: PolicyValue) throws {
    try manager.requireCall()
    let place = key.json
    known[place] = value
    if isUnsent.insert(place).inserted { unsent.append(key) }
  }

  /// Returns the object stored under a key.
  public func object(for key: PolicyValue) throws -> ManagedObject? {
    guard case .object(let id) = try value(for: key) else { return nil }
    return try manager.object(with: id)
  }

  /// Stores an object under a key.
  public func setObject(_ object: ManagedObject, for key: PolicyValue) throws {
    try setValue(.object(object.objectID), for: key)
  }

  /// Sends the values not yet sent.
  func flush() throws {
    for key in unsent {
      guard let value = known[key.json] else { continue }
      try manager.send(.plain(.remember(table: name, key: key, value)))
    }
    unsent.removeAll()
    isUnsent.removeAll()
  }

  /// Clears the cache after a call, because other policies may write to the table.
  func forget() {
    known.removeAll(keepingCapacity: true)
    unsent.removeAll()
    isUnsent.removeAll()
  }
}
