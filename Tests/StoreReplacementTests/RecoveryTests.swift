import Testing

@testable import StoreReplacement

@Suite("Recovery decides")
struct RecoveryTests {
  /// Every combination of findings.
  static let all: [RecoveryFindings] = RecoveryFindings.Store.allCases.flatMap { store in
    RecoveryFindings.Intent.allCases.flatMap { intent in
      RecoveryFindings.Staged.allCases.flatMap { staged in
        [false, true].flatMap { unfinished in
          [false, true].flatMap { lost in
            ReplacementMode.allCases.flatMap { mode in
              (0..<16).map { bits in
                var findings = RecoveryFindings(
                  store: store, intent: intent, staged: staged, hasUnfinishedBackup: unfinished,
                  lostWriteAheadLogMode: lost)
                findings.mode = mode
                findings.hasJobBackup = bits & 1 != 0
                findings.keepsBackup = bits & 2 != 0
                findings.lacksJournalMode = bits & 4 != 0
                findings.hasBackupToMove = bits & 8 != 0
                return findings
              }
            }
          }
        }
      }
    }
  }

  static func actions(_ decision: RecoveryDecision) -> [RecoveryAction]? {
    switch decision {
    case .startAgain(let actions), .resume(let actions), .completed(let actions): actions
    case .nothingToDo: []
    case .quarantine: nil
    }
  }

  @Test("All 7680 states obey every rule of docs/formats/replacement.md")
  func everyState() {
    #expect(Self.all.count == 7680)
    for findings in Self.all {
      let decision = Recovery.decide(findings)
      let isSound = [.old, .new, .other].contains(findings.store)
      let mustStop =
        findings.intent == .newer || !isSound || (findings.store == .other && findings.intent == .readable)
      guard let actions = Self.actions(decision) else {
        #expect(mustStop, "quarantine without need: \(findings)")
        continue
      }
      #expect(!mustStop, "acts where it must touch nothing: \(findings)")
      #expect(Set(actions).count == actions.count)
      #expect(actions.contains(.dropUnfinishedBackup) == findings.hasUnfinishedBackup, "\(findings)")
      if let last = actions.firstIndex(of: .removeIntent) { #expect(last == actions.count - 1, "\(findings)") }

      let isKnown = findings.intent == .readable
      let mayResume = isKnown && findings.store == .old && findings.staged == .resumable
      let (isOld, isNew) = (isKnown && findings.store == .old, isKnown && findings.store == .new)
      let isInPlace = findings.mode == .inPlace
      // A complete backup goes where the store holds the same, or where none was to be kept of a replaced one.
      #expect(
        actions.contains(.dropJobBackup)
          == (findings.hasJobBackup && (isOld && isInPlace || isNew && !findings.keepsBackup)), "\(findings)")
      #expect(
        actions.contains(.moveBackup) == (isNew && findings.hasBackupToMove && findings.keepsBackup), "\(findings)")
      // What only a commit of SQLite can leave.
      #expect(actions.contains(.makeContentDurable) == (isNew && isInPlace), "\(findings)")
      #expect(actions.contains(.setJournalMode) == (isNew && isInPlace && findings.lacksJournalMode), "\(findings)")
      #expect(actions.contains(.dropStaged) == (findings.staged != .none && !mayResume), "\(findings)")
      switch decision {
      case .completed:
        #expect(isKnown && findings.store == .new)
        #expect(actions.first == .syncDirectory)  // the name must be for good before anything is said
        #expect(!actions.contains(.removeIntent))  // it goes after the report
      case .resume:
        #expect(mayResume)
        #expect(!actions.contains(.removeIntent) && !actions.contains(.restoreWriteAheadLogMode))
      case .startAgain:
        #expect(!actions.isEmpty)
        #expect(!(isKnown && findings.store == .new) && !mayResume)
        #expect(actions.contains(.removeIntent) == (findings.intent != .none))
        #expect(actions.contains(.restoreWriteAheadLogMode) == (isKnown && findings.lostWriteAheadLogMode))
      case .nothingToDo:
        #expect(findings.intent == .none && findings.staged == .none && !findings.hasUnfinishedBackup)
      case .quarantine: break
      }
    }
  }

  @Test("The state after the clean-up leads to nothing more: recovery is idempotent")
  func idempotent() {
    for findings in Self.all {
      guard let actions = Self.actions(Recovery.decide(findings)) else { continue }
      // A kill may come after any number of the actions.
      for done in 0...actions.count {
        var left = findings
        for action in actions.prefix(done) {
          switch action {
          case .syncDirectory: break
          case .dropStaged: left.staged = .none
          case .dropUnfinishedBackup: left.hasUnfinishedBackup = false
          case .dropJobBackup: left.hasJobBackup = false
          case .moveBackup: left.hasBackupToMove = false
          case .makeContentDurable: break
          case .setJournalMode: left.lacksJournalMode = false
          case .restoreWriteAheadLogMode: left.lostWriteAheadLogMode = false
          case .removeIntent: left.intent = .none
          }
        }
        let again = Recovery.decide(left)
        let rest = Self.actions(again) ?? []
        #expect(Set(rest).isSubset(of: Set(actions)), "\(findings) after \(done)")
        #expect(again != .quarantine(.unknownVersion))
        if done == actions.count {
          #expect(Set(rest).isSubset(of: [.syncDirectory, .makeContentDurable]), "\(findings): \(rest) still to do")
        }
      }
    }
  }
}
