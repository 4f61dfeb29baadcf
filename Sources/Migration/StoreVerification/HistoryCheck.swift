// Checks persistent history in a migrated store: either it has all rows of the source with the same meaning, compared
// row by row and by names, and one more transaction; or its tables are empty. Numbers that history has used must stay
// used. `StructureChecks` compares the texts of its tables with all other texts.

import Diagnostics
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SQLite

struct HistoryCheck {
  let reader: StoreReader
  /// The layout that the store must have; nil if it must have no history.
  let layout: HistoryLayout?
  /// The original store, and the chain; nil if no rows are carried over.
  var origin: (source: StoreReader, plan: MigrationPlan, carry: HistoryCarry)?
  var keepAlive: () -> Bool = { true }

  /// Checks the rows of history and of Z_PRIMARYKEY against the plan; nil for a store that has and needs no history.
  func check() throws -> VerificationCheck? {
    let found = try reader.primaryKeys().filter(\.isReserved)
    if layout == nil, found.isEmpty { return nil }
    var problems = numbers(found)
    let tables = layout?.statements.filter { $0.kind == .table } ?? []
    var detail = "\(tables.count) tables of persistent history are empty and have the same numbers"
    if let origin {
      let before = problems.count
      let rows = try compare(origin.source, origin.plan, origin.carry, problems: &problems)
      if problems.count == before {
        detail = "\(rows) changes of the persistent history refer to the same objects and properties as before"
      }
    } else {
      for table in tables
      where try reader.connection.integer("SELECT count(*) FROM \(reader.qualified(table.name))") != 0 {
        problems.append("\(table.name) still has rows with the entity numbers of the source")
      }
    }
    return VerificationCheck(name: "history", problems: problems, fine: detail)
  }

  private func numbers(_ found: [PrimaryKeyEntry]) -> [String] {
    var problems: [String] = []
    let wanted = layout?.numbers ?? []
    for entry in wanted {
      guard let real = found.first(where: { $0.number == entry.number }) else {
        problems.append("number \(entry.number) (\(entry.name)) of the persistent history is missing")
        continue
      }
      if real != entry { problems.append("number \(entry.number) (\(entry.name)) was not kept, or its Z_MAX") }
    }
    for entry in found where !wanted.contains(where: { $0.number == entry.number }) {
      problems.append("the reserved number \(entry.number) (\(entry.name)) was not in the source")
    }
    return problems
  }

  // MARK: Rows

  /// Compares all rows and returns the number of changes.
  private func compare(
    _ source: StoreReader, _ plan: MigrationPlan, _ carry: HistoryCarry, problems: inout [String]
  ) throws -> Int64 {
    guard let first = plan.hops.first else { return 0 }
    var entities: [Int64: HistoryEntity] = [:]
    var removed: [Int64] = []
    for (name, number) in first.sourceSchema.numbers {
      if let entity = HistoryEntity(name, plan: plan) { entities[number] = entity } else { removed.append(number) }
    }
    var rows: Int64 = 0
    for table in HistoryLayout.Table.allCases where layout?.tables[table] != nil {
      let count = try compare(
        table, source, entities: entities, removed: removed, mark: carry.mark, problems: &problems)
      if table == .change { rows = count }
    }
    if let mark = carry.mark { try check(mark, source, plan, problems: &problems) }
    for table in layout?.mirroring ?? [] where table.kind == .table {
      try compare(mirroring: table.name, source, entities: entities, problems: &problems)
    }
    return rows
  }

  private func compare(
    _ table: HistoryLayout.Table, _ source: StoreReader, entities: [Int64: HistoryEntity], removed: [Int64],
    mark: HistoryMark?, problems: inout [String]
  ) throws -> Int64 {
    let columns = try source.columns(of: table.rawValue).map(\.name)
    let present = Set(try reader.columns(of: table.rawValue).map(\.name))
    guard columns.allSatisfy(present.contains) else {
      problems.append("\(table.rawValue) has lost columns")
      return 0
    }
    let tombstones = present.filter { $0.hasPrefix("ZTOMBSTONE") }.count
    let list = columns.map(SQLiteIdentifier.quoted).joined(separator: ", ")
    var condition = ""
    if table == .change, !removed.isEmpty {
      condition = " WHERE ZENTITY NOT IN (\(removed.sorted().map(String.init).joined(separator: ", ")))"
    }
    let added = (0..<tombstones).map { "ZTOMBSTONE\($0)" }
    let old = try source.connection.prepare(
      "SELECT \(list) FROM \(source.qualified(table.rawValue))\(condition) ORDER BY Z_PK")
    let new = try reader.connection.prepare(
      "SELECT \((columns + added).map(SQLiteIdentifier.quoted).joined(separator: ", ")) "
        + "FROM \(reader.qualified(table.rawValue)) ORDER BY Z_PK")
    let comparison = HistoryRowComparison(columns: columns, tombstones: tombstones, entities: entities)
    var count: Int64 = 0
    while try old.step() {
      count += 1
      if count % 4096 == 0, !keepAlive() {
        throw HopdError(.interrupted, "stopped on request while verifying")
      }
      guard try new.step() else {
        problems.append("\(table.rawValue) has fewer rows than before")
        return count
      }
      if let problem = comparison.problem(table, old, new) {
        problems.append("\(table.rawValue), row \(old.integer(at: 0)): \(problem)")
        return count
      }
    }
    var more: [Int64] = []
    while try new.step(), more.count < 4 { more.append(new.integer(at: 0)) }
    let wanted =
      switch table {
      case .change: [Int64]()
      case .transaction: mark.map { [$0.transaction] } ?? []
      case .transactionString: mark?.texts.map(\.key) ?? []
      }
    if more != wanted { problems.append("\(table.rawValue) has unexpected new rows") }
    return count
  }

  /// Checks that every row of a mirroring table is unchanged, except those of removed entities, and refers to the same
  /// entity.
  private func compare(
    mirroring table: String, _ source: StoreReader, entities: [Int64: HistoryEntity], problems: inout [String]
  ) throws {
    let columns = try source.columns(of: table).map(\.name)
    let list = columns.map(SQLiteIdentifier.quoted).joined(separator: ", ")
    let old = try source.connection.prepare("SELECT \(list) FROM \(source.qualified(table)) ORDER BY Z_PK")
    let new = try reader.connection.prepare("SELECT \(list) FROM \(reader.qualified(table)) ORDER BY Z_PK")
    let entity = columns.firstIndex(of: MirroringLayout.entityColumn)
    while try old.step() {
      if let entity, entities[old.integer(at: Int32(entity))] == nil { continue }
      guard try new.step() else {
        problems.append("\(table) has fewer rows than before")
        return
      }
      for index in columns.indices {
        let place = Int32(index)
        let isRight =
          index == entity
          ? new.value(at: place) == entities[old.integer(at: place)].map { SQLiteValue.integer($0.number) }
          : new.value(at: place) == old.value(at: place)
        guard isRight else {
          problems.append("\(table), row \(old.integer(at: 0)): \(columns[index]) is different")
          return
        }
      }
    }
    if try new.step() { problems.append("\(table) has more rows than before") }
  }

  /// Checks that the added transaction is the next one, has no changes, and has the digest of the result.
  private func check(
    _ mark: HistoryMark, _ source: StoreReader, _ plan: MigrationPlan, problems: inout [String]
  ) throws {
    guard let last = plan.hops.last else { return }
    let counter = try source.primaryKeys().first { $0.number == HistoryLayout.Table.transaction.number }
    let highest = try source.connection.integer("SELECT max(Z_PK) FROM \(source.qualified("ATRANSACTION"))") ?? 0
    if mark.transaction != max(counter?.highWaterMark ?? 0, highest, 0) + 1 {
      problems.append("the migration is not marked by the next transaction")
    }
    let author =
      mark.authorKey == nil
      ? "SELECT ZAUTHOR FROM \(reader.qualified("ATRANSACTION")) WHERE Z_PK = ?"
      : "SELECT s.ZNAME FROM \(reader.qualified("ATRANSACTION")) AS t "
        + "JOIN \(reader.qualified("ATRANSACTIONSTRING")) AS s ON s.Z_PK = t.ZAUTHORTS WHERE t.Z_PK = ?"
    let text = try reader.connection.rows(author, [.integer(mark.transaction)]) { $0.text(at: 0) }.first ?? nil
    if text != HistoryMark.author(digest: last.destination.versionHashesDigest),
      layout?.tables[.transaction]?.columnNames.contains(mark.authorKey == nil ? "ZAUTHOR" : "ZAUTHORTS") == true
    {
      problems.append("the transaction that marks the migration does not state which version the store has now")
    }
  }
}

/// Compares a row of history with the original row.
private struct HistoryRowComparison {
  let columns: [String]
  /// The tombstone columns of the result; they follow the columns of the source.
  let tombstones: Int
  let entities: [Int64: HistoryEntity]

  /// Returns the difference, without any value.
  func problem(_ table: HistoryLayout.Table, _ old: Statement, _ new: Statement) -> String? {
    var entity: HistoryEntity?
    if table == .change {
      guard let place = columns.firstIndex(of: "ZENTITY").map(Int32.init), let found = entities[old.integer(at: place)]
      else { return "its entity is not one of the source's version" }
      guard new.integer(at: place) == found.number else { return "it refers to another entity" }
      entity = found
    }
    for (index, name) in columns.enumerated() where name != "ZENTITY" || table != .change {
      if table == .change, name.hasPrefix("ZTOMBSTONE") { continue }
      let place = Int32(index)
      if table == .change, name == "ZCOLUMNS", let entity, !old.isNull(at: place) {
        guard let before = old.blob(at: place), let after = new.blob(at: place), entity.agree(before, after) else {
          return "it refers to other properties"
        }
      } else if old.value(at: place) != new.value(at: place) {
        return "\(name) is different"
      }
    }
    return entity.flatMap { tombstoneProblem($0, old, new) }
  }

  private func tombstoneProblem(_ entity: HistoryEntity, _ old: Statement, _ new: Statement) -> String? {
    for place in 0..<tombstones {
      // A column that the entity does not use keeps its value.
      let origin = entity.tombstones.indices.contains(place) ? entity.tombstones[place] : place
      let index = origin.flatMap { columns.firstIndex(of: "ZTOMBSTONE\($0)") }
      let expected = index.map { old.value(at: Int32($0)) } ?? .null
      guard new.value(at: Int32(columns.count + place)) == expected else {
        return "ZTOMBSTONE\(place) differs from that of the deleted object"
      }
    }
    return nil
  }
}
