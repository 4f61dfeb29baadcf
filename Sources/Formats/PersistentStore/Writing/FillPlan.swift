// Decides by arithmetic which rows a filled store has and which belong together: the k-th object of an entity has a
// known Z_PK, so relationships can point to rows that are not written yet, and nothing is kept in memory.

import ManagedObjectModel

/// Rows per concrete entity and table, and the keys of their objects.
struct FillPlan {
  /// The concrete entities of one table in number order. Row p of the table belongs to entity (p - 1) mod their number,
  /// so that the entities are mixed in every range of keys.
  struct Table {
    let table: EntityTable
    let entities: [Entity]
    let counts: [Int64]
    let numbers: [Int64]

    var rows: Int64 { counts.reduce(0, &+) }
  }

  /// The objects of an entity and all its descendants.
  struct Population {
    /// Their concrete entities as positions in the table; the counts never increase.
    let positions: [Int]
    let counts: [Int64]
    let numbers: [Int64]
    /// Number of concrete entities in the whole table.
    let stride: Int

    var count: Int64 { counts.reduce(0, &+) }

    /// Returns the k-th object, its key and entity number; nil if there are fewer objects.
    func object(_ index: Int64) -> (key: Int64, number: Int64)? {
      guard !positions.isEmpty, index >= 0, index < count else { return nil }
      // Counts differ by at most one and the larger ones come first: objects rotate over the entities.
      let width = Int64(positions.count)
      let place = Int(index % width)
      guard positions.indices.contains(place) else { return nil }
      return (index / width * Int64(stride) + Int64(positions[place]) + 1, numbers[place])
    }

    /// Returns the number of a row's object; nil for rows of other entities.
    func index(position: Int, ordinal: Int64) -> Int64? {
      guard let place = positions.firstIndex(of: position) else { return nil }
      return ordinal * Int64(positions.count) + Int64(place)
    }
  }

  let tables: [Table]
  private let tableByRoot: [String: Int]
  private let schema: StoreSchema

  /// Spreads `rows` evenly over all concrete entities.
  init(schema: StoreSchema, rows: Int64) {
    self.schema = schema
    let model = schema.model
    let concrete = schema.tables.map { table in
      table.entities.compactMap { model.entity(named: $0) }.filter { !$0.isAbstract }
    }
    let total = Int64(concrete.reduce(0) { $0 + $1.count })
    var next: Int64 = 0
    var tables: [Table] = []
    for (table, entities) in zip(schema.tables, concrete) {
      let counts = entities.map { _ in
        defer { next += 1 }
        return total > 0 ? rows / total + (next < rows % total ? 1 : 0) : 0
      }
      tables.append(
        Table(
          table: table, entities: entities, counts: counts, numbers: entities.map { schema.number(of: $0.name) ?? 0 }))
    }
    self.tables = tables
    tableByRoot = tables.map(\.table.rootEntity).places
  }

  /// The objects of an entity, subentities included.
  func population(of entity: String) -> Population {
    guard let value = schema.model.entity(named: entity),
      let table = tableByRoot[schema.model.root(of: value).name].map({ tables[$0] })
    else { return Population(positions: [], counts: [], numbers: [], stride: 1) }
    let members = Set(schema.model.subtree(of: value).map(\.name))
    let positions = table.entities.indices.filter { members.contains(table.entities[$0].name) && table.counts[$0] > 0 }
    return Population(
      positions: positions, counts: positions.map { table.counts[$0] }, numbers: positions.map { table.numbers[$0] },
      stride: table.entities.count)
  }
}
