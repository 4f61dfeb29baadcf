// Identifying: the version hashes in a store's metadata determine its version. Entity names in Z_PRIMARYKEY are never
// used: Apple's own migrations leave old names there (docs/formats/store-layout.md, "Apple's migration in place").

import Diagnostics
import Glibc
import ManagedObjectModel
import PersistentStore
import SQLite
import SystemPackage

/// Determines which version a store has.
package enum StoreIdentifier {
  /// Identifies a file without changing anything in its folder.
  ///
  /// A file that is not a store, damaged or encrypted is a result, not an error. Throws if there is no result: the file
  /// is missing, may not be read, is busy, or the models contradict each other.
  package static func identify(
    _ location: StoreLocation, catalog: ModelCatalog, target: TargetVersion = .current, countsRows: Bool = true
  ) throws -> StoreAssessment {
    do {
      return try StoreReader.withUnchangedStore(at: location) { reader in
        try identify(reader: reader, location: location, catalog: catalog, target: target, countsRows: countsRows)
      }
    } catch let error as HopdError {
      guard let state = state(of: error) else { throw error }
      return StoreAssessment(location: location, state: state, sideFiles: sideFiles(of: location), explanation: error)
    }
  }

  /// The same over an open connection; damage is thrown here. Without `countsRows` the result has no rows: a daemon
  /// inspects many stores, and counting reads whole tables.
  package static func identify(
    reader: StoreReader, location: StoreLocation, catalog: ModelCatalog, target: TargetVersion = .current,
    countsRows: Bool = true
  ) throws -> StoreAssessment {
    let place = Place(store: location.database)
    let objects = try reader.schemaObjects()
    let tables = Set(objects.filter { $0.type == "table" }.map(\.name))
    try requireStore(objects, tables, reader, at: place)
    let metadata = try reader.metadata()
    let matching = StoreMatching(hashes: metadata.versionHashes, catalog: catalog, target: target, place: place)
    var match = try matching.match()
    var unused: HopdError?
    if match == nil, !metadata.versionHashes.isEmpty {
      switch ownModel(reader, location, matching) {
      case .match(let found)?: match = found
      case .refused(let why)?: unused = why
      case nil: break
      }
    }
    guard let found = match else {
      var explanation =
        VersionComparison.unusable(metadata.versionHashes, catalog: catalog)
        ?? VersionComparison.explain(
          metadata.versionHashes, catalog: catalog, mayBeNewer: unused.map(OwnModelMatching.hasLosses) ?? false)
      if let unused { explanation.reasons.append(unused) }
      return StoreAssessment(
        location: location, state: .unknown, metadata: metadata,
        entities: countsRows ? try ownRows(reader, tables) : [], sideFiles: sideFiles(of: location),
        explanation: explanation.located(place))
    }
    let (state, explanation) = state(of: found, catalog)
    return StoreAssessment(
      location: location, state: state, metadata: metadata, version: found.version, target: found.target,
      entities: countsRows ? try rows(reader, tables, found.version, metadata) : [], sideFiles: sideFiles(of: location),
      explanation: explanation?.located(place), line: found.line)
  }

  /// Returns the version with these hashes, for a store that is no SQLite database.
  package static func version(
    of metadata: StoreMetadata, in catalog: ModelCatalog, at place: Place
  ) throws(HopdError) -> CatalogedVersion {
    let hashes = metadata.versionHashes
    let matching = StoreMatching(hashes: hashes, catalog: catalog, target: .own, place: place)
    if let found = try matching.match() { return found.version }
    throw
      (VersionComparison.unusable(hashes, catalog: catalog)
      ?? VersionComparison.explain(hashes, catalog: catalog)).located(place)
  }

  /// Throws if Core Data did not make the database, or if damage shows at once.
  private static func requireStore(
    _ objects: [SchemaObject], _ tables: Set<String>, _ reader: StoreReader, at place: Place
  ) throws {
    guard tables.contains("Z_METADATA") else {
      throw HopdError(
        .notAStore, "a SQLite database, but not one that Core Data made: it has no Z_METADATA", at: place,
        hint: "check that this is the right file")
    }
    guard tables.contains("Z_PRIMARYKEY") else {
      throw HopdError(
        .storeDamaged, "the store lacks Z_PRIMARYKEY, which numbers its entities", at: place,
        hint: "restore the store from a backup")
    }
    try StoreReader.requirePlainTables(objects, at: place)
    guard try reader.connection.text("PRAGMA encoding") == "UTF-8" else {
      throw HopdError(
        .schemaForeign, "the file keeps its text in UTF-16, which no store of Core Data does", at: place,
        hint: "restore a backup, or write its content into a new database: sqlite3 FILE .dump")
    }
  }

  /// Returns the store's state relative to its target, and the reason if it is ahead and no hop leads back.
  private static func state(of found: StoreMatch, _ catalog: ModelCatalog) -> (StoreState, HopdError?) {
    let (version, wanted) = (found.version, found.target)
    if version.isSameVersion(as: wanted) { return (.current, nil) }
    if version.position <= wanted.position || catalog.allowsOlder { return (.behind, nil) }
    do {
      // A mapping model that leads back is one more edge; inference leads back only if the operator allows it.
      _ = try MigrationGraph(versions: found.line.versions, infer: false, mappings: catalog.mappings)
        .route(from: version, to: wanted)
      return (.behind, nil)
    } catch { return (.newer, error) }
  }

  /// Matches the store's copy of its own model; nil if the store holds none.
  private static func ownModel(
    _ reader: StoreReader, _ location: StoreLocation, _ matching: StoreMatching
  ) -> OwnModelMatching.Answer? {
    do {
      guard let own = try StoreModels.model(of: reader, at: location) else { return nil }
      return OwnModelMatching(matching: matching, model: own.model).answer()
    } catch {
      return .refused(
        HopdError(.ownModelUnused, "the store's copy of its own model (Z_MODELCACHE) cannot be used", cause: error))
    }
  }

  /// The error for a store that is ahead of the target.
  static func newer(_ version: CatalogedVersion, _ target: CatalogedVersion) -> HopdError {
    HopdError(
      .storeNewer,
      "the store has version \(version.model.name), which is newer than \(target.model.name); stores are not migrated "
        + "backwards",
      hint: "pass the current model, a later target version, or a mapping model for each hop back; "
        + "`hopctl migrate --allow-older` infers them")
  }

  /// Whether an error describes the state of a file, so that `identify` makes it a result.
  package static func isState(_ error: HopdError) -> Bool { state(of: error) != nil }

  private static func state(of error: HopdError) -> StoreState? {
    switch error.code {
    case .notAStore: .notAStore
    case .storeDamaged: .damaged
    case .storeEncrypted: .encrypted
    case .storeOfXML: .xmlStore
    case .storeBinary: .binaryStore
    default: nil
    }
  }

  private static func sideFiles(of location: StoreLocation) -> [FilePath] {
    (location.sideFiles + [location.supportDirectory]).filter { $0.linkStatus() != nil }
  }

  private static func rows(
    _ reader: StoreReader, _ tables: Set<String>, _ version: CatalogedVersion, _ metadata: StoreMetadata
  ) throws(SQLiteError) -> [StoreAssessment.EntityRows] {
    let schema = StoreSchema(model: version.model, frameworkVersion: metadata.frameworkVersion)
    let census = StoreCensus(schema: schema, reader: reader)
    var result: [StoreAssessment.EntityRows] = []
    for table in schema.tables {
      let counts = tables.contains(table.name) ? try census.rowCounts(of: table) : [:]
      for entity in table.entities {
        guard let number = schema.number(of: entity) else { continue }
        result.append(StoreAssessment.EntityRows(name: entity, number: number, rows: counts[number] ?? 0))
      }
    }
    return result
  }

  /// Returns the rows of a store without a known model, by the names in its own bookkeeping.
  private static func ownRows(
    _ reader: StoreReader, _ tables: Set<String>
  ) throws(SQLiteError) -> [StoreAssessment.EntityRows] {
    let entries = try reader.primaryKeys().filter { $0.number > 0 && !$0.isReserved }
    var counts: [Int64: Int64] = [:]
    for root in entries where root.parent == 0 {
      let table = "Z" + root.name.uppercased()
      guard tables.contains(table) else { continue }
      counts.merge(try reader.rowCounts(of: table)) { $0 &+ $1 }
    }
    return entries.map { StoreAssessment.EntityRows(name: $0.name, number: $0.number, rows: counts[$0.number] ?? 0) }
  }
}
