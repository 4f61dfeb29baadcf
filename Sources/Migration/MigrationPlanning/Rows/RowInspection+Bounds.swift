// Bounds and lengths that a hop adds or narrows, and values outside of them. Core Data does not check them when it
// infers a hop: it edits the tables (docs/formats/migration-semantics.md, "Validation"). The app then cannot save such
// an object until the value is corrected, so the plan reports them; an operator's `invalid_rows` rule decides about
// them.

import Diagnostics
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

extension HopdError.Code {
  /// Values are outside bounds that the new version adds or narrows.
  package static let valuesOutOfBounds = HopdError.Code("values-out-of-bounds", exit: .dataError)
}

extension RowInspection {
  /// Finds values outside of new or narrower bounds: findings for entities with an operator's rule, remarks for others.
  mutating func checkBounds(_ rules: InvalidRowsRules) throws(SQLiteError) {
    for live in liveEntities {
      let model = migrationPath.models[live.version]
      for mapping in live.mapping.attributes {
        guard let source = mapping.source, let after = model.allAttributes(of: live.entity)[mapping.destination],
          !after.isDerived, !after.isTransient, after.minimum != nil || after.maximum != nil,
          let number = schema.number(of: live.stored),
          case .column(let table, let column, _) = migrationPath.origin(
            ofAttribute: source, in: live.before, at: live.version - 1)
        else { continue }
        let before = migrationPath.definition(of: source, in: live.before, at: live.version - 1)
        for bound in NarrowerBound.all(from: before, to: after) {
          let broken = try rows(breaking: bound, of: number, in: table, column)
          guard broken.count > 0 else { continue }
          let finding = Self.finding(
            bound, count: broken.count,
            at: Place(
              hop: migrationPath.hop(to: live.version), entity: live.entity.name, property: mapping.destination,
              row: broken.first))
          if rules.rule(for: live.entity.name) == .fail { remarks.append(finding) } else { findings.add(finding) }
        }
      }
    }
  }

  private func rows(
    breaking bound: NarrowerBound, of number: Int64, in table: String, _ column: String
  ) throws(SQLiteError) -> (count: Int64, first: Int64?) {
    if bound.isLength {
      // The length of an NSString; SQLite's own function counts scalars.
      try reader.connection.registerFunction(ValidationRule.lengthFunction, argumentCount: 1) { values in
        guard case .text(let text)? = values.first else { return .null }
        return .integer(Int64(text.utf16.count))
      }
    }
    return try countAndFirst(
      "SELECT count(*), min(Z_PK) FROM \(reader.qualified(table)) WHERE Z_ENT = \(number) AND "
        + bound.condition(SQLiteIdentifier.quoted(column)))
  }

  private static func finding(_ bound: NarrowerBound, count: Int64, at place: Place) -> HopdError {
    HopdError(
      .valuesOutOfBounds,
      "\(count.counted("row")) \(bound.code.words(count: count)) that this version sets\(bound.words); Core Data does "
        + "not check it in an inferred hop, and refuses to save such an object later (\(bound.code.rawValue))",
      at: place,
      hint:
        "correct the values with the app, or choose how to handle these rows: `invalid_rows` (hopctl: --invalid-rows)"
    )
  }
}

/// One bound of an attribute that the previous version did not have, or had wider.
private struct NarrowerBound {
  let code: ValidationErrorCode
  let limit: Double
  /// The limit from the model, in brackets; empty for dates, which the model has in seconds.
  let words: String
  let isMaximum: Bool
  let isLength: Bool

  static func all(from before: Attribute?, to after: Attribute) -> [NarrowerBound] {
    guard let codes = after.type.form.boundCodes else { return [] }
    func words(_ text: String?) -> String { after.type == .date ? "" : text.map { " (\($0))" } ?? "" }
    func bound(_ text: String?, isMaximum: Bool, isNarrower: (Double) -> Bool) -> NarrowerBound? {
      guard let limit = text.flatMap({ after.type.limit($0, isMaximum: isMaximum) }), isNarrower(limit) else {
        return nil
      }
      return NarrowerBound(
        code: isMaximum ? codes.above : codes.below, limit: limit, words: words(text), isMaximum: isMaximum,
        isLength: after.type == .string)
    }
    let highest = before.flatMap { old in old.maximum.flatMap { old.type.limit($0, isMaximum: true) } }
    let lowest = before.flatMap { old in old.minimum.flatMap { old.type.limit($0, isMaximum: false) } }
    return [
      bound(after.maximum, isMaximum: true) { limit in highest.map { $0 > limit } ?? true },
      bound(after.minimum, isMaximum: false) { limit in lowest.map { $0 < limit } ?? true },
    ].compactMap(\.self)
  }

  /// Returns a condition that is true for a value (quoted column) outside of the bound; a nil is never outside.
  func condition(_ column: String) -> String {
    let value = isLength ? "\(ValidationRule.lengthFunction)(\(column))" : column
    return "\(value) \(isMaximum ? ">" : "<") \(SQLiteValue.real(limit).literal)"
  }
}
