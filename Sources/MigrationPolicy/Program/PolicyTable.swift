// A table of the hop in a policy's hands: what Core Data's policies keep in the manager's userInfo, but on the engine's
// disk, so that it may grow with the store. Within one call nobody else runs, so what was read and written is
// remembered here until the call ends; then it is sent and forgotten.

/// Keys and values that live as long as the hop, shared by all its policies.
public final class PolicyTable {
  let name: String
  private unowned let manager: MigrationManager
  private var known: [PolicyValue: PolicyValue] = [:]
  /// Written and not sent, in the order of their first writing.
  private var unsent: [PolicyValue] = []
  private var isUnsent: Set<PolicyValue> = []

  init(_ name: String, manager: MigrationManager) {
    self.name = name
    self.manager = manager
  }

  /// The value kept under a key; `null` where there is none.
  public func value(for key: PolicyValue) throws -> PolicyValue {
    if let value = known[key] { return value }
    guard case .value(let value) = try manager.question(.plain(.lookup(table: name, key: key))) else {
      throw PolicyError("hopd gave no proper answer to a lookup in \(name)")
    }
    known[key] = value
    return value
  }

  /// Keeps a value under a key.
  public func setValue(_ value: PolicyValue, for key: PolicyValue) throws {
    try manager.requireCall()
    known[key] = value
    if isUnsent.insert(key).inserted { unsent.append(key) }
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
      guard let value = known[key] else { continue }
      guard case .done = try manager.question(.plain(.remember(table: name, key: key, value))) else {
        throw PolicyError("hopd gave no proper answer to a change of \(name)")
      }
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
