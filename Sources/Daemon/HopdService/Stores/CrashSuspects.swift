// Stores that were being worked on when the daemon was killed, with the number of kills. One of them may be the cause:
// suspects come after all other stores, one at a time, and are refused after the third kill, so that no single file
// stops the service for all stores.

import Diagnostics
import DurableFiles
import PersistentStore
import StoreReplacement
import SystemPackage

extension HopdError.Code {
  /// The daemon was killed too often while it worked on the store.
  package static let storeEndsService = HopdError.Code("store-ends-service", exit: .dataError)
}

/// The suspects, saved in the state directory.
struct CrashSuspects {
  /// The record of one suspect.
  private struct Record: Codable {
    var store: PathText
    var looks = 0
    var migrations = 0
    /// The store's files and the models at the last kill: another store under the same name starts at zero.
    var mark: String
  }

  /// The number of kills after which a store is refused.
  static let limit = 3

  private var records: [FilePath: Record] = [:]
  private let file: DurableRecord<[Record]>

  /// Reads the suspects of a state directory; none if the file cannot be read.
  init(stateDirectory: FilePath) {
    file = DurableRecord("the list of suspects", at: stateDirectory.appending("suspects.json"), limit: 1 << 24)
    guard let known = (try? file.read().get()) ?? nil else { return }
    records = Dictionary(known.map { ($0.store.path, $0) }) { first, _ in first }
  }

  var isEmpty: Bool { records.isEmpty }

  /// Whether the store was being worked on when the daemon was killed.
  func contains(_ store: FilePath) -> Bool { records[store] != nil }

  /// Counts the unfinished work of the previous daemon. `models` returns the mark of the models of a store's watch.
  mutating func add(_ work: [UnfinishedWork], models: (FilePath) -> String) {
    guard !work.isEmpty else { return }
    for unfinished in work {
      let mark = Self.mark(unfinished.store, models(unfinished.store))
      var record = records[unfinished.store] ?? Record(store: PathText(unfinished.store), mark: mark)
      // Another store under the same name, or other models, start at zero.
      if record.mark != mark { (record.looks, record.migrations) = (0, 0) }
      if unfinished.step == .inspect { record.looks += 1 } else { record.migrations += 1 }
      record.mark = mark
      records[unfinished.store] = record
    }
    save()
  }

  /// Number of kills during work on this store in its current state; 0 if it is not a suspect or has changed since.
  mutating func crashCount(of store: FilePath, models: String) -> Int {
    guard let record = records[store] else { return 0 }
    guard record.mark == Self.mark(store, models) else {
      clear(store)
      return 0
    }
    return max(record.looks, record.migrations)
  }

  /// Notes that work on the store ended without a kill.
  mutating func survived(_ store: FilePath, _ step: JobStep) {
    guard var record = records[store] else { return }
    // After a harmless inspection, the store's migration may still be what kills the daemon.
    if step == .migrate { record.migrations = 0 }
    record.looks = 0
    records[store] = record.migrations == 0 ? nil : record
    save()
  }

  /// Forgets one suspect, or all.
  mutating func clear(_ store: FilePath? = nil) {
    guard !records.isEmpty else { return }
    if let store { records[store] = nil } else { records = [:] }
    save()
  }

  /// The refusal of a store that has killed the daemon too often.
  static func refusal(_ store: FilePath, crashCount: Int) -> HopdError {
    HopdError(
      .storeEndsService,
      "refused: hopd was killed \(crashCount) times while processing this store",
      at: Place(store: store),
      hint:
        "run `journalctl -t systemd -u hopd` for the cause (memory, watchdog, signal); hopd retries when the store "
        + "or the models change, or after `systemctl reload hopd`")
  }

  private static func mark(_ store: FilePath, _ models: String) -> String {
    let fingerprint = (try? SourceFingerprint(of: StoreLocation(database: store), files: LinuxFileSystem())) ?? nil
    let stamps = [fingerprint?.database, fingerprint?.log].compactMap { $0 }
      .map { "\($0.file.device):\($0.file.inode):\($0.size):\($0.modified)" }
    return (stamps + [models]).joined(separator: " ")
  }

  private func save() {
    guard !records.isEmpty else {
      _ = try? file.remove()
      return
    }
    try? file.write(records.values.sorted { $0.store.path.string < $1.store.path.string })
  }
}
