// Reads a file with an object of JSON on each line. A column is the path to a value, as `address.city`.

import Diagnostics
import SystemPackage

/// Reads JSON lines.
package final class JSONLinesReader: RecordSource {
  private let file: InputFile
  private(set) var line: Int64 = 0
  package let columns: [String]
  private let paths: [[String]]

  package var path: FilePath { file.path }
  package var share: Double { file.share }

  /// A line may be as long as the largest value of SQLite, twice: base64 and escapes make it longer.
  private static let longestLine = 2_000_000_000

  /// Reads the values of `columns`; without them only whole objects.
  package init(_ path: FilePath, columns: [String] = [], encoding: TextEncoding? = nil) throws(HopdError) {
    file = try InputFile(path, encoding: encoding)
    self.columns = columns
    paths = columns.map { $0.split(separator: ".", omittingEmptySubsequences: false).map(String.init) }
  }

  /// Returns the next object; nil at the end. Empty lines are skipped.
  func object() throws(HopdError) -> JSONNode? {
    while let bytes = try file.line(limit: Self.longestLine) {
      line += 1
      guard bytes.contains(where: { ![0x20, 0x09, 0x0d].contains($0) }) else { continue }
      do throws(JSONMistake) {
        let node = try JSONNode(bytes)
        guard case .object = node else { throw JSONMistake(message: "the line is not an object") }
        return node
      } catch {
        throw HopdError(
          .dataInvalid, "no valid JSON: \(error.message)", at: Place(file: path, line: Int(clamping: line)),
          hint: "write one object on each line")
      }
    }
    return nil
  }

  package func next() throws -> DataRecord? {
    guard let object = try object() else { return nil }
    let cells = zip(columns, paths).map { name, path in
      Self.cell(object[name] ?? path.reduce(object) { $0?[$1] } ?? .null)
    }
    return DataRecord(line: line, cells: cells)
  }

  private static func cell(_ node: JSONNode) -> DataCell {
    switch node {
    case .null: .null
    case .boolean(let flag): .boolean(flag)
    case .number(let digits): .number(digits)
    case .string(let text): .text(text)
    case .array(let elements): .list(elements.map(cell))
    // No attribute takes an object, and the error names it.
    case .object: .blob([])
    }
  }
}
