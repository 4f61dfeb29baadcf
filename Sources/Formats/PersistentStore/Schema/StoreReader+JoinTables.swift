// Reads from the store's tables which end names each join table, and how its columns are numbered: neither is computed
// where the store shows it.

import ManagedObjectModel
import SQLite

extension StoreReader {
  /// Returns what the existing tables say about join tables.
  package func joinTableNaming(for model: ManagedObjectModel, frameworkVersion: Int64) throws(SQLiteError)
    -> JoinTableNaming
  {
    let plain = StoreSchema(model: model, frameworkVersion: frameworkVersion)
    guard !plain.joinTables.isEmpty else { return JoinTableNaming() }
    let tables = Set(try schemaObjects().filter { $0.type == "table" }.map(\.name))
    var naming = JoinTableNaming()
    for join in plain.joinTables {
      let end = plain.joinEnd(of: join, isOwner: true)
      if tables.contains(join.name) {
        // A name that depends on a rule which may not be certain is kept.
        if join.entity == join.inverseEntity, !join.isOwnInverse { naming.namingRelationships.insert(end.key.text) }
        continue
      }
      let other = plain.joinEnd(of: join, isOwner: false)
      if tables.contains(other.table), plain.joinTable(named: other.table) == nil {
        naming.namingRelationships.insert(other.key.text)
      }
    }
    let named = StoreSchema(model: model, frameworkVersion: frameworkVersion, naming: naming)
    var numbers: [String: Int] = [:]
    var isUsual = true
    for join in named.joinTables where tables.contains(join.name) {
      let columns = try shape(of: join.name).columns.map(\.name)
      if !columns.contains(join.ownerColumn) || !columns.contains(join.targetColumn) { isUsual = false }
      for (key, number) in named.columnNumbers(of: join, among: columns) { numbers[key] = number }
    }
    if !isUsual { naming.columnNumbers = numbers }
    return naming
  }
}

/// One end of a join table.
package struct JoinEnd: Sendable {
  /// The relationship, by the entity that declares it.
  package let key: PropertyKey
  /// The name that the table has if this end names it.
  package let table: String
  /// The column with the keys of the entity's objects.
  package let column: String
  /// The name of that column without a number.
  package let stem: String

  /// The number that the column has, 0 for none; nil if its name is of another form.
  package var number: Int? { number(of: column) }

  /// Returns the number of a column of that name; nil if its name is of another form.
  fileprivate func number(of column: String) -> Int? {
    guard column.hasPrefix(stem) else { return nil }
    let rest = column.dropFirst(stem.count)
    if rest.isEmpty { return 0 }
    guard let number = Int(rest), number > 0, String(number) == rest else { return nil }
    return number
  }
}

extension StoreSchema {
  /// The numbers of all key columns, by end.
  package var columnNumbers: [String: Int] {
    var numbers: [String: Int] = [:]
    for join in joinTables {
      for isOwner in join.isOwnInverse ? [true] : [true, false] {
        let end = joinEnd(of: join, isOwner: isOwner)
        numbers[end.key.text] = end.number
      }
    }
    return numbers
  }

  /// Returns an end of a join table.
  package func joinEnd(of join: JoinTable, isOwner: Bool) -> JoinEnd {
    let (own, other) =
      isOwner
      ? (
        PropertyKey(entity: join.entity, property: join.relationship),
        PropertyKey(entity: join.inverseEntity, property: join.inverseRelationship)
      )
      : (
        PropertyKey(entity: join.inverseEntity, property: join.inverseRelationship),
        PropertyKey(entity: join.entity, property: join.relationship)
      )
    let number = number(of: own.entity) ?? 0
    return JoinEnd(
      key: own, table: "Z_\(number)\(own.property.uppercased())",
      column: isOwner ? join.ownerColumn : join.targetColumn, stem: "Z_\(number)\(other.property.uppercased())")
  }

  /// Returns the numbers of the two key columns among the columns of the table, by end.
  ///
  /// A column can belong to both ends only by name, as Z_2ITEM1 to `item` and to `item1`: the expected name decides,
  /// and then the position, because the column of the end that names the table is first.
  fileprivate func columnNumbers(of join: JoinTable, among columns: [String]) -> [(key: String, number: Int)] {
    let keys = columns.filter { !$0.hasPrefix("Z_FOK_") }
    let (owner, target) = (joinEnd(of: join, isOwner: true), joinEnd(of: join, isOwner: false))
    if join.isOwnInverse {
      return keys.lazy.compactMap { owner.number(of: $0) }.first.map { [(owner.key.text, $0)] } ?? []
    }
    var found: (rank: Int, owner: Int, target: Int)?
    for (place, first) in keys.enumerated() {
      for (other, second) in keys.enumerated() where place != other {
        guard let number = owner.number(of: first), let targetNumber = target.number(of: second) else { continue }
        let rank =
          (first == owner.column ? 4 : 0) + (second == target.column ? 4 : 0) + (place < other ? 1 : 0)
        if found.map({ rank > $0.rank }) ?? true { found = (rank, number, targetNumber) }
      }
    }
    return found.map { [(owner.key.text, $0.owner), (target.key.text, $0.target)] } ?? []
  }
}
