// Imports rows by a mapping: objects first, file by file, then pairs. A relationship whose targets are all read finds
// them at once; others wait in a temporary table until everything is read, so the order of the files does not matter.

import Diagnostics
import Glibc
import ManagedObjectModel
import PersistentStore
import SQLite

/// Imports the rows of a mapping's sources.
final class MappedImport {
  private let mapping: ImportMapping
  private let data: DataSet
  private let loader: StoreLoader
  private let keys: KeyIndex
  /// References that wait for their targets, by relationship.
  private var waiting: [PropertyKey: WaitingReferences] = [:]
  /// The entities with sources that are not read yet.
  private var unread: [String] = [] {
    didSet { readDestinations = [:] }
  }
  private var readDestinations: [String: Bool] = [:]
  /// The files that were read to their end: what is wrong with the form of their rows is noted.
  private var readSources: Set<DataSource> = []
  private var unused: [DataSource: Set<Int>] = [:]
  private var columnNames: [DataSource: [String]] = [:]
  private let moment = Double(time(nil)) - Double(DateText.secondsFrom1970)

  init(_ mapping: ImportMapping, data: DataSet, loader: StoreLoader) throws {
    self.mapping = mapping
    self.data = data
    self.loader = loader
    keys = try KeyIndex(connection: loader.connection, schema: loader.schema)
  }

  func read(progress: (_ share: Double) throws -> Void) throws {
    let count = Double(mapping.objects.count + mapping.pairs.count)
    // Mistakes of every part are found before the first row is read.
    let plans = try mapping.objects.map { try ObjectsPlan($0, data: data, loader: loader, moment: moment) }
    try requireKeys(plans)
    for plan in plans { note(plan.usedColumns, of: plan.source, plan.mapping.source) }
    for existing in mapping.existing { try add(existing) }
    unread = plans.map(\.writer.entity.name)
    var done = 0.0
    for plan in plans {
      try read(plan) { try progress((done + $0) / count) }
      if let place = unread.firstIndex(of: plan.writer.entity.name) { unread.remove(at: place) }
      done += 1
    }
    try loader.commit()
    for waiting in waiting.values.sorted(by: { $0.table < $1.table }) { try resolve(waiting) }
    for pairs in mapping.pairs {
      try read(pairs) { try progress((done + $0) / count) }
      done += 1
    }
  }

  /// Throws if a relationship refers to objects that have no key in the data.
  private func requireKeys(_ plans: [ObjectsPlan]) throws {
    for link in plans.flatMap(\.links) {
      let destination = link.relationship.destinationEntityName
      let targets = mapping.objects.filter {
        loader.schema.model.namesOfLineage(of: $0.entity).contains(destination)
      }
      guard let target = targets.first, targets.allSatisfy(\.key.isEmpty), mapping.existing.isEmpty else { continue }
      throw HopdError(
        .importMappingInvalid, "\(link.name) refers to objects of \(target.entity), which have no key",
        at: target.place, hint: "add key = \"COLUMN\" to this [[import]]")
    }
  }

  /// Notes columns of a text file that a part of the mapping uses.
  private func note(_ columns: Set<Int>, of source: any RecordSource, _ name: DataSource) {
    guard source is CSVReader else { return }
    unused[name] = (unused[name] ?? Set(source.columns.indices)).subtracting(columns)
    columnNames[name] = source.columns
  }

  /// The columns of text files that no part of the mapping uses, by file.
  var unusedColumns: [String: [String]] {
    var found: [String: [String]] = [:]
    for (source, places) in unused {
      let names = places.sorted().compactMap { columnNames[source]?[$0] }.filter { !$0.isEmpty }
      if !names.isEmpty { found[source.name] = names }
    }
    return found
  }

  /// Makes objects of the store known by their keys.
  private func add(_ existing: ImportMapping.Existing) throws {
    func invalid(_ message: String, _ hint: String?) -> HopdError {
      HopdError(.importMappingInvalid, message, at: existing.place, hint: hint)
    }
    let schema = loader.schema
    guard loader.isAdding else {
      throw invalid("a new store has no objects yet", "remove [[existing]], or add to a store with --into STORE")
    }
    guard let entity = schema.model.entity(named: existing.entity), let table = schema.table(of: existing.entity) else {
      throw invalid("the model has no entity \(existing.entity.printableLine)", nil)
    }
    let columns = try existing.key.map { name throws(HopdError) in
      guard let column = schema.column(ofAttribute: name, in: entity.name),
        let attribute = schema.model.allAttributes(of: entity)[name],
        [.integer, .string, .uri].contains(attribute.type.form)
      else {
        throw invalid("\(entity.name).\(name.printableLine) cannot be a key", "take an integer, a string or a URI")
      }
      return SQLiteIdentifier.quoted(column)
    }
    let text = columns.map { "CAST(\($0) AS TEXT)" }.joined(separator: " || char(31) || ")
    let rows = "FROM \(SQLiteIdentifier.quoted(table.name)) WHERE \"Z_ENT\" IN (\(keys.numbers(of: entity.name)))"
    let values = "\(text) AS k, \"Z_ENT\" AS e"
    let repeated = try loader.connection.integer(
      "SELECT count(*) FROM (SELECT \(values) \(rows) GROUP BY k, e HAVING k IS NOT NULL AND count(*) > 1)")
    guard repeated == 0 else {
      throw invalid(
        "\(existing.key.joined(separator: ", ")) does not identify the objects of \(entity.name): values repeat", nil)
    }
    try loader.connection.run(
      "INSERT INTO \(keys.table(of: entity.name)) SELECT \(text), \"Z_ENT\", \"Z_PK\" \(rows) AND \(text) IS NOT NULL")
  }

  // MARK: Objects

  private func read(_ plan: ObjectsPlan, progress: (Double) throws -> Void) throws {
    let file = loader.number(of: plan.source.path)
    for (name, _) in plan.writer.references where !plan.links.contains(where: { $0.name == name }) {
      loader.open.insert(PropertyKey(entity: plan.writer.entity.name, property: name))
    }
    var count = 0
    while let record = try next(of: plan.source, plan.mapping.source) {
      do {
        try read(record, plan, file: file)
      } catch let error as HopdError where error.code == .rowInvalid {
        try loader.problems.add(error.located(loader.place(file: file, line: record.line)))
      }
      count += 1
      if count % 2048 == 0 { try progress(plan.source.share) }
    }
    readSources.insert(plan.mapping.source)
    try progress(1)
  }

  /// Returns the next row. One in a wrong form is noted once, however many parts of the mapping read its file.
  private func next(of rows: any RecordSource, _ source: DataSource) throws -> DataRecord? {
    while true {
      do {
        return try rows.next()
      } catch let error as HopdError where error.code == .rowInvalid {
        if !readSources.contains(source) { try loader.problems.add(error) }
      }
    }
  }

  private func read(_ record: DataRecord, _ plan: ObjectsPlan, file: Int64) throws {
    plan.expressions.begin(record)
    if let filter = plan.mapping.filter, try !plan.expressions.isTrue(filter) { return }
    let writer = plan.writer
    let text = plan.key(of: record)
    if text == nil, !plan.key.isEmpty {
      if plan.mapping.isDistinct { return }
      throw HopdError(.rowInvalid, "the row has no key", at: Place(entity: writer.entity.name))
    }
    let key = try self.key(text, plan)
    if let text, try !keys.add(text, of: writer, key: key) {
      if plan.mapping.isDistinct { return }
      throw HopdError(.rowInvalid, "the row has the key of an earlier one", at: Place(entity: writer.entity.name))
    }
    do {
      writer.begin(key)
      let texts = try setAttributes(record, plan, file: file)
      let links = try setReferences(record, plan)
      try loader.write(writer, file: file, line: record.line)
      for (column, bytes) in texts { try loader.set(invalidText: bytes, in: column, of: writer) }
      for link in links { try stage(link, of: writer, key: key) }
    } catch let error as HopdError where error.code == .rowInvalid {
      if let text { try keys.remove(text, of: writer) }
      throw error
    }
  }

  private func key(_ text: String?, _ plan: ObjectsPlan) throws -> Int64 {
    guard plan.mapping.keepsKeys, let text else { return loader.nextKey(in: plan.writer.table) }
    guard let key = Int64(text), key > 0 else {
      throw HopdError(
        .rowInvalid, "the key is not a number above 0, and keeps_keys needs one",
        at: Place(entity: plan.writer.entity.name))
    }
    return key
  }

  /// Sets the attributes, and returns texts of a database that are not UTF-8, which only SQLite can store.
  private func setAttributes(
    _ record: DataRecord, _ plan: ObjectsPlan, file: Int64
  ) throws -> [(column: String, bytes: [UInt8])] {
    var texts: [(column: String, bytes: [UInt8])] = []
    for (attribute, column, place, origin) in plan.attributes {
      do {
        switch origin {
        case .expression(let node):
          let value = try plan.expressions.value(node, of: attribute, plan.values)
          plan.writer.set(try content(value, attribute, of: plan.writer), at: place)
        case .column(let number):
          let cell = record.cells.indices.contains(number) ? record.cells[number] : .null
          if case .storedText(let bytes) = cell, [.string, .uri].contains(attribute.type.form) {
            texts.append((column, bytes))
            // The row has a text until the bytes replace it, which a required attribute needs.
            plan.writer.set(.text(""), at: place)
            continue
          }
          plan.writer.set(try content(plan.values.stored(cell, as: attribute), attribute, of: plan.writer), at: place)
        }
      } catch let error as HopdError where error.code == .rowInvalid {
        let located = error.located(Place(entity: plan.writer.entity.name, property: attribute.name))
        guard loader.problems.rule == .default else { throw located }
        loader.problems.correct(located.located(loader.place(file: file, line: record.line)))
      }
    }
    return texts
  }

  private func content(_ value: SQLiteValue, _ attribute: Attribute, of writer: ObjectWriter) throws -> SQLiteValue {
    guard attribute.hasExternalForm, case .blob(let bytes) = value else { return value }
    return try loader.stored(bytes, as: attribute, of: writer)
  }

  // MARK: Relationships

  /// A target that is staged when its object is written.
  private struct StagedLink {
    let name: String
    let relationship: Relationship
    let target: Target
    let place: Int64?

    enum Target {
      case object(Int64)
      case key(String)
    }
  }

  /// Whether all objects of an entity and those below it are read.
  private func isRead(_ entity: String) -> Bool {
    if let known = readDestinations[entity] { return known }
    let isRead = !unread.contains { loader.schema.model.namesOfLineage(of: $0).contains(entity) }
    readDestinations[entity] = isRead
    return isRead
  }

  /// Sets the to-ones whose targets are known, and returns what is staged.
  private func setReferences(_ record: DataRecord, _ plan: ObjectsPlan) throws -> [StagedLink] {
    var staged: [StagedLink] = []
    for link in plan.links {
      let position = try place(in: record, link)
      let destination = link.relationship.destinationEntityName
      for (offset, text) in try targets(of: link, in: record).enumerated() {
        let isToOne = plan.writer.references[link.name] != nil
        let place = isToOne ? position : Int64(offset)
        guard isRead(destination) else {
          staged.append(
            StagedLink(name: link.name, relationship: link.relationship, target: .key(text), place: place))
          continue
        }
        guard let (key, number) = try find(text, of: destination, link.name, at: here(record, plan)) else {
          continue
        }
        if let reference = plan.writer.references[link.name] {
          plan.writer.set(.integer(key), at: reference.key)
          if let discriminator = reference.discriminator { plan.writer.set(.integer(number), at: discriminator) }
          if place == nil { continue }
        }
        staged.append(
          StagedLink(name: link.name, relationship: link.relationship, target: .object(key), place: place))
      }
    }
    return staged
  }

  private func here(_ record: DataRecord, _ plan: ObjectsPlan) -> Place {
    Place(file: plan.source.path, line: Int(clamping: record.line), entity: plan.writer.entity.name)
  }

  /// Finds an object by its key; notes the reference and returns nil if there is not exactly one.
  private func find(
    _ text: String, of entity: String, _ name: String, at place: Place
  ) throws -> (key: Int64, number: Int64)? {
    let problem: String
    switch try keys.find(text, of: entity) {
    case .one(let key, let number): return (key, number)
    case .none: problem = "\(name) has a key that no \(entity) in the data has\(keyText(of: entity))"
    case .several: problem = "\(name) has a key that objects of several entities below \(entity) have"
    }
    try loader.problems.add(
      reference: HopdError(
        .rowInvalid, problem, at: Place(property: name).filled(from: place),
        hint: "add the row, or correct the key"))
    return nil
  }

  /// The columns with the keys of an entity's objects, in words.
  private func keyText(of entity: String) -> String {
    let model = loader.schema.model
    let keys =
      mapping.objects.filter { model.namesOfLineage(of: $0.entity).contains(entity) }.map(\.key)
      + mapping.existing.filter { model.namesOfLineage(of: $0.entity).contains(entity) }.map(\.key)
    let names = Set(keys.map { $0.joined(separator: ", ") }).filter { !$0.isEmpty }.sorted()
    return names.isEmpty ? "" : " (its key is \(names.joined(separator: " or ")))"
  }

  private func place(in record: DataRecord, _ link: ObjectsPlan.Link) throws -> Int64? {
    guard let position = link.position, record.cells.indices.contains(position) else { return nil }
    return try Self.place(record.cells[position], link.name)
  }

  private static func place(_ cell: DataCell, _ name: String) throws -> Int64? {
    if cell == .null { return nil }
    guard let number = cell.text.flatMap({ Int64($0) }) else {
      throw HopdError(.rowInvalid, "the position in \(name) is not an integer", at: Place(property: name))
    }
    return number
  }

  /// The keys of a relationship's targets in a row.
  private func targets(of link: ObjectsPlan.Link, in record: DataRecord) throws -> [String] {
    guard link.columns.count == 1, let column = link.columns.first, record.cells.indices.contains(column) else {
      return ObjectsPlan.key(of: record, link.columns).map { [$0] } ?? []
    }
    switch record.cells[column] {
    case .null: return []
    case .list(let cells):
      guard link.relationship.isToMany || cells.count < 2 else {
        throw HopdError(.rowInvalid, "\(link.name) has several targets", at: Place(property: link.name))
      }
      return cells.compactMap(\.text)
    case let cell:
      guard let text = cell.text else {
        throw HopdError(.rowInvalid, "\(link.name) has no text as key", at: Place(property: link.name))
      }
      guard let separator = link.separator else { return [text] }
      return text.split(separator: separator).map { part in
        var key = part
        while key.first == " " { key.removeFirst() }
        while key.last == " " { key.removeLast() }
        return String(key)
      }.filter { !$0.isEmpty }
    }
  }

  private func stage(_ link: StagedLink, of writer: ObjectWriter, key: Int64) throws {
    switch link.target {
    case .key(let text):
      let property = PropertyKey(entity: writer.entity.name, property: link.name)
      let known =
        try waiting[property]
        ?? WaitingReferences(
          key: property, relationship: link.relationship, number: waiting.count, connection: loader.connection)
      waiting[property] = known
      try known.add(source: key, key: text, place: link.place)
    case .object(let target):
      if writer.references[link.name] == nil {
        try loader.stage(link.name, of: writer.entity.name, owner: key, target: target, place: link.place)
      } else if let inverse = loader.schema.model.inverse(of: link.relationship) {
        try loader.stage(
          inverse.relationship.name, of: link.relationship.destinationEntityName, owner: target, target: key,
          place: link.place)
      }
    }
  }

  /// Finds the targets of references that waited for them.
  private func resolve(_ references: WaitingReferences) throws {
    let property = references.key
    let destination = references.relationship.destinationEntityName
    let (table, numbers) = (keys.table(of: destination), keys.numbers(of: destination))
    let writer = try loader.writer(of: property.entity)
    let lost =
      "FROM \(references.table) AS r WHERE (SELECT count(*) FROM \(table) AS k WHERE k.key = r.key"
      + " AND k.ent IN (\(numbers))) <> 1"
    let unknown = try loader.connection.rows("SELECT source \(lost) LIMIT 1000") { $0.integer(at: 0) }
    for key in unknown {
      try loader.problems.add(
        reference: HopdError(
          .rowInvalid,
          "\(property.property) has a key that no \(destination) in the data has, or several"
            + keyText(of: destination),
          at: Place(entity: property.entity, property: property.property), hint: "add the row, or correct the key"
        )
        .located(try loader.place(of: key, in: writer.table)))
    }
    let count = try loader.connection.integer("SELECT count(*) \(lost)") ?? 0
    loader.problems.addUnlisted(references: count &- Int64(unknown.count))
    let found = "FROM \(references.table) AS r JOIN \(table) AS k ON k.key = r.key AND k.ent IN (\(numbers))"
    guard let reference = writer.references[property.property] else {
      guard let staged = try loader.staged(property.property, of: property.entity) else { return }
      return try loader.connection.run("INSERT INTO \(staged.table) SELECT r.source, k.pk, r.place \(found)")
    }
    let name = SQLiteIdentifier.quoted(writer.table.name)
    let discriminator =
      reference.columns.discriminator.map { ", \(SQLiteIdentifier.quoted($0)) = k.ent" } ?? ""
    try loader.connection.run(
      "UPDATE \(name) SET \(SQLiteIdentifier.quoted(reference.columns.key)) = k.pk\(discriminator) \(found)"
        + " WHERE \(name).\"Z_PK\" = r.source")
    guard let inverse = loader.schema.model.inverse(of: references.relationship),
      let staged = try loader.staged(inverse.relationship.name, of: destination)
    else { return }
    try loader.connection.run(
      "INSERT INTO \(staged.table) SELECT k.pk, r.source, r.place \(found) WHERE r.place IS NOT NULL")
  }

  // MARK: Pairs

  private func read(_ pairs: ImportMapping.Pairs, progress: (Double) throws -> Void) throws {
    let model = loader.schema.model
    guard let entity = model.entity(named: pairs.entity),
      let relationship = model.allRelationships(of: entity)[pairs.relationship], relationship.isToMany,
      try loader.staged(pairs.relationship, of: pairs.entity) != nil
    else {
      throw HopdError(
        .importMappingInvalid, "\(pairs.entity).\(pairs.relationship) is not a to-many of the model", at: pairs.place)
    }
    let names =
      pairs.owner + pairs.target + [pairs.position, pairs.inversePosition].compactMap(\.self)
    let source = try data.source(
      pairs.source, columns: names, at: pairs.place)
    var check = MappingCheck(expressions: RowExpressions(columns: source.columns, moment: moment), source: source)
    let (owner, target) = (check.places(pairs.owner, at: pairs.place), check.places(pairs.target, at: pairs.place))
    let position = pairs.position.flatMap { check.places([$0], at: pairs.place).first }
    let inversePosition = pairs.inversePosition.flatMap { check.places([$0], at: pairs.place).first }
    try check.finish(at: pairs.place)
    note(Set(owner + target + [position, inversePosition].compactMap(\.self)), of: source, pairs.source)
    let file = loader.number(of: source.path)
    var count = 0
    while let record = try next(of: source, pairs.source) {
      do {
        // A row without one of the ends is no pair, as an object without an owner.
        guard let first = ObjectsPlan.key(of: record, owner), let second = ObjectsPlan.key(of: record, target) else {
          continue
        }
        let here = loader.place(file: file, line: record.line)
        guard let from = try find(first, of: pairs.entity, pairs.relationship, at: here)?.key,
          let to = try find(second, of: relationship.destinationEntityName, pairs.relationship, at: here)?.key
        else { continue }
        let place = try position.flatMap { try Self.place(record.cells[$0], pairs.relationship) }
        try loader.stage(pairs.relationship, of: pairs.entity, owner: from, target: to, place: place)
        if let column = inversePosition, let inverse = model.inverse(of: relationship)?.relationship {
          try loader.stage(
            inverse.name, of: relationship.destinationEntityName, owner: to, target: from,
            place: try Self.place(record.cells[column], inverse.name))
        }
      } catch let error as HopdError where error.code == .rowInvalid {
        try loader.problems.add(error.located(loader.place(file: file, line: record.line)))
      }
      count += 1
      if count % 2048 == 0 { try progress(source.share) }
    }
    readSources.insert(pairs.source)
  }
}

/// References by key in a temporary table.
private final class WaitingReferences {
  let key: PropertyKey
  let relationship: Relationship
  /// The temporary table, with `source`, `key` and `place`.
  let table: String
  private let insert: Statement

  init(key: PropertyKey, relationship: Relationship, number: Int, connection: Connection) throws(SQLiteError) {
    self.key = key
    self.relationship = relationship
    table = "temp.hopd_references_\(number)"
    try connection.execute("CREATE TEMP TABLE hopd_references_\(number) (source INTEGER, key TEXT, place INTEGER)")
    insert = try connection.prepare("INSERT INTO \(table) VALUES (?, ?, ?)")
  }

  func add(source: Int64, key: String, place: Int64?) throws(SQLiteError) {
    try insert.run([.integer(source), .text(key), place.map { .integer($0) } ?? .null])
  }
}
