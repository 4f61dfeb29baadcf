// Counts the content of the columns with external storage. The planner counts the source and the verifier the result
// with this one reader, so that the numbers mean the same. Rows are streamed: memory does not grow with them.

import ManagedObjectModel
import SQLite

/// A column whose values have one of the forms of `ExternalDataForm`.
package struct ExternalDataColumn: Sendable, Hashable {
  /// Table and column.
  package let table: String
  package let column: String
  /// The attribute, by the entity that declares it.
  package let entity: String
  package let property: String
  /// Z_ENT of the rows whose column is this attribute.
  package let numbers: [Int64]

  /// Returns the columns with external storage of a layout.
  package static func all(in schema: StoreSchema) -> [ExternalDataColumn] {
    schema.tables.flatMap { table in
      table.columns.compactMap { column in
        guard case .attribute(let name, let property) = column.role, let entity = schema.model.entity(named: name),
          entity.attributes.first(where: { $0.name == property })?.hasExternalForm == true
        else { return nil }
        return ExternalDataColumn(
          table: table.name, column: column.name, entity: name, property: property,
          numbers: schema.numbersOfSubtree(of: name))
      }
    }
  }
}

/// Counts of the values of a column with external storage.
package struct ExternalDataCount: Sendable, Hashable {
  /// Values in the column itself, and the bytes of their contents.
  package var inline: Int64 = 0
  package var inlineBytes: Int64 = 0
  /// References with an existing file, the bytes of the files, and the largest.
  package var found: Int64 = 0
  package var foundBytes: Int64 = 0
  package var largest: Int64 = 0
  package var largestRow: Int64?
  /// References whose file is missing.
  package var missing: Int64 = 0
  /// Z_PK of the first such rows.
  package var missingRows: [Int64] = []
  /// References whose file is not a plain file, the first row, and what is in its place.
  package var unsuitable: Int64 = 0
  package var unsuitableRow: Int64?
  package var unsuitableWhat: String?
  /// Values in neither form, and the first row.
  package var malformed: Int64 = 0
  package var malformedRow: Int64?

  /// Creates an empty count.
  package init() {}

  /// All references.
  package var references: Int64 { found &+ missing &+ unsuitable }

  /// Adds another count, of other rows.
  package mutating func add(_ other: ExternalDataCount) {
    inline &+= other.inline
    inlineBytes &+= other.inlineBytes
    found &+= other.found
    foundBytes &+= other.foundBytes
    if other.largestRow != nil, other.largest > largest || largestRow == nil {
      (largest, largestRow) = (other.largest, other.largestRow)
    }
    missing &+= other.missing
    missingRows = Array((missingRows + other.missingRows).sorted().prefix(ExternalDataCount.rowsShown))
    unsuitable &+= other.unsuitable
    if let row = other.unsuitableRow, unsuitableRow.map({ row < $0 }) ?? true {
      (unsuitableRow, unsuitableWhat) = (row, other.unsuitableWhat)
    }
    malformed &+= other.malformed
    if let row = other.malformedRow { malformedRow = min(malformedRow ?? row, row) }
  }

  fileprivate static let rowsShown = 8

  fileprivate mutating func note(_ form: ExternalDataForm, row: Int64, _ directory: ExternalDataDirectory?) {
    switch form {
    case .inline(let count):
      inline &+= 1
      inlineBytes &+= count
    case .reference(let name):
      switch directory?.status(of: name) ?? .missing {
      case .file(let bytes):
        found &+= 1
        foundBytes &+= bytes
        if bytes > largest || largestRow == nil { (largest, largestRow) = (bytes, row) }
      case .missing:
        missing &+= 1
        if missingRows.count < ExternalDataCount.rowsShown { missingRows.append(row) }
      case .unsuitable(let what):
        unsuitable &+= 1
        if unsuitableRow == nil { (unsuitableRow, unsuitableWhat) = (row, what) }
      }
    case .malformed:
      malformed &+= 1
      if malformedRow == nil { malformedRow = row }
    }
  }
}

/// Counts columns with external storage.
package enum ExternalDataCensus {
  /// Counts the values of a column by Z_ENT of their rows; files are looked up in `directory`.
  package static func count(
    _ column: ExternalDataColumn, reader: StoreReader, directory: ExternalDataDirectory?
  ) throws -> [Int64: ExternalDataCount] {
    var counts: [Int64: ExternalDataCount] = [:]
    try forEachValue(column, reader: reader) { row, entity, form in
      counts[entity, default: ExternalDataCount()].note(form, row: row, directory)
    }
    return counts
  }

  /// Calls `body` with every reference of a column.
  package static func forEachReference(
    _ column: ExternalDataColumn, reader: StoreReader, _ body: (ExternalFileName) throws -> Void
  ) throws {
    try forEachValue(column, reader: reader) { _, _, form in
      if case .reference(let name) = form { try body(name) }
    }
  }

  private static func forEachValue(
    _ column: ExternalDataColumn, reader: StoreReader,
    _ body: (_ row: Int64, _ entity: Int64, ExternalDataForm) throws -> Void
  ) throws {
    let name = SQLiteIdentifier.quoted(column.column)
    let numbers = column.numbers.map(String.init).joined(separator: ", ")
    // typeof and length do not load a value, and of a long one only the first byte is read.
    let rows = try reader.connection.prepare(
      "SELECT Z_PK, Z_ENT, length(\(name)), CASE WHEN typeof(\(name)) = 'blob' THEN substr(\(name), 1,"
        + " CASE length(\(name)) WHEN \(ExternalDataForm.referenceLength) THEN \(ExternalDataForm.referenceLength)"
        + " ELSE 1 END) END FROM \(reader.qualified(column.table)) WHERE \(name) IS NOT NULL AND Z_ENT IN (\(numbers))")
    while try rows.step() {
      let head = rows.blob(at: 3)
      // A value of another storage class has neither form.
      let form = head.map { ExternalDataForm(head: $0, length: rows.integer(at: 2)) } ?? .malformed
      try body(rows.integer(at: 0), rows.integer(at: 1), form)
    }
  }
}
