// Checks that a staged store is a correct store of the destination model, with nothing lost. It shares no code with the
// engine except the store reader; it reads the finished file as Core Data would, and compares it with counts made in
// the source. Only a store that passes every check becomes a `VerifiedStore`.

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import PropertyLists
import SQLite
import SystemPackage

extension HopdError.Code {
  /// A staged store failed a check; it is deleted, and the user's store is unchanged.
  package static let verificationFailed = HopdError.Code("verification-failed", exit: .software)
}

/// The depth of a verification.
package enum VerificationDepth: String, Sendable, Hashable, CaseIterable {
  /// Checks structure, bookkeeping, counts and references, and runs quick_check.
  case quick
  /// Also runs integrity_check, which compares every index with its table.
  case full
}

/// Checks stores.
package struct StoreVerifier {
  private let depth: VerificationDepth
  /// Called now and then in long checks; returning false stops the verification.
  let keepAlive: () -> Bool

  /// Creates a verifier; `keepAlive` feeds a watchdog and may stop the verification.
  package init(
    depth: VerificationDepth, keepAlive: @escaping () -> Bool = { true }
  ) {
    self.depth = depth
    self.keepAlive = keepAlive
  }

  /// Verifies the staged store of a plan's last hop.
  ///
  /// `expectation` has the required content if the plan alone does not determine it (`MigrationPlan.isMixed`).
  /// The tables in `staying` must have exactly the texts that follow from those before the hops that altered their
  /// file. Rows of persistent history are compared with those of `source`, the original store.
  ///
  /// Throws `verification-failed` with every failed check as a reason.
  package func verify(
    staged: FilePath, plan: MigrationPlan, expectation: StoreExpectation? = nil, staying: [String: StayingTable] = [:],
    source: StoreReader? = nil
  ) throws -> VerifiedStore {
    guard let hop = plan.hops.last else {
      throw HopdError(.internalError, "a plan without hops has nothing to verify")
    }
    var rows: [String: Int64] = [:]
    let history = try hop.history.map { carry in
      guard let source else {
        throw HopdError(.internalError, "the history of a store cannot be compared with that of no store")
      }
      return (source: source, plan: plan, carry: carry)
    }
    let checks = try check(
      database: staged, schema: hop.destinationSchema, expectation: expectation ?? plan.expectation,
      sourceMetadata: plan.store.metadata, external: ExternalDataDirectory(of: plan.store.location),
      tableTexts: AlteredTables(plan: plan, staying: staying).texts, history: history
    ) { content in rows = try content.rowsByEntity() }
    let failed = checks.filter { !$0.passed }
    guard failed.isEmpty else {
      throw HopdError(
        .verificationFailed, "the migrated store failed \(failed.count) of \(checks.count) checks",
        at: Place(store: plan.store.location.database, hop: hop.title),
        hint: "report this bug with the output of `hopctl plan`; the store is unchanged",
        reasons: failed.map { HopdError(.verificationFailed, "\($0.name): \($0.detail)") })
    }
    return VerifiedStore(staged: staged, checks: checks, rows: rows)
  }

  /// Verifies a staged store of the same version as the store that it is to replace, with objects that were added.
  ///
  /// `kept` has the rows that each table had, by its name, and the highest key among them: those rows must be there.
  /// Throws `verification-failed` with every failed check as a reason.
  package func verify(
    extended staged: FilePath, schema: StoreSchema, kept: [String: (highestKey: Int64, rows: Int64)],
    external: ExternalDataDirectory, at place: Place
  ) throws -> VerifiedStore {
    let connection = try Connection(path: staged, access: .readOnly)
    try connection.execute("BEGIN")
    let reader = StoreReader(connection: connection)
    var checks = try checks(of: reader, schema: schema, isExact: false, external: external)
    var problems: [String] = []
    for (table, known) in kept.sorted(by: { $0.key < $1.key }) {
      let rows = try connection.integer(
        "SELECT count(*) FROM \(reader.qualified(table)) WHERE Z_PK <= ?", [.integer(known.highestKey)])
      if rows != known.rows { problems.append("\(table) has \(rows ?? 0) of the \(known.rows) rows that it had") }
    }
    checks.append(
      VerificationCheck(name: "kept", problems: problems, fine: "the objects of the store exist"))
    let failed = checks.filter { !$0.passed }
    guard failed.isEmpty else {
      throw HopdError(
        .verificationFailed, "the extended store failed \(failed.count) of \(checks.count) checks", at: place,
        hint: "run `hopctl verify` on the store, which may have failed them before; it is unchanged",
        reasons: failed.map { HopdError(.verificationFailed, "\($0.name): \($0.detail)") })
    }
    return VerifiedStore(staged: staged, checks: checks)
  }

  /// Runs every check on a closed store file; a failure does not stop the others. `counted` is called after the rows
  /// were counted.
  func check(
    database: FilePath, schema: StoreSchema, expectation: StoreExpectation, sourceMetadata: StoreMetadata,
    external: ExternalDataDirectory, tableTexts: [String: String],
    history: (source: StoreReader, plan: MigrationPlan, carry: HistoryCarry)? = nil,
    counted: (ContentChecks) throws -> Void = { _ in }
  ) throws -> [VerificationCheck] {
    do {
      let connection = try Connection(path: database, access: .readOnly)
      // The file is locked once, and not for each of some thirty queries.
      try connection.execute("BEGIN")
      // Reading the file's size takes the lock. The check reads through the same open file.
      let pages = PageCheck(reading: "main", of: connection, pragma: pragma, isUrgent: true)
      defer { pages?.cancel() }
      return try checks(
        of: StoreReader(connection: connection), schema: schema, isExact: true, expectation: expectation,
        sourceMetadata: sourceMetadata, external: external, tableTexts: tableTexts, pages: pages, history: history,
        counted: counted)
    } catch let error as SQLiteError where error.isInterrupt {
      throw HopdError(.interrupted, "stopped on request while verifying")
    } catch let error as SQLiteError {
      throw StoreReader.explained(error, location: StoreLocation(database: database))
    }
  }

  /// Runs every check on an open store.
  ///
  /// `isExact` requires exactly the schema that Core Data would make for a new store, which hopd's own results have if
  /// their rows are written, and the texts in `tableTexts` for the tables of an altered file. Without it a store that
  /// Apple's in-place migrations left passes too: appended columns, stale indexes, old entity names
  /// (docs/formats/store-layout.md, "Apple's migration in place"). Files of values with external storage are looked up
  /// in `external`.
  package func checks(
    of reader: StoreReader, schema: StoreSchema, isExact: Bool, expectation: StoreExpectation? = nil,
    sourceMetadata: StoreMetadata? = nil, external: ExternalDataDirectory? = nil, tableTexts: [String: String] = [:]
  ) throws -> [VerificationCheck] {
    try checks(
      of: reader, schema: schema, isExact: isExact, expectation: expectation, sourceMetadata: sourceMetadata,
      external: external, tableTexts: tableTexts, pages: nil, history: nil, counted: { _ in })
  }

  /// Like the others, with a check of the pages that has begun; `counted` is called after the rows were counted.
  func checks(
    of reader: StoreReader, schema: StoreSchema, isExact: Bool, expectation: StoreExpectation?,
    sourceMetadata: StoreMetadata?, external: ExternalDataDirectory?, tableTexts: [String: String], pages: PageCheck?,
    history: (source: StoreReader, plan: MigrationPlan, carry: HistoryCarry)?,
    counted: (ContentChecks) throws -> Void
  ) throws -> [VerificationCheck] {
    reader.connection.setProgressHandler(every: 200_000) { keepAlive() }
    defer { reader.connection.setProgressHandler(nil) }
    let structure = StructureChecks(reader: reader, schema: schema, isExact: isExact, tableTexts: tableTexts)
    let content = ContentChecks(
      census: StoreCensus(schema: schema, reader: reader), expectation: expectation)
    var checks = [try structure.schemaText()]
    // The exact comparison of texts includes indexes.
    if !isExact { checks.append(try IndexCheck(reader: reader, schema: schema).check()) }
    if let unchecked = try structure.unchecked() { checks.append(unchecked) }
    checks.append(try structure.metadata(comparedWith: sourceMetadata))
    checks.append(try structure.entityNumbers())
    checks.append(try structure.modelCache(isOurs: expectation != nil))
    // Content queries need the schema's tables and columns; without them no further check is possible.
    guard checks.allSatisfy({ $0.name != "schema" || $0.passed }) else { return checks }
    try content.askRows()
    checks.append(try content.primaryKeys())
    checks.append(try content.rowEntities())
    if expectation != nil {
      checks.append(try content.counts())
      checks.append(try content.values())
      let check = HistoryCheck(
        reader: reader, layout: schema.history, origin: history, keepAlive: keepAlive)
      if let check = try check.check() { checks.append(check) }
    } else if let check = try structure.historyTables() {
      checks.append(check)
    }
    let files = ExternalDataChecks(
      reader: reader, schema: schema, directory: external, expectation: expectation?.externalData)
    if let check = try files.check() { checks.append(check) }
    if !schema.filteredCounts.isEmpty { checks.append(try content.filteredCounts()) }
    checks.append(try content.discriminators())
    checks.append(try content.references())
    checks.append(try content.orderKeys())
    if schema.derivations.contains(where: \.isCount) { checks.append(try content.derivedCounts()) }
    if schema.derivations.contains(where: { $0.isComputed && !$0.isCount }) {
      checks.append(try content.derivedValues())
    }
    if isExact, !schema.rTrees.isEmpty { checks.append(try content.rTrees()) }
    checks.append(try integrity(reader, pages))
    try counted(content)
    return checks
  }

  private var pragma: String { depth == .full ? "integrity_check" : "quick_check" }

  /// The limits of quick_check, in words.
  private var reach: String { depth == .full ? "" : " (does not compare index entries with rows)" }

  private func integrity(_ reader: StoreReader, _ pages: PageCheck?) throws(SQLiteError) -> VerificationCheck {
    let answers =
      if let pages {
        try pages.finish(keepAlive: keepAlive)
      } else {
        try reader.connection.rows(
          "PRAGMA \(SQLiteIdentifier.quoted(reader.schema)).\(pragma)(5)"
        ) { $0.text(at: 0) ?? "" }
      }
    let isOK = answers == ["ok"]
    return VerificationCheck(
      name: "integrity", passed: isOK,
      detail: isOK ? "\(pragma) passed" + reach : answers.joined(separator: "; "))
  }
}
