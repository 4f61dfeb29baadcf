// The store of intent records: one small JSON file per store in hopd's state directory, written durably.

import Diagnostics
import DurableFiles
import FoundationEssentials
import PersistentStore
import SystemPackage

/// The intent records of this machine.
package struct IntentStore: Sendable {
  /// hopd writes no record of that many bytes or more.
  static let sizeLimit = 65_536

  /// The content of the state directory for a store.
  package enum Finding: Sendable {
    /// No record.
    case none
    /// A record of hopd's.
    case intent(ReplacementIntent)
    /// Something that is not a record, with the reason.
    case unreadable(HopdError)
    /// A record of a newer hopd, which is left alone.
    case newer(HopdError)
  }

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
    try files.writeDurably(JSONEncoder.record(intent), to: path(of: intent.store.path))
  }

  /// Reads the record of a store. Garbage is a result, not an error; a disk that cannot be read is an error.
  package func read(_ location: CanonicalStoreLocation) throws -> Finding {
    let path = path(of: location.database)
    let finding = try read(path)
    if case .intent(let intent) = finding, intent.store.path != location.database {
      return .unreadable(
        HopdError(
          .recordUnreadable, "the record is of another store, \(intent.store.path.printable)", at: Place(file: path)))
    }
    return finding
  }

  /// All records, by their file. Other jobs remove theirs meanwhile.
  package func all() throws -> [(file: FilePath, finding: Finding)] {
    try files.names(in: directory).filter { $0.string.hasSuffix(".json") }.compactMap {
      let path = directory.appending($0)
      let finding = try read(path)
      if case .none = finding { return nil }
      return (path, finding)
    }
  }

  /// Throws where a replacement in place of this very file was cut off under another of its names (hard links): side
  /// files go by the name, so a program that opens the file by this one would not see the journal that rolls half a
  /// commit back (docs/formats/replacement.md, "Choice of mode").
  package func requireNoInterruptedNamesake(of location: CanonicalStoreLocation) throws {
    guard let status = try files.status(location.database), status.kind == .regular, status.links > 1 else { return }
    for case .intent(let intent) in try all().map(\.finding)
    where intent.mode == .inPlace && intent.stage == .replacing && intent.store.path != location.database
      && intent.source.database.file == status.identity
    {
      throw HopdError(
        .storeBusy,
        "a replacement in place of the same file was begun under its other name "
          + "\(intent.store.path.printable), and is at work or was cut off", at: Place(store: location.database),
        hint: "let it end, or migrate the store once more by that name: this mends it")
    }
  }

  /// Removes the record of a store, if there is one: the last act of a job, after its report.
  ///
  /// After a success nothing depends on the removal being durable: a record that a power cut brings back is found
  /// beside the new store and removed again. The next record that is written syncs the directory for both.
  package func remove(_ location: CanonicalStoreLocation, afterSuccess: Bool = false) throws {
    if try files.unlinkIfPresent(path(of: location.database)), !afterSuccess { try files.syncDirectory(directory) }
  }

  private func path(of database: FilePath) -> FilePath {
    directory.appending(PathText.digest(PathText.bytes(of: database)) + ".json")
  }

  private func read(_ path: FilePath) throws -> Finding {
    guard let status = try files.status(path) else { return .none }
    func unreadable(_ message: String, _ cause: (any Error)? = nil) -> Finding {
      .unreadable(HopdError(.recordUnreadable, message, at: Place(file: path), cause: cause))
    }
    guard status.kind == .regular else { return unreadable("an intent record must be a file") }
    guard status.size <= IntentStore.sizeLimit else { return unreadable("the intent record is too large") }
    let data: Data
    do {
      data = Data(try files.read(path, limit: IntentStore.sizeLimit))
    } catch let error as HopdError where error.code == .notFound {
      return .none  // removed since its status was read
    }
    struct Format: Codable { var format: Int }
    do {
      let format = try JSONDecoder().decode(Format.self, from: data).format
      guard format <= ReplacementIntent.currentFormat else {
        return .newer(
          HopdError(
            .recordNewer, "the intent record has format \(format); this hopd knows \(ReplacementIntent.currentFormat)",
            at: Place(file: path), hint: "run the newer hopd once more, so that it finishes what it began"))
      }
      return .intent(try JSONDecoder().decode(ReplacementIntent.self, from: data))
    } catch {
      return unreadable("the intent record cannot be read", error)
    }
  }
}

extension JSONEncoder {
  /// The bytes of a record: keys sorted, and spread over lines, for readers of a state directory or a backup.
  static func record(_ value: some Encodable) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    return Array(try encoder.encode(value))
  }
}
