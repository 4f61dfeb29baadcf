// The stores of a directory that have traces of an interrupted job, and these traces: for inspection before any repair.
// Only names are read here; `Recovery` decides what to do.

import DurableFiles
import PersistentStore
import SystemPackage

/// The traces of one store.
package struct RecoveryTraces: Sendable {
  /// The store, which need not exist.
  package let location: CanonicalStoreLocation
  /// Its staged stores and their side files.
  package let staged: [FilePath]
  /// Backups that are half made, or still the store itself.
  package let unfinishedBackups: [FilePath]
  /// Complete old stores, newest first.
  package let backups: [FilePath]
  /// Whether it has an intent record, readable or not.
  package let hasRecord: Bool
  /// Whether there is anything under the store's name.
  package let isThere: Bool

  /// Whether there is anything for recovery to inspect.
  package var isTouched: Bool { hasRecord || !staged.isEmpty || !unfinishedBackups.isEmpty }
}

/// hopd's files in a directory.
package struct RecoverySurvey: Sendable {
  /// Stores with traces or backups, by name.
  package private(set) var stores: [RecoveryTraces] = []
  /// Staged stores that belong to no store known here.
  package private(set) var orphans: [FilePath] = []

  /// Surveys `directory`; `rule` gives the other place of backups.
  package init(
    of directory: CanonicalDirectory, intents: IntentStore, rule: BackupRule, files: any DurableFileSystem
  ) throws {
    let names = try files.names(in: directory.path)
    var candidates: Set<FilePath.Component> = []
    for name in names where FilePath.Component(name.string) == name {
      if name.string.hasPrefix(".") {
        if let store = Self.store(in: name.string) { candidates.insert(store) }
      } else if !["-wal", "-shm", "-journal"].contains(where: name.string.hasSuffix) {
        candidates.insert(name)
      }
    }
    for entry in try intents.all() {
      guard case .record(let intent) = entry.finding, intent.store.path.removingLastComponent() == directory.path,
        let name = intent.store.path.lastComponent
      else { continue }
      candidates.insert(name)
    }
    let base = candidates.isEmpty ? nil : try rule.place(files)
    var known: Set<FilePath> = []
    for name in candidates.sorted(by: { $0.string < $1.string }) {
      let location = CanonicalStoreLocation(name, in: directory)
      let staged = StagingArea.leftovers(of: location, among: names).map(\.path)
      known.formUnion(staged)
      let backups = BackupSet(location: location, base: base, files: files)
      var hasRecord = true
      if case .none = try intents.read(location) { hasRecord = false }
      let status = try files.status(location.database)
      if status?.kind == .directory, staged.isEmpty, !hasRecord { continue }
      let traces = RecoveryTraces(
        location: location, staged: staged, unfinishedBackups: try backups.unfinished(),
        backups: try backups.generations().map(\.database), hasRecord: hasRecord, isThere: status != nil)
      if traces.isTouched || !traces.backups.isEmpty { stores.append(traces) }
    }
    for name in names where StagingArea.mayBeStaged(name) && name.string.contains(".tmp") {
      let path = directory.path.appending(name)
      if !known.contains(where: { path.string.hasPrefix($0.string) }) { orphans.append(path) }
    }
  }

  /// The store that a hidden name of hopd's refers to; nil for other names, and for long ones, which are cut.
  private static func store(in name: String) -> FilePath.Component? {
    let rest = name.dropFirst()
    let end = rest.ranges(of: ".hop-").last?.lowerBound ?? rest.ranges(of: ".hopd-backups").last?.lowerBound
    guard let end, end > rest.startIndex, let store = FilePath.Component(String(rest[..<end])), store.kind == .regular
    else { return nil }
    return NameLabel.mayBeCut(store.string) ? nil : store
  }
}
