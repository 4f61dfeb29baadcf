// Stores that are mirrored with CloudKit. Their tables refer to rows and entities by number and to the cloud by record:
// a mistake would mix up records on every device of their user. They are refused unless the operator asks for them, and
// then accepted only if everything in the tables stays true, except for numbers (docs/decisions/0057).

import Diagnostics
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

struct MirroringInspection {
  /// The tables; nil for a store that is not mirrored.
  private(set) var layout: MirroringLayout?
  /// The changes to their rows.
  private(set) var carry: MirroringCarry?
  private(set) var findings = Findings()
  private let reader: StoreReader
  private let path: MigrationPath
  private let final: StoreSchema

  private static let hint = "migrate the store with its app, on a device that is signed in"

  /// Throws `cloudkit-not-supported` if anything in the store belongs to CloudKit mirroring.
  static func refuse(_ reader: StoreReader) throws {
    let objects = try reader.schemaObjects().filter {
      MirroringLayout.isMirroring($0.name) || MirroringLayout.isMirroring($0.table)
    }
    let numbers = try reader.primaryKeys().filter(MirroringLayout.isMirroring)
    guard !objects.isEmpty || !numbers.isEmpty else { return }
    let names = Set(objects.map(\.table)).sorted() + numbers.map { "number \($0.number) \($0.name)" }
    let more = names.count > 3 ? " and \(names.count - 3) more" : ""
    throw HopdError(
      .cloudKitNotSupported,
      "the store is mirrored with CloudKit (\(names.prefix(3).joined(separator: ", "))\(more)), and such stores are to "
        + "be refused",
      hint: "migrate it with its app, on a device that is signed in, or with its mirroring data: "
        + "`cloudkit = \"migrate\"`, --cloudkit migrate")
  }

  /// Inspects the mirroring of a store that `path` migrates to `final`.
  init(reader: StoreReader, path: MigrationPath, final: StoreSchema, rule: HistoryRule) throws(SQLiteError) {
    (self.reader, self.path, self.final) = (reader, path, final)
    let found = try MirroringLayout.read(from: reader)
    findings.add(found.errors)
    guard let layout = found.layout else { return }
    self.layout = layout
    if path.mappingModels.contains(where: { !$0.isEmpty }) {
      refuse("a mapping model creates its objects again, under keys that the mirroring does not know")
    }
    if rule != .migrate {
      refuse("without the rows of its history the mirroring would begin again and upload everything")
    }
    if try HistoryLayout.read(from: reader).layout?.tables.isEmpty != false {
      refuse("it has no persistent history, which the mirroring needs")
    }
    guard findings.errors.isEmpty else { return }
    checkNames()
    checkDestination()
    try followNumbers(layout)
    try checkRecordsOfNames(layout)
  }

  private mutating func refuse(_ reason: String, at place: Place = Place()) {
    findings.add(
      .cloudKitNotSupported, "the store is mirrored with CloudKit, and \(reason)", at: place, hint: Self.hint)
  }

  /// Records and their fields are identified by names: none may change.
  private mutating func checkNames() {
    for entity in path.sourceSchema.model.entities {
      guard let name = path.entity(continuing: entity.name, at: path.end) else { continue }
      if name != entity.name {
        refuse("its entity is renamed to \(name), while the records keep their type", at: Place(entity: entity.name))
      }
    }
    for entity in final.model.entities {
      let attributes = final.model.allAttributes(of: entity).keys.sorted().map {
        (name: $0, before: path.sourceAttribute(of: $0, in: entity.name, at: path.end))
      }
      let relationships = final.model.allRelationships(of: entity).keys.sorted().map {
        (name: $0, before: path.sourceRelationship(of: $0, in: entity.name, at: path.end))
      }
      for (name, before) in attributes + relationships {
        guard let before, before != name else { continue }
        refuse(
          "its property \(before) is renamed, while the records keep their fields",
          at: Place(entity: entity.name, property: name))
      }
    }
  }

  /// Checks Core Data's requirements for a mirrored model.
  private mutating func checkDestination() {
    for entity in final.model.entities {
      if !entity.uniquenessConstraints.isEmpty {
        refuse("the new version has a uniqueness constraint, which cannot be mirrored", at: Place(entity: entity.name))
      }
      for relationship in entity.relationships where !relationship.isTransient {
        let place = Place(entity: entity.name, property: relationship.name)
        if final.model.inverse(of: relationship) == nil {
          refuse("the new version has a relationship without inverse, which cannot be mirrored", at: place)
        }
        if !relationship.isOptional,
          path.sourceRelationship(of: relationship.name, in: entity.name, at: path.end) == nil
        {
          refuse("the new version has a new relationship that is required", at: place)
        }
      }
      for attribute in entity.attributes
      where !attribute.isTransient && !attribute.isOptional && attribute.defaultValue == nil
        && path.sourceAttribute(of: attribute.name, in: entity.name, at: path.end) == nil
      {
        refuse(
          "the new version has a new attribute that is required and has no default",
          at: Place(entity: entity.name, property: attribute.name))
      }
    }
  }

  // MARK: Rows

  private mutating func followNumbers(_ layout: MirroringLayout) throws(SQLiteError) {
    var numbers: [Int64: Int64] = [:]
    var removed: [Int64] = []
    for (name, number) in path.sourceSchema.numbers {
      if let next = path.entity(continuing: name, at: path.end), let new = final.number(of: next) {
        if new != number { numbers[number] = new }
      } else {
        removed.append(number)
      }
    }
    carry = MirroringCarry(numbers: numbers, removed: removed.sorted())
    let known = path.sourceSchema.numbers.values.sorted().map(String.init).joined(separator: ", ")
    for table in layout.tables where table.columnNames.contains(MirroringLayout.entityColumn) {
      let strange =
        try reader.connection.integer(
          "SELECT count(*) FROM \(reader.qualified(table.name)) "
            + "WHERE typeof(\(MirroringLayout.entityColumn)) <> 'integer' "
            + "OR \(MirroringLayout.entityColumn) NOT IN (\(known))") ?? 0
      if strange > 0 {
        refuse("\(strange.counted("row")) of \(table.name) name entities that its version does not have")
      }
    }
  }

  /// Tables that refer to entities and relationships by name must not name a removed one, and no receipt may belong to
  /// a removed record.
  private mutating func checkRecordsOfNames(_ layout: MirroringLayout) throws(SQLiteError) {
    let kept = path.sourceSchema.model.entities.filter { path.entity(continuing: $0.name, at: path.end) != nil }
    let entities = kept.map { SQLiteIdentifier.literal($0.name) }.joined(separator: ", ")
    let relationships = Set(final.model.entities.flatMap { final.model.allRelationships(of: $0).keys }).sorted()
      .map(SQLiteIdentifier.literal).joined(separator: ", ")
    for table in layout.tables where table.columnNames.contains("ZRELATIONSHIPNAME") {
      let rows =
        try reader.connection.integer(
          "SELECT count(*) FROM \(reader.qualified(table.name)) WHERE ZCDENTITYNAME NOT IN (\(entities)) "
            + "OR ZRELATEDENTITYNAME NOT IN (\(entities)) OR ZRELATIONSHIPNAME NOT IN (\(relationships))") ?? 0
      if rows > 0 {
        refuse("\(rows.counted("row")) of \(table.name) name an entity or a relationship that is removed")
      }
    }
    let names = Set(layout.tables.map(\.name))
    guard let removed = carry?.removed, !removed.isEmpty,
      names.isSuperset(of: ["ANSCKRECORDZONEMOVERECEIPT", "ANSCKRECORDMETADATA"])
    else { return }
    let receipts =
      try reader.connection.integer(
        "SELECT count(*) FROM \(reader.qualified("ANSCKRECORDZONEMOVERECEIPT")) WHERE ZRECORDMETADATA IN "
          + "(SELECT Z_PK FROM \(reader.qualified("ANSCKRECORDMETADATA")) "
          + "WHERE ZENTITYID IN (\(removed.map(String.init).joined(separator: ", "))))") ?? 0
    if receipts > 0 { refuse("records of an entity that is removed are being moved between zones") }
  }
}
