// The restore of a set: what one release of a model did to many stores is undone by one command. The state of the set
// is in the stores and their backups alone, so the same command continues after a failure or a kill.

import Diagnostics
import DurableFiles
import Glibc
import MigrationChecking
import MigrationPipeline
import PersistentStore
import StoreFleet
import StoreReplacement
import SystemPackage

/// `hopctl restore --watch`.
struct SetRestore {
  let place: SetPlace
  let selection: RestoreSelection
  let mode: ReplacementMode?
  let pins: Bool
  let state: StateOptions
  let output: OutputOptions

  /// Restores the set; asks first, unless `yes`. With `dryRun` it only says what it would do.
  func run(yes: Bool, dryRun: Bool) throws {
    let stores = try found()
    guard !stores.isEmpty else {
      throw HopdError(
        .notFound, "no store of \(place.name.printableLine) has a backup of a migration \(selection.words)",
        at: Place(file: place.directory.path),
        hint: (try nearest().map { "pass \"\($0)\", or " } ?? "")
          + "list the backups and versions with `hopctl backups \(place.directory.path.quotedForShell)`")
    }
    let count = stores.count { if case .migrated = $0.state { true } else { false } }
    if dryRun {
      try tell(stores)
      return try finish(stores.map { expected($0) }, group: nil, dryRun: true)
    }
    if !yes, count > 0 {
      try requireTerminal(count)
      try tell(stores)
      try ask(count)
    }
    let group = pins ? group(of: stores) : nil
    let restorer = StoreRestorer(
      stateDirectory: try state.directory(), rule: place.rule, mode: mode,
      options: RestoreOptions(pins: pins, group: group))
    let stop = StopOnSignals.start()
    var results: [SetResult] = []
    for store in stores {
      let result = stop.isStopping ? SetResult(store: store, outcome: .untried) : restored(store, restorer)
      try report(result)
      results.append(result)
    }
    try finish(results, group: group, dryRun: false)
  }

  // MARK: Selection

  private func found() throws -> [SetStore] {
    var stores: [SetStore] = []
    try place.forEach(
      { backups in
        if let store = try SetStore(backups, selection) { stores.append(store) }
      }, problem: { stores.append(SetStore(unclear: $0)) })
    return stores.sorted { $0.database.string < $1.database.string }
  }

  /// The version of a backup that is most similar to the selected one; nil if none is.
  private func nearest() throws -> String? {
    guard let wanted = selection.to ?? selection.from else { return nil }
    var names: Set<String> = []
    try place.forEach(
      { backups in
        for record in try backups.generations().compactMap(\.record) where record.origin == .migration {
          names.insert(selection.to == nil ? record.from.name : record.to.name)
        }
      }, problem: { _ in })
    return NearestName.among(names.subtracting([wanted]), to: wanted)
  }

  /// The group of the stores that an earlier run of the command restored, or a new one.
  private func group(of stores: [SetStore]) -> String {
    let earlier = stores.compactMap(\.pin).filter { $0.group != nil }.max { $0.restoredAt < $1.restoredAt }
    return earlier?.group ?? PinGroup(of: place.name, now: Int64(time(nil))).name
  }

  /// What would become of a store.
  private func expected(_ store: SetStore) -> SetResult {
    switch store.state {
    case .migrated: SetResult(store: store, outcome: .toRestore)
    case .restored: SetResult(store: store, outcome: .already, pin: store.pin)
    case .gone: SetResult(store: store, outcome: .gone)
    case .unclear(let error): SetResult(store: store, outcome: .failed, error: error)
    }
  }

  // MARK: Restoring

  private func restored(_ known: SetStore, _ restorer: StoreRestorer) -> SetResult {
    var store = known
    do {
      guard known.backup != nil else { return expected(known) }
      let location = try CanonicalStoreLocation(opening: known.database)
      let finished = try restorer.recover(location)
      // The recovery may have removed a backup, and another command may have restored the store.
      let backups = try BackupSet(location: location, rule: place.rule, files: LinuxFileSystem())
      guard let found = try SetStore(backups, selection) else {
        throw HopdError(.notFound, "its backup was removed in the meantime", at: Place(store: known.database))
      }
      store = found
      if finished != nil, case .restored = store.state {
        return SetResult(store: store, outcome: .restored, kept: finished?.backups.first, pin: store.pin)
      }
      guard case .migrated = store.state, let (generation, record) = store.backup else { return expected(store) }
      let restored = try restorer.restore(generation.database, to: location, expected: record.to)
      return SetResult(
        store: store, outcome: .restored, kept: restored.replaced.backup, pin: restored.pin,
        warnings: restored.replaced.warnings)
    } catch {
      var error = ErrorReport.hopdError(error)
      // An error about the backup names it as the store.
      if error.place.store != known.database {
        error.place.file = error.place.file ?? error.place.store
        error.place.store = known.database
      }
      return SetResult(store: store, outcome: error.isRetryable ? .waiting : .failed, error: error)
    }
  }

  // MARK: Messages

  private func tell(_ stores: [SetStore]) throws {
    let rows = stores.map { store -> [String] in
      let (record, path) = (store.backup?.record, store.database.printable)
      let versions = record.map { "\($0.to.name) → \($0.from.name)" } ?? ""
      return switch store.state {
      case .migrated: [path, record?.time ?? "?", versions]
      case .restored: [path, record?.time ?? "?", "already restored"]
      case .gone: [path, record?.time ?? "?", "no longer exists: not restored"]
      case .unclear(let error): [path, "", "cannot be restored: \(error.message)"]
      }
    }
    try output.lines(MessageFormatter.table([["STORE", "BACKUP", "VERSIONS"]] + rows, indent: ""))
  }

  private func report(_ result: SetResult) throws {
    output.warn(result.warnings)
    let path = result.store.database.printable
    switch result.outcome {
    case .restored:
      let versions = result.store.backup.map { "\($0.record.to.name) → \($0.record.from.name)" } ?? ""
      try output.line("restored \(path): \(versions)")
    case .failed, .waiting: if let error = result.error { ErrorReport.report(error) }
    case .gone: try output.line("missing \(path): its backup is kept")
    case .already, .untried, .toRestore: break
    }
  }

  private func finish(_ results: [SetResult], group: String?, dryRun: Bool) throws {
    func count(_ outcome: SetResult.Outcome) -> Int { results.count { $0.outcome == outcome } }
    let counts: [(SetResult.Outcome, String)] = [
      (.toRestore, "to restore"), (.restored, "restored"), (.already, "already restored"), (.gone, "missing"),
      (.waiting, "waiting"), (.failed, "failed"), (.untried, "not processed"),
    ]
    let parts = counts.filter { count($0.0) > 0 }.map { "\(MessageFormatter.count(count($0.0))) \($0.1)" }
    try output.line(parts.joined(separator: ", "))
    let pinned = results.contains { $0.pin?.group != nil && $0.pin?.group == group }
    if let group, pinned {
      try output.line("  pinned as the group \(group): hopd does not migrate them until the group is unpinned")
      try output.line("  to unpin it: `\(PinGroup(group).command)`")
    }
    let isOpen = count(.waiting) + count(.untried) > 0
    if isOpen { try output.line("  run the same command to continue") }
    try output.object([
      "set": place.name, "directory": place.directory.path.string, "dryRun": dryRun, "group": pinned ? group : nil,
      "stores": results.map(\.json),
    ])
    if isOpen { throw Finished(status: .temporaryFailure) }
    if count(.failed) > 0 { throw Finished(status: .dataError) }
  }

  /// Throws if there is no terminal for the question.
  private func requireTerminal(_ count: Int) throws(HopdError) {
    guard Confirmation.isPossible else {
      throw HopdError(
        .usage,
        "refusing to restore \(MessageFormatter.count(count, "store", "stores")) without confirmation: standard input "
          + "is not a terminal", at: Place(file: place.directory.path),
        hint: "pass --dry-run to list them, or --yes; each current store becomes a backup")
    }
  }

  private func ask(_ count: Int) throws {
    try Confirmation.require(
      "Replace \(MessageFormatter.count(count, "store by its backup", "stores by their backups"))? The app loses what "
        + "later changes; each current store becomes a backup.",
      refusal: "restore cancelled; nothing was changed")
  }
}
