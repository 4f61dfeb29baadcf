// Reads CSV and its kin: RFC 4180, with any delimiter and any end of line. A cell without quotes and content is nil,
// and one with quotes is a text, even an empty one. What could be read in two ways is refused, with its line.

import Diagnostics
import SystemPackage

/// Reads a file of delimited cells, whose first row names the columns.
package final class CSVReader: RecordSource {
  private let file: InputFile
  private let delimiter: UInt8
  package private(set) var columns: [String] = []
  private var line: Int64 = 1
  /// SQLite's own limit for a value.
  private static let largestCell = 1_000_000_000

  package var path: FilePath { file.path }
  package var share: Double { file.share }
  /// A header of one column with another delimiter in it.
  package var advice: String? {
    guard columns.count == 1, let header = columns.first else { return nil }
    let others: [(Character, String)] = [(";", ";"), ("\t", "tab"), ("|", "|"), (",", ",")]
    return others.first { header.contains($0.0) }.map { other in
      "set delimiter = \"\(other.1)\" in the mapping: the cells are not separated by '\(delimiterText)'"
    }
  }
  private var delimiterText: String { delimiter == 0x09 ? "tab" : String(Unicode.Scalar(delimiter)) }

  /// Opens a file and reads its header.
  package init(_ path: FilePath, delimiter: UInt8, encoding: TextEncoding? = nil) throws(HopdError) {
    file = try InputFile(path, encoding: encoding)
    self.delimiter = delimiter
    guard let header = try record() else {
      throw HopdError(.dataInvalid, "the file is empty", at: Place(file: path), hint: "write a row of column names")
    }
    columns = try header.cells.map { cell throws(HopdError) in
      guard case .invalidText = cell else { return cell.text ?? "" }
      throw HopdError(
        .dataInvalid, "the column names are not UTF-8", at: Place(file: path, line: 1),
        hint: "set encoding = \"windows-1252\" in the mapping, or convert the file")
    }
    // Spreadsheets write columns without a name at the end.
    if let twice = columns.first(where: { name in !name.isEmpty && columns.count { $0 == name } > 1 }) {
      throw HopdError(
        .dataInvalid, "duplicate column '\(twice.printableLine)'", at: Place(file: path, line: 1),
        hint: "rename one of the columns")
    }
  }

  package func next() throws -> DataRecord? {
    while let record = try record() {
      // An empty line, or one of delimiters alone, as at the end of many files.
      if columns.count > 1, record.cells.allSatisfy({ $0 == .null }) { continue }
      guard record.cells.count == columns.count else {
        throw HopdError(
          .rowInvalid, "the row has \(record.cells.count) cells, and the header has \(columns.count)",
          at: Place(file: path, line: Int(clamping: record.line)))
      }
      return record
    }
    return nil
  }

  private func record() throws(HopdError) -> DataRecord? {
    guard try file.peek() != nil else { return nil }
    let start = line
    var cells: [DataCell] = []
    while true {
      let (cell, isLast) = try cell()
      cells.append(cell)
      if isLast { return DataRecord(line: start, cells: cells) }
    }
  }

  /// Takes a cell and what ends it.
  private func cell() throws(HopdError) -> (DataCell, isLast: Bool) {
    var bytes: [UInt8] = []
    let isQuoted = try file.peek() == UInt8(ascii: "\"")
    if isQuoted { try takeQuoted(into: &bytes) }
    while let byte = try file.take() {
      if byte == delimiter { return (Self.value(bytes, isQuoted: isQuoted), false) }
      if byte == 0x0a || byte == 0x0d {
        if byte == 0x0d, try file.peek() == 0x0a { _ = try file.take() }
        line += 1
        return (Self.value(bytes, isQuoted: isQuoted), true)
      }
      guard !isQuoted else { throw invalid("unexpected text after the closing quote of a cell") }
      guard byte != UInt8(ascii: "\"") else { throw invalid("unescaped quote in a cell") }
      bytes.append(byte)
      if bytes.count > Self.largestCell { throw invalid("a cell has more than \(Self.largestCell) bytes") }
    }
    return (Self.value(bytes, isQuoted: isQuoted), true)
  }

  private func takeQuoted(into bytes: inout [UInt8]) throws(HopdError) {
    let start = line
    _ = try file.take()
    while let byte = try file.take() {
      if byte == UInt8(ascii: "\"") {
        guard try file.peek() == byte else { return }
        _ = try file.take()
      } else if byte == 0x0a {
        line += 1
      }
      bytes.append(byte)
      if bytes.count > Self.largestCell { throw invalid("a cell has more than \(Self.largestCell) bytes") }
    }
    line = start
    throw invalid("the quote of a cell is not closed")
  }

  private static func value(_ bytes: [UInt8], isQuoted: Bool) -> DataCell {
    if bytes.isEmpty, !isQuoted { return .null }
    return String(validating: bytes, as: UTF8.self).map { .text($0) } ?? .invalidText(bytes)
  }

  private func invalid(_ message: String) -> HopdError {
    HopdError(
      .dataInvalid, message, at: Place(file: path, line: Int(clamping: line)),
      hint: "quote the cell, and double the quotes in it (RFC 4180)")
  }
}
