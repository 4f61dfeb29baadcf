// Writes the objects of a store as CSV: a file for each concrete entity, one for the pairs of each many-to-many
// relationship, and the mapping by which `hopctl import` reads them again.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import PersistentStore
import SQLite
import SystemPackage
import TOMLDocuments

/// Exports a store to a folder of CSV files.
package struct CSVExport {
  private let reader: StoreReader
  private let schema: CleanSchema
  private let values: ExportedValue
  private let text: CSVText

  /// Creates an export of an open store.
  package init(
    of schema: CleanSchema, in reader: StoreReader, options: ExportOptions, external: ExternalDataDirectory?
  ) {
    self.reader = reader
    self.schema = schema
    values = ExportedValue(options: options, external: external)
    text = CSVText(formulas: options.formulas)
  }

  /// The result of an export.
  package struct Written: Sendable {
    /// Objects by entity.
    package var objects: [String: Int64] = [:]
    /// Pairs of many-to-many relationships.
    package var pairs: Int64 = 0
    /// Names of the files.
    package var files: [String] = []
    package var warnings: [HopdError] = []
    /// Texts with NUL, and those that are not UTF-8.
    fileprivate var odd: (zeros: Int64, invalid: Int64, escaped: Int64) = (0, 0, 0)

    /// All objects.
    package var count: Int64 { objects.values.reduce(0, &+) }
  }

  /// Writes the files into `folder`, which is empty.
  package func write(to folder: FilePath, progress: ExchangeProgress) throws -> Written {
    try values.register(on: reader.connection)
    var written = Written()
    do {
      var names = FileNames()
      var mapping = ExportMappingText(schema: schema, options: values.options)
      for table in schema.tables {
        for entity in table.entities {
          let name = names.take(entity.entity.name, extension: ".csv")
          let columns = table.columns.filter { $0.entities.contains(entity.entity.name) }
          mapping.add(entity, of: table, columns: columns, source: name)
          try write(entity, of: table, columns, to: folder.appending(name), into: &written, progress)
          written.files.append(name)
        }
      }
      for join in schema.joins {
        let relationship = join.relationship
        let name = names.take("\(relationship.entity).\(relationship.property)", extension: ".csv")
        mapping.add(join, source: name)
        try write(join, to: folder.appending(name), into: &written)
        written.files.append(name)
      }
      let file = try OutputFile(folder.appending(ExportMappingText.fileName))
      try file.write(mapping.text)
      try file.close()
    } catch let error as SQLiteError {
      if let failure = reader.connection.takeFunctionFailure() { throw failure }
      throw error
    }
    written.warnings = warnings(written)
    return written
  }

  private func warnings(_ written: Written) -> [HopdError] {
    func texts(_ count: Int64, _ what: String) -> HopdError? {
      guard count > 0 else { return nil }
      return HopdError(
        .textsChanged, "\(count) \(count == 1 ? "text" : "texts") \(what)",
        hint: "use `hopctl export --to ndjson`, which writes every string exactly")
    }
    return [
      values.missing.warning, values.archives.warning,
      texts(written.odd.zeros, "with NUL characters, which many readers of CSV refuse"),
      texts(written.odd.invalid, "that are not UTF-8; U+FFFD stands for each wrong byte"),
      texts(written.odd.escaped, "with an apostrophe in front, which an import of these files keeps"),
    ].compactMap(\.self)
  }

  private func write(
    _ entity: CleanEntity, of table: CleanTable, _ columns: [CleanColumn], to path: FilePath,
    into written: inout Written, _ progress: ExchangeProgress
  ) throws {
    let file = try OutputFile(path)
    let header = [table.keyColumn] + columns.map(\.name)
    try file.write(header.map { text.cell($0, mayBeFormula: false) }.joined(separator: ",") + "\r\n")
    let list = (["s.\"Z_PK\""] + columns.map(\.source)).joined(separator: ", ")
    let selected = table.condition.map { " AND \($0)" } ?? ""
    let rows = try reader.connection.prepare(
      "SELECT \(list) FROM \(reader.qualified(table.stored.name)) AS s WHERE s.\"Z_ENT\" = \(entity.number)\(selected)"
        + " ORDER BY s.\"Z_PK\"")
    var count: Int64 = 0
    let before = written.count
    while try rows.step() {
      try file.write(String(rows.integer(at: 0)))
      for (offset, column) in columns.enumerated() {
        try file.write(",")
        try file.write(cell(of: rows, at: Int32(clamping: offset + 1), column, &written))
      }
      try file.write("\r\n")
      count &+= 1
      if count % 4096 == 0 { try progress.report(before &+ count) }
    }
    try file.close()
    if count > 0 { written.objects[entity.entity.name] = count }
    try progress.report(before &+ count)
  }

  private func cell(
    of row: Statement, at index: Int32, _ column: CleanColumn, _ written: inout Written
  ) throws -> String {
    let value = row.value(at: index)
    if case .text(let content) = value {
      if content.utf8.contains(0) { written.odd.zeros &+= 1 }
      if text.isEscaped(content) { written.odd.escaped &+= 1 }
      // SQLite's reader replaced bytes that are not UTF-8 by U+FFFD.
      if content.unicodeScalars.contains("\u{fffd}"), let bytes = row.blob(at: index),
        !bytes.elementsEqual(content.utf8)
      {
        written.odd.invalid &+= 1
      }
    }
    if case .attribute(let attribute) = column.content, attribute.type.form == .boolean {
      if value == .integer(0) { return "false" }
      if value == .integer(1) { return "true" }
    }
    return text.cell(value)
  }

  private func write(_ join: CleanJoin, to path: FilePath, into written: inout Written) throws {
    let file = try OutputFile(path)
    let header = [join.owner.column, join.target.column] + [join.position, join.inversePosition].compactMap(\.self)
    try file.write(header.map { text.cell($0, mayBeFormula: false) }.joined(separator: ",") + "\r\n")
    let rows = try reader.connection.prepare("\(join.source) ORDER BY 1, 2")
    while try rows.step() {
      let cells = header.indices.map { text.cell(rows.value(at: Int32(clamping: $0))) }
      try file.write(cells.joined(separator: ",") + "\r\n")
      written.pairs &+= 1
    }
    try file.close()
  }
}
