// The store of intent records: one small JSON file per store in hopd's state directory, written durably.

import Diagnostics
import DurableFiles
import PersistentStore
import SystemPackage

/// The intent records of this machine.
package struct IntentStore: Sendable {
  /// The content of the state directory for a store.
  package typealias Finding = DurableRecord<ReplacementIntent>.Finding

  /// The directory of the records, below the state directory.
  package let directory: FilePath
  private let files: any DurableFileSystem

  /// Opens the records below `stateDirectory`, which must exist and be canonical; makes `intents` in it.
  package init(stateDirectory: FilePath, files: any DurableFileSystem) throws {
    directory = stateDirectory.appending("intents")
    self.files = files
    try files.ensureDirectory(directory)
  }

  /// Writes the record of a store: after a crash the file is the former record or this one.
  package func write(_ intent: ReplacementIntent) throws {
    try record(of: intent.store.path).write(intent)
  }

  /// Reads the record of a store. Garbage is a result, not an error; a disk that cannot be read is an error.
  package func read(_ location: CanonicalStoreLocation) throws -> Finding {
    let record = record(of: location.database)
    let finding = try record.read()
    if case .record(let intent) = finding, intent.store.path != location.database {
      return .unreadable(
        HopdError(
          .recordUnreadable, "the record is of another store, \(intent.store.path.printable)",
          at: Place(file: record.path)))
    }
    return finding
  }

  /// All records, by their file. Other jobs remove theirs meanwhile.
  package func all() throws -> [(file: FilePath, finding: Finding)] {
    try files.names(in: directory).filter { $0.string.hasSuffix(".json") }.compactMap {
      let path = directory.appending($0)
      let finding = try record(at: path).read()
      if case .none = finding { return nil }
      return (path, finding)
    }
  }

  /// Throws where a replacement in place of this very file was cut off under another of its names (hard links): side
  /// files go by the name, so a program that opens the file by this one would not see the journal that rolls half a
  /// commit back (docs/formats/replacement.md, "Choice of mode").
  package func requireNoInterruptedNamesake(of location: CanonicalStoreLocation) throws {
    guard let status = try files.status(location.database), status.kind == .regular, status.links > 1 else { return }
    for case .record(let intent) in try all().map(\.finding)
    where intent.mode == .inPlace && intent.stage == .replacing && intent.store.path != location.database
      && intent.source.database.file == status.identity
    {
      throw HopdError(
        .storeBusy,
        "an in-place replacement of the same file was started under its other name "
          + "\(intent.store.path.printable), and is running or was interrupted", at: Place(store: location.database),
        hint: "wait until it has finished, or migrate the store again by that name to repair it")
    }
  }

  /// Removes the record of a store, if there is one: the last act of a job, after its report.
  ///
  /// After a success nothing depends on the removal being durable: a record that a power cut brings back is found
  /// beside the new store and removed again. The next record that is written syncs the directory for both.
  package func remove(_ location: CanonicalStoreLocation, afterSuccess: Bool = false) throws {
    try record(of: location.database).remove(durable: !afterSuccess)
  }

  private func record(of database: FilePath) -> DurableRecord<ReplacementIntent> {
    record(at: directory.appending(PathText.digest(PathText.bytes(of: database)) + ".json"))
  }

  private func record(at path: FilePath) -> DurableRecord<ReplacementIntent> {
    DurableRecord(
      "the intent record", at: path, newestFormat: ReplacementIntent.currentFormat,
      hints: (nil, "run the newer hopd once more, so that it finishes what it began"), files: files)
  }
}
