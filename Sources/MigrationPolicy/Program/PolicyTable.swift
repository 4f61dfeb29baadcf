// A table of the hop in a policy's hands: what Core Data's policies keep in the manager's userInfo, but on the engine's
// disk, so that it may grow with the store. Within one call nobody else runs, so what was read and written is
// remembered here until the call ends; then it is sent and forgotten.

/// Keys and values that live as long as the hop, shared by all its policies.
public final class PolicyTable {
  let name: String
  private unowned let manager: MigrationManager
  /// By the key as it is kept on the disk: two texts that look alike are two keys, and NaN is one.
  private var known: [[UInt8]: PolicyValue] = [:]
  /// Written and not sent, in the order of their first writing.
  private var unsent: [PolicyValue] = []
  private var isUnsent: Set<[UInt8]> = []

  init(_ name: String, manager: MigrationManager) {
    self.name = name
    self.manager = manager
  }

  /// The value kept under a key; `null` where there is none.
  public func value(for key: PolicyValue) throws -> PolicyValue {
    let place = key.packed
    if let value = known[place] { return value }
    guard case .value(let value) = try manager.question(.plain(.lookup(table: name, key: key))) else {
      throw PolicyError("hopd gave no proper answer to a lookup in \(name)")
    }
    known[place] = value
    return value
  }

  /// Keeps a value under a key.
  public func setValue(_ value: PolicyValue, for key: PolicyValue) throws {
    try manager.requireCall()
    let place = key.packed
    known[place] = value
    if isUnsent.insert(place).inserted { unsent.append(key) }
  }

  /// The object kept under a key.
  public func object(for key: PolicyValue) throws -> ManagedObject? {
    guard case .object(let id) = try value(for: key) else { return nil }
    return try manager.object(with: id)
  }

  /// Keeps an object under a key.
  public func setObject(_ object: ManagedObject, for key: PolicyValue) throws {
    try setValue(.object(object.objectID), for: key)
  }

  /// Sends what was written.
  func flush() throws {
    for key in unsent {
      guard let value = known[key.packed] else { continue }
      try manager.send(.plain(.remember(table: name, key: key, value)))
    }
    unsent.removeAll()
    isUnsent.removeAll()
  }

  /// The call is over: what other policies write is not seen here.
  func forget() {
    known.removeAll(keepingCapacity: true)
    unsent.removeAll()
    isUnsent.removeAll()
  }
}
