// Which stores of a directory have traces of an interrupted job, and which: for anyone who looks before anything is
// mended. Names alone are read here; what is to be done about them, `Recovery` decides.

import DurableFiles
import PersistentStore
import SystemPackage

/// The traces of one store.
package struct RecoveryTraces: Sendable {
  /// The store, which need not be there.
  package let location: CanonicalStoreLocation
  /// Its staged stores and what goes with them.
  package let staged: [FilePath]
  /// Backups that are half made, or still the store itself.
  package let unfinishedBackups: [FilePath]
  /// Complete old stores, newest first.
  package let backups: [FilePath]
  /// Is there an intent record of it, readable or not?
  package let hasRecord: Bool
  /// Is there anything under the store's name?
  package let isThere: Bool

  /// Is there anything for recovery to inspect?
  package var isTouched: Bool { hasRecord || !staged.isEmpty || !unfinishedBackups.isEmpty }
}

/// What a directory holds of hopd's.
package struct RecoverySurvey: Sendable {
  /// Stores with traces or backups, by name.
  package private(set) var stores: [RecoveryTraces] = []
  /// Staged stores that go with no store that is known here.
  package private(set) var orphans: [FilePath] = []

  /// Looks through `directory`; `rule` says where else backups may lie.
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
      guard case .intent(let intent) = entry.finding, intent.store.path.removingLastComponent() == directory.path,
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
