// The intent record: the plan for a store, written before the first change and removed after the report. It is only
// information. hopd always reads the truth back from the store (docs/formats/replacement.md, "Intent record and
// recovery").

import DurableFiles
import PersistentStore
import SystemPackage

/// How a database keeps its changes: in its header, so a fact of the file.
package enum JournalMode: String, Sendable, Codable, Hashable, CaseIterable {
  /// Write-ahead log: header bytes 18 and 19 are 2.
  case wal
  /// Rollback journal: they are 1.
  case delete
}

/// A version of a store: its name for people, and the digest of its version hashes that decides.
package struct StoreVersionMark: Hashable, Sendable, Codable {
  /// Name of the model version, as "Library 3"; for people.
  package let name: String
  /// Text made from the entity version hashes, equal for equal versions.
  package let digest: String

  /// Marks a version.
  package init(name: String, digest: String) {
    self.name = name
    self.digest = digest
  }
}

/// The plan for one store.
package struct ReplacementIntent: Hashable, Sendable, Codable {
  /// The format this hopd writes, and the newest it reads.
  package static let currentFormat = 1

  /// How far the migration path had come when the record was last written.
  package enum Stage: String, Sendable, Codable, Hashable, CaseIterable {
    /// The staged store is being built; the store itself is untouched.
    case building
    /// The guarded swap has begun.
    case replacing
  }

  /// Format of this record.
  package var format: Int = ReplacementIntent.currentFormat
  /// The store's database.
  package var store: PathText
  /// Short lower-case hex text that names the job.
  package var job: String
  /// Digest of the plan: another plan cannot continue this staged store.
  package var planFingerprint: String
  /// The store as it was before it was opened.
  package var source: SourceFingerprint
  /// Boot of the kernel under which the staged store was written.
  package var bootIdentifier: String
  /// The staged store that is to be swapped in, if its name is known yet.
  package var staged: PathText?
  /// The old store's second name, once the swap has begun.
  package var backup: PathText?
  /// Journal mode of the store when it was locked.
  package var journalMode: JournalMode
  /// The store's version before.
  package var from: StoreVersionMark
  /// The version it is to have.
  package var to: StoreVersionMark
  /// Z_UUID of the store, for the backup's label.
  package var storeUUID: String?
  /// The stage that the job has reached.
  package var stage: Stage = .building
  /// The finished staged store, once it is complete and waits for its verification: a run that is stopped then
  /// continues there. Absent in older records.
  package var sealed: SourceFingerprint.Stamp?
  /// How the new store takes the old one's place. Absent in records of a rename, and in older records.
  package var mode: ReplacementMode?
  /// Schema version of the old store, known once a replacement in place has begun: it distinguishes the old content
  /// from the new one where both have one version, as after a restore. The commit raises it by one.
  package var schemaVersion: Int64?
  /// False where no old store is to be kept after the success; absent where one is.
  package var keepsBackup: Bool?
  /// Journal mode that the store is to get after a replacement in place; absent where it keeps its own.
  package var wantedJournalMode: JournalMode?
  /// Start of the job, seconds since 1970.
  package var startedAt: Int64

  /// Notes an intent at the start of a job.
  package init(
    location: CanonicalStoreLocation, job: String, planFingerprint: String, source: SourceFingerprint,
    bootIdentifier: String,
    staged: FilePath?, journalMode: JournalMode, from: StoreVersionMark, to: StoreVersionMark, storeUUID: String?,
    startedAt: Int64
  ) {
    store = PathText(location.database)
    self.job = job
    self.planFingerprint = planFingerprint
    self.source = source
    self.bootIdentifier = bootIdentifier
    self.staged = staged.map(PathText.init)
    self.journalMode = journalMode
    self.from = from
    self.to = to
    self.storeUUID = storeUUID
    self.startedAt = startedAt
  }

  /// The content of a store, by the digest of its version and the number of its schema's version; `isSourceFile` is
  /// true if it still is the file that the job found.
  func content(digest: String?, schemaVersion: Int64?, isSourceFile: Bool) -> RecoveryFindings.Store {
    // Between two stores of one version, as a restore may have them, the file decides. Within the same file, and where
    // the staged store has another number, as that of an import, the schema decides, also in a copy of the directory.
    let isSource = self.schemaVersion.map { schemaVersion == $0 } ?? isSourceFile
    if digest == from.digest, digest != to.digest || isSource { return .old }
    if digest == to.digest { return .new }
    return .other
  }

  /// Whether a staged store of this job may be continued. Only unsynced work of the same boot, for the same plan, from
  /// exactly the same source is trusted, and none whose swap had begun. Where the plan is not known yet (nil) the
  /// staged store is kept: its checkpoint names its plan, and the engine starts over when that is another one.
  package func allowsResume(
    planFingerprint: String?, source: SourceFingerprint?, bootIdentifier: String
  ) -> Bool {
    stage == .building && (planFingerprint ?? self.planFingerprint) == self.planFingerprint && source == self.source
      && bootIdentifier == self.bootIdentifier && !bootIdentifier.isEmpty
  }
}
