// Numbers that an attribute's new type cannot hold. SQLite's column affinities change the stored form (INTEGER, FLOAT,
// DECIMAL) while the engine writes; only the value must fit (docs/formats/migration-semantics.md, "Numbers into
// numbers").

import Diagnostics
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

extension HopdError.Code {
  /// Rows hold a number that the attribute's new type cannot hold.
  package static let numberDoesNotFit = HopdError.Code("number-does-not-fit", exit: .dataError)
}

extension RowInspection {
  /// Finds values of attributes with another number type that do not fit the new type.
  mutating func checkNumbers() throws(SQLiteError) {
    for live in liveEntities {
      for attribute in live.mapping.attributes {
        guard let name = attribute.source,
          let after = migrationPath.definition(of: attribute.destination, in: live.entity.name, at: live.version),
          !after.isDerived, let before = migrationPath.definition(of: name, in: live.before, at: live.version - 1),
          let conversion = NumberConversion(from: before.type, to: after.type)
        else { continue }
        let origin = migrationPath.origin(ofAttribute: name, in: live.before, at: live.version - 1)
        try checkNumbers(
          conversion, origin, from: before.type, of: live, attribute.destination,
          dropping: RenameRules.dropping(live.before, name))
      }
    }
  }

  private mutating func checkNumbers(
    _ conversion: NumberConversion, _ origin: AttributeOrigin, from type: AttributeType, of live: LiveEntity,
    _ attribute: String, dropping answer: String
  ) throws(SQLiteError) {
    var standard: AttributeDefault?
    var found: (count: Int64, first: Int64?) = (0, nil)
    switch origin {
    case .null: return
    case .constant(let value): standard = value
    case .column(let table, let column, let fallback):
      standard = fallback
      guard let number = schema.number(of: live.stored) else { return }
      let misfit = conversion.misfit(SQLiteIdentifier.quoted(column))
      found = try countAndFirst(
        "SELECT count(*), min(Z_PK) FROM \(reader.qualified(table)) WHERE Z_ENT = \(number) AND \(misfit)")
    }
    let place = Place(hop: migrationPath.hop(to: live.version), entity: live.entity.name, property: attribute)
    let change = "the type changes from \(type.name) to \(conversion.type.name)"
    if found.count > 0 {
      findings.add(
        .numberDoesNotFit,
        "\(change), and \(found.count.grouped) row\(found.count == 1 ? " holds a value" : "s hold values") that "
          + "this type "
          + "cannot hold", at: place.filled(from: Place(row: found.first)),
        hint: "correct the values with the app, convert them in a mapping model for this hop, or drop them: "
          + "\(answer)")
    }
    if let standard, !conversion.fits(standard) {
      findings.add(
        .numberDoesNotFit, "\(change), which cannot hold the default that an earlier version gave to every row",
        at: place,
        hint: "set another value in a mapping model for this hop, or drop it: \(answer)")
    }
  }
}

extension NumberConversion {
  /// Returns a condition over a column (quoted, or any expression) that is true for values which the type cannot hold
  /// without loss. NULL fits every type.
  ///
  /// A Float's own precision of 24 bits is not checked: the column keeps the value unchanged, and the app rounds it
  /// when it reads, as it does with every Float.
  package func misfit(_ value: String) -> String {
    let integer = "CAST(\(value) AS INTEGER)"
    // A column of decimals may also hold text that SQLite could not read as a number.
    let isNumber = "typeof(\(value)) IN ('integer', 'real')"
    // The largest 64-bit integer would pass the first test: its rounded form saturates back to it.
    let isExactReal = "CAST(CAST(\(value) AS REAL) AS INTEGER) = \(value) AND \(value) <> 9223372036854775807"
    let range = type.integers ?? .min ... .max
    let fits =
      switch type.form {
      case .boolean: "\(value) IN (0, 1)"
      case .integer where type.traits.bits < 64:
        "\(integer) = \(value) AND \(value) BETWEEN \(range.lowerBound) AND \(range.upperBound)"
      // 2^63 as a real would saturate.
      case .integer:
        "\(integer) = \(value) AND (typeof(\(value)) = 'integer'"
          + " OR (\(value) >= -9223372036854775808.0 AND \(value) < 9223372036854775807.0))"
      case .real where type.traits.isFloat:
        "CASE typeof(\(value)) WHEN 'integer' THEN \(isExactReal) "
          + "ELSE abs(\(value)) <= \(Double(Float.greatestFiniteMagnitude)) OR abs(\(value)) = 9e999 END"
      case .real: "typeof(\(value)) = 'real' OR (\(isExactReal))"
      // NSDecimal's exponent ends at 127.
      default: "typeof(\(value)) = 'integer' OR abs(\(value)) < 1e127"
      }
    return "\(value) IS NOT NULL AND NOT (\(isNumber) AND (\(fits)))"
  }
}
