// Fills an empty store with plausible objects: to try a migration before the first real store is available, for tests,
// and for measurements. Rows are written by key, table by table, and memory is constant at any number.

import Diagnostics
import ManagedObjectModel
import SQLite

extension HopdError.Code {
  /// Samples cannot be made for this model.
  package static let cannotFill = HopdError.Code("cannot-fill", exit: .dataError)
}

/// Fills a store with rows; the same model, count and seed always give the same rows.
package struct StoreFiller {
  private let connection: Connection
  private let schema: StoreSchema
  private let plan: FillPlan
  private var values: SampleValues
  private let enumValues: [PropertyKey: EnumValues]

  /// Creates a filler for the store in `connection`, whose tables exist and are empty.
  package init(
    connection: Connection, schema: StoreSchema, rows: Int64, seed: UInt64, kind: SampleRows = .everyKind,
    external: ExternalSamples? = nil, enumValues: [PropertyKey: EnumValues] = [:]
  ) {
    self.connection = connection
    self.enumValues = enumValues
    self.schema = schema
    // A bound far beyond any disk prevents overflow in the arithmetic on keys.
    plan = FillPlan(schema: schema, rows: max(0, min(rows, 1 << 40)))
    values = SampleValues(seed: seed, kind: kind, external: external)
  }

  /// Highest key by root entity: Z_MAX.
  package var highWaterMarks: [String: Int64] {
    Dictionary(plan.tables.map { ($0.table.rootEntity, $0.rows) }, uniquingKeysWith: max)
  }

  /// Writes all rows in transactions of `chunk`; `progress` receives the number of objects so far and may stop the work
  /// by returning false, which throws `interrupted`.
  package mutating func fill(chunk: Int64 = 20_000, progress: (Int64) -> Bool = { _ in true }) throws {
    var done: Int64 = 0
    for table in plan.tables where table.rows > 0 {
      try fill(table, chunk: max(1, chunk), done: &done, progress: progress)
    }
    for join in schema.joinTables { try fill(join, chunk: max(1, chunk), done: done, progress: progress) }
  }

  // MARK: Objects

  /// The source of one column's value.
  private enum Source {
    case attribute(Attribute, shift: Int64)
    case oneOf([SQLiteValue], shift: Int64)
    case unique(Attribute, Distinction)
    case toOne(Link)
    case discriminator(Int)
    case orderKey(Int)
    case owner(Link)
    case zero
    case null
  }

  /// How an attribute keeps a uniqueness constraint.
  private enum Distinction {
    /// It differs in every row.
    case alone
    /// It is one of the constraint's booleans, which together count the rows.
    case bit(Int, of: Int)
  }

  private func sources(of entity: Entity, in table: EntityTable) throws(HopdError) -> [Source] {
    let unique = try uniqueAttributes(of: entity)
    var byColumn: [String: Attribute] = [:]
    for (name, attribute) in schema.model.allAttributes(of: entity) {
      if let column = schema.column(ofAttribute: name, in: entity.name) { byColumn[column] = attribute }
    }
    let lineage = Set(schema.model.lineage(of: entity).map(\.name))
    var sources: [Source] = []
    var links: [String: Int] = [:]
    for (offset, column) in table.columns.dropFirst(3).enumerated() {
      switch column.role {
      case .attribute:
        guard let attribute = byColumn[column.name] else {
          sources.append(.null)
          continue
        }
        guard !attribute.isDerived else {
          // Counts are computed after all rows are written; before that no object has children.
          sources.append(
            schema.derivation(ofAttribute: attribute.name, in: entity.name)?.isCount == true ? .zero : .null)
          continue
        }
        // A constraint needs a value for each row, and an enum has few.
        if unique[attribute.name] == nil,
          let known = enumValues[PropertyKey(entity: entity.name, property: attribute.name)]?.stored
        {
          sources.append(.oneOf(known, shift: Int64(offset)))
          continue
        }
        sources.append(
          unique[attribute.name].map { Source.unique(attribute, $0) } ?? .attribute(attribute, shift: Int64(offset)))
      case .toOne(let owner, let name) where lineage.contains(owner):
        let link = Link(relationship: name, of: owner, schema: schema, plan: plan)
        links[name] = sources.count
        sources.append(link.map(Source.toOne) ?? .null)
      case .discriminator(let owner, let name) where lineage.contains(owner):
        sources.append(links[name].map(Source.discriminator) ?? .null)
      case .orderKey(let owner, let name) where lineage.contains(owner):
        sources.append(links[name].map(Source.orderKey) ?? .null)
      case .owner(let owner, let name):
        let destination = schema.model.ownRelationship(name, of: owner)
        let isTarget = destination.map { lineage.contains($0.destinationEntityName) } ?? false
        links["\(owner).\(name)"] = sources.count
        sources.append(isTarget ? Link(ownersOf: owner, plan: plan).map(Source.owner) ?? .null : .null)
      case .ownerOrder(let owner, let name):
        sources.append(links["\(owner).\(name)"].map(Source.orderKey) ?? .null)
      default: sources.append(.null)
      }
    }
    return sources
  }

  /// Chooses one attribute of each uniqueness constraint, which gets a distinct value in every row, or all of them if
  /// all are Boolean.
  private func uniqueAttributes(of entity: Entity) throws(HopdError) -> [String: Distinction] {
    var chosen: [String: Distinction] = [:]
    let attributes = schema.model.allAttributes(of: entity)
    for member in schema.model.lineage(of: entity) {
      for constraint in member.uniquenessConstraints {
        let candidates = constraint.compactMap { attributes[$0] }
        let wide: [AttributeType] = [
          .string, .uri, .uuid, .integer64, .double, .date, .decimal, .integer32, .binary, .float, .integer16,
          .transformable,
        ]
        let best = wide.lazy.compactMap { type in candidates.first { $0.type == type && !$0.isDerived } }.first
        if let best {
          chosen[best.name] = .alone
        } else if !candidates.isEmpty, candidates.allSatisfy({ $0.type == .boolean && !$0.isDerived }) {
          for (place, attribute) in candidates.enumerated() where chosen[attribute.name] == nil {
            chosen[attribute.name] = .bit(place, of: candidates.count)
          }
        } else if !candidates.contains(where: \.isOptional) {
          throw HopdError(
            .cannotFill,
            "the uniqueness constraint \(constraint.joined(separator: ", ")) has no attribute that can differ in "
              + "every row", at: Place(entity: entity.name), hint: "create an empty store, without --rows")
        }
      }
    }
    return chosen
  }

  private mutating func fill(
    _ table: FillPlan.Table, chunk: Int64, done: inout Int64, progress: (Int64) -> Bool
  ) throws {
    var entitySources: [[Source]] = []
    for entity in table.entities { entitySources.append(try sources(of: entity, in: table.table)) }
    let insert = try insertion(into: table.table.name, table.table.columns.map(\.name))
    let rows = table.rows
    let width = Int64(table.entities.count)
    var key: Int64 = 1
    while key <= rows {
      let last = min(rows, key + chunk - 1)
      try connection.transaction {
        while key <= last {
          let position = Int((key - 1) % width)
          let row = Row(key: key, position: position, ordinal: (key - 1) / width, rows: rows)
          guard entitySources.indices.contains(position) else { break }
          let entity = table.entities[position]
          try write(row, number: table.numbers[position], entity: entity, entitySources[position], insert: insert)
          key += 1
        }
      }
      guard progress(done + last) else { throw Self.stopped }
    }
    done += rows
  }

  private func insertion(into table: String, _ columns: [String]) throws(SQLiteError) -> Statement {
    try connection.prepare(
      "INSERT INTO \(SQLiteIdentifier.quoted(table))"
        + " (\(columns.map(SQLiteIdentifier.quoted).joined(separator: ", ")))"
        + " VALUES (\(columns.map { _ in "?" }.joined(separator: ", ")))")
  }

  private static let stopped = HopdError(.interrupted, "stopped on request while the store was filled")

  /// A row to be inserted into a table.
  private struct Row {
    let key: Int64
    let position: Int
    let ordinal: Int64
    let rows: Int64
  }

  private mutating func write(
    _ row: Row, number: Int64, entity: Entity, _ sources: [Source], insert: Statement
  ) throws {
    try insert.bind(.integer(row.key), at: 1)
    try insert.bind(.integer(number), at: 2)
    try insert.bind(.integer(1), at: 3)
    // Targets by position of the to-one, for the discriminator and order key that follow it.
    var targets: [Int: (key: Int64, number: Int64)] = [:]
    for (place, source) in sources.enumerated() {
      let value: SQLiteValue
      switch source {
      case .null: value = .null
      case .zero: value = .integer(0)
      case .attribute(let attribute, let shift):
        value = values.value(of: attribute, ordinal: row.ordinal, shift: shift)
      case .oneOf(let all, let shift): value = all[Int((row.ordinal &+ shift) % Int64(all.count))]
      case .unique(_, .bit(let place, let count)) where row.key <= 1 << min(count, 40):
        value = .integer((row.key - 1) >> place & 1)
      case .unique(let attribute, let distinction):
        if case .alone = distinction, let unique = values.unique(attribute, key: row.key) {
          value = unique
        } else if attribute.isOptional {
          value = .null
        } else {
          throw HopdError(
            .cannotFill, "the type has fewer values than the store rows, and the attribute must be unique",
            at: Place(entity: entity.name, property: attribute.name, row: row.key), hint: "pass a smaller --rows")
        }
      case .toOne(let link), .owner(let link):
        let target = link.target(
          position: row.position, ordinal: row.ordinal, kind: values.kind, random: &values.random)
        targets[place] = target
        value = target.map { .integer($0.key) } ?? .null
      case .discriminator(let other): value = targets[other].map { .integer($0.number) } ?? .null
      case .orderKey(let other):
        value = targets[other].map { .integer(OrderKey.sample(row.key, of: row.rows, owner: $0.key)) } ?? .null
      }
      try insert.bind(value, at: Int32(clamping: place + 4))
    }
    try insert.run()
  }

  // MARK: Pairs

  private mutating func fill(
    _ join: JoinTable, chunk: Int64, done: Int64, progress: (Int64) -> Bool
  ) throws {
    guard let forward = schema.model.ownRelationship(join.relationship, of: join.entity),
      let inverse = schema.model.inverse(of: forward)?.relationship
    else { return }
    let owners = plan.population(of: join.entity)
    let targets = plan.population(of: join.inverseEntity)
    guard owners.count > 0, targets.count > 0 else { return }
    let insert = try insertion(into: join.name, join.columns)
    if join.isOwnInverse {
      try fillOwnInverse(forward, owners, insert: insert, chunk: chunk, done: done, progress: progress)
      return
    }
    let least = min(1000, max(forward.isOptional ? 0 : 1, forward.minCount))
    let limit = min(targets.count, forward.maxCount > 0 ? forward.maxCount : .max, max(4, least))
    let isSpread = Link.isBounded(inverse) || values.kind == .ordinary
    var index: Int64 = 0
    while index < owners.count {
      let last = min(owners.count, index + chunk)
      try connection.transaction {
        while index < last {
          defer { index += 1 }
          guard let owner = owners.object(index) else { continue }
          // If the other side has a limit, one target each, in turn: no target gets more than its share.
          let count = isSpread ? 1 : max(min(least, limit), values.random.below(limit + 1))
          let first = isSpread ? index % targets.count : values.random.below(targets.count)
          for offset in 0..<count where values.kind != .ordinary || index < targets.count {
            guard let target = targets.object((first + offset) % targets.count) else { continue }
            var row: [SQLiteValue] = [.integer(owner.key), .integer(target.key)]
            if join.inverseOrderColumn != nil {
              row.append(.integer(OrderKey.sample(index + 1, of: owners.count, owner: target.key)))
            }
            if join.orderColumn != nil {
              row.append(.integer(OrderKey.sample(offset + 1, of: count, owner: owner.key)))
            }
            try insert.run(row)
          }
        }
      }
      guard progress(done) else { throw Self.stopped }
    }
  }

  /// Writes the pairs of a relationship that is its own inverse: by their places 0 and 1, 2 and 3 …, and unless the
  /// rows are ordinary or have a limit also each with the one after the next. Each pair comes in both directions.
  private func fillOwnInverse(
    _ relationship: Relationship, _ objects: FillPlan.Population, insert: Statement, chunk: Int64, done: Int64,
    progress: (Int64) -> Bool
  ) throws {
    let hasMore = values.kind != .ordinary && !Link.isBounded(relationship)
    var index: Int64 = 0
    while index < objects.count {
      let last = min(objects.count, index + chunk)
      try connection.transaction {
        while index < last {
          defer { index += 1 }
          guard let object = objects.object(index) else { continue }
          // The last of an odd number has nobody; where it needs somebody, itself.
          let couple = index ^ 1 < objects.count ? index ^ 1 : relationship.isOptional ? -1 : index
          for other in [couple] + (hasMore ? [index - 2, index + 2] : []) {
            guard let other = objects.object(other) else { continue }
            try insert.run([.integer(object.key), .integer(other.key)])
          }
        }
      }
      guard progress(done) else { throw Self.stopped }
    }
  }
}

extension EnumValues {
  /// The values as a column has them, with NULL where the attribute may have none; nil if there are none.
  fileprivate var stored: [SQLiteValue]? {
    let found = values.compactMap { value -> SQLiteValue? in
      switch value {
      case .string(let text): .text(text)
      case .integer(let number): .integer(number)
      case .double(let number): .real(number)
      default: nil
      }
    }
    return found.isEmpty ? nil : found + (isOptional ? [.null] : [])
  }
}
