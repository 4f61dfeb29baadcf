import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SQLite

/// Checks of what a store holds: keys, entities of rows, counts, references.
struct ContentChecks {
  let reader: StoreReader
  let schema: StoreSchema
  let expectation: StoreExpectation?

  /// Z_MAX is at least the largest key, and at least the source's mark.
  func primaryKeys() throws(SQLiteError) -> VerificationCheck {
    var problems: [String] = []
    let marks = Dictionary(
      try reader.primaryKeys().map { ($0.number, $0.highWaterMark) }, uniquingKeysWith: { first, _ in first })
    for table in schema.tables {
      let largest = try reader.connection.integer("SELECT max(Z_PK) FROM \(reader.qualified(table.name))") ?? 0
      let mark = schema.number(of: table.rootEntity).flatMap { marks[$0] } ?? 0
      if mark < largest { problems.append("Z_MAX of \(table.rootEntity) is \(mark), but a row has Z_PK \(largest)") }
      if let wanted = expectation?.highWaterMarks[table.rootEntity], mark < wanted {
        problems.append("Z_MAX of \(table.rootEntity) fell from \(wanted) to \(mark)")
      }
    }
    return result("primary-keys", problems, "Z_MAX covers every key of \(schema.tables.count) tables")
  }

  /// Every row's Z_ENT is a concrete entity of its table.
  func rowEntities() throws(SQLiteError) -> VerificationCheck {
    var problems: [String] = []
    var rows: Int64 = 0
    for table in schema.tables {
      let allowed = Set(
        table.entities.filter { schema.model.entity(named: $0)?.isAbstract == false }.compactMap {
          schema.number(of: $0)
        })
      for (number, count) in try reader.rowCounts(of: table.name) {
        rows &+= count
        if !allowed.contains(number) {
          problems.append(
            "\(count) rows of \(table.name) have the entity number \(number), which does not belong there")
        }
      }
    }
    return result("row-entities", problems, "\(rows) rows have an entity of their table")
  }

  /// Rows per entity and per join table as counted in the source.
  func counts() throws(SQLiteError) -> VerificationCheck {
    guard let expectation else { return result("counts", [], "nothing to compare with") }
    var problems: [String] = []
    var total: Int64 = 0
    for table in schema.tables {
      let counts = try reader.rowCounts(of: table.name)
      for entity in table.entities {
        let found = schema.number(of: entity).flatMap { counts[$0] } ?? 0
        let wanted = expectation.rowsByEntity[entity] ?? 0
        total &+= found
        if found != wanted { problems.append("\(entity) has \(found) rows in place of \(wanted)") }
      }
    }
    for (table, wanted) in expectation.rowsByJoinTable.sorted(by: { $0.key < $1.key }) {
      guard schema.joinTables.contains(where: { $0.name == table }) else { continue }
      let found = try reader.connection.integer("SELECT count(*) FROM \(reader.qualified(table))") ?? 0
      if found != wanted { problems.append("\(table) has \(found) pairs in place of \(wanted)") }
    }
    return result("counts", problems, "\(total) rows, as many as the source has for them")
  }

  /// Every discriminator is the Z_ENT of the row it points to.
  func discriminators() throws(SQLiteError) -> VerificationCheck {
    var problems: [String] = []
    var looked = 0
    for table in schema.tables {
      for column in table.columns {
        guard case .discriminator(let entity, let relationship) = column.role,
          case .toOne(_, let key, _, _) = schema.storage(ofRelationship: relationship, in: entity),
          let destination = schema.model.entity(named: entity).flatMap({
            schema.model.allRelationships(of: $0)[relationship]?.destinationEntityName
          }), let target = schema.table(of: destination)
        else { continue }
        looked += 1
        let (quotedKey, quotedColumn) = (SQLiteIdentifier.quoted(key), SQLiteIdentifier.quoted(column.name))
        let wrong =
          try reader.connection.integer(
            "SELECT count(*) FROM \(reader.qualified(table.name)) AS s JOIN \(reader.qualified(target.name)) AS t"
              + " ON t.Z_PK = s.\(quotedKey) WHERE s.\(quotedColumn) IS NOT t.Z_ENT") ?? 0
        if wrong > 0 {
          problems.append("\(wrong) rows of \(entity).\(relationship) name the wrong entity of their target")
        }
      }
    }
    return result("discriminators", problems, "\(looked) discriminator columns agree with their targets")
  }

  /// No more references to rows that are not there than the source had.
  func references() throws -> VerificationCheck {
    let found = try DanglingReferences.count(schema: schema, reader: reader)
    let allowed = expectation?.danglingReferences ?? 0
    let isFine = found <= allowed
    // A store on its own may have some: Core Data repairs them when they are touched; a migration may not add any.
    let passed = expectation == nil || isFine
    return VerificationCheck(
      name: "relationships", passed: passed,
      detail: found == 0
        ? "every reference finds its row"
        : "\(found) references point at rows that are not there"
          + (expectation == nil ? "" : ", the source has \(allowed)"))
  }

  private func result(_ name: String, _ problems: [String], _ fine: String) -> VerificationCheck {
    VerificationCheck(
      name: name, passed: problems.isEmpty, detail: problems.isEmpty ? fine : problems.joined(separator: "; "))
  }
}
