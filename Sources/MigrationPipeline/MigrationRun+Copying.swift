// The run that writes a copy (`--output`): the source is only read, nothing in its folder changes.

import Diagnostics
import DurableFiles
import MigrationEngine
import MigrationPlanning
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage

extension MigrationRun {
  /// Writes the migrated store to `request.output`.
  func writeCopy() throws -> MigrationReport {
    guard let output = request.output else {
      throw HopdError(.internalError, "a copy without a place to write it")
    }
    let directory = try files.canonical(StoreLocation(database: output).directory)
    guard let name = output.lastComponent else {
      throw HopdError(.usage, "the output is not a file name", at: Place(file: output))
    }
    let destination = StoreLocation(database: directory.appending(name))
    let occupied = [destination.database, destination.supportDirectory] + destination.sideFiles
    for path in occupied where try files.status(path) != nil {
      throw HopdError(
        .outputExists, "the output is there already", at: Place(file: path),
        hint: "name another file, or move that one away")
    }
    let area = StagingArea(location: destination, job: job, files: files)
    do {
      return try StoreReader.withUnchangedStore(at: request.location, attachedAs: "store") { reader in
        try self.copy(from: reader, to: destination, area: area)
      }
    } catch {
      try? area.removeAll()
      throw error
    }
  }

  private func copy(from reader: StoreReader, to destination: StoreLocation, area: StagingArea) throws
    -> MigrationReport
  {
    reader.connection.setProgressHandler(every: 200_000, heartbeat())
    let assessment = try StoreIdentifier.identify(
      reader: reader, location: request.location, catalog: request.catalog, target: request.target)
    let isLogged = try reader.connection.text("PRAGMA \(SQLiteIdentifier.quoted(reader.schema)).journal_mode") == "wal"
    guard let store = try identified(assessment) else {
      // The copy of a store that is current is the store itself, which no later check looks at.
      try checkSource(reader)
      let staged = try area.create(hop: nil)
      try files.unlink(staged)
      try reader.connection.execute(
        "VACUUM \(SQLiteIdentifier.quoted(reader.schema)) INTO \(SQLiteIdentifier.literal(Connection.uri(staged) + "?mode=rwc"))"
      )
      try publish(staged, as: destination, isLogged: isLogged)
      return report(.current)
    }
    let plan = try plan(store, reader: reader)
    try area.requireSpace(plan.estimate.diskNeeded)
    stage = .migrate
    let outcome = try HopChain(
      plan: plan, area: area, connection: reader.connection, sourceSchema: reader.schema,
      identity: Checkpoint.Identity(plan: plan.fingerprint, source: job, boot: try files.bootIdentifier()),
      options: request.engine, files: files, stop: stop, observer: observer
    ).run()
    let verified = try verify(outcome.staged, plan: plan)
    stage = .replace
    observer(.replacing)
    try publish(outcome.staged, as: destination, isLogged: isLogged)
    return report(.migrated, plan: plan, hops: outcome.hops, verified: verified, wasResumed: outcome.wasResumed)
  }

  /// Gives the finished file its name: external data first, then the database, so that a store with a name is complete.
  private func publish(_ staged: FilePath, as destination: StoreLocation, isLogged: Bool) throws {
    let wantsLog =
      switch request.journalMode {
      case .keep: isLogged
      case .wal: true
      case .delete: false
      }
    if wantsLog {
      let connection = try Connection(path: staged, access: .readWrite)
      guard try connection.text("PRAGMA journal_mode = WAL") == "wal" else {
        throw HopdError(.inputOutput, "the copy cannot be set to WAL mode", at: Place(file: staged))
      }
    }
    try copyExternalData(to: destination)
    try files.syncFile(staged)
    try files.renameNoReplace(staged, to: destination.database)
    try files.syncDirectory(destination.directory)
  }

  private func copyExternalData(to destination: StoreLocation) throws {
    let source = request.location.externalDataDirectory
    guard try files.status(source)?.kind == .directory else { return }
    try files.makeDirectory(destination.supportDirectory, mode: 0o700)
    try files.makeDirectory(destination.externalDataDirectory, mode: 0o700)
    for name in try files.names(in: source) {
      let file = source.appending(name)
      // Only plain files are data; a link in there could lead anywhere.
      guard try files.status(file)?.kind == .regular else { continue }
      try files.copyFile(from: file, to: destination.externalDataDirectory.appending(name))
    }
    try files.syncDirectory(destination.externalDataDirectory)
    try files.syncDirectory(destination.supportDirectory)
  }
}
