// Reads the source objects of a policy's mapping, chunk by chunk, each with the object that default creation would make
// of it. One query per chunk returns both: source columns, and the mapping's attribute expressions computed by SQL.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPolicy
import PersistentStore
import SQLite

/// Compiles the expressions of a policy's mapping; by the engine's own compiler, or a test's.
struct PolicyExpressionSQL {
  /// Returns the SQL of a value in the storage form of a destination attribute; the source row has the alias `s`.
  let value: (ExpressionNode, Attribute) throws -> String
  /// Returns the SQL of an argument of a policy's method for a property, with its type.
  let argument: (ExpressionNode, String) throws -> (sql: String, type: AttributeType)
  /// Returns the SQL condition of the mapping's filter.
  let filter: (PredicateNode) throws -> String
}

/// Reads a mapping's source objects in the order of their keys.
final class PolicySourceReader {
  /// The source of a standard object's value.
  private enum Standard {
    /// The value of a source attribute.
    case copy(name: String, of: String)
    case column(PolicyShape.AttributeSlot, Int32)
  }

  /// One chunk.
  struct Chunk {
    var batch = PolicyBatch([])
    /// The arguments of the method calls: per call one list per instance.
    var arguments: [[[PolicyValue]]] = []
    /// The column values of contents that came from external files, by standard key.
    var references: [Int64: [(attribute: String, content: PolicyValue, stored: SQLiteValue)]] = [:]
    /// The start of the next chunk; nil after the last object.
    var next: Int64?
  }

  /// The attributes that the policy's methods compute, in the order of `Chunk.arguments`.
  let methods: [PolicyMethodCall]
  private let range: AssociationRange
  private let rowForm: PolicyRowForm
  private let members: PolicyMembers
  private let statement: Statement
  private let standard: [Standard]
  /// The standard values that keep their reference to an external file if the policy returns its content unchanged:
  /// destination attribute, source attribute, column.
  private let keptReferences: [(attribute: String, source: String, column: Int32)]
  private let memberLimit: Int
  private let place: Place

  init(
    range: AssociationRange, source: PolicySide, rowForm: PolicyRowForm, destination: PolicyShape,
    members: PolicyMembers, connection: Connection, expressions: PolicyExpressionSQL, options: EngineOptions,
    hop: String
  ) throws {
    self.range = range
    self.rowForm = rowForm
    self.members = members
    memberLimit = options.policyAnswerObjects
    place = Place(hop: hop, entity: range.destinationEntity)
    var columns = ["s.\"Z_PK\""] + rowForm.selectList(alias: "s")
    var standard: [Standard] = []
    var methods: [PolicyMethodCall] = []
    var kept: [(attribute: String, source: String, column: Int32)] = []
    let sourceAttributes = Dictionary(rowForm.shape.attributes.map { ($0.name, $0) }) { first, _ in first }
    for property in range.mapping.attributes {
      guard case .attribute(let index)? = destination.slots[property.name], case .expression(let node)? = property.value
      else { continue }
      let slot = destination.attributes[index]
      if slot.isComputed { continue }
      if case .policyMethod(let selector, let nodes) = node {
        methods.append(
          try PolicyMethodCall(
            property.name, selector, nodes, shape: rowForm.shape, columns: &columns, expressions: expressions))
        continue
      }
      if case .keyPath(.variable("source"), let steps) = node, steps.count == 1, case .key(let name)? = steps.first,
        let before = sourceAttributes[name],
        // The policy must convert a value of another kind: it is sent unchanged, and is an error if it remains.
        before.form.attribute.type == slot.form.attribute.type
          || before.form.attribute.type.kind != slot.form.attribute.type.kind
      {
        standard.append(.copy(name: slot.name, of: name))
        if before.form.attribute.hasExternalForm, slot.form.attribute.hasExternalForm,
          let position = rowForm.columns.firstIndex(of: before.column)
        {
          kept.append((slot.name, name, Int32(position) + 1))
        }
        continue
      }
      standard.append(.column(slot, Int32(columns.count)))
      columns.append(try expressions.value(node, slot.form.attribute))
    }
    self.standard = standard
    self.methods = methods
    keptReferences = kept
    var conditions = ["s.\"Z_ENT\" = \(range.sourceNumber)", "s.\"Z_PK\" >= ?1"]
    if let filter = range.mapping.filter { conditions.append("(\(try expressions.filter(filter.predicate)))") }
    statement = try connection.prepare(
      "SELECT \(columns.joined(separator: ", ")) FROM \(source.qualified(range.sourceTable)) AS s"
        + " WHERE \(conditions.joined(separator: " AND ")) ORDER BY s.\"Z_PK\" LIMIT ?2")
  }

  /// Reads at most `rows` objects from the key `low` on; fewer if their values take more than `bytes`.
  func chunk(from low: Int64, rows: Int64, bytes: Int) throws -> Chunk {
    try statement.bind([.integer(low), .integer(rows)])
    defer { statement.reset() }
    var chunk = Chunk()
    chunk.arguments = methods.map { _ in [] }
    var instances: [PolicySourceInstance] = []
    var weight = 0
    while try statement.step() {
      let key = statement.integer(at: 0)
      instances.append(try instance(key, into: &chunk, weight: &weight))
      chunk.next = key == .max ? nil : key + 1
      if weight > bytes {
        chunk.batch.instances = instances
        return chunk
      }
    }
    if Int64(instances.count) < rows { chunk.next = nil }
    chunk.batch.instances = instances
    return chunk
  }

  private func instance(_ key: Int64, into chunk: inout Chunk, weight: inout Int) throws -> PolicySourceInstance {
    let values = try rowForm.read(statement, at: 1, key: key, weight: &weight)
    let (standardKey, overflow) = key.addingReportingOverflow(range.offset)
    guard !overflow else {
      throw HopdError(.keysExhausted, "the primary keys of its objects would not fit into 64 bits", at: place)
    }
    var standardValues = [String: PolicyValue](minimumCapacity: standard.count + methods.count)
    for item in standard {
      let (name, value) =
        switch item {
        case .copy(let name, let source): (name, values[source] ?? .null)
        case .column(let slot, let column): (slot.name, try computed(slot, column, key: key))
        }
      standardValues[name] = value
      weight = weight &+ value.weight
    }
    for item in keptReferences {
      let stored = statement.value(at: item.column)
      guard case .blob(let bytes) = stored, case .reference = ExternalDataForm(bytes) else { continue }
      chunk.references[standardKey, default: []].append((item.attribute, values[item.source] ?? .null, stored))
    }
    let source = PolicyObjectID(side: .source, entity: range.sourceEntity, key: key)
    let destination = PolicyObjectID(side: .destination, entity: range.destinationEntity, key: standardKey)
    for (index, method) in methods.enumerated() {
      chunk.arguments[index].append(
        try method.values(
          of: source, for: destination, values: values, in: statement, rowForm: rowForm, members: members,
          limit: memberLimit, weight: &weight))
    }
    return PolicySourceInstance(
      source: PolicyObject(id: source, values: values),
      standard: PolicyObject(id: destination, values: standardValues))
  }

  private func computed(_ slot: PolicyShape.AttributeSlot, _ column: Int32, key: Int64) throws -> PolicyValue {
    let stored = statement.value(at: column)
    let value = try slot.form.value(stored) { name in
      throw HopdError(.internalError, "an expression gave a reference to an external file", at: place)
    }
    guard let value else {
      throw HopdError(
        .policyFailed, "the mapping's expression provides no \(slot.form.attribute.type.name)",
        at: Place(hop: place.hop, entity: range.destinationEntity, property: slot.name, row: key),
        hint: "correct the expression in the mapping model")
    }
    return value
  }
}
