// A store of a version, made from the model alone in a scratch folder, with rows of every kind: a check migrates it in
// place of real stores.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import PersistentStore
import SQLite
import SystemPackage

/// Makes stores of versions for trials.
struct SampleStore {
  let model: ManagedObjectModel
  let files: LinuxFileSystem
  /// The raw values of enums in the source of the model.
  let enumValues: [PropertyKey: EnumValues]

  /// The end that names each self many-to-many table whose name cannot be computed: this store may have any name, and
  /// the migration follows it.
  let naming: JoinTableNaming
  let schema: StoreSchema

  init(
    model: ManagedObjectModel, enumValues: [PropertyKey: EnumValues] = [:], frameworkVersion: Int64,
    files: LinuxFileSystem
  ) {
    self.model = model
    self.enumValues = enumValues
    self.files = files
    let plain = StoreSchema(model: model, frameworkVersion: frameworkVersion)
    naming = SampleStore.naming(of: plain)
    schema =
      naming.isEmpty
      ? plain : StoreSchema(model: model, frameworkVersion: frameworkVersion, naming: naming)
  }

  /// Returns a naming that chooses the computed names.
  static func naming(of schema: StoreSchema) -> JoinTableNaming {
    JoinTableNaming(Set(schema.uncertainJoinTables.map { "\($0.entity).\($0.computed)" }))
  }

  /// Creates the store at `location` with that many objects of every concrete entity, and returns how many it has.
  ///
  /// Throws `layout-unsupported` and similar errors if hopd does not know the layout of the version.
  func make(at location: StoreLocation, objectsEach: Int64, kind: SampleRows, seed: UInt64) throws -> Int64 {
    // Even a part that is only left out would make the store different from the app's.
    let missing = schema.unsupported.filter { [.layoutUnsupported, .derivationUnsupported].contains($0.code) }
    if let first = missing.first {
      throw missing.count == 1
        ? first
        : HopdError(.layoutUnsupported, "the layout of \(missing.count) parts is unknown", reasons: missing)
    }
    let concrete = Int64(model.entities.count { !$0.isAbstract })
    let rows = min(1_000_000, concrete.multipliedReportingOverflow(by: objectsEach).partialValue)
    do {
      try write(rows: rows, to: location, kind: kind, seed: seed)
      return rows
    } catch let error as HopdError where error.code == .cannotFill {
      try remove(location)
      try write(rows: 0, to: location, kind: kind, seed: seed)
      return 0
    }
  }

  private func write(rows: Int64, to location: StoreLocation, kind: SampleRows, seed: UInt64) throws {
    let fresh = try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: seed))
    var hasFolder = false
    let external = ExternalSamples { name, content in
      if !hasFolder {
        try files.makeDirectory(location.supportDirectory, mode: 0o700)
        try files.makeDirectory(location.externalDataDirectory, mode: 0o700)
        hasFolder = true
      }
      try files.createUnsyncedFile(location.externalDataDirectory.appending(name.text), content, mode: 0o600)
    }
    try fresh.make(
      at: location.database, rows: rows, seed: seed, kind: kind, external: external, enumValues: enumValues)
  }

  /// Removes a store with all of its files.
  func remove(_ location: StoreLocation) throws {
    for path in [location.database] + location.sideFiles { try files.unlinkIfPresent(path) }
    guard try files.status(location.externalDataDirectory)?.kind == .directory else { return }
    for name in try files.names(in: location.externalDataDirectory) {
      try files.unlinkIfPresent(location.externalDataDirectory.appending(name))
    }
    try files.removeDirectory(location.externalDataDirectory)
    try files.removeDirectory(location.supportDirectory)
  }
}
