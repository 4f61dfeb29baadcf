// What `--json` prints: every key of every command in one place. Keys are a contract: they are added to, never renamed.

import Diagnostics
import FoundationEssentials
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreVerification
import SystemPackage

/// Values as JSON text: one line, keys sorted.
enum JSONText {
  /// With `isForReview` it is spread over lines, for comparing two of them.
  static func of(_ value: some Encodable, isForReview: Bool = false) throws(HopdError) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if isForReview { encoder.outputFormatting.insert(.prettyPrinted) }
    do {
      return String(decoding: try encoder.encode(value), as: UTF8.self)
    } catch {
      throw HopdError(.internalError, "a result cannot be written as JSON", cause: error)
    }
  }
}

/// A key that is always there, with null where there is no value.
@propertyWrapper
struct OrNull<Value: Encodable>: Encodable {
  var wrappedValue: Value?

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    if let wrappedValue { try container.encode(wrappedValue) } else { try container.encodeNil() }
  }
}

/// An error or a warning; what is not known of its place is left out.
struct ErrorShape: Encodable {
  let code: String
  let message: String
  @OrNull var hint: String?
  let cause: String?
  let store: String?
  let file: String?
  let line: Int?
  let column: Int?
  let key: String?
  let hop: String?
  let entity: String?
  let property: String?
  let row: Int64?
  let reasons: [ErrorShape]?

  init(_ error: HopdError) {
    code = error.code.name
    message = error.message
    _hint = OrNull(wrappedValue: error.hint)
    cause = error.cause.map { "\($0)" }
    store = error.place.store?.string
    file = error.place.file?.string
    line = error.place.line
    column = error.place.column
    key = error.place.key
    hop = error.place.hop
    entity = error.place.entity
    property = error.place.property
    row = error.place.row
    reasons = error.reasons.isEmpty ? nil : error.reasons.map(ErrorShape.init)
  }

  /// The whole output of a command that failed.
  struct Envelope: Encodable {
    let error: ErrorShape
  }
}

/// `model schema`.
struct ModelSchemaShape: Encodable {
  let statements: [String]
  let primaryKeys: [PrimaryKey]

  struct PrimaryKey: Encodable {
    let number: Int64
    let name: String
    let `super`: Int64
  }
}

/// `identify`.
struct IdentifyShape: Encodable {
  let store: String
  let state: String
  @OrNull var model: String?
  @OrNull var version: String?
  @OrNull var targetVersion: String?
  /// The named configuration whose entities are all that the store has.
  @OrNull var configuration: String?
  /// Where the model of the store's version comes from: "models", or "store" for the store's own copy.
  @OrNull var modelSource: String?
  @OrNull var storeUUID: String?
  @OrNull var frameworkVersion: Int64?
  /// Was the store made by SwiftData? False for other stores of Core Data, and for what is not a store.
  let swiftData: Bool
  let entities: [Rows]
  let sideFiles: [String]
  /// What may be damaged all the same: only `verify` reads it.
  let notChecked: [String]
  /// What a restore has noted of the store; null where it is not pinned.
  @OrNull var pin: PinShape?
  /// Why the state is neither current nor behind.
  let error: ErrorShape?

  struct Rows: Encodable {
    let name: String
    let number: Int64
    let rows: Int64
  }
}

/// `plan`.
struct PlanShape: Encodable {
  let store: String
  let from: String
  let to: String
  @OrNull var configuration: String?
  @OrNull var modelSource: String?
  let hops: [Hop]
  /// Which hops are one pass over the rows.
  var passes: [Pass] = []
  /// Tables of persistent history whose rows the migration leaves behind; only for stores that have such tables.
  var history: [HistoryShape]?
  /// Left out with `--stable`: sizes and times differ from machine to machine.
  let estimate: Estimate?
  /// What a restore has noted of the store; null where it is not pinned.
  @OrNull var pin: PinShape?
  let warnings: [ErrorShape]
  /// What a trial of the chain has found that would stop the migration.
  var error: ErrorShape?

  struct Hop: Encodable {
    let source: String
    let destination: String
    let kind: String
    /// Names of the mapping models, in the order in which they run.
    let mappings: [String]
    let policies: [Policy]
    let entities: [Entity]
  }

  /// Hops that are one pass over the rows: only the last one's store is written.
  struct Pass: Encodable {
    /// Counted from 1.
    let hops: [Int]
    /// "chunks" or "copy-and-alter".
    let execution: String
    /// What is done to the copy, or why there is none.
    let reason: String
    /// Why the next hop is not part of it; null for the last pass.
    @OrNull var boundary: String?
    /// What becomes of each table; only where a copy is altered.
    var tables: [Table]?
  }

  /// A table in a copy that is altered.
  struct Table: Encodable {
    let table: String
    /// "kept", "altered", "written" or "removed".
    let action: String
    let reason: String
  }

  /// A migration policy class, and whether a program stands in for it.
  struct Policy: Encodable {
    let name: String
    let bound: Bool
  }

  struct Entity: Encodable {
    @OrNull var source: String?
    @OrNull var destination: String?
    let type: String
    /// Name of the entity mapping; null for an inferred one.
    @OrNull var mapping: String?
    let rows: Int64
    let execution: String
    /// Why it is not done in SQL.
    let reasons: [String]
    let drops: [Drop]
  }

  struct Drop: Encodable {
    let column: String
    let property: String
    let nonNull: Int64
  }

  struct Estimate: Encodable {
    let rows: Int64
    let bytes: Int64
    let diskNeeded: Int64
    let memory: Int64
    let seconds: Double
  }
}

/// A table of persistent history and the rows in it.
struct HistoryShape: Encodable {
  let table: String
  let rows: Int64
}

/// `migrate`: the report, also of a run that failed.
struct MigrateShape: Encodable {
  let store: String
  let result: String
  @OrNull var from: String?
  @OrNull var to: String?
  var hops: [Hop] = []
  var rows: [String: Int64] = [:]
  var dropped: [Dropped] = []
  @OrNull var backup: String?
  /// Folders of older backups that were removed by the rule.
  var prunedBackups: [String] = []
  /// The pin of a restore that this migration released.
  var releasedPin: PinShape?
  var seconds: Double
  /// The same by stage: identify, lock, recover, plan, migrate, verify, replace, report.
  var stages: [String: Double]?
  var peakMemory: Int64?
  @OrNull var verified: Verified?
  var resumed: Bool?
  /// Where objects are kept that a rule took out of the store.
  var quarantine: String?
  var storeUUID: String?
  var warnings: [ErrorShape] = []
  var error: ErrorShape?

  struct Hop: Encodable {
    let source: String
    let destination: String
    let kind: String
    let mappings: [String]
    let rowsRead: Int64
    let rowsWritten: Int64
    let chunks: Int64
    let seconds: Double
    /// Source rows by entity mapping that share another's object, or have none.
    let merged: [String: Int64]
    let leftOut: [String: Int64]
    /// Was it one pass with the next hop, without a store of its own?
    let fused: Bool
    let invalidRows: [InvalidRows]
  }

  /// Rows that broke one rule of the destination, and what was done with them.
  struct InvalidRows: Encodable {
    let entity: String
    let property: String
    let code: Int
    let rule: String
    let rows: Int64
    /// The first of their primary keys.
    let keys: [Int64]

    init(_ rows: MigrationEngine.InvalidRows) {
      entity = rows.entity
      property = rows.property
      code = Int(rows.code.rawValue)
      rule = rows.rule.rawValue
      self.rows = rows.count
      keys = rows.keys
    }
  }

  /// A column, or for a table of persistent history all of its rows: then property and column are null.
  struct Dropped: Encodable {
    let hop: Int
    let entity: String
    @OrNull var property: String?
    @OrNull var column: String?
    let table: String
    let nonNull: Int64
  }

  struct Verified: Encodable {
    let depth: String
    let checks: [CheckShape]
  }
}

/// One check of a store.
struct CheckShape: Encodable {
  let name: String
  let passed: Bool
  /// It passed, and `detail` has something to tell.
  let noted: Bool
  let detail: String

  init(_ check: VerificationCheck) {
    name = check.name
    passed = check.passed
    noted = check.isNoted
    detail = check.detail
  }
}

/// `verify`.
struct VerifyShape: Encodable {
  let store: String
  let model: String
  let version: String
  /// "quick" or "full".
  let depth: String
  let passed: Bool
  let checks: [CheckShape]
  let error: ErrorShape?
}

/// `recover`.
struct RecoverShape: Encodable {
  let directory: String
  let stores: [Store]
  /// Staged stores that go with no store that is known here.
  let orphans: [String]

  struct Store: Encodable {
    let store: String
    /// untouched, to-mend, mended, resumes, needs-attention, busy.
    let state: String
    /// What is there: missing, damaged, old, new, other; nil where nobody looked.
    @OrNull var content: String?
    /// none, readable, unreadable, newer.
    @OrNull var record: String?
    let staged: [String]
    let unfinishedBackups: [String]
    let backups: [String]
    /// Acts in their order, as `drop-staged`.
    let actions: [String]
    let why: String
    @OrNull var error: ErrorShape?
  }
}

/// `create`.
struct CreateShape: Encodable {
  let store: String
  let model: String
  let version: String
  let storeUUID: String
  let frameworkVersion: Int64
  let rows: Int64
  let seed: UInt64
}

/// `check-config`.
struct CheckConfigShape: Encodable {
  let files: [String]
  let configured: Bool
  let watches: [Watch]
  let warnings: [ErrorShape]

  struct Watch: Encodable {
    let name: String
    let directory: String
    let models: [String]
    @OrNull var target: String?
  }
}
