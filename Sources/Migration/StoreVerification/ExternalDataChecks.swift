import Diagnostics
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SQLite

/// Checks binary values with external storage: each has a known form, its file exists, and no value is lost or
/// truncated.
struct ExternalDataChecks {
  let reader: StoreReader
  let schema: StoreSchema
  let directory: ExternalDataDirectory?
  /// The expected values by table and column; nil if a store is checked alone.
  let expectation: [String: [String: ExternalDataExpectation]]?

  /// Returns the check; nil if neither the store nor its source has external storage.
  func check() throws -> VerificationCheck? {
    let columns = ExternalDataColumn.all(in: schema)
    guard !columns.isEmpty || expectation?.isEmpty == false else { return nil }
    var problems: [String] = []
    var total = ExternalDataCount()
    var seen: [String: Set<String>] = [:]
    for column in columns {
      var count = ExternalDataCount()
      let counts = try ExternalDataCensus.count(column, reader: reader, directory: directory)
      for part in counts.values { count.add(part) }
      total.add(count)
      seen[column.table, default: []].insert(column.column)
      let name = "\(column.table).\(column.column)"
      if count.malformed > 0 { problems.append("\(count.malformed.grouped) values of \(name) have an unknown form") }
      if count.unsuitable > 0 {
        problems.append(
          "\(count.unsuitable.grouped) values of \(name) refer to something other than a regular file "
            + "(\(count.unsuitableWhat ?? "unknown"))"
        )
      }
      guard let expectation else { continue }
      let wanted = expectation[column.table]?[column.column] ?? ExternalDataExpectation()
      problems += compare(name, count, with: wanted)
    }
    for (table, wanted) in (expectation ?? [:]).sorted(by: { $0.key < $1.key }) {
      for (column, wanted) in wanted.sorted(by: { $0.key < $1.key }) where seen[table]?.contains(column) != true {
        problems += try plain(table, column, wanted)
      }
    }
    return VerificationCheck(
      name: "external-data", problems: problems,
      fine: "\(total.inline.grouped) binary values in their columns, "
        + "\(total.found.grouped) in files that exist"
        + (total.missing == 0 ? "" : ", \(total.missing.grouped) in files that are missing"),
      isNoted: total.missing > 0)
  }

  private func compare(
    _ name: String, _ count: ExternalDataCount, with wanted: ExternalDataExpectation
  ) -> [String] {
    var problems: [String] = []
    func compare(_ what: String, _ found: Int64, _ wanted: Int64) {
      if found != wanted { problems.append("\(name) has \(found.grouped) \(what) instead of \(wanted.grouped)") }
    }
    compare("inline values", count.inline, wanted.inline)
    compare("bytes in inline values", count.inlineBytes, wanted.inlineBytes)
    compare("references to files that exist", count.found, wanted.found)
    compare("bytes in files", count.foundBytes, wanted.foundBytes)
    compare("references to missing files", count.missing, wanted.missing)
    return problems
  }

  /// Checks a column that no longer has external storage: every value is its content.
  private func plain(_ table: String, _ column: String, _ wanted: ExternalDataExpectation) throws -> [String] {
    guard
      let place = schema.table(named: table)?.columns.first(where: { $0.name == column }),
      case .attribute(let name, _) = place.role, let entity = schema.model.entity(named: name)
    else { return ["the column \(table).\(column) is missing"] }
    let numbers = schema.model.subtree(of: entity).compactMap { schema.number(of: $0.name) }.map(String.init)
    let quoted = SQLiteIdentifier.quoted(column)
    let answers = try reader.connection.rows(
      "SELECT count(\(quoted)), sum(length(\(quoted))), sum(\(quoted) IS NOT NULL AND typeof(\(quoted)) <> 'blob')"
        + " FROM \(reader.qualified(table)) WHERE Z_ENT IN (\(numbers.joined(separator: ", ")))"
    ) { ($0.integer(at: 0), $0.integer(at: 1), $0.integer(at: 2)) }
    guard let (count, bytes, strange) = answers.first else { return [] }
    var found = ExternalDataCount()
    (found.inline, found.inlineBytes) = (count, bytes)
    let problems = compare("\(table).\(column)", found, with: wanted)
    return problems + (strange > 0 ? ["\(strange.grouped) values of \(table).\(column) are not bytes"] : [])
  }
}
