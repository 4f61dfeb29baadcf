// The one list of journal fields. They are a contract with `journalctl HOPD_STORE=…` and with other people's scripts:
// a field may be added, never renamed.

/// A field of a journal entry other than MESSAGE and PRIORITY.
package enum JournalField: String, CaseIterable, Sendable {
  /// The store's database file, as printed everywhere.
  case store = "HOPD_STORE"
  /// NSStoreUUID of the store.
  case storeUUID = "HOPD_STORE_UUID"
  /// Name of the job, the same in all entries of one migration.
  case job = "HOPD_JOB"
  /// Name of the watch in the configuration.
  case watch = "HOPD_WATCH"
  /// Model version before.
  case from = "HOPD_FROM"
  /// Model version after.
  case to = "HOPD_TO"
  /// Number of the hop, from 1.
  case hop = "HOPD_HOP"
  /// Number of hops of the chain.
  case hops = "HOPD_HOPS"
  /// Entity that the entry refers to.
  case entity = "HOPD_ENTITY"
  /// Class name of the migration policy.
  case policy = "HOPD_POLICY"
  /// Name of the entity mapping.
  case mapping = "HOPD_MAPPING"
  /// Rows written.
  case rows = "HOPD_ROWS"
  /// Bytes written.
  case bytes = "HOPD_BYTES"
  /// Duration in microseconds.
  case microseconds = "HOPD_USEC"
  /// Path of the backup.
  case backup = "HOPD_BACKUP"
  /// `migrated`, `current`, `refused`, `failed`, `deferred`, `pinned`, `interrupted`; for a removed backup or
  /// invalid rows, the rule.
  case result = "HOPD_RESULT"
  /// The error's code, such as `store-busy`.
  case error = "HOPD_ERROR"
  /// What to do or type next.
  case hint = "HOPD_HINT"
  /// The watched directory.
  case directory = "HOPD_DIRECTORY"
  /// Configuration file and line.
  case configuration = "HOPD_CONFIG"
  /// The number that the entry reports.
  case count = "HOPD_COUNT"
  /// Number of the failed attempt, from 1.
  case attempt = "HOPD_ATTEMPT"
  /// Time of the next attempt, in UTC.
  case next = "HOPD_NEXT_ATTEMPT"
  /// The user who gave an order, as `user alice`.
  case requester = "HOPD_REQUESTER"
  /// Kind of event, a `JournalMessage`.
  case messageID = "MESSAGE_ID"
  /// Number of the system's error.
  case errno = "ERRNO"
}
