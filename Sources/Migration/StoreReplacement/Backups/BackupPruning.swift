// The rule that chooses the generations to remove, and their removal. The data that a migration replaced continue in
// the migrated store; the data that a restore replaced may exist nowhere else. So `keep` counts migrations alone;
// generations of restores are removed by age, if the operator set one, or by hand.

import Diagnostics
import DurableFiles
import PersistentStore
import SystemPackage

/// A reason for which a generation is removed.
package enum BackupRemovalReason: String, Sendable, Hashable, CaseIterable {
  /// The rule keeps fewer generations of migrations.
  case keep
  /// It is older than the rule keeps it.
  case keepFor = "keep_for"
  /// Its store no longer exists, and the operator requested the removal of such backups.
  case orphaned
  /// The operator named it.
  case named
}

/// A generation that is to go, or went.
package struct BackupRemoval: Sendable, Hashable {
  /// The generation.
  package let generation: BackupGeneration
  /// Why.
  package let reason: BackupRemovalReason

  /// Notes a removal.
  package init(generation: BackupGeneration, reason: BackupRemovalReason) {
    self.generation = generation
    self.reason = reason
  }
}

extension BackupRule {
  /// `keepFor` in seconds; nil where generations are kept however old they are.
  package var longestAge: Int64? {
    guard let keepFor, keepFor > .zero else { return nil }
    return max(1, keepFor.components.seconds)
  }
}

extension BackupSet {
  /// The removals that the rule requires among these generations (newest first) at a moment. Age counts for all of
  /// them, `keep` only for those of migrations of the store that was replaced last: a store that took the name of
  /// another one does not cost that one's backups.
  package static func removals(
    _ generations: [BackupGeneration], _ rule: BackupRule, now: Int64, counts isCounted: Bool = true
  ) -> [BackupRemoval] {
    let store = generations.lazy.compactMap(\.record).first?.storeUUID
    var migrations = 0
    return generations.compactMap { generation in
      // Without a readable label, neither the cause nor the time of a generation is known.
      guard let record = generation.record else { return nil }
      var reason: BackupRemovalReason?
      let isOfStore = store == nil || record.storeUUID == nil || record.storeUUID == store
      if isCounted, record.origin != .restore, isOfStore {
        migrations += 1
        if migrations > max(0, rule.keep) { reason = .keep }
      }
      // A generation that was made while the clock was ahead counts as young until that time has come.
      if let longest = rule.longestAge, now.subtractingReportingOverflow(record.createdAt).partialValue > longest {
        reason = reason ?? .keepFor
      }
      return reason.map { BackupRemoval(generation: generation, reason: $0) }
    }
  }

  /// Removes the generations that the rule no longer keeps, and the remains of earlier removals. Requires that the
  /// store is locked, or its backups are locked.
  package func prune(_ rule: BackupRule, now: Int64) throws -> [BackupRemoval] {
    try prune(rule, now: now, among: folders())
  }

  /// The same, where these are the folders.
  func prune(_ rule: BackupRule, now: Int64, among folders: [BackupFolder]) throws -> [BackupRemoval] {
    for folder in try remainders(among: folders) { try remove(folder) }
    let removals = try BackupSet.removals(generations(among: folders), rule, now: now).map {
      BackupRemoval(generation: try measured($0.generation), reason: $0.reason)
    }
    for removal in removals { try remove(removal.generation.directory) }
    return removals
  }

  /// Directories that are not a generation and can never become one: incomplete or half removed, without a database or
  /// with the name of an unfinished one. A folder whose database is the store itself is left to recovery.
  func remainders(among folders: [BackupFolder]) throws -> [FilePath] {
    try unfinished(among: folders).filter { $0.isPart || $0.database == nil }.map(\.path)
  }

  /// Removes the generations that `plan` chooses among the existing ones, newest first, while no other process makes or
  /// removes any. The last generation of a removed store takes the pin and the directory with it.
  package func remove(
    patience: Duration = .seconds(10), _ plan: ([BackupGeneration]) throws -> [BackupRemoval]
  ) throws -> [BackupRemoval] {
    let lock = try lock(patience: patience)
    defer { lock.release() }
    let removals = try plan(try settledGenerations())
    for removal in removals { try remove(removal.generation.directory) }
    try removeRest()
    return removals
  }

  /// Complete generations, newest first, without those of replacements that were cut off: recovery may take such a
  /// replacement back, and its generation with it, so that it must not cost an older one. The staged store beside the
  /// store shows that a replacement has not ended, whichever state directory its record is in.
  package func settledGenerations() throws -> [BackupGeneration] {
    guard try files.status(location.directory)?.kind == .directory else { return try generations() }
    let unended = Set(try StagingArea.leftovers(of: location, files: files).map(\.job))
    return try generations().filter { generation in generation.record.map { !unended.contains($0.job) } ?? true }
  }

  /// Removes files that are useless once the last generation is removed.
  func removeRest() throws {
    for folder in try remainders(among: folders()) { try remove(folder) }
    guard seesEveryPlace, try files.status(location.database) == nil, try generations().isEmpty else { return }
    try PinStore(location: location, files: files).remove()
  }
}
