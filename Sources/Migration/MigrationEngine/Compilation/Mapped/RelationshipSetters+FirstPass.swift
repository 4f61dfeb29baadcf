// Relationships that are written together with the rows.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

extension RelationshipSetters {
  /// Whether the setter is a to-one whose object is known from the source row alone.
  func isPlainToOne(_ setter: RelationshipSetter) -> Bool {
    guard !setter.relationship.isToMany, setter.range.kind != .policy else { return false }
    let row = setter.range.row
    var perEntity: Set<String> = []
    return setter.sources.allSatisfy { source in
      switch source {
      case .lookup(let target, let node):
        switch target.kind {
        case .policy, .expanded: return false
        case .each, .grouped, .deduplicated:
          return expressions.plainObjects(node, row: row, prefix: "i")?.isToOne == true
            && perEntity.insert(target.sourceEntity).inserted
        }
      case .group: return true
      case .matching: return false
      }
    }
  }

  func inlinePositions() -> Set<Int> {
    var result: Set<Int> = []
    var written: Set<String> = []
    for (position, setter) in setters.enumerated() {
      // The pass of an earlier mapping's policy may change it: the change must be neither overwritten nor missed.
      let followsOther = setter.otherEnd.map(written.contains) ?? false
      var isInline = isPlainToOne(setter) && (!followsOther || isBetweenTwins(setter))
      if isInline, setter.isOneToOne { isInline = isMirrored(setter) }
      if isInline { result.insert(position) }
      written.insert(setter.end)
    }
    return result
  }

  /// Whether all setters of the relationship join objects that were made of the same source object. Then both ends
  /// agree, in any order and for any source.
  private func isBetweenTwins(_ setter: RelationshipSetter) -> Bool {
    setter.isOneToOne
      && setters.allSatisfy { other in
        other.place != setter.place
          || other.sources.allSatisfy { if case .lookup(_, .variable("source")) = $0 { true } else { false } }
      }
  }

  /// Whether both columns of a one-to-one are written from the two ends of one source relationship.
  private func isMirrored(_ setter: RelationshipSetter) -> Bool {
    let both = setters.filter { $0.place == setter.place }
    guard let other = setter.otherEnd, other != setter.end, both.allSatisfy(isPlainToOne) else { return false }
    let (own, opposite) = (both.filter { $0.end == setter.end }, both.filter { $0.end == other })
    guard let rules = rules(of: own) else { return false }
    return !opposite.isEmpty && rules == self.rules(of: opposite)
  }

  /// Returns the columns that pass 1 fills for a mapping.
  func inlineValues(
    _ range: AssociationRange, rows: AssociationSQL.Rows
  ) throws(HopdError) -> [(column: String, value: SQLExpression)] {
    var result: [(column: String, value: SQLExpression)] = []
    for position in inline.sorted() where setters[position].range.index == range.index {
      let setter = setters[position]
      guard let own = setter.storage.ownColumns else { continue }
      var keys: [SQLExpression] = []
      var numbers: [SQLExpression] = []
      var orders: [SQLExpression] = []
      for (index, source) in setter.sources.enumerated() {
        var found = try objects(source, of: setter, row: rows.row, prefix: "p\(position)_\(index)")
        if let plain = try plainReference(source, of: setter, row: rows.row, found) { found = plain }
        keys.append(scalar(found.key, found, rows))
        numbers.append(scalar(found.number, found, rows))
        if let order = found.inverseOrder { orders.append(scalar(order, found, rows)) }
      }
      func first(_ values: [SQLExpression]) -> SQLExpression? {
        values.count > 1 ? "coalesce(\(values.joined(separator: ", ")))" : values.first
      }
      if let key = first(keys) { result.append((own.key, key)) }
      if let discriminator = own.discriminator, let number = first(numbers) { result.append((discriminator, number)) }
      if let orderKey = own.orderKey, let order = first(orders) { result.append((orderKey, order)) }
    }
    return result
  }

  /// Returns the objects of a to-one whose references all lead to objects of the mapping, without a look-up.
  private func plainReference(
    _ source: SetterSource, of setter: RelationshipSetter, row: MappedRow, _ found: SetterObjects
  ) throws(HopdError) -> SetterObjects? {
    guard case .lookup(let target, let node) = source, target.isArithmetic,
      target.mapping.filter == nil,
      let (_, relationship) = expressions.singleRelationship(node, of: setter.range.sourceEntity),
      let own = hop.sourceSchema.storage(ofRelationship: relationship.name, in: setter.range.sourceEntity)?.ownColumns
    else { return nil }
    do {
      let reference = SourceReference(
        table: own.table, column: own.key, targetTable: target.sourceTable, targetNumber: target.sourceNumber)
      guard try compiler.isSound(reference) else { return nil }
    } catch {
      // A faulty source is reported when its rows are read.
      return nil
    }
    let key = SQLExpression.column(own.key, of: row.alias)
    return SetterObjects(
      tables: [], conditions: ["\(key) IS NOT NULL"], key: associations.sum(key, target.offset), number: found.number,
      order: nil, inverseOrder: found.inverseOrder)
  }

  /// Returns a value of the object for the current source row; NULL if there is none.
  private func scalar(
    _ value: SQLExpression, _ found: SetterObjects, _ rows: AssociationSQL.Rows
  ) -> SQLExpression {
    guard found.tables.isEmpty else { return subquery(value, found) }
    // Conditions that are true for every row of the mapping need no check, and NULL stays NULL.
    let conditions = found.conditions.filter { !rows.conditions.contains($0) && $0 != "\(value) IS NOT NULL" }
    return conditions.isEmpty ? value : "CASE WHEN \(conditions.joined(separator: " AND ")) THEN \(value) END"
  }

  private func subquery(_ value: SQLExpression, _ found: SetterObjects) -> SQLExpression {
    let from: SQLExpression = found.tables.isEmpty ? "" : " FROM \(found.tables.joined(separator: " CROSS JOIN "))"
    return "(SELECT \(value)\(from) WHERE \(found.conditions.joined(separator: " AND ")))"
  }

  // MARK: Fragments

  /// The destination objects of a setter for one source row.
  struct SetterObjects {
    var tables: [SQLExpression]
    var conditions: [SQLExpression]
    let key: SQLExpression
    let number: SQLExpression
    let order: SQLExpression?
    let inverseOrder: SQLExpression?
  }

  func objects(
    _ source: SetterSource, of setter: RelationshipSetter, row: MappedRow, prefix: String
  ) throws(HopdError) -> SetterObjects {
    switch source {
    case .lookup(let target, let node):
      let reached = try expressions.objects(
        node, row: row, prefix: prefix, range: setter.range, property: setter.relationship.name)
      let targets = try associations.targets(target, of: reached.alias, prefix: prefix)
      return SetterObjects(
        tables: reached.tables + targets.tables, conditions: reached.conditions + targets.conditions, key: targets.key,
        number: targets.number, order: reached.order, inverseOrder: reached.inverseOrder)
    case .group(let target, let nodes):
      var keys: [SQLExpression] = []
      for node in nodes { keys.append(try expressions.key(node, row: row, range: setter.range)) }
      let targets = associations.group(target, keys: keys, prefix: prefix)
      return SetterObjects(
        tables: targets.tables, conditions: targets.conditions, key: targets.key, number: targets.number, order: nil,
        inverseOrder: nil)
    case .matching(let entity, let attribute, let node):
      guard let table = hop.destinationSchema.table(of: entity),
        let column = hop.destinationSchema.column(ofAttribute: attribute, in: entity)
      else {
        throw expressions.unsupported(
          "the attribute \(entity).\(attribute)", range: setter.range, property: setter.relationship.name)
      }
      let alias = SQLiteIdentifier.quoted("\(prefix)d")
      let numbers = hop.destinationSchema.numbersOfSubtree(of: entity).map(String.init).joined(separator: ", ")
      guard
        let value = hop.destination.entity(named: entity).flatMap({ hop.destination.allAttributes(of: $0)[attribute] })
      else { throw expressions.unsupported(attribute, range: setter.range, property: setter.relationship.name) }
      let key = try expressions.value(node, row: row, storedAs: value, range: setter.range)
      return SetterObjects(
        tables: ["\(compiler.qualified(table.name)) AS \(alias)"],
        conditions: [
          "\(alias).\(SQLiteIdentifier.quoted(column)) = \(key)", "\(alias).\"Z_ENT\" IN (\(numbers))",
        ], key: "\(alias).\"Z_PK\"", number: "\(alias).\"Z_ENT\"", order: nil, inverseOrder: nil)
    }
  }
}
