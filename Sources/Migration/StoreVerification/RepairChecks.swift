// The verification of a repaired copy: its structure must be that of the version, and every row must be there as it
// was. What was wrong with the rows before is not the repair's: it is returned, and the caller reports it.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite
import SystemPackage

extension StoreVerifier {
  /// The checks that a repair does not influence: they concern the rows of the store as it was.
  private static let checksOfRows: Set<String> = [
    "external-data", "filtered-counts", "discriminators", "relationships", "order-keys",
    "derived-counts", "derived-values", "model-cache",
  ]

  /// Verifies a repaired copy of a store of the same version.
  ///
  /// `copy` reads the copy over the connection of `source`. The columns in `computed`, by table, have new values.
  /// Returns the store with all its checks, and those that already failed before. Throws `verification-failed` with
  /// every other failed check as a reason.
  package func verify(
    repaired staged: FilePath, schema: StoreSchema, source: StoreReader, copy: StoreReader,
    computed: [String: Set<String>], external: ExternalDataDirectory, at place: Place
  ) throws -> (store: VerifiedStore, left: [VerificationCheck]) {
    source.connection.setProgressHandler(every: 200_000, keepAlive)
    var checks = [try kept(source, copy, computed)]
    let connection = try Connection(path: staged, access: .readOnly)
    try connection.execute("BEGIN")
    var rows: [String: Int64] = [:]
    checks += try self.checks(
      of: StoreReader(connection: connection), schema: schema, isExact: false, expectation: nil, sourceMetadata: nil,
      external: external, tableTexts: [:], pages: nil, history: nil, counted: { rows = try $0.rowsByEntity() })
    let failed = checks.filter { !$0.passed && !Self.checksOfRows.contains($0.name) }
    guard failed.isEmpty else {
      throw HopdError(
        .verificationFailed, "the repaired store failed \(failed.count) of \(checks.count) checks", at: place,
        hint: "restore a backup, or repair it with its app; the store is unchanged",
        reasons: failed.map { HopdError(.verificationFailed, "\($0.name): \($0.detail)") })
    }
    let left = checks.filter { !$0.passed || $0.name == "not-checked" }
    return (VerifiedStore(staged: staged, checks: checks.filter(\.passed), rows: rows), left)
  }

  /// Compares every row of every table, whatever made it.
  private func kept(
    _ source: StoreReader, _ copy: StoreReader, _ computed: [String: Set<String>]
  ) throws -> VerificationCheck {
    var problems: [String] = []
    var total: Int64 = 0
    for table in try source.schemaObjects() where table.type == "table" && !table.isVirtual {
      let shape = try source.shape(of: table.name)
      let columns = shape.columns.map(\.name).filter { computed[table.name]?.contains($0) != true }
      let (own, other) = (source.qualified(table.name), copy.qualified(table.name))
      let rows = try source.connection.integer("SELECT count(*) FROM \(own)") ?? 0
      let added = table.name == "Z_PRIMARYKEY"
      let after = try source.connection.integer("SELECT count(*) FROM \(other)") ?? 0
      total &+= rows
      if after < rows || after > rows && !added {
        problems.append("\(table.name) has \(after) rows in place of \(rows)")
      }
      guard !shape.isWithoutRowID, !columns.isEmpty else { continue }
      let values = { (row: String) in columns.map { "\(row).\(SQLiteIdentifier.quoted($0))" }.joined(separator: ", ") }
      let changed = try source.connection.integer(
        "SELECT count(*) FROM \(own) AS a LEFT JOIN \(other) AS b ON a.rowid = b.rowid"
          + " WHERE (\(values("a"))) IS NOT (\(values("b")))")
      if let changed, changed > 0 { problems.append("\(changed) rows of \(table.name) are not as they were") }
    }
    return VerificationCheck(
      name: "kept", problems: problems, fine: "the \(total) rows of the store are there as they were")
  }
}

extension SchemaObject {
  fileprivate var isVirtual: Bool { sql?.uppercased().hasPrefix("CREATE VIRTUAL") == true }
}
