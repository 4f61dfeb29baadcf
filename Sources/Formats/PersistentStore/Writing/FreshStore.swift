// Makes a new store as Core Data of a framework version does (docs/formats/store-layout.md, "A new store"). The engine
// copies the settings of the source store instead.

import Diagnostics
import ManagedObjectModel
import SQLite
import SystemPackage

/// Makes new stores.
package struct FreshStore {
  /// Layout of the store.
  package let schema: StoreSchema
  /// Z_UUID.
  package let uuid: String

  /// Creates a store with the layout `schema`; throws all parts that have no known layout in one error.
  package init(schema: StoreSchema, uuid: String) throws(HopdError) {
    let missing = schema.unsupported.filter { $0.code == .layoutUnsupported || $0.code == .derivationUnsupported }
    if let first = missing.first {
      throw missing.count == 1
        ? first
        : HopdError(
          .layoutUnsupported, "\(missing.count) parts of the model have no known layout", hint: first.hint,
          reasons: missing)
    }
    self.schema = schema
    self.uuid = uuid
  }

  /// Returns a store UUID derived from a seed alone: the same seed gives the same file again.
  package static func uuid(seed: UInt64) -> String {
    var random = SplitMix64(seed: seed ^ 0x5eed_0f_1d)
    let high = random.next() & 0xffff_ffff_ffff_0fff | 0x4000
    let low = random.next() & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000
    return UUIDText.text(of: [high, low].flatMap { word in withUnsafeBytes(of: word.bigEndian, Array.init) })
  }

  /// Creates the file at `path`, which must not exist, with `rows` sample objects.
  ///
  /// It is written without syncs: a caller that needs it durable syncs the complete file. `external` receives a few
  /// large values with external storage; without it all values are in the columns. `enumValues` are the raw values of
  /// enums, which no other sample value would be.
  package func make(
    at path: FilePath, rows: Int64 = 0, seed: UInt64 = 1, kind: SampleRows = .everyKind,
    external: ExternalSamples? = nil, enumValues: [PropertyKey: EnumValues] = [:],
    progress: (Int64) -> Bool = { _ in true }
  ) throws {
    try make(at: path, metadata: .fresh(uuid: uuid, model: schema.model, frameworkVersion: schema.frameworkVersion)) {
      var filler = StoreFiller(
        connection: $0, schema: schema, rows: rows, seed: seed, kind: kind, external: external, enumValues: enumValues)
      try filler.fill(progress: progress)
      try external?.throwIfFailed()
      return filler.highWaterMarks
    }
  }

  /// Creates the file at `path`, which must not exist, with the rows that `fill` inserts. It returns the highest key of
  /// each root entity.
  package func make(at path: FilePath, metadata: StoreMetadata, fill: (Connection) throws -> [String: Int64]) throws {
    let connection = try Connection(path: path, access: .create)
    try connection.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
    let writer = StoreWriter(connection: connection, schema: "main")
    let version = schema.frameworkVersion
    try writer.prepareFile(
      pageSize: FrameworkVersion.pageSize(of: version), hasOldestFormat: FrameworkVersion.hasOldestFileFormat(version))
    try writer.createTables(schema)
    let marks = try fill(connection)
    try writer.fillDerivedAttributes(schema)
    for index in schema.indexes { try writer.createIndex(index) }
    try writer.createTriggers(schema)
    try writer.createBookkeeping(
      schema, highWaterMarks: marks, metadata: metadata,
      // A model that cannot be archived is left out; `ModelCache.remark(on:)` reports it in advance.
      modelCache: try? ModelCache.content(for: schema))
    let mode = FrameworkVersion.usesWriteAheadLog(version) ? "WAL" : "DELETE"
    // Without shared memory for its index a log needs exclusive locking.
    try connection.execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = \(mode)")
  }
}
