// Expressions that call a method of the policy: `FUNCTION($entityPolicy, "selector:", …)`. The arguments of many
// objects are sent in one call. Results for attributes become part of the standard object; those for relationships are
// set before the policy's own hook for relationships.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPolicy
import SQLite

/// The source of an argument of a policy's method.
enum PolicyArgument {
  case constant(PolicyValue)
  /// `$source` itself.
  case source
  /// `$destination`: the object that was made, or is about to be made.
  case destination
  /// An attribute or to-one that is read with the source object in any case.
  case property(String)
  /// A to-many of the source object.
  case members(PolicyLink)
  /// A column of the query.
  case column(Int32, PolicyAttributeForm)
}

/// A property whose expression calls a method of the policy.
struct PolicyMethodCall {
  let property: String
  let selector: String
  let arguments: [PolicyArgument]

  /// Prepares a call. Its arguments may add columns to the query of the source objects.
  init(
    _ property: String, _ selector: String, _ nodes: [ExpressionNode], shape: PolicyShape, columns: inout [String],
    expressions: PolicyExpressionSQL
  ) throws {
    var arguments: [PolicyArgument] = []
    for node in nodes {
      if case .constant(let constant) = node {
        arguments.append(.constant(PolicyValue(constant)))
      } else if node == .variable("source") {
        arguments.append(.source)
      } else if node == .variable("destination") {
        arguments.append(.destination)
      } else if case .variable(let name) = node, let variable = PolicyVariable(rawValue: name) {
        arguments.append(.constant(.variable(variable)))
      } else if case .keyPath(.variable("source"), let steps) = node, steps.count == 1,
        case .key(let name)? = steps.first,
        let slot = shape.slots[name]
      {
        switch slot {
        case .attribute, .toOne: arguments.append(.property(name))
        case .toMany(let index): arguments.append(.members(shape.toManys[index].link))
        }
      } else {
        let (sql, type) = try expressions.argument(node, property)
        arguments.append(
          .column(Int32(columns.count), PolicyAttributeForm(attribute: Attribute(name: property, type: type))))
        columns.append(sql)
      }
    }
    self.property = property
    self.selector = selector
    self.arguments = arguments
  }

  /// Returns the arguments for the current row's source object and its destination object.
  func values(
    of source: PolicyObjectID, for destination: PolicyObjectID, values: [String: PolicyValue], in row: Statement,
    rowForm: PolicyRowForm, members: PolicyMembers, limit: Int, weight: inout Int
  ) throws -> [PolicyValue] {
    var result: [PolicyValue] = []
    result.reserveCapacity(arguments.count)
    for argument in arguments {
      let value: PolicyValue =
        switch argument {
        case .constant(let value): value
        case .source: .object(source)
        case .destination: .object(destination)
        case .property(let name): values[name] ?? .null
        case .members(let link): .objects(try members.members(of: source.key, by: link, limit: limit))
        case .column(let column, let form): try rowForm.value(of: form, in: row, at: column, key: source.key)
        }
      weight = weight &+ value.weight
      result.append(value)
    }
    return result
  }
}

/// The relationships of one mapping that call methods of its policy.
final class PolicyRelationshipMethods {
  private let range: AssociationRange
  private let calls: [PolicyMethodCall]
  private let rowForm: PolicyRowForm
  private let members: PolicyMembers
  private let statement: Statement
  private let limit: Int

  init(
    _ properties: [ExplicitPropertyMapping], range: AssociationRange, source: PolicySide, rowForm: PolicyRowForm,
    members: PolicyMembers, connection: Connection, expressions: PolicyExpressionSQL, options: EngineOptions
  ) throws {
    var columns = ["s.\"Z_PK\""] + rowForm.selectList(alias: "s")
    var calls: [PolicyMethodCall] = []
    for property in properties {
      guard case .expression(.policyMethod(let selector, let nodes))? = property.value else { continue }
      calls.append(
        try PolicyMethodCall(
          property.name, selector, nodes, shape: rowForm.shape, columns: &columns, expressions: expressions))
    }
    self.calls = calls
    self.range = range
    self.rowForm = rowForm
    self.members = members
    limit = options.policyAnswerObjects
    statement = try connection.prepare(
      "SELECT \(columns.joined(separator: ", ")) FROM \(source.qualified(range.sourceTable)) AS s"
        + " WHERE s.\"Z_PK\" = ?1 AND s.\"Z_ENT\" = \(range.sourceNumber)")
  }

  /// Sets the relationships of some destination objects; returns the number of objects that the policy inserted
  /// meanwhile.
  func apply(
    to objects: [(row: Int64, source: PolicyObjectID, destination: PolicyObjectID)], _ session: PolicySession,
    _ work: PolicyWork, answering: (PolicyRequest) throws -> PolicyAnswer
  ) throws -> Int64 {
    // The policy may have associated objects of other entities, of the source or of the destination: those without such
    // a relationship are left out.
    let havingIt = calls.map { owners(of: $0.property, on: work.destination) }
    var targets: [[PolicyObjectID]] = calls.map { _ in [] }
    var arguments: [[[PolicyValue]]] = calls.map { _ in [] }
    var weight = 0
    for object in objects where object.source.entity == range.sourceEntity {
      try statement.bind(.integer(object.source.key), at: 1)
      defer { statement.reset() }
      guard try statement.step() else { continue }
      let values = try rowForm.read(statement, at: 1, key: object.source.key, weight: &weight)
      for (index, call) in calls.enumerated() where havingIt[index].contains(object.destination.entity) {
        targets[index].append(object.destination)
        arguments[index].append(
          try call.values(
            of: object.source, for: object.destination, values: values, in: statement, rowForm: rowForm,
            members: members, limit: limit, weight: &weight))
      }
    }
    work.inserted = 0
    for (index, call) in calls.enumerated() where !targets[index].isEmpty {
      let (targets, arguments) = (targets[index], arguments[index])
      let results = try session.results(
        of: call.selector, arguments: arguments, keys: work.keys.keys, answering: answering)
      let changes = zip(targets, results.values).map { target, value in
        let isToMany = work.destination.shape(of: target.entity)?.link(call.property)?.isToMany ?? false
        return PolicyOperation.set(
          PolicyObject(id: target, values: [call.property: value.asObjects(toMany: isToMany)]))
      }
      // A result may refer to an object that the method has just inserted.
      work.inserted += try work.writer.apply(results.changes + changes, mapping: session.index, for: session.speaker)
    }
    return work.inserted
  }
}

extension PolicyRelationshipMethods {
  /// Returns the names of the entities whose objects have the relationship of the mapping's destination.
  private func owners(of relationship: String, on side: PolicySide) -> Set<String> {
    guard let entity = side.model.entity(named: range.destinationEntity),
      let declarer = side.model.declaringEntity(of: relationship, in: entity)
    else { return [range.destinationEntity] }
    return Set(side.model.subtree(of: declarer).map(\.name))
  }
}

extension PolicyValue {
  /// Returns a method's result as a relationship's value: a list of objects becomes objects, even if empty; for a
  /// to-one, a list with one object becomes that object, as for look-ups. Other values stay unchanged, to be reported.
  fileprivate func asObjects(toMany isToMany: Bool) -> PolicyValue {
    var ids: [PolicyObjectID] = []
    switch self {
    case .objects(let found): ids = found
    case .list(let values):
      for value in values {
        guard case .object(let id) = value else { return self }
        ids.append(id)
      }
    default: return self
    }
    if isToMany || ids.count > 1 { return .objects(ids) }
    return ids.first.map { .object($0) } ?? .null
  }

  /// The value of a constant in an expression.
  init(_ constant: ConstantValue) {
    switch constant {
    case .null: self = .null
    case .boolean(let flag): self = .boolean(flag)
    case .integer(let number): self = .integer(number)
    case .double(let number): self = .double(number)
    case .decimal(let text): self = .decimal(text)
    case .string(let text): self = .string(text)
    case .date(let seconds): self = .date(seconds)
    case .data(let bytes): self = .data(bytes)
    case .uuid(let bytes): self = .uuid(bytes)
    }
  }
}
