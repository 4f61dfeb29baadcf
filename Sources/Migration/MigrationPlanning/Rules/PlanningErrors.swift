// The codes of this target: every reason against identifying or planning a store. Programs branch on them; none is
// worth a retry, because a person has to change a model, a store or a setting first.

import Diagnostics

extension HopdError.Code {
  /// No model was given, or none was found at the given paths.
  package static let noModels = HopdError.Code("no-models", exit: .notConfigured)
  /// Two models describe the same version of a store.
  package static let ambiguousModel = HopdError.Code("ambiguous-model", exit: .dataError)
  /// No given version has the store's hashes.
  package static let unknownVersion = HopdError.Code("unknown-version", exit: .dataError)
  /// No given version has the store's hashes, and the store has more than the current version: a newer app may have
  /// made it.
  package static let perhapsNewer = HopdError.Code("perhaps-newer", exit: .dataError)
  /// The store has nothing in common with the given versions.
  package static let foreignStore = HopdError.Code("foreign-store", exit: .dataError)
  /// The store's version is after the target.
  package static let storeNewer = HopdError.Code("store-newer", exit: .dataError)
  /// A version is named that is not in the model: a mistake of the command line, as the configuration is checked.
  package static let noSuchVersion = HopdError.Code("no-such-version", exit: .usage)
  /// The store's version or the target cannot be read or used.
  package static let versionUnusable = HopdError.Code("version-unusable", exit: .dataError)
  /// The model has several versions and marks none as current.
  package static let noCurrentVersion = HopdError.Code("no-current-version", exit: .configuration)
  /// No chain of hops leads to the target.
  package static let noRoute = HopdError.Code("no-route", exit: .dataError)
  /// A hop would have to be inferred, and inference is switched off.
  package static let inferenceOff = HopdError.Code("inference-off", exit: .configuration)
  /// The store cannot be migrated, for several reasons of different kinds.
  package static let planRefused = HopdError.Code("plan-refused", exit: .dataError)
  /// The store lacks tables or columns of the version that it claims.
  package static let schemaMismatch = HopdError.Code("schema-mismatch", exit: .dataError)
  /// The store has a table that no entity of its model explains.
  package static let unknownTable = HopdError.Code("unknown-table", exit: .dataError)
  /// The store has a trigger, which would run on rows that hopd writes.
  package static let unknownTrigger = HopdError.Code("unknown-trigger", exit: .dataError)
  /// A trigger of a derived attribute is replaced by the known one.
  package static let triggerRewritten = HopdError.Code("trigger-rewritten", severity: .note)
  /// Computed values replace values of the store.
  package static let valuesReplaced = HopdError.Code("values-replaced", severity: .note)
  /// The store has a view, which Core Data never makes.
  package static let unknownView = HopdError.Code("unknown-view", exit: .dataError)
  /// A column that is not Core Data's is not carried.
  package static let columnNotCarried = HopdError.Code("column-not-carried", severity: .warning)
  /// The store keeps persistent history, and the rule is to refuse such stores.
  package static let historyNotSupported = HopdError.Code("history-not-supported", exit: .dataError)
  /// A lightweight migration of Core Data's own has begun and is not finished.
  package static let deferredMigration = HopdError.Code("deferred-migration", exit: .dataError)
  /// The metadata contain something that hopd does not support.
  package static let metadataNotSupported = HopdError.Code("metadata-not-supported", exit: .dataError)
  /// Rows whose entity is unknown, in the wrong table, or abstract.
  package static let rowsOfUnknownEntity = HopdError.Code("rows-of-unknown-entity", exit: .dataError)
  /// Rows refer to a target and name another entity than the target has.
  package static let wrongDiscriminators = HopdError.Code("wrong-discriminators", exit: .dataError)
  /// Rows break a uniqueness constraint of a later version (Core Data 134111, 1551).
  package static let uniquenessViolation = HopdError.Code("uniqueness-violation", exit: .dataError)
  /// Rows have no value for an attribute that a later version requires (Core Data 134110, 1570).
  package static let missingRequiredValue = HopdError.Code("missing-required-value", exit: .dataError)
  /// The name of a self many-to-many table cannot be computed (docs/formats/join-table-names.md, "How well it is
  /// proven").
  package static let joinTableNameUncertain = HopdError.Code("join-table-name-uncertain", exit: .dataError)
  /// A reference store is not of the target version.
  package static let referenceMismatch = HopdError.Code("reference-mismatch", exit: .dataError)

  // Warnings of a plan.

  /// A self many-to-many table has another name than Core Data's rule gives it.
  package static let joinTableNameUnexpected = HopdError.Code("join-table-name-unexpected", severity: .warning)
  /// Values, pairs or rows that the migration path drops.
  package static let dataDropped = HopdError.Code("data-dropped", severity: .warning)
  /// Rows of persistent history that the migration path drops.
  package static let historyCleared = HopdError.Code("history-cleared", severity: .warning)
  /// A version hash depends on a rule that was never compared with Apple's software.
  package static let hashUncertain = HopdError.Code("hash-uncertain", severity: .warning)
  /// The store refers to rows that do not exist.
  package static let danglingReferences = HopdError.Code("dangling-references", severity: .warning)
  /// A remark of the model reader, or an unreadable model among readable ones.
  package static let modelRemark = HopdError.Code("model-remark", severity: .note)
}

/// Findings that are reported together.
///
/// A hostile store can have a hundred thousand unexplained tables: only the first hundred findings of each kind are
/// kept, so that every kind is reported.
struct Findings {
  private(set) var errors: [HopdError] = []
  private var counts: [HopdError.Code: Int] = [:]

  /// The maximum number of findings of one kind that are reported.
  static let most = 100

  mutating func add(_ error: HopdError) {
    guard counts[error.code, default: 0] < Findings.most else { return }
    // The same part of a model may be found in several hops.
    guard !errors.contains(where: { $0.code == error.code && $0.message == error.message && $0.place == error.place })
    else { return }
    errors.append(error)
    counts[error.code, default: 0] += 1
  }

  mutating func add(_ code: HopdError.Code, _ message: String, at place: Place = Place(), hint: String? = nil) {
    add(HopdError(code, message, at: place, hint: hint))
  }

  mutating func add(_ errors: [HopdError]) {
    for error in errors { add(error) }
  }

  /// Throws the findings: a single one itself, several as reasons of one refusal.
  func throwIfAny(at place: Place) throws(HopdError) {
    guard let first = errors.first else { return }
    if errors.count == 1 { throw first.located(place) }
    let isUniform = errors.allSatisfy { $0.code == first.code }
    let isCut = counts.values.contains { $0 >= Findings.most }
    throw HopdError(
      isUniform ? first.code : .planRefused,
      "the store cannot be migrated, for \(errors.count) reasons\(isCut ? " or more" : "")", at: place,
      hint: "follow the hints above; nothing was changed", reasons: errors)
  }
}

extension [HopdError] {
  /// Appends an error with that code.
  mutating func add(
    _ code: HopdError.Code, _ message: String, at place: Place = Place(), hint: String? = nil,
    reasons: [HopdError] = []
  ) {
    append(HopdError(code, message, at: place, hint: hint, reasons: reasons))
  }
}
