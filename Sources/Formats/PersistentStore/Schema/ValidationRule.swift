// The requirements of a model on an object before Core Data saves it, as conditions on rows: required values, bounds,
// lengths, patterns, counts of relationships, uniqueness. Each has the code of Core Data's error, so that hopd names a
// violation as Apple's software does (docs/formats/migration-semantics.md, "Validation").

import ManagedObjectModel
import SQLite

/// The kinds of violations, by Core Data's number of the error.
package enum ValidationErrorCode: Int, Sendable, Hashable, CaseIterable {
  case uniqueness = 1551
  case missingValue = 1570
  case tooFew = 1580
  case tooMany = 1590
  case numberTooLarge = 1610
  case numberTooSmall = 1620
  case dateTooLate = 1630
  case dateTooSoon = 1640
  case stringTooLong = 1660
  case stringTooShort = 1670
  case patternMismatch = 1680

  /// The violation in words that follow a count of objects.
  package func words(count: Int64) -> String {
    let (have, s) = count == 1 ? ("has", "s") : ("have", "")
    return switch self {
    case .uniqueness: "repeat\(s) a value that must be unique"
    case .missingValue: "\(have) no value, and one is required"
    case .tooFew: "\(have) too few objects in the relationship"
    case .tooMany: "\(have) too many objects in the relationship"
    case .numberTooLarge: "\(have) a number over the maximum"
    case .numberTooSmall: "\(have) a number under the minimum"
    case .dateTooLate: "\(have) a date after the latest"
    case .dateTooSoon: "\(have) a date before the earliest"
    case .stringTooLong: "\(have) a text over the maximum length"
    case .stringTooShort: "\(have) a text under the minimum length"
    case .patternMismatch: "\(have) a text that does not match the pattern"
    }
  }
}

extension AttributeForm {
  /// The codes of values outside of a maximum and a minimum; nil for forms without bounds.
  package var boundCodes: (above: ValidationErrorCode, below: ValidationErrorCode)? {
    switch self {
    case .integer, .real, .decimal: (.numberTooLarge, .numberTooSmall)
    case .date: (.dateTooLate, .dateTooSoon)
    case .string: (.stringTooLong, .stringTooShort)
    default: nil
    }
  }
}

/// One requirement on the objects of one concrete entity.
package struct ValidationRule: Sendable, Hashable {
  /// Concrete entity, and the property; a constraint of several attributes has all their names, with commas.
  package let entity: String
  package let property: String
  package let code: ValidationErrorCode
  /// Table, and Z_ENT of the entity.
  package let table: String
  package let number: Int64
  /// SQL that is true for a row `d` of the table that breaks the rule.
  package let condition: String
  /// SQL that is true if any row breaks it, where testing the table is cheaper than testing each row.
  package let existence: String?
  /// The columns of a uniqueness constraint.
  package let uniqueColumns: [String]
  /// The attribute's column, if setting it to the model's default may repair the row.
  package let column: String?

  /// Name of the function that counts the UTF-16 units of a text, which is NSString's length; the caller that runs the
  /// rules registers it and that of `matchesFunction`.
  package static let lengthFunction = "hopd_rule_length"
  /// Name of the function of a text and a pattern that returns 1 if the whole text matches.
  package static let matchesFunction = "hopd_rule_matches"

  /// Returns every rule of a layout, by table, entity number and property; `tables` has its tables in the connection.
  package static func all(in layout: StoreSchema, tables: SourceTables) -> [ValidationRule] {
    var rules: [ValidationRule] = []
    for table in layout.tables {
      for name in table.entities {
        guard let entity = layout.model.entity(named: name), !entity.isAbstract, let number = layout.number(of: name)
        else { continue }
        var builder = RuleBuilder(layout: layout, tables: tables, entity: entity, table: table, number: number)
        builder.build()
        rules += builder.rules
      }
    }
    return rules
  }
}

extension AttributeType {
  /// Returns a bound of an attribute of this type as the limit of its stored values; nil if it is not a number.
  package func limit(_ bound: String, isMaximum: Bool) -> Double? {
    guard let limit = Double(bound), limit.isFinite else { return nil }
    guard traits.isFloat, let nearest = Float(bound), nearest.isFinite else { return limit }
    // Core Data rounds the values of a Float, 0.1 to 0.10000000149011612, and a value may be its own bound. Only
    // outwards, because a column may also hold 0.1 as it was written.
    return isMaximum ? max(limit, Double(nearest)) : min(limit, Double(nearest))
  }
}

/// Creates the rules of one entity.
private struct RuleBuilder {
  let layout: StoreSchema
  let tables: SourceTables
  let entity: Entity
  let table: EntityTable
  let number: Int64
  var rules: [ValidationRule] = []

  mutating func build() {
    for (name, attribute) in layout.model.allAttributes(of: entity).sorted(by: { $0.key < $1.key }) {
      // The store itself computes derived values, and does not contain transient ones.
      guard !attribute.isDerived, let column = layout.column(ofAttribute: name, in: entity.name) else { continue }
      add(attribute, name, column: column)
    }
    for (name, relationship) in layout.model.allRelationships(of: entity).sorted(by: { $0.key < $1.key }) {
      add(relationship, name)
    }
    // An index has no Z_ENT: what one entity of the table declares binds every other that has the same columns.
    for owner in table.entities.compactMap({ layout.model.entity(named: $0) }) {
      for constraint in owner.uniquenessConstraints { add(constraint, of: owner) }
    }
  }

  private mutating func add(
    _ code: ValidationErrorCode, _ property: String, _ condition: String, existence: String? = nil,
    uniqueColumns: [String] = [], column: String? = nil
  ) {
    rules.append(
      ValidationRule(
        entity: entity.name, property: property, code: code, table: table.name, number: number, condition: condition,
        existence: existence, uniqueColumns: uniqueColumns, column: column))
  }

  private func quoted(_ name: String) -> String { SQLiteIdentifier.quoted(name) }
  private func qualified(_ name: String) -> String { tables.qualified(name) }

  // MARK: Attributes

  private mutating func add(_ attribute: Attribute, _ name: String, column: String) {
    let value = "d." + quoted(column)
    if !attribute.isOptional { add(.missingValue, name, "\(value) IS NULL", column: column) }
    // A value in external storage is neither a number nor a text.
    guard let codes = attribute.type.form.boundCodes else { return }
    let isText = attribute.type.form == .string
    let measure = isText ? "\(ValidationRule.lengthFunction)(\(value))" : value
    // Nil is never out of bounds: comparisons with NULL are never true.
    if let maximum = attribute.maximum.flatMap({ Self.literal($0, attribute.type, isMaximum: true) }) {
      add(codes.above, name, "\(measure) > \(maximum)", column: column)
    }
    if let minimum = attribute.minimum.flatMap({ Self.literal($0, attribute.type, isMaximum: false) }) {
      add(codes.below, name, "\(measure) < \(minimum)", column: column)
    }
    if isText, let pattern = attribute.regularExpression, !pattern.isEmpty {
      let matches = "\(ValidationRule.matchesFunction)(\(value), \(SQLiteValue.text(pattern).literal))"
      add(.patternMismatch, name, "\(value) IS NOT NULL AND \(matches) = 0", column: column)
    }
  }

  /// A bound as an SQL literal; bounds are kept as text (`ValidationBound`).
  private static func literal(_ bound: String, _ type: AttributeType, isMaximum: Bool) -> String? {
    if !type.traits.isFloat, let whole = Int64(bound) { return SQLiteValue.integer(whole).literal }
    return type.limit(bound, isMaximum: isMaximum).map { SQLiteValue.real($0).literal }
  }

  // MARK: Relationships

  /// Adds the rules of a relationship. A required to-one needs an object. Counts of a to-many are checked if it has
  /// objects, or must have some: "optional relationships may have zero objects, which might be less than the minimum
  /// count" (Apple, NSRelationshipDescription).
  private mutating func add(_ relationship: Relationship, _ name: String) {
    guard let storage = layout.storage(ofRelationship: name, in: entity.name) else { return }
    let owners: (table: String, column: String)
    switch storage {
    case .toOne(let own, _):
      if !relationship.isOptional { add(.missingValue, name, "d.\(quoted(own.key)) IS NULL") }
      return
    case .members(let columns), .owned(let columns): owners = (qualified(columns.table), columns.key)
    case .join(let join): owners = (join.pairs(in: qualified(join.table)), join.owner)
    }
    guard relationship.isToMany else {
      // A to-one whose column is at the other end.
      if !relationship.isOptional {
        add(.missingValue, name, "d.\"Z_PK\" NOT IN (\(counted(owners, "")))")
      }
      return
    }
    let least = relationship.minCount
    if least > (relationship.isOptional ? 1 : 0) {
      var condition = "d.\"Z_PK\" NOT IN (\(counted(owners, "HAVING count(*) >= \(least)")))"
      if relationship.isOptional { condition += " AND d.\"Z_PK\" IN (\(counted(owners, "")))" }
      add(.tooFew, name, condition)
    }
    let most = relationship.maxCount
    // Unbounded is 0, or −1 and its 32-bit forms in models made in code.
    if most > 0, most < Int64(UInt32.max) {
      add(.tooMany, name, "d.\"Z_PK\" IN (\(counted(owners, "HAVING count(*) > \(most)")))")
    }
  }

  /// The owners of pairs, grouped: one pass over the pairs, with or without an index.
  private func counted(_ owners: (table: String, column: String), _ having: String) -> String {
    let column = quoted(owners.column)
    return "SELECT \(column) FROM \(owners.table) WHERE \(column) IS NOT NULL GROUP BY \(column) \(having)"
  }

  // MARK: Uniqueness

  /// Adds the rule of a constraint, which all but the first of equal rows break; nils are not values.
  private mutating func add(_ constraint: [String], of owner: Entity) {
    let names = layout.columns(ofConstraint: constraint, in: owner.name)
    guard !names.isEmpty, names.count == constraint.count,
      layout.columns(ofConstraint: constraint, in: entity.name) == names,
      !rules.contains(where: { $0.code == .uniqueness && Set($0.uniqueColumns) == Set(names) })
    else { return }
    let keys = names.map(quoted).joined(separator: ", ")
    let present = names.map { "\(quoted($0)) IS NOT NULL" }.joined(separator: " AND ")
    let numbers = table.entities.filter { layout.columns(ofConstraint: constraint, in: $0) == names }
      .compactMap { layout.number(of: $0) }.sorted().map(String.init).joined(separator: ", ")
    let rows = "FROM \(qualified(table.name)) WHERE \"Z_ENT\" IN (\(numbers)) AND \(present)"
    add(
      .uniqueness, constraint.joined(separator: ", "),
      "d.\"Z_PK\" IN (SELECT \"Z_PK\" FROM (SELECT \"Z_PK\", row_number() OVER (PARTITION BY \(keys) ORDER BY \"Z_PK\")"
        + " AS n \(rows)) WHERE n > 1)", existence: "EXISTS (SELECT 1 \(rows) GROUP BY \(keys) HAVING count(*) > 1)",
      uniqueColumns: names)
  }
}
