// The imports that a store has had, in its own metadata: the record is in the transaction that adds the objects, goes
// where the store goes, and is gone when the store is restored. Core Data keeps keys that it does not know.

import PersistentStore
import PropertyLists

extension StoreMetadata {
  /// The metadata key of the identities of imports, the newest last.
  private static let importsKey = "hopctl.imports"
  /// Every save of the app writes the metadata.
  private static let mostImports = 100

  /// Whether the store has the data of an import.
  func has(importOf identity: String) -> Bool { imports.contains(identity) }

  /// The metadata after one more import.
  func adding(importOf identity: String) -> StoreMetadata {
    var copy = self
    let kept = imports.filter { $0 != identity }.suffix(Self.mostImports - 1)
    copy.entries[Self.importsKey] = .array((kept + [identity]).map { .string($0) })
    return copy
  }

  private var imports: [String] { (entries[Self.importsKey]?.array ?? []).compactMap(\.string) }
}
