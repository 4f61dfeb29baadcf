// Reads the rows of a table or view of a SQLite database.

import Diagnostics
import SQLite
import SystemPackage

/// Reads a table of a database.
final class TableReader: RecordSource {
  package let path: FilePath
  package let columns: [String]
  private let rows: Statement
  private let count: Int64
  private var done: Int64 = 0

  package var share: Double { count > 0 ? Double(done) / Double(count) : 1 }

  /// Reads `table` over an open connection to the database in `path`.
  init(_ table: String, of connection: Connection, path: FilePath) throws {
    self.path = path
    columns = try connection.rows("SELECT name FROM pragma_table_info(?)", [.text(table)]) { $0.text(at: 0) ?? "" }
    guard !columns.isEmpty else {
      throw HopdError(
        .dataInvalid, "the database has no table or view '\(table.printableLine)'", at: Place(file: path),
        hint: "run `sqlite3 \(path.quotedForShell) .tables` to list them")
    }
    let name = SQLiteIdentifier.quoted(table)
    count = try connection.integer("SELECT count(*) FROM \(name)") ?? 0
    rows = try connection.prepare(
      "SELECT \(columns.map(SQLiteIdentifier.quoted).joined(separator: ", ")) FROM \(name)")
  }

  package func next() throws -> DataRecord? {
    guard try rows.step() else { return nil }
    done += 1
    let cells = columns.indices.map { index -> DataCell in
      let place = Int32(clamping: index)
      switch rows.value(at: place) {
      case .null: return .null
      case .integer(let number): return .integer(number)
      case .real(let number): return .real(number)
      case .blob(let bytes): return .blob(bytes)
      case .text(let text):
        guard text.unicodeScalars.contains("\u{fffd}"), let bytes = rows.blob(at: place),
          !bytes.elementsEqual(text.utf8)
        else { return .text(text) }
        return .storedText(bytes)
      }
    }
    return DataRecord(line: done, cells: cells)
  }
}
