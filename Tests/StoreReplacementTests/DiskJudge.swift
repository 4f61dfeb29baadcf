// The judge of images: everything that is promised about a store after a power cut at any moment, as sentences about
// what is wrong. Tests want none of them; the negative controls want at least one.

import Diagnostics
import DurableFiles
import PersistentStore
import SQLite
import SimulatedDisk
import SystemPackage

@testable import StoreReplacement

/// How far an image is looked into.
struct Judgement: Sendable {
  /// Had success been reported at the moment of the cut?
  var isReported = false
  /// Does a retry of the migration follow?
  var withRetry = false
}

extension DiskWorld {
  /// The error of this disk after a power cut during a migration; nil when every promise holds.
  func complaint(_ judgement: Judgement) -> String? {
    do {
      // The store opens with SQLite alone; on a copy, because that rolls journals back.
      let alone = try with(disk.copy())
      let found = try alone.disk.mounted { try alone.versionAndData() }
      if judgement.isReported, found != "two" { return "success was reported, and the store has version \(found)" }
      return try disk.mounted { try complaintAfterRecovery(found, judgement) }
    } catch {
      return "\(error)"
    }
  }

  private func versionAndData() throws -> String {
    guard try disk.status(location.database) != nil else { throw Finding("there is no store") }
    let found = try version()
    guard found == "one" || found == "two" else { throw Finding("the store has version \(found)") }
    try requireExternalData(of: location.store)
    return found
  }

  private func complaintAfterRecovery(_ found: String, _ judgement: Judgement) throws -> String? {
    let outcome = try recover()
    switch outcome.decision {
    case .quarantine(let reason): return "recovery quarantines: \(reason.rawValue)"
    case .completed where found != "two": return "recovery says completed, and the store has version \(found)"
    default: break
    }
    if let file = disk.lostLock { return "the lock on the store is lost by: \(file)" }
    if let complaint = try complaintAboutRest(found, outcome.decision) { return complaint }
    let again = try recover().decision
    guard again == .nothingToDo else { return "the second recovery does something: \(again)" }
    guard judgement.withRetry, found == "one" else { return nil }
    try migrate(job: "cd34", now: 1_900_000_100)
    return try complaintAboutRest("two", .nothingToDo)
  }

  /// The error once a store of this version is in place, and all unfinished work has been cleaned up.
  private func complaintAboutRest(_ wanted: String, _ decision: RecoveryDecision) throws -> String? {
    let now = try versionAndData()
    guard now == wanted else { return "version \(wanted) became \(now)" }
    let leftovers = try leftovers()
    guard leftovers.isEmpty else { return "after \(decision) there is still \(leftovers)" }
    let backups = try BackupSet(location: location, rule: rule, files: disk).generations()
    if wanted == "one" {
      guard try disk.status(location.database)?.links == 1 else { return "the old store has two names" }
      guard backups.isEmpty else { return "there is a backup, and nothing was replaced" }
    } else if scenario.keep > 0 {
      guard let backup = backups.first, backups.count == 1 else { return "\(backups.count) backups in place of one" }
      let old = try version(of: backup.database)
      guard old == "one" else { return "the backup has version \(old)" }
      guard backup.record?.from.digest == "one" else { return "the label of the backup cannot be read" }
      guard !scenario.isElsewhere || hasFailed || backup.directory.starts(with: vault) else {
        return "the backup stays beside the store: \(backup.directory)"
      }
      try requireExternalData(of: StoreLocation(database: backup.database))
    }
    guard scenario.hasQuarantine else { return nil }
    let published = try disk.names(in: stores).filter { $0.string.contains(".quarantine-") }
    if wanted == "one", !hasFailed, !published.isEmpty {
      return "what was set aside lies beside the old store, which has it"
    }
    let isKept = try published.contains {
      try disk.read(stores.appending($0), limit: 1000) == DiskWorld.quarantined
    }
    if wanted == "two", !isKept || (published.count > 1 && !hasFailed) { return "what was set aside: \(published)" }
    return nil
  }
}

// MARK: Restores

extension DiskWorld {
  /// Puts the old store of the newest backup back, as `hopctl restore` does.
  func restore(job: String, now: Int64 = 1_900_000_200) throws {
    let backups = try BackupSet(location: location, rule: rule, files: disk)
    guard let old = try backups.generations().first(where: { $0.record?.from.digest == "one" }) else {
      throw Finding("there is no backup of the old store")
    }
    _ = try Restore(swap: try swap(), lockDirectory: locks.path)
      .restore(old.database, to: location, job: job, backup: rule, now: now)
  }

  /// The error of this disk after a power cut during a restore of version 1, with version 2 or no store in its place.
  func complaintAboutRestore(_ judgement: Judgement, hadStore: Bool) -> String? {
    do {
      let alone = try with(disk.copy())
      let found: String? = try alone.disk.mounted {
        try alone.disk.status(location.database) == nil ? nil : try alone.versionAndData()
      }
      if found == nil, hadStore { return "the store is gone" }
      if !hadStore, found == "two" { return "a store that was deleted is back" }
      if judgement.isReported, found != "one" { return "success was reported, and the store is \(found ?? "missing")" }
      return try disk.mounted {
        let outcome = try recover()
        switch outcome.decision {
        case .quarantine(.storeMissing) where found == nil: break
        case .quarantine(let reason): return "recovery quarantines: \(reason.rawValue)"
        default: break
        }
        if let found {
          let now = try versionAndData()
          guard now == found else { return "recovery made \(now) of \(found)" }
          guard try leftovers().isEmpty else { return "after \(outcome.decision) there is still \(try leftovers())" }
        }
        if found == "one" {
          // Durable before a program can see the restored version.
          let pin = try PinStore(location: location, files: disk).pin(
            against: StoreVersionMark(name: "Two", digest: "two"), storeUUID: nil, digest: "one")
          guard pin != nil else { return "the restored store is not pinned" }
        }
        if hadStore, found == "one" {
          let kept = try BackupSet(location: location, rule: rule, files: disk).generations()
          guard let replaced = kept.first, try version(of: replaced.database) == "two" else {
            return "the store that was replaced is not kept"
          }
        }
        if found != "one" {
          try restore(job: "ef56", now: 1_900_000_300)
          guard try versionAndData() == "one" else { return "a second restore does not restore" }
        }
        guard judgement.withRetry else { return nil }
        _ = try recover()
        return try leftovers().isEmpty ? nil : "after all there is still \(try leftovers())"
      }
    } catch {
      return "\(error)"
    }
  }
}
