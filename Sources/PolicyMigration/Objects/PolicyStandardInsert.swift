// Inserts standard objects directly from the batch that was sent to the policy: most objects of policies are made by
// default creation, and their values need not be sent back.

import ManagedObjectModel
import MigrationEngine
import MigrationPolicy
import PersistentStore
import SQLite

/// The INSERT of one batch's standard objects.
final class PolicyStandardInsert {
  private struct Column {
    let slot: PolicyShape.AttributeSlot
    let packing: PolicyPacking
    let parameter: Int32
  }

  let shape: PolicyShape
  let names: [String]
  private let columns: [Column]
  private let statement: Statement
  /// The values of attributes' parameters that are not in the batch.
  private let defaults: [Int32: SQLiteValue]
  private var items: [PackedItem] = []
  private var scratch: [PackedItem] = []

  /// Returns nil if the objects must be inserted one by one: because of relationships among the values, or of a default
  /// that only the app can store.
  init?(_ shape: PolicyShape, _ names: [String], side: PolicySide, connection: Connection) throws(SQLiteError) {
    guard !shape.entity.isAbstract else { return nil }
    var columns: [Column] = []
    for name in names {
      guard case .attribute(let index)? = shape.slots[name], !shape.attributes[index].isComputed else { return nil }
      columns.append(
        Column(
          slot: shape.attributes[index], packing: PolicyPacking(shape.attributes[index].form),
          parameter: Self.parameter(index)))
    }
    var defaults: [Int32: SQLiteValue] = [:]
    for (index, slot) in shape.attributes.enumerated() where !names.contains(slot.name) {
      let stored = slot.isComputed ? .integer(0) : slot.form.attribute.storedDefault
      guard stored != nil || slot.form.attribute.isOptional else { return nil }
      defaults[Self.parameter(index)] = stored ?? .null
    }
    let list = (["Z_PK", "Z_ENT", "Z_OPT"] + shape.attributes.map(\.column)).map(SQLiteIdentifier.quoted)
    let marks = ["?1", "\(shape.number)", "1"] + shape.attributes.indices.map { "?\(Self.parameter($0))" }
    statement = try connection.prepare(
      "INSERT INTO \(side.qualified(shape.table.name)) (\(list.joined(separator: ", ")))"
        + " VALUES (\(marks.joined(separator: ", ")))")
    for (parameter, value) in defaults { try statement.bind(value, at: parameter) }
    self.shape = shape
    self.names = names
    self.columns = columns
    self.defaults = defaults
  }

  private static func parameter(_ attribute: Int) -> Int32 { Int32(attribute) + 2 }

  /// Inserts the standard object of an instance. Returns false without any effect if the replacing values are not all
  /// attributes. `stored` converts a value that is not stored unchanged, or throws why it cannot.
  func insert(
    _ index: Int, of batch: PolicyBatch, replacing: PolicyFields, key: Int64,
    stored: (PolicyValue, PolicyShape.AttributeSlot) throws -> SQLiteValue
  ) throws -> Bool {
    for entry in replacing.entries {
      guard case .attribute? = shape.slots[entry.name] else { return false }
    }
    try statement.bind(.integer(key), at: 1)
    try batch.standardItems(index, into: &items, &scratch)
    for (column, item) in zip(columns, items) {
      // A value that is replaced need not fit.
      if !replacing.isEmpty, replacing[column.slot.name] != nil { continue }
      if try column.packing.bind(item, of: batch, to: statement, at: column.parameter) { continue }
      try statement.bind(try stored(try batch.value(item), column.slot), at: column.parameter)
    }
    for entry in replacing.entries {
      guard case .attribute(let number)? = shape.slots[entry.name] else { continue }
      let value = try stored(entry.value, shape.attributes[number])
      try statement.bind(value, at: Self.parameter(number))
    }
    try statement.run()
    for entry in replacing.entries {
      guard case .attribute(let number)? = shape.slots[entry.name] else { continue }
      // Resets the parameter to its default for the next object.
      if let value = defaults[Self.parameter(number)] { try statement.bind(value, at: Self.parameter(number)) }
    }
    return true
  }
}
