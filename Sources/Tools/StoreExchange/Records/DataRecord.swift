// Rows of data as an import reads them, whatever file they are in.

import Diagnostics
import SystemPackage

/// A value of a row.
package enum DataCell: Hashable {
  case null
  case text(String)
  /// Text that is not UTF-8, in a file whose encoding may be another one.
  case invalidText([UInt8])
  /// The same in a database, which keeps such text.
  case storedText([UInt8])
  /// The digits of a number, as JSON has them.
  case number(String)
  case integer(Int64)
  case real(Double)
  case boolean(Bool)
  case blob([UInt8])
  case list([DataCell])

  /// The value as text, by which keys are compared and expressions are evaluated; nil for nil, bytes and lists.
  var text: String? {
    switch self {
    case .null, .invalidText, .storedText, .blob, .list: nil
    case .text(let text), .number(let text): text
    case .integer(let number): String(number)
    case .real(let number): number == number.rounded() && abs(number) < 1e15 ? String(Int64(number)) : String(number)
    case .boolean(let flag): flag ? "true" : "false"
    }
  }
}

/// A row, and its line in the file; a table of a database has no lines, and its rows are counted.
package struct DataRecord {
  package let line: Int64
  /// By the places of the columns; cells may be missing at the end.
  package let cells: [DataCell]
}

/// Rows of one file or table.
package protocol RecordSource: AnyObject {
  /// The file, for messages.
  var path: FilePath { get }
  /// Names of the columns.
  var columns: [String] { get }
  /// The share of the data that is read, from 0 to 1.
  var share: Double { get }
  /// The hint if the columns are not those that were expected, and what is wrong with the file is plain.
  var advice: String? { get }
  /// Returns the next row; nil at the end.
  func next() throws -> DataRecord?
}

extension RecordSource {
  package var advice: String? { nil }
}
