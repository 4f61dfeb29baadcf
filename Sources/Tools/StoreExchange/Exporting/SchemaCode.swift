// Code for the program that reads a clean database: statements of SQL, record types of GRDB, entities of Room. The
// names are those of the database; where a language does not allow one, the code's own name differs and the column's
// stays.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite

/// The languages of code for a clean schema.
package enum SchemaLanguage: String, Sendable, Hashable, CaseIterable {
  case sql
  case grdbSwift = "grdb-swift"
  case roomKotlin = "room-kotlin"
}

/// Writes code for a clean schema.
package struct SchemaCode {
  private let schema: CleanSchema
  private let statements: CleanStatements
  private let options: ExportOptions

  /// The rules that objects of the store break.
  package let warnings: [HopdError]

  /// Creates the code of the database of an open store, whose values have the forms in `options`.
  package init(
    of schema: CleanSchema, in reader: StoreReader, options: ExportOptions, external: ExternalDataDirectory?
  ) throws {
    self.schema = schema
    self.options = options
    try ExportedValue(options: options, external: external).register(on: reader.connection)
    do {
      let broken = try BrokenRules(of: schema, in: reader, options: options)
      warnings = broken.warnings
      statements = CleanStatements(schema: schema, options: options, keeps: broken.keeps)
    } catch let error as SQLiteError {
      throw reader.connection.takeFunctionFailure() ?? error
    }
  }

  /// Returns the code.
  package func text(in language: SchemaLanguage) -> String {
    switch language {
    case .sql: statements.all.map { "\($0);\n" }.joined()
    case .grdbSwift: swift()
    case .roomKotlin: kotlin()
    }
  }

  /// A column as a member of a type.
  private struct Member {
    let column: String
    let type: String
    let isOptional: Bool
  }

  // MARK: Types

  private func members(of table: CleanTable, type: (CleanColumn) -> String) -> [Member] {
    let required = statements.required(in: table)
    return table.columns.map { Member(column: $0.name, type: type($0), isOptional: !required.contains($0.name)) }
  }

  /// A name that a language allows as an identifier, given once.
  private static func identifier(_ name: String, _ names: inout UniqueNames, reserved: Set<String>) -> String {
    var text = ""
    for scalar in name.unicodeScalars {
      let isWord = scalar.properties.isAlphabetic || (0x30...0x39).contains(scalar.value) || scalar == "_"
      text.unicodeScalars.append(isWord ? scalar : "_")
    }
    if text.isEmpty || text == "_" || (text.utf8.first.map { (0x30...0x39).contains($0) } ?? true) { text = "_" + text }
    let free = names.take(text)
    return reserved.contains(free) ? "`\(free)`" : free
  }

  /// A string literal of Swift and Kotlin; `$` begins a template in Kotlin, and `\(` an interpolation in Swift.
  private static func literal(_ text: String, isKotlin: Bool = false) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": result += "\\" + String(scalar)
      case "$" where isKotlin: result += "\\$"
      case _ where scalar.value < 0x20 || scalar.value == 0x7f || [0x2028, 0x2029].contains(scalar.value):
        let digits = String(scalar.value, radix: 16)
        let padded = String(repeating: "0", count: 4 - digits.utf8.count) + digits
        result += isKotlin ? "\\u\(padded)" : "\\u{\(digits)}"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }

  // MARK: Swift

  private static let swiftWords: Set<String> = [
    "Any", "Protocol", "Self", "Type", "as", "associatedtype", "break", "case", "catch", "class", "continue", "default",
    "defer", "deinit", "do", "else", "enum", "extension", "fallthrough", "false", "fileprivate", "for", "func", "guard",
    "if", "import", "in", "init", "inout", "internal", "is", "let", "nil", "operator", "precedencegroup", "private",
    "protocol", "public", "repeat", "rethrows", "return", "self", "static", "struct", "subscript", "super", "switch",
    "throw", "throws", "true", "try", "typealias", "var", "where", "while",
  ]
  /// Names that would hide a type which the code uses.
  private static let swiftTypes = [
    "Bool", "Codable", "CodingKey", "CodingKeys", "Data", "DatabaseDateDecodingStrategy",
    "DatabaseDateEncodingStrategy", "DatabaseUUIDEncodingStrategy", "DatabaseValue", "Date", "Double",
    "FetchableRecord", "Identifiable", "InsertionSuccess", "Int64", "MutablePersistableRecord", "StoredDate", "String",
    "TableRecord", "UUID",
  ]

  private func swiftType(_ column: CleanColumn) -> String {
    guard case .attribute(let attribute) = column.content else { return "Int64" }
    return switch attribute.type.form {
    case .integer: "Int64"
    case .boolean: "Bool"
    // The database has floating-point numbers, of which GRDB makes decimals with other digits.
    case .real, .decimal: "Double"
    case .date: "Date"
    case .string, .uri, .transformable: "String"
    case .uuid: "UUID"
    case .binary, .other: "Data"
    }
  }

  private func swift() -> String {
    var types = UniqueNames(Self.swiftTypes)
    var text = "import Foundation\nimport GRDB\n"
    for table in schema.tables {
      let key = Member(column: table.keyColumn, type: "Int64", isOptional: true)
      let entity = table.entityColumn.map { Member(column: $0, type: "String", isOptional: false) }
      let members = [key] + [entity].compactMap(\.self) + self.members(of: table, type: swiftType)
      text += record(table.name, members, &types, isTable: true)
      for view in table.views {
        let columns = view.columns.map { name, place in
          Member(column: name, type: swiftType(table.columns[place]), isOptional: true)
        }
        text += record(view.name, [key] + [entity].compactMap(\.self) + columns, &types, isTable: false)
      }
    }
    for join in schema.joins {
      let places = [join.position, join.inversePosition].compactMap(\.self)
      let members =
        [join.owner.column, join.target.column].map { Member(column: $0, type: "Int64", isOptional: false) }
        + places.map { Member(column: $0, type: "Int64", isOptional: true) }
      text += record(join.name, members, &types, isTable: true, hasKey: false)
    }
    return text.contains("StoredDate") ? text + Self.storedDate : text
  }

  /// The forms of dates in an export with `--dates iso`.
  private static let storedDate = """

    /// Dates as the database has them: RFC 3339 in UTC, and Unix seconds for years after 9999.
    enum StoredDate {
      static func text(of date: Date) -> String {
        let seconds = date.timeIntervalSince1970
        guard date >= .distantPast, seconds < 253_402_300_800 else { return String(seconds) }
        return date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
      }

      static func date(in value: DatabaseValue) -> Date? {
        Date.fromDatabaseValue(value)
          ?? String.fromDatabaseValue(value).flatMap(Double.init).map(Date.init(timeIntervalSince1970:))
      }
    }

    """

  private func record(
    _ name: String, _ members: [Member], _ types: inout UniqueNames, isTable: Bool, hasKey: Bool = true
  ) -> String {
    var names = UniqueNames()
    // A property must not hide the type of another.
    let properties = members.map { member in
      let column = Self.swiftTypes.contains(member.column) ? member.column + "_" : member.column
      return Self.identifier(column, &names, reserved: Self.swiftWords)
    }
    let type = Self.identifier(name, &types, reserved: Self.swiftWords)
    let protocols =
      ["Codable", hasKey && properties[0] == "id" ? "Identifiable" : nil, "FetchableRecord"]
      .compactMap(\.self) + (isTable ? ["MutablePersistableRecord"] : ["TableRecord"])
    var text = "\nstruct \(type): \(protocols.joined(separator: ", ")) {\n"
    text += "  static let databaseTableName = \(Self.literal(name))\n\n"
    for (property, member) in zip(properties, members) {
      text += "  var \(property): \(member.type)\(member.isOptional ? "?" : "")\n"
    }
    text += "\n  enum CodingKeys: String, CodingKey {\n"
    for (property, member) in zip(properties, members) {
      text += "    case \(property) = \(Self.literal(member.column))\n"
    }
    text += "  }\n"
    text += forms(of: members, isTable: isTable)
    if isTable, hasKey {
      text += "\n  mutating func didInsert(_ inserted: InsertionSuccess) { \(properties[0]) = inserted.rowID }\n"
    }
    return text + "}\n"
  }

  /// How a record is read and written: with the dates and UUIDs of the export.
  private func forms(of members: [Member], isTable: Bool) -> String {
    func strategy(_ kind: String, _ form: String) -> String {
      "\n  static func database\(kind)Strategy(for column: String) -> Database\(kind)Strategy {\n    \(form)\n  }\n"
    }
    let hasDates = members.contains { $0.type == "Date" }
    var text = ""
    if hasDates, options.dates == .iso { text += strategy("DateDecoding", ".custom(StoredDate.date(in:))") }
    guard isTable else { return text }
    if hasDates {
      text += strategy(
        "DateEncoding", options.dates == .iso ? ".custom(StoredDate.text(of:))" : ".timeIntervalSince1970")
    }
    if options.uuids == .text, members.contains(where: { $0.type == "UUID" }) {
      text += strategy("UUIDEncoding", ".uppercaseString")
    }
    return text
  }

  // MARK: Kotlin

  private func kotlinType(_ column: CleanColumn) -> String {
    guard case .attribute(let attribute) = column.content else { return "Long" }
    return switch attribute.type.form {
    case .integer: "Long"
    case .boolean: "Boolean"
    case .real, .decimal: "Double"
    case .date: options.dates == .iso ? "String" : "Double"
    case .string, .uri, .transformable: "String"
    case .uuid: options.uuids == .text ? "String" : "ByteArray"
    case .binary, .other: "ByteArray"
    }
  }

  private static let kotlinTypes = [
    "Boolean", "ByteArray", "Double", "Entity", "ForeignKey", "Index", "Long", "String",
  ]
  private static let kotlinWords: Set<String> = [
    "as", "break", "class", "continue", "do", "else", "false", "for", "fun", "if", "in", "interface", "is", "null",
    "object", "package", "return", "super", "this", "throw", "true", "try", "typealias", "typeof", "val", "var", "when",
    "while",
  ]

  private func kotlin() -> String {
    var types = UniqueNames(Self.kotlinTypes)
    let indexes = Dictionary(grouping: statements.indexes()) { $0.on }
    let classes = Dictionary(
      schema.tables.map { ($0.stored.rootEntity, Self.identifier($0.name, &types, reserved: Self.kotlinWords)) },
      uniquingKeysWith: { first, _ in first })
    var text =
      "import androidx.room.ColumnInfo\nimport androidx.room.Entity\nimport androidx.room.ForeignKey\n"
      + "import androidx.room.Index\nimport androidx.room.PrimaryKey\n"
    for table in schema.tables {
      let required = statements.required(in: table)
      let keys = table.columns.compactMap { column -> String? in
        guard case .reference(let root, _) = column.content, let target = statements.table(of: root),
          let action = statements.action(of: column, isRequired: required.contains(column.name))
        else { return nil }
        return foreignKey(classes[root] ?? "", target.keyColumn, column.name, action)
      }
      var members = [Member(column: table.keyColumn, type: "Long", isOptional: true)]
      if let column = table.entityColumn { members.append(Member(column: column, type: "String", isOptional: false)) }
      members += self.members(of: table, type: kotlinType)
      text += entity(
        classes[table.stored.rootEntity] ?? "", table.name, members, keys, indexes[table.name] ?? [],
        key: [table.keyColumn])
    }
    for join in schema.joins {
      let ends = [join.owner, join.target]
      let keys = ends.compactMap { end in
        statements.table(of: end.root).map { foreignKey(classes[end.root] ?? "", $0.keyColumn, end.column, "CASCADE") }
      }
      let members =
        ends.map { Member(column: $0.column, type: "Long", isOptional: false) }
        + [join.position, join.inversePosition].compactMap {
          $0.map { Member(column: $0, type: "Long", isOptional: true) }
        }
      text += entity(
        Self.identifier(join.name, &types, reserved: Self.kotlinWords), join.name, members, keys,
        indexes[join.name] ?? [], key: ends.map(\.column))
    }
    return text
  }

  private func foreignKey(_ type: String, _ parent: String, _ child: String, _ action: String) -> String {
    "ForeignKey(entity = \(type)::class, parentColumns = [\(Self.literal(parent, isKotlin: true))], childColumns = "
      + "[\(Self.literal(child, isKotlin: true))], onDelete = ForeignKey.\(action.replacing(" ", with: "_")),"
      + " deferred = true)"
  }

  private func entity(
    _ type: String, _ table: String, _ members: [Member], _ foreignKeys: [String],
    _ indexes: [CleanStatements.Index], key: [String]
  ) -> String {
    func literal(_ text: String) -> String { Self.literal(text, isKotlin: true) }
    var names = UniqueNames()
    var arguments = ["tableName = \(literal(table))"]
    if key.count > 1 { arguments.append("primaryKeys = [\(key.map(literal).joined(separator: ", "))]") }
    if !foreignKeys.isEmpty {
      arguments.append("foreignKeys = [\n    \(foreignKeys.joined(separator: ",\n    ")),\n  ]")
    }
    if !indexes.isEmpty {
      let list = indexes.map { index in
        "Index(value = [\(index.columns.map(literal).joined(separator: ", "))], name = \(literal(index.name))"
          + (index.isUnique ? ", unique = true)" : ")")
      }
      arguments.append("indices = [\n    \(list.joined(separator: ",\n    ")),\n  ]")
    }
    var text = "\n@Entity(\n  \(arguments.joined(separator: ",\n  ")),\n)\ndata class \(type)(\n"
    for member in members {
      let name = Self.identifier(member.column, &names, reserved: Self.kotlinWords)
      let primary = key == [member.column] ? "@PrimaryKey " : ""
      text +=
        "  \(primary)@ColumnInfo(name = \(literal(member.column))) val \(name): \(member.type)"
        + (member.isOptional ? "?,\n" : ",\n")
    }
    return text + ")\n"
  }
}
