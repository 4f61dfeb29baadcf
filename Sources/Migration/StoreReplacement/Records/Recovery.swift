// Decides what to do with a store after a crash: a pure function of the findings (docs/formats/replacement.md, "Intent
// record and recovery"). It touches no file; `RecoveryRunner` inspects and acts.

/// The findings at one store.
package struct RecoveryFindings: Hashable, Sendable {
  /// The content of the file under the store's name. Old and new can only be determined with a readable intent.
  package enum Store: String, Sendable, CaseIterable {
    /// Nothing is there.
    case missing
    /// SQLite cannot read it, or quick_check finds damage.
    case damaged
    /// The version the intent started from.
    case old
    /// The version the intent leads to.
    case new
    /// A sound store of any other version, or of any version where no intent is readable.
    case other
  }

  /// The content of the state directory for it.
  package enum Intent: String, Sendable, CaseIterable {
    case none, readable, unreadable
    /// Written by a newer hopd.
    case newer
  }

  /// Staged stores beside it.
  package enum Staged: String, Sendable, CaseIterable {
    case none
    /// All of the intent's job, same boot, same plan, same source: work may continue.
    case resumable
    /// Anything else.
    case stale
  }

  /// The content of the file under the store's name.
  package var store: Store
  /// The intent record.
  package var intent: Intent
  /// Staged stores.
  package var staged: Staged
  /// Whether there is a backup that is the store's own inode, or incomplete.
  package var hasUnfinishedBackup: Bool
  /// Whether the store was in WAL mode according to the intent, and no longer is.
  package var lostWriteAheadLogMode: Bool
  /// How the store was to be replaced, according to the intent.
  package var mode = ReplacementMode.rename
  /// Whether there is a complete backup, not the store's own inode, that the intent's job has made.
  package var hasJobBackup = false
  /// Whether an old store is to be kept after the success, according to the intent.
  package var keepsBackup = true
  /// Whether the backup of the intent's job is beside the store, although another place is configured.
  package var hasBackupToMove = false
  /// Whether the store was to get another journal mode after a replacement in place, and does not have it.
  package var lacksJournalMode = false
}

/// One act of cleaning up; each may be repeated without harm.
package enum RecoveryAction: String, Sendable, CaseIterable, Codable {
  /// Make the names in the store's directory durable, as step A7 does.
  case syncDirectory
  /// Remove the staged stores.
  case dropStaged
  /// Remove backups that are the store's own inode, or incomplete.
  case dropUnfinishedBackup
  /// Remove the complete backup of the job: the store holds what is in it, or none was to be kept.
  case dropJobBackup
  /// Move the backup of the job to the configured place.
  case moveBackup
  /// Make the content that SQLite's commit has left durable: the kill may have come before its last sync.
  case makeContentDurable
  /// Set the wanted journal mode.
  case setJournalMode
  /// Set the store back to WAL mode.
  case restoreWriteAheadLogMode
  /// Remove the intent record: the last act.
  case removeIntent
}

/// Why recovery leaves everything unchanged.
package enum QuarantineReason: String, Sendable, CaseIterable {
  /// There is no store under the name; it is never recreated automatically.
  case storeMissing = "store-missing"
  /// The store is damaged.
  case storeDamaged = "store-damaged"
  /// The store has neither the old nor the new version.
  case unknownVersion = "unknown-version"
  /// A newer hopd worked on this store.
  case newerIntent = "newer-intent"
}

/// The decision of recovery.
package enum RecoveryDecision: Hashable, Sendable {
  /// The store has no trace of a job.
  case nothingToDo
  /// The old store is in place; clean up, and the job may start again.
  case startAgain([RecoveryAction])
  /// The old store is in place, and the staged work may continue; clean up the rest.
  case resume([RecoveryAction])
  /// The new store is in place: clean up, report "completed before crash", then remove the intent.
  case completed([RecoveryAction])
  /// Touch nothing; an administrator is needed.
  case quarantine(QuarantineReason)
}

/// Decides what recovery does.
package enum Recovery {
  /// Decides from the findings.
  package static func decide(_ findings: RecoveryFindings) -> RecoveryDecision {
    if findings.intent == .newer { return .quarantine(.newerIntent) }
    switch findings.store {
    case .missing: return .quarantine(.storeMissing)
    case .damaged: return .quarantine(.storeDamaged)
    case .other where findings.intent == .readable: return .quarantine(.unknownVersion)
    case .old, .new, .other: break
    }
    var actions: [RecoveryAction] = []
    guard findings.intent == .readable else {
      // Without a record the store is still complete: only the one rename or the one commit ever changes it. Only
      // hopd's own leftovers are removed.
      if findings.staged != .none { actions.append(.dropStaged) }
      if findings.hasUnfinishedBackup { actions.append(.dropUnfinishedBackup) }
      if findings.intent == .unreadable { actions.append(.removeIntent) }
      return actions.isEmpty ? .nothingToDo : .startAgain(actions)
    }
    if findings.store == .new {
      actions.append(.syncDirectory)
      if findings.mode == .inPlace { actions.append(.makeContentDurable) }
      if findings.staged != .none { actions.append(.dropStaged) }
      if findings.hasUnfinishedBackup { actions.append(.dropUnfinishedBackup) }
      if findings.hasJobBackup, !findings.keepsBackup { actions.append(.dropJobBackup) }
      if findings.hasBackupToMove, findings.keepsBackup { actions.append(.moveBackup) }
      if findings.mode == .inPlace, findings.lacksJournalMode { actions.append(.setJournalMode) }
      return .completed(actions)
    }
    let mayResume = findings.staged == .resumable
    if findings.staged == .stale { actions.append(.dropStaged) }
    if findings.hasUnfinishedBackup { actions.append(.dropUnfinishedBackup) }
    // A copy of what the store still holds. After a rename a complete one is another file: an operator put the old
    // store back.
    if findings.mode == .inPlace, findings.hasJobBackup { actions.append(.dropJobBackup) }
    if mayResume { return .resume(actions) }  // the intent stays, and the store stays exactly the source it was
    if findings.lostWriteAheadLogMode { actions.append(.restoreWriteAheadLogMode) }
    actions.append(.removeIntent)
    return .startAgain(actions)
  }
}
