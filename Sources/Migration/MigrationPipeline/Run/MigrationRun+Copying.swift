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
    guard output.lastComponent != nil else {
      throw HopdError(.usage, "the output is not a file name", at: Place(file: output))
    }
    let destination = try CanonicalStoreLocation(resolving: output, files: files)
    try requireAnother(than: destination)
    let occupied = [destination.database, destination.supportDirectory] + destination.sideFiles
    for path in occupied where try files.status(path) != nil {
      throw HopdError(
        .outputExists, "output already exists", at: Place(file: path),
        hint: "choose another name, or move the existing file")
    }
    let area = StagingArea(location: destination, job: job, files: files)
    do {
      return try StoreReader.withUnchangedStore(at: request.location.store, attachedAs: "store") { reader in
        try self.copy(from: reader, to: destination, area: area)
      }
    } catch {
      try? area.removeAll()
      try? QuarantineFile(area: area, files: files).withdraw()
      throw error
    }
  }

  /// Throws where the output is the store itself: by the same path, another spelling of it, a link or a second name.
  private func requireAnother(than destination: CanonicalStoreLocation) throws {
    let store = request.location.database
    // A link under the output's own name may lead to the store.
    let output = (try? files.canonical(destination.database)) ?? destination.database
    guard let identity = try files.status(store)?.identity, try files.status(output)?.identity == identity else {
      return
    }
    throw HopdError(
      .outputExists, "the output is the store itself: the two are one file", at: Place(file: destination.database),
      hint: "choose another path for the copy; without --output the store itself is migrated")
  }

  /// The copy gets the store's mode and attributes in any case, its owner and group where this process may set them.
  private func keepAttributes(of store: FilePath, on copy: FilePath) throws {
    let wanted = try files.attributes(of: store)
    if (try? files.setAttributes(wanted, of: copy)) != nil { return }
    var own = try files.attributes(of: copy)
    own.mode = wanted.mode
    var shared = own
    shared.extended = wanted.extended
    if (try? files.setAttributes(shared, of: copy)) != nil { return }
    // Where there was an ACL, the bits of the group are its mask, and would grant the group too much.
    if wanted.extended["system.posix_acl_access"] != nil { own.mode &= ~0o070 }
    try files.setAttributes(own, of: copy)
  }

  private func copy(from reader: StoreReader, to destination: CanonicalStoreLocation, area: StagingArea) throws
    -> MigrationReport
  {
    defer { cancelSourceCheck() }
    reader.connection.setProgressHandler(every: 200_000, heartbeat())
    let assessment = try StoreIdentifier.identify(
      reader: reader, location: request.location.store, catalog: request.catalog, target: request.target,
      countsRows: false)
    let isLogged = try reader.connection.text("PRAGMA \(SQLiteIdentifier.quoted(reader.schema)).journal_mode") == "wal"
    let behind = try identified(assessment)
    let repaired = try repaired(reader, assessment, in: area)
    guard let store = behind else {
      if let repaired { return try publish(repaired, as: destination, isLogged: isLogged) }
      // The copy of a store that is current is the store itself, which no later check inspects.
      try checkSource(reader)
      let staged = try area.create(hop: nil)
      try files.unlink(staged)
      try reader.connection.vacuum(reader.schema, into: staged)
      try publish(staged, as: destination, isLogged: isLogged) { try copyExternalData(to: destination) }
      return report(.current)
    }
    let source = repaired?.reader ?? reader
    let (plan, execution) = try plan(store, reader: source, checksSource: repaired == nil)
    let external = try externalFiles(of: plan, reader: source)
    let externalBytes = min(max(0, external.bytes), try allocatedExternalBytes())
    try area.requireSpace(execution.estimate.diskNeeded.addingReportingOverflow(externalBytes).partialValue)
    stage = .migrate
    let chain = chain(
      plan, execution, area, source, source: job, boot: try files.bootIdentifier(), base: repaired?.path)
    let (outcome, verified) = try reportingSourceDamage(source) {
      let outcome = try chain.run()
      return (outcome, try verify(outcome.staged, chain: chain))
    }
    try chain.removeInput()
    if let repaired {
      try repaired.close()
      try area.remove(repaired.path)
    }
    stage = .replace
    observer(.replacing)
    quarantine = try QuarantineFile(area: area, files: files).publish(attributesOf: nil)
    try publish(outcome.staged, as: destination, isLogged: isLogged) {
      try copyReferencedFiles(of: outcome.staged, plan: plan, missing: external.missing, to: destination)
    }
    var report = report(.migrated, plan: plan, outcome: outcome, verified: verified)
    add(repaired, to: &report)
    return report
  }

  /// Gives the repaired copy of a store that has no hops to make its name.
  private func publish(
    _ repaired: RepairedStore, as destination: CanonicalStoreLocation, isLogged: Bool
  ) throws -> MigrationReport {
    try repaired.close()
    stage = .replace
    observer(.replacing)
    try publish(repaired.path, as: destination, isLogged: isLogged) { try copyExternalData(to: destination) }
    rows = repaired.verified.rows
    var report = report(.repaired, verified: repaired.verified)
    add(repaired, to: &report)
    return report
  }

  /// The allocated bytes of the external files: holes in them are not copied.
  private func allocatedExternalBytes() throws -> Int64 {
    let folder = request.location.externalDataDirectory
    guard try files.status(folder)?.kind == .directory else { return 0 }
    var total: Int64 = 0
    for name in try files.names(in: folder) {
      guard let found = try files.status(folder.appending(name)), found.kind == .regular else { continue }
      total = total.addingReportingOverflow(min(found.size, found.allocated)).partialValue
    }
    return total
  }

  /// Bytes of the files that the result can refer to, and how many of its references are broken already: by the plan,
  /// or for a plan with mapping models those of the source store.
  private func externalFiles(of plan: MigrationPlan, reader: StoreReader) throws -> (bytes: Int64, missing: Int64) {
    if let expected = plan.expectation.externalData {
      return expected.values.flatMap(\.values).reduce((0, 0)) { sum, column in
        (sum.0.addingReportingOverflow(column.foundBytes).partialValue, sum.1 &+ column.missing)
      }
    }
    guard let schema = plan.hops.first?.sourceSchema else { return (0, 0) }
    let directory = try ExternalDataDirectory(of: request.location.store)
    var total: (bytes: Int64, missing: Int64) = (0, 0)
    for column in ExternalDataColumn.all(in: schema) {
      for count in try ExternalDataCensus.count(column, reader: reader, directory: directory).values {
        total.bytes = total.bytes.addingReportingOverflow(count.foundBytes).partialValue
        total.missing &+= count.missing
      }
    }
    return total
  }

  /// Gives the finished file its name: external data first, then the database, so that a store with a name is complete.
  private func publish(
    _ staged: FilePath, as destination: CanonicalStoreLocation, isLogged: Bool, externalData: () throws -> Void
  ) throws {
    do {
      try externalData()
      try finish(
        staged, as: destination, wantsLog: request.journalMode.mode(keeping: isLogged ? .wal : .delete) == .wal)
    } catch {
      removeExternalData(of: destination)
      throw error
    }
    try files.syncDirectory(destination.directory)
  }

  private func finish(_ staged: FilePath, as destination: CanonicalStoreLocation, wantsLog: Bool) throws {
    if wantsLog {
      let connection = try Connection(path: staged, access: .exclusive(keepsLog: false))
      guard try connection.text("PRAGMA journal_mode = WAL") == "wal" else {
        throw HopdError(.inputOutput, "the copy cannot be set to WAL mode", at: Place(file: staged))
      }
    }
    try keepAttributes(of: request.location.database, on: staged)
    try files.syncFile(staged)
    try files.renameNoReplace(staged, to: destination.database)
  }

  /// Copies the files that the migrated store refers to, each once, under the directory name that follows the copy's
  /// own name.
  ///
  /// Real copies (the file system may share their blocks), never links: the copy may be moved elsewhere.
  private func copyReferencedFiles(
    of staged: FilePath, plan: MigrationPlan, missing known: Int64, to destination: CanonicalStoreLocation
  ) throws {
    guard let schema = plan.hops.last?.destinationSchema else { return }
    let columns = ExternalDataColumn.all(in: schema)
    guard !columns.isEmpty else { return }
    let source = try ExternalDataDirectory(of: request.location.store)
    // Below the canonical directory no call follows a link.
    let from = request.location.externalDataDirectory
    let reader = StoreReader(connection: try Connection(path: staged, access: .readOnly))
    // The plan has reported missing files; any other one disappeared because nothing held the source's files.
    var missing = known
    var copies = FileCopies(files)
    for column in columns {
      try ExternalDataCensus.forEachReference(column, reader: reader) { name in
        try checkStop()
        guard case .file(let bytes) = source.status(of: name) else {
          missing -= 1
          if missing >= 0 { return }
          throw HopdError(
            .storeBusy, "an external file went away while the store was copied",
            at: Place(file: from.appending(name.text)), hint: "retry when the app has finished")
        }
        if !hasMadeExternalData { try makeExternalDataDirectory(of: destination) }
        let target = destination.externalDataDirectory.appending(name.text)
        guard try files.status(target) == nil else { return }
        try copies.copy(from: from.appending(name.text), to: target)
        try keepAttributes(of: from.appending(name.text), on: target)
        guard try files.status(target)?.size == bytes else {
          throw HopdError(
            .storeBusy, "an external file changed while it was copied", at: Place(file: from.appending(name.text)),
            hint: "retry when the app has finished")
        }
      }
    }
    guard hasMadeExternalData else { return }
    try copies.finish()
    try files.syncDirectory(destination.externalDataDirectory)
    try files.syncDirectory(destination.supportDirectory)
  }

  private func makeExternalDataDirectory(of destination: CanonicalStoreLocation) throws {
    let source = request.location
    try files.makeDirectory(destination.supportDirectory, mode: 0o700)
    hasMadeExternalData = true
    try files.makeDirectory(destination.externalDataDirectory, mode: 0o700)
    let folders = [
      (source.supportDirectory, destination.supportDirectory),
      (source.externalDataDirectory, destination.externalDataDirectory),
    ]
    for (from, to) in folders { try keepAttributes(of: from, on: to) }
  }

  /// Removes the files of a copy that was not completed; files that others made stay.
  private func removeExternalData(of destination: CanonicalStoreLocation) {
    guard hasMadeExternalData, (try? files.status(destination.database)) ?? nil == nil else { return }
    let directory = destination.externalDataDirectory
    for name in (try? files.names(in: directory)) ?? [] { try? files.unlink(directory.appending(name)) }
    try? files.removeDirectory(directory)
    try? files.removeDirectory(destination.supportDirectory)
  }

  private func copyExternalData(to destination: CanonicalStoreLocation) throws {
    let source = request.location.externalDataDirectory
    guard try files.status(source)?.kind == .directory else { return }
    try makeExternalDataDirectory(of: destination)
    var copies = FileCopies(files)
    for name in try files.names(in: source) {
      let file = source.appending(name)
      // Only plain files are data; a link in there could lead anywhere.
      guard try files.status(file)?.kind == .regular else { continue }
      let target = destination.externalDataDirectory.appending(name)
      try copies.copy(from: file, to: target)
      try keepAttributes(of: file, on: target)
    }
    try copies.finish()
    try files.syncDirectory(destination.externalDataDirectory)
    try files.syncDirectory(destination.supportDirectory)
  }
}
