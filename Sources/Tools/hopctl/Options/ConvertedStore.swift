// A SQLite store of the same version as an XML store, made to be read: what hopctl does with a store, it does with that
// one, and the XML store is only read (docs/formats/xml-stores.md).

import Diagnostics
import ManagedObjectModel
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreVerification
import SystemPackage

/// Makes SQLite stores of XML stores.
enum ConvertedStore {
  /// Whether the file is an XML store.
  static func isNeeded(for location: StoreLocation) -> Bool {
    do {
      try StoreReader.withUnchangedStore(at: location) { _ in }
      return false
    } catch {
      return (error as? HopdError)?.code == .storeOfXML
    }
  }

  /// Creates the SQLite store in a private folder, verifies it, and removes it after `body`.
  static func with<Result>(
    _ location: StoreLocation, catalog: ModelCatalog, _ body: (StoreLocation) throws -> Result
  ) throws -> Result {
    let place = Place(store: location.database)
    let store = try XMLStore(at: location.database)
    let version = try StoreIdentifier.version(of: store.metadata, in: catalog, at: place)
    let scratch = try ScratchDirectory(in: nil)
    defer { try? scratch.remove() }
    let made = StoreLocation(
      database: scratch.path.appending(FilePath.Component(location.fileName) ?? "store"))
    let framework = store.metadata.frameworkVersion
    let schema = StoreSchema(model: version.model, frameworkVersion: framework > 0 ? framework : 1344)
    do {
      try store.makeStore(at: made.database, schema: schema, file: place)
    } catch {
      throw ErrorReport.hopdError(error).located(place)
    }
    let failed = try StoreReader.withUnchangedStore(at: made) { reader in
      try StoreVerifier(depth: .quick).checks(
        of: reader, schema: schema, isExact: true, external: ExternalDataDirectory(of: made))
    }.filter { !$0.passed }
    guard failed.isEmpty else {
      throw HopdError(
        .xmlStoreInvalid, "the SQLite store created from the XML store is incomplete; it was removed", at: place,
        hint: "convert it with the app: migratePersistentStore with NSSQLiteStoreType",
        reasons: failed.map { HopdError(.xmlStoreInvalid, "\($0.name): \($0.detail)") })
    }
    return try body(made)
  }
}
