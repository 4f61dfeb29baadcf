// A new store of data: the tables of a version, filled with objects, related, tested by the rules of the model.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import PropertyLists
import SQLite
import SystemPackage

/// Creates a store of data.
package struct StoreImport {
  /// A folder of files, one file, or a database.
  package var data: FilePath
  /// The mapping; nil for hopctl's own lines, and for a folder that has its mapping in it.
  package var mapping: FilePath?
  /// The directory of values in files beside hopctl's own lines.
  package var files: FilePath?
  package var rows = ImportRowsRule.fail

  /// Creates an import of the data at a path.
  package init(data: FilePath) { self.data = data }

  /// The result of an import.
  package struct Imported: Sendable {
    /// Objects of the store.
    package fileprivate(set) var objects: Int64 = 0
    /// Rows that were left out.
    package fileprivate(set) var leftOut: Int64 = 0
    /// References to objects that are not there, which are nil now.
    package fileprivate(set) var clearedReferences: Int64 = 0
    /// Values that a default replaced.
    package fileprivate(set) var corrected: Int64 = 0
    /// The first problems of all kinds.
    package fileprivate(set) var problems: [HopdError] = []
    /// The columns of text files that no part of the mapping uses, by file.
    package fileprivate(set) var unusedColumns: [String: [String]] = [:]
  }

  /// Creates the store at `path`, which must not exist. `external` receives the values for external files, and nil for
  /// a file of a row that is left out. Nothing is synced.
  package func make(
    _ fresh: FreshStore, at path: FilePath, external: @escaping (ExternalFileName, [UInt8]?) throws -> Void,
    progress: (_ share: Double, _ objects: Int64) throws -> Void
  ) throws -> Imported {
    let source = try self.source()
    var imported = Imported()
    let metadata = StoreMetadata.fresh(
      uuid: fresh.uuid, model: fresh.schema.model, frameworkVersion: fresh.schema.frameworkVersion)
    try fresh.make(at: path, metadata: metadata) { connection in
      let loader = try StoreLoader(
        connection: connection, schema: fresh.schema, storeUUID: fresh.uuid, problems: RowProblems(rule: rows),
        external: external)
      imported = try fill(loader, source, progress)
      return try loader.highWaterMarks()
    }
    return imported
  }

  /// Adds the data to the store in `path`, a copy that no other process has open; `schema` is the layout of its tables,
  /// and `metadata` the one that it gets.
  package func add(
    to path: FilePath, schema: StoreSchema, metadata: StoreMetadata,
    external: @escaping (ExternalFileName, [UInt8]?) throws -> Void,
    progress: (_ share: Double, _ objects: Int64) throws -> Void
  ) throws -> Imported {
    let source = try self.source()
    let connection = try Connection(path: path, access: .readWrite)
    // The copy is synced before it becomes the store; until then it may be lost.
    try connection.execute("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF")
    // The triggers of the store count what is inserted, and tell Core Data of it by functions that only it has.
    try SchemaTrigger.registerFunctions(on: connection)
    let loader = try StoreLoader(
      connection: connection, schema: schema, storeUUID: metadata.uuid, problems: RowProblems(rule: rows),
      isAdding: true, external: external)
    let imported = try fill(loader, source, progress)
    try connection.transaction {
      try StoreWriter(connection: connection, schema: "main").fillDerivedAttributes(schema)
      for (entity, mark) in try loader.highWaterMarks() {
        guard let number = schema.number(of: entity) else { continue }
        try connection.run(
          "UPDATE Z_PRIMARYKEY SET Z_MAX = ?1 WHERE Z_ENT = ?2 AND Z_MAX < ?1", [.integer(mark), .integer(number)])
      }
      try connection.run(
        "UPDATE Z_METADATA SET Z_PLIST = ?", [.blob(PropertyList.encodeBinary(.dictionary(metadata.entries)))])
    }
    // Another number of the schema tells the store from the one that it was copied from.
    let version = try connection.integer("PRAGMA schema_version") ?? 0
    try connection.setSchemaVersion(version &+ 1)
    try connection.execute("PRAGMA journal_mode = DELETE")
    return imported
  }

  /// What is read.
  private enum Source {
    case own
    case mapped(ImportMapping, DataSet)
  }

  /// The digest of everything that decides what is added: the data, the mapping, the rule for rows.
  func identity() throws -> String {
    var parts = ["import 1", rows.rawValue]
    switch try source() {
    case .own: parts.append(try InputFile(data).digest())
    case .mapped(let mapping, let data):
      let sources = mapping.objects.map { ($0.source, $0.place) } + mapping.pairs.map { ($0.source, $0.place) }
      parts.append(try data.digest(of: sources))
      if let path = self.mapping { parts.append(try InputFile(path).digest()) }
    }
    return ContentDigest.sha256(parts.joined(separator: "\u{0}").utf8)
  }

  private func source() throws -> Source {
    let data = try DataSet(at: self.data)
    if let mapping { return .mapped(try ImportMapping(at: mapping), data) }
    if let mapping = try data.ownMapping() { return .mapped(mapping, data) }
    if data.isFile, let line = (try? JSONLinesReader(self.data).object()) ?? nil, ObjectLinesImport.isOwn(line) {
      return .own
    }
    // The export of a store without objects.
    if data.isFile, self.data.extension == "ndjson", try InputFile(self.data).size == 0 { return .own }
    let beside = self.data.appending(ExportMappingText.fileName)
    if !data.isFile, beside.linkStatus() != nil { return .mapped(try ImportMapping(at: beside), data) }
    throw HopdError(
      .importMappingInvalid, "no mapping specified for the data", at: Place(file: self.data),
      hint: "pass --mapping FILE.hopimport.toml")
  }

  private func fill(
    _ loader: StoreLoader, _ source: Source, _ progress: (_ share: Double, _ objects: Int64) throws -> Void
  ) throws -> Imported {
    // An open transaction would keep the file from being closed in order.
    defer { if loader.connection.isInTransaction { try? loader.connection.execute("ROLLBACK") } }
    let checksInverses: Bool
    var unusedColumns: [String: [String]] = [:]
    switch source {
    case .own:
      try ObjectLinesImport(loader: loader, files: files).read(data) { try progress($0, loader.count) }
      // The lines are those of a store, which may have one-to-ones whose ends differ: they stay what they are.
      checksInverses = false
    case .mapped(let mapping, let data):
      let mapped = try MappedImport(mapping, data: data, loader: loader)
      try mapped.read { try progress($0, loader.count) }
      unusedColumns = mapped.unusedColumns
      checksInverses = true
    }
    try loader.problems.throwIfFailed()
    try loader.resolveRelationships(checksInverses: checksInverses)
    try loader.problems.throwIfFailed()
    try loader.applyRules()
    try progress(1, loader.count)
    let problems = loader.problems
    return Imported(
      objects: try loader.countOfObjects(), leftOut: problems.rows, clearedReferences: problems.references,
      corrected: problems.corrected, problems: problems.shown + problems.corrections, unusedColumns: unusedColumns)
  }
}

extension DataSet {
  /// The mapping in a database that `hopctl export` made.
  fileprivate func ownMapping() throws -> ImportMapping? {
    let table = CleanSchema.mappingTable
    guard let database,
      try database.integer("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = '\(table)'") == 1,
      let text = try database.text("SELECT mapping FROM \(table)")
    else { return nil }
    return try ImportMapping(text: text, file: path)
  }
}
