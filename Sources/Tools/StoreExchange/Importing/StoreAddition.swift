// Adds data to a store that exists: a copy of it is filled and verified, and takes the store's place as a migrated
// store does, under the same locks, with the same record and backup. A crash at any point leaves the old store or the
// new one.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage

extension HopdError.Code {
  /// Objects are not added to a store that CloudKit mirrors: its records would not have them.
  package static let mirroredStore = HopdError.Code("mirrored-store", exit: .dataError)
}

/// Adds the data of an import to a store.
package struct StoreAddition {
  private let swap: StoreSwap
  private let intents: IntentStore
  private let lockDirectory: FilePath
  private let mode: ReplacementMode?
  private let files = LinuxFileSystem()

  /// A store as it is identified under the lock.
  package struct Identified {
    package let schema: StoreSchema
    package let metadata: StoreMetadata
    let version: String

    /// A store with that layout, of a version with that name.
    package init(schema: StoreSchema, metadata: StoreMetadata, version: String) {
      self.schema = schema
      self.metadata = metadata
      self.version = version
    }
  }

  /// Works in a state directory; without a `mode` the store is replaced in the one that is safe for it.
  package init(stateDirectory: FilePath, mode: ReplacementMode?) throws {
    self.mode = mode
    lockDirectory = stateDirectory.appending("locks")
    try files.ensureDirectory(lockDirectory)
    intents = try IntentStore(stateDirectory: stateDirectory, files: files)
    var swap = StoreSwap(
      files: files, intents: intents,
      identify: { VersionHash.digest(of: try StoreReader(connection: $0).metadata().versionHashes) }, mode: mode)
    swap.backupClass = .addition
    self.swap = swap
  }

  /// Adds the data and returns when the new store is durable; returns nil if the store has it from an earlier import,
  /// which a crash may have ended before its report, unless `again` adds it once more. `now` is seconds since 1970.
  package func add(
    _ work: StoreImport, again: Bool = false, to location: CanonicalStoreLocation, job: String, backup: BackupRule,
    now: Int64, identify: (StoreReader) throws -> Identified, progress: (_ share: Double) throws -> Void
  ) throws -> (imported: StoreImport.Imported, replaced: ReplacedStore)? {
    let identity = try work.identity()
    guard let source = try SourceFingerprint(of: location, files: files) else {
      throw HopdError(.notFound, "no such file", at: Place(store: location.database), hint: "check the path")
    }
    let store = try LockedStore(location: location, lockDirectory: lockDirectory, files: files)
    defer { store.release() }
    let area = StagingArea(location: store.location, job: job, files: files)
    var external: AddedExternalFiles?
    do {
      let mode = try StoreSwap.safeMode(mode, for: store)
      try store.requireReplaceable(by: mode)
      if mode == .rename { try area.proveAttributesCanBeKept() }
      let reader = StoreReader(connection: try store.connection)
      let identified = try identify(reader)
      if !again, identified.metadata.has(importOf: identity) { return nil }
      try Self.requireUnmirrored(reader)
      let staged = try copy(reader, in: area, progress)
      let schemaVersion = try reader.connection.integer("PRAGMA schema_version")
      let added = AddedExternalFiles(of: location.store) {
        try AddedFileList(in: area, schemaVersion: schemaVersion ?? 0, files: files)
      }
      external = added
      let imported = try work.add(
        to: staged, schema: identified.schema, metadata: identified.metadata.adding(importOf: identity),
        external: { try added.change($0, to: $1) },
        progress: { share, _ in try progress(0.2 + share * 0.7) })
      try added.sync()
      let verified = try StoreVerifier(depth: .quick).verify(
        extended: staged, schema: identified.schema, kept: try Self.rows(reader, identified.schema),
        external: ExternalDataDirectory(of: location.store), at: Place(store: location.database))
      try progress(1)
      let mark = StoreVersionMark(
        name: identified.version, digest: VersionHash.digest(of: identified.metadata.versionHashes))
      var intent = ReplacementIntent(
        location: store.location, job: job, planFingerprint: "import-\(identity)", source: source,
        bootIdentifier: try files.bootIdentifier(), staged: staged, journalMode: store.journalMode, from: mark,
        to: mark, storeUUID: identified.metadata.uuid, startedAt: now)
      // The two stores have one version: by this number recovery tells them apart.
      intent.schemaVersion = schemaVersion
      let replaced = try swap.replace(
        store, with: verified, intent: intent, backup: backup, now: now)
      // The new store is in place, whatever becomes of the list and the record: the next run finds and removes them.
      try? added.list?.remove()
      try? intents.remove(store.location)
      return (imported, replaced)
    } catch {
      // Where the store's own file is in doubt everything is kept for recovery.
      let keeps: [HopdError.Code] = [.replacementUnconfirmed, .storeReplaced, .notFound]
      if let code = (error as? HopdError)?.code, keeps.contains(code) { throw error }
      // Under the lock: the next import of the same data gives its files the same names.
      try? external?.list?.withdraw()
      try? area.removeAll()
      throw error
    }
  }

  private static func requireUnmirrored(_ reader: StoreReader) throws {
    guard try MirroringLayout.read(from: reader).layout != nil else { return }
    throw HopdError(
      .mirroredStore, "the store is mirrored with CloudKit, and its records would not have the new objects",
      hint: "add the objects with the app")
  }

  /// The copy beside the store that the data is added to.
  private func copy(
    _ reader: StoreReader, in area: StagingArea, _ progress: (_ share: Double) throws -> Void
  ) throws -> FilePath {
    let connection = reader.connection
    let pages = try connection.integer("PRAGMA page_count") ?? 0
    let bytes = pages.multipliedReportingOverflow(by: try connection.integer("PRAGMA page_size") ?? 4096)
    // The data needs room of its own, which is not known before it is read.
    try area.requireSpace(bytes.overflow ? .max : bytes.partialValue)
    let staged = try area.create(hop: nil)
    var failure: (any Error)?
    do {
      try connection.copy("main", to: staged) { done, all in
        do {
          try progress(all > 0 ? 0.2 * Double(done) / Double(all) : 0)
          return true
        } catch {
          failure = error
          return false
        }
      }
    } catch {
      throw failure ?? error
    }
    return staged
  }

  /// The rows of each table, and the highest key among them.
  private static func rows(
    _ reader: StoreReader, _ schema: StoreSchema
  ) throws -> [String: (highestKey: Int64, rows: Int64)] {
    var rows: [String: (highestKey: Int64, rows: Int64)] = [:]
    for table in schema.tables {
      let found = try reader.connection.rows("SELECT max(Z_PK), count(*) FROM \(reader.qualified(table.name))") {
        (highestKey: $0.integer(at: 0), rows: $0.integer(at: 1))
      }
      rows[table.name] = found.first
    }
    return rows
  }
}
