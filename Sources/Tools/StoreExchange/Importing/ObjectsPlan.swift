// One [[import]] of a mapping, checked against the model and the columns of its data.

import Diagnostics
import Expressions
import ManagedObjectModel
import PersistentStore
import SQLite

/// The objects of one source.
struct ObjectsPlan {
  /// Where the value of an attribute comes from.
  enum Origin {
    case column(Int)
    case expression(ExpressionNode)
  }

  /// A relationship by the keys in columns.
  struct Link {
    let name: String
    let relationship: Relationship
    let columns: [Int]
    let separator: String?
    let position: Int?
  }

  let mapping: ImportMapping.Objects
  let writer: ObjectWriter
  let source: any RecordSource
  let expressions: RowExpressions
  let values: ImportedValue
  let key: [Int]
  let attributes: [(attribute: Attribute, column: String, place: Int, origin: Origin)]
  let links: [Link]

  /// Opens the source and checks the mapping; throws all mistakes in one error.
  init(_ mapping: ImportMapping.Objects, data: DataSet, loader: StoreLoader, moment: Double) throws {
    self.mapping = mapping
    do {
      writer = try loader.writer(of: mapping.entity)
    } catch let error as HopdError {
      throw HopdError(.importMappingInvalid, error.message, at: mapping.place, hint: error.hint)
    }
    source = try data.source(mapping.source, columns: Self.names(in: mapping), at: mapping.place)
    let expressions = RowExpressions(columns: source.columns, moment: moment)
    self.expressions = expressions
    values = ImportedValue(dates: mapping.dates)
    var check = MappingCheck(expressions: expressions, source: source)
    key = check.places(mapping.key, at: mapping.place)
    attributes = check.attributes(mapping, of: writer)
    links = check.links(mapping, of: writer)
    if let filter = mapping.filter {
      check.note { () throws(HopdError) in try expressions.check(filter, at: mapping.place) }
    }
    try check.finish(at: mapping.place)
  }

  /// The names that may be columns, for data without a row of names.
  private static func names(in mapping: ImportMapping.Objects) -> [String] {
    var texts = mapping.key + mapping.columns.values.map(\.text)
    texts += mapping.relationships.values.flatMap { $0.columns + [$0.position].compactMap(\.self) }
    if let filter = mapping.filter { texts.append(filter.description) }
    return Set(texts + texts.flatMap(words)).sorted()
  }

  /// The words of an expression: each may be the name of a column.
  private static func words(of text: String) -> [String] {
    text.split { !$0.isLetter && !$0.isNumber && $0 != "_" && $0 != "." }.map(String.init)
  }

  /// The columns that the mapping uses.
  var usedColumns: Set<Int> {
    var columns = Set(key + links.flatMap { $0.columns + [$0.position].compactMap(\.self) })
    var texts = [mapping.filter?.description].compactMap(\.self)
    for (_, _, _, origin) in attributes {
      switch origin {
      case .column(let column): columns.insert(column)
      case .expression(let node): texts.append(node.description)
      }
    }
    for word in texts.flatMap(Self.words) {
      // As an expression is printed, it begins with the variable of the row.
      let name = word.hasPrefix("source.") ? String(word.dropFirst("source.".count)) : word
      if let column = expressions.place(ofName: name) { columns.insert(column) }
    }
    return columns
  }

  /// Returns the key of a row; nil if a part of it is nil.
  func key(of record: DataRecord) -> String? { Self.key(of: record, key) }

  /// Returns the key in columns of a row. Parts of a key are separated by a character that no string contains.
  static func key(of record: DataRecord, _ columns: [Int]) -> String? {
    var parts: [String] = []
    for column in columns {
      guard record.cells.indices.contains(column), let text = record.cells[column].text else { return nil }
      parts.append(text)
    }
    return parts.isEmpty ? nil : parts.joined(separator: "\u{1f}")
  }
}

/// Checks the names in one [[import]].
struct MappingCheck {
  let expressions: RowExpressions
  let source: any RecordSource
  private var columns: [String] { source.columns }
  private var mistakes: [HopdError] = []

  init(expressions: RowExpressions, source: any RecordSource) {
    self.expressions = expressions
    self.source = source
  }

  /// The hint for a column that is not there.
  private func hint(for name: String) -> String {
    source.advice ?? NearestName.among(columns, to: name).map { "use '\($0)'" }
      ?? "use one of: \(columns.prefix(50).joined(separator: ", "))"
  }

  /// Notes the error of a check.
  mutating func note(_ body: () throws(HopdError) -> Void) {
    do { try body() } catch { mistakes.append(error) }
  }

  /// Throws all mistakes.
  func finish(at place: Place) throws(HopdError) {
    guard let first = mistakes.first else { return }
    throw mistakes.count == 1
      ? first
      : HopdError(
        .importMappingInvalid, "the mapping has \(mistakes.count) mistakes", at: Place(file: place.file),
        reasons: mistakes)
  }

  private mutating func mistake(_ message: String, at place: Place, hint: String? = nil) {
    mistakes.append(HopdError(.importMappingInvalid, message, at: place, hint: hint))
  }

  /// The places of columns.
  mutating func places(_ names: [String], at place: Place) -> [Int] {
    names.compactMap { name in
      if let found = expressions.place(of: name) { return found }
      mistake(
        "the data has no column '\(name.printableLine)'", at: place, hint: hint(for: name))
      return nil
    }
  }

  mutating func attributes(
    _ mapping: ImportMapping.Objects, of writer: ObjectWriter
  ) -> [(attribute: Attribute, column: String, place: Int, origin: ObjectsPlan.Origin)] {
    var found: [(attribute: Attribute, column: String, place: Int, origin: ObjectsPlan.Origin)] = []
    for (name, text) in mapping.columns.sorted(by: { $0.key < $1.key }) {
      guard let (attribute, stored, place) = writer.attributes[name] else {
        mistake(
          "\(writer.entity.name) has no attribute \(name.printableLine)", at: text.place,
          hint: NearestName.among(writer.attributes.keys, to: name).map { "use '\($0)'" })
        continue
      }
      guard !attribute.isDerived else {
        mistake("\(name) is derived: the store computes it", at: text.place, hint: "remove the line")
        continue
      }
      if let column = expressions.place(of: text.text) {
        found.append((attribute, stored, place, .column(column)))
        continue
      }
      do {
        found.append((attribute, stored, place, .expression(try expressions.expression(text.text, at: text.place))))
      } catch {
        // What reads as a name was meant as a column, not as an expression.
        let isName = text.text.allSatisfy { $0.isLetter || $0.isNumber || " _-/".contains($0) }
        let advice = source.advice ?? (isName ? nil : error.hint)
        mistakes.append(
          HopdError(
            .importMappingInvalid, "'\(text.text.printableLine)' is neither a column nor an expression over columns",
            at: text.place, cause: isName ? nil : error, hint: advice ?? hint(for: text.text)))
      }
    }
    for (name, known) in writer.attributes.sorted(by: { $0.key < $1.key }) where mapping.columns[name] == nil {
      let attribute = known.attribute
      guard !attribute.isOptional, !attribute.isDerived, attribute.storedDefault ?? .null == .null else { continue }
      mistake(
        "\(writer.entity.name).\(name) needs a value, and no column has it", at: mapping.place,
        hint: "add \(name) = \"…\" to [import.columns]")
    }
    return found
  }

  mutating func links(_ mapping: ImportMapping.Objects, of writer: ObjectWriter) -> [ObjectsPlan.Link] {
    var found: [ObjectsPlan.Link] = []
    for (name, reference) in mapping.relationships.sorted(by: { $0.key < $1.key }) {
      let isToOne = writer.references[name] != nil
      guard let relationship = writer.references[name]?.relationship ?? writer.collections[name]?.relationship else {
        mistake(
          "\(writer.entity.name) has no relationship \(name.printableLine)", at: reference.place,
          hint: NearestName.among(Array(writer.references.keys) + Array(writer.collections.keys), to: name)
            .map { "use '\($0)'" })
        continue
      }
      if isToOne, reference.separator != nil {
        mistake("\(name) has one target: it needs no separator", at: reference.place)
      }
      if !isToOne, reference.columns.count > 1 {
        mistake("the keys of a to-many are in one column", at: reference.place, hint: "write [[pairs]] for other keys")
      }
      let columns = places(reference.columns, at: reference.place)
      guard columns.count == reference.columns.count else { continue }
      found.append(
        ObjectsPlan.Link(
          name: name, relationship: relationship, columns: columns, separator: reference.separator,
          position: reference.position.flatMap { places([$0], at: reference.place).first }))
    }
    return found
  }
}
