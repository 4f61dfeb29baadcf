// Values with external storage before a migration path: whether each has a known form and its file exists, which values
// move from files into columns or get their prefix, and what the result must hold. Files belong to the store as rows
// do; a reference to a missing file or to another place is reported before the first byte is written
// (tools/README.md, "External files").

import Diagnostics
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

struct ExternalDataInspection {
  private let migrationPath: MigrationPath
  private let reader: StoreReader
  private let location: StoreLocation
  private let rows: [String: Int64]
  private let valueMax: Int64
  /// By table and column of the store, then Z_ENT.
  private var counts: [StoredColumn: [Int64: ExternalDataCount]] = [:]
  private(set) var findings = Findings()
  private(set) var warnings: [HopdError] = []
  /// By table and column of the result.
  private(set) var expectations: [String: [String: ExternalDataExpectation]] = [:]
  /// Bytes of files that become values of columns.
  private(set) var movedBytes: Int64 = 0

  private static let leftFiles =
    "remove them only when neither the backup nor another store with the same name and a different extension "
    + "needs them"

  /// The values of one entity of the store in one column.
  private struct EntityColumn: Hashable {
    let column: StoredColumn
    let number: Int64
  }

  /// Inspects a store whose tables were already checked. Models without external storage cost nothing.
  init(
    migrationPath: MigrationPath, reader: StoreReader, location: StoreLocation, rows: [String: Int64],
    finalSchema: StoreSchema, memoryLimit: Int64
  ) throws {
    self.migrationPath = migrationPath
    self.reader = reader
    self.location = location
    self.rows = rows
    valueMax = ExternalDataForm.largestValue(memoryLimit: memoryLimit)
    let isConcerned = migrationPath.models.contains { model in
      model.entities.contains { $0.attributes.contains(where: \.hasExternalForm) }
    }
    guard isConcerned, migrationPath.end > 0 else { return }
    try countSource()
    let left = followSwitches()
    try expect(finalSchema, left: left)
    noteUnreferenced(finalSchema, left: left)
  }

  // MARK: The existing store

  private mutating func countSource() throws {
    let columns = ExternalDataColumn.all(in: migrationPath.sourceSchema)
    guard !columns.isEmpty else { return }
    let directory = try ExternalDataDirectory(of: location)
    for column in columns {
      let found = try ExternalDataCensus.count(column, reader: reader, directory: directory)
      counts[StoredColumn(table: column.table, name: column.column)] = found
      var total = ExternalDataCount()
      for (_, count) in found.sorted(by: { $0.key < $1.key }) { total.add(count) }
      judge(total, of: column, directory: directory)
    }
  }

  private mutating func judge(
    _ count: ExternalDataCount, of column: ExternalDataColumn, directory: ExternalDataDirectory
  ) {
    func place(_ row: Int64?) -> Place { Place(entity: column.entity, property: column.property, row: row) }
    if count.malformed > 0 {
      let isOne = count.malformed == 1
      findings.add(
        .externalDataMalformed,
        "\(count.malformed.grouped) value\(isOne ? " has" : "s have") neither form of external storage: 01 and the "
          + "content, or 02 and the name of a file, which is a UUID", at: place(count.malformedRow),
        hint: "restore a backup, or set \(column.table).\(column.column) of \(isOne ? "this row" : "these rows")")
    }
    if count.unsuitable > 0 {
      findings.add(
        .externalDataUnsuitable,
        "\(count.unsuitable.counted("reference")) to something other than a regular file; "
          + "the first "
          + "is " + (count.unsuitableWhat ?? "not a regular file"), at: place(count.unsuitableRow),
        hint: "put regular files into \(directory.path.printable), or restore a backup")
    }
    if count.missing > 0 {
      let list = count.missingRows.map(String.init).joined(separator: ", ")
      let more = count.missing > Int64(count.missingRows.count) ? " …" : ""
      warnings.add(
        .externalDataMissing,
        "\(count.missing.counted("value")) in files that are missing (Z_PK \(list)\(more)); the "
          + "references are copied unchanged", at: place(count.missingRows.first),
        hint: directory.isThere
          ? "copy the files too, or restore a backup with its files"
          : "no directory \(directory.path.printable): a store keeps it under its own name")
    }
  }

  // MARK: Hops that switch external storage

  /// Returns the columns that some hop moves out of files, with the place of the first such hop; refuses values that
  /// cannot be read.
  private mutating func followSwitches() -> [EntityColumn: Place] {
    var left: [EntityColumn: Place] = [:]
    for version in migrationPath.models.indices.dropFirst() {
      let model = migrationPath.models[version]
      for entity in model.entities {
        guard let stored = migrationPath.sourceEntity(of: entity.name, at: version), (rows[stored] ?? 0) > 0,
          let number = migrationPath.sourceSchema.number(of: stored)
        else { continue }
        for attribute in model.allAttributes(of: entity).values {
          guard attribute.type == .binary, !attribute.isTransient,
            let before = definition(before: attribute.name, in: entity.name, at: version),
            before.hasExternalForm, !attribute.hasExternalForm,
            case .column(let table, let name, _) = migrationPath.origin(
              ofAttribute: attribute.name, in: entity.name, at: version)
          else { continue }
          let entityColumn = EntityColumn(column: StoredColumn(table: table, name: name), number: number)
          guard left[entityColumn] == nil else { continue }
          left[entityColumn] = Place(
            hop: migrationPath.hop(to: version), entity: model.declarer(of: attribute.name, in: entity),
            property: attribute.name)
        }
      }
    }
    var byPlace: [(place: Place, count: ExternalDataCount)] = []
    let order = left.sorted {
      ($0.key.column.table, $0.key.column.name, $0.key.number)
        < ($1.key.column.table, $1.key.column.name, $1.key.number)
    }
    for (entityColumn, place) in order {
      guard let count = counts[entityColumn.column]?[entityColumn.number] else { continue }
      movedBytes = movedBytes.addingReportingOverflow(count.foundBytes).partialValue
      if let index = byPlace.firstIndex(where: { $0.place == place }) {
        byPlace[index].count.add(count)
      } else {
        byPlace.append((place, count))
      }
    }
    for (place, count) in byPlace { judgeMove(count, at: place) }
    return left
  }

  private mutating func judgeMove(_ count: ExternalDataCount, at place: Place) {
    if count.missing > 0 {
      findings.add(
        .externalDataMissing,
        "external storage is disabled, and \(count.missing) of the files to be read "
          + "\(count.missing == 1 ? "is" : "are") missing", at: place.filled(from: Place(row: count.missingRows.first)),
        hint: "copy the files too, restore a backup with its files, or stop at an earlier version")
    }
    if count.largest > valueMax {
      findings.add(
        .externalDataTooLarge,
        "external storage is disabled, and the largest file has \(count.largest) bytes; a value may have "
          + "\(valueMax)", at: place.filled(from: Place(row: count.largestRow)),
        hint: "raise memory_limit to four times that size (a value has at most a billion bytes), or leave \"Allows "
          + "External Storage\" on")
    }
    if count.found > 0 {
      warnings.add(
        .externalDataUnreferenced,
        "\(count.found.grouped) value\(count.found == 1 ? " moves" : "s move") from files into the store; the "
          + "files stay "
          + "where they are, and nothing refers to them any more", at: place,
        hint: Self.leftFiles)
    }
  }

  private func definition(before attribute: String, in entity: String, at version: Int) -> Attribute? {
    let mapping = migrationPath.mappings[version - 1].mapping(toDestination: entity)
    guard let old = mapping?.sourceEntity,
      let name = mapping?.attributes.first(where: { $0.destination == attribute })?.source
    else { return nil }
    return migrationPath.definition(of: name, in: old, at: version - 1)
  }

  // MARK: The result

  private mutating func expect(_ schema: StoreSchema, left: [EntityColumn: Place]) throws {
    for table in schema.tables {
      for column in table.columns {
        guard case .attribute(let entity, let name) = column.role, let value = schema.model.entity(named: entity),
          let attribute = value.attributes.first(where: { $0.name == name }), attribute.type == .binary
        else { continue }
        let parts = parts(of: name, in: value, schema)
        // Plain at both ends: the count of values is sufficient.
        guard attribute.hasExternalForm || parts.contains(where: \.hasForm) else { continue }
        var expected = ExternalDataExpectation()
        for part in parts { try add(part, to: &expected, left: left, entity: entity, property: name) }
        expectations[table.name, default: [:]][column.name] = expected
      }
    }
  }

  /// The source of one entity's values, for an attribute of the result.
  private struct Part {
    /// nil if a hop adds the attribute.
    let entityColumn: EntityColumn?
    /// Whether the column has external storage in the store.
    let hasForm: Bool
    /// The value that rows without one get in some hop.
    let filler: [UInt8]?
    let rows: Int64
  }

  private func parts(of attribute: String, in entity: Entity, _ schema: StoreSchema) -> [Part] {
    schema.model.subtree(of: entity).compactMap { member in
      guard let stored = migrationPath.sourceEntity(of: member.name, at: migrationPath.end), let count = rows[stored],
        count > 0, let number = migrationPath.sourceSchema.number(of: stored)
      else { return nil }
      func bytes(_ value: AttributeDefault?) -> [UInt8]? { if case .binary(let bytes)? = value { bytes } else { nil } }
      switch migrationPath.origin(ofAttribute: attribute, in: member.name, at: migrationPath.end) {
      case .null: return nil
      case .constant(let value): return Part(entityColumn: nil, hasForm: false, filler: bytes(value), rows: count)
      case .column(let table, let name, let fallback):
        let column = StoredColumn(table: table, name: name)
        return Part(
          entityColumn: EntityColumn(column: column, number: number), hasForm: counts[column] != nil,
          filler: bytes(fallback),
          rows: count)
      }
    }
  }

  private mutating func add(
    _ part: Part, to expected: inout ExternalDataExpectation, left: [EntityColumn: Place], entity: String,
    property: String
  ) throws(SQLiteError) {
    func add(_ count: Int64, bytes: Int64) {
      expected.inline &+= count
      expected.inlineBytes = expected.inlineBytes.addingReportingOverflow(bytes).partialValue
    }
    var values: Int64 = 0
    if let entityColumn = part.entityColumn, part.hasForm {
      let count = counts[entityColumn.column]?[entityColumn.number] ?? ExternalDataCount()
      values = count.inline &+ count.references
      add(count.inline, bytes: count.inlineBytes)
      if left[entityColumn] != nil {
        add(count.found, bytes: count.foundBytes)
      } else {
        expected.found &+= count.found
        expected.foundBytes = expected.foundBytes.addingReportingOverflow(count.foundBytes).partialValue
        expected.missing &+= count.missing
      }
    } else if let entityColumn = part.entityColumn {
      let plain = try plainValues(entityColumn, entity: entity, property: property)
      values = plain.count
      add(plain.count, bytes: plain.bytes)
    }
    guard let filler = part.filler else { return }
    let filled = max(0, part.rows &- values)
    add(filled, bytes: filled.multipliedReportingOverflow(by: Int64(filler.count)).partialValue)
  }

  /// Counts values of a plain column that get their prefix in some hop, or share a column of the result with values
  /// that had one. A value that is not a BLOB has no external form and is refused.
  private mutating func plainValues(
    _ entityColumn: EntityColumn, entity: String, property: String
  ) throws(SQLiteError) -> (count: Int64, bytes: Int64) {
    let name = SQLiteIdentifier.quoted(entityColumn.column.name)
    let answers = try reader.connection.rows(
      "SELECT count(\(name)), sum(length(\(name))), sum(\(name) IS NOT NULL AND typeof(\(name)) <> 'blob'),"
        + " min(CASE WHEN \(name) IS NOT NULL AND typeof(\(name)) <> 'blob' THEN Z_PK END)"
        + " FROM \(reader.qualified(entityColumn.column.table)) WHERE Z_ENT = \(entityColumn.number)"
    ) { ($0.integer(at: 0), $0.integer(at: 1), $0.integer(at: 2), $0.integer(at: 3)) }
    guard let (count, bytes, strange, row) = answers.first else { return (0, 0) }
    if strange > 0 {
      findings.add(
        .externalDataMalformed,
        "external storage is switched, and \(strange.grouped) value\(strange == 1 ? " is" : "s are") no bytes",
        at: Place(entity: entity, property: property, row: row),
        hint: "restore a backup, or set \(entityColumn.column.table).\(entityColumn.column.name) of these rows")
    }
    return (count, bytes)
  }

  /// Adds a warning about files whose values the migration path drops.
  private mutating func noteUnreferenced(_ schema: StoreSchema, left: [EntityColumn: Place]) {
    var carried = Set(left.keys)
    for table in schema.tables {
      for column in table.columns {
        guard case .attribute(let name, let property) = column.role, let entity = schema.model.entity(named: name)
        else { continue }
        carried.formUnion(parts(of: property, in: entity, schema).compactMap(\.entityColumn))
      }
    }
    var dropped: Int64 = 0
    for (column, byEntity) in counts {
      for (number, count) in byEntity where !carried.contains(EntityColumn(column: column, number: number)) {
        dropped &+= count.found
      }
    }
    guard dropped > 0 else { return }
    warnings.add(
      .externalDataUnreferenced,
      "\(dropped.counted("file")) of dropped values stay\(dropped == 1 ? "s" : "") in "
        + "\(location.externalDataDirectory.printable), and nothing refers to \(dropped == 1 ? "it" : "them") any more",
      hint: Self.leftFiles)
  }
}
