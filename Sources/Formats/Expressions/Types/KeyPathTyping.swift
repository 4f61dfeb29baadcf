// Types of key paths: through to-ones to one value, through to-manys to many, and the results of collection operators
// on those (docs/formats/expressions.md, "Key paths" and "Collections").

import Diagnostics
import ManagedObjectModel
import PersistentStore

extension ExpressionTyping {
  /// Returns the type that a path reaches from a base.
  mutating func follow(
    _ base: ExpressionType, _ steps: ArraySlice<KeyPathStep>, _ node: ExpressionNode
  ) -> ExpressionType {
    var reached = base
    var rest = steps
    let externalBefore = externalValues
    nestedPath = nil
    while let step = rest.popFirst() {
      switch step {
      case .key(let name):
        noteNesting(name, of: reached, rest, node)
        reached = property(name, of: reached, node)
      case .objectPath: reached = objectPath(of: reached, node)
      case .collection(let operation):
        if rest.startIndex > steps.startIndex + 1, !checkSet(reached, node, isExternal: externalValues > externalBefore)
        {
          return .unknown
        }
        return collect(operation, reached, rest, node)
      }
      if reached == .unknown { return .unknown }
    }
    return reached
  }

  /// Records the replacement for a path to a to-many of a collection's members.
  private mutating func noteNesting(
    _ name: String, of base: ExpressionType, _ rest: ArraySlice<KeyPathStep>, _ node: ExpressionNode
  ) {
    guard nestedPath == nil, case .objects(let entity, _) = base, let found = scope.model.entity(named: entity),
      scope.model.allRelationships(of: found)[name]?.isToMany == true, case .keyPath(let start, let steps) = node
    else { return }
    let before = ExpressionNode.path(start, Array(steps.prefix(steps.count - rest.count - 1)))
    let behind = rest.compactMap { if case .key(let key) = $0 { ".\(key)" } else { nil } }.joined()
    nestedPath = "(\(before).\(CollectionOperator.distinctUnionOfSets.rawValue).\(name))\(behind)"
  }

  private mutating func property(
    _ name: String, of base: ExpressionType, _ node: ExpressionNode
  ) -> ExpressionType {
    switch base {
    case .null, .unknown: return base
    case .object(let entity): return property(name, of: entity, isMany: false, isOrdered: false, node)
    case .objects(let entity, let isOrdered):
      return property(name, of: entity, isMany: true, isOrdered: isOrdered, node)
    case .value(let type): return getter(name, of: type, base, node).map { .value($0) } ?? .unknown
    case .values(let type): return getter(name, of: type, base, node).map { .values($0) } ?? .unknown
    case .destinationObjects: return invalid("in “\(node)”, \(name) is used on \(base.words)")
    }
  }

  /// Returns the type of a getter; nil if values of that type have no getter of that name.
  private mutating func getter(
    _ name: String, of type: AttributeType, _ base: ExpressionType, _ node: ExpressionNode
  ) -> AttributeType? {
    guard let result = ValueGetter(rawValue: name)?.type(of: type) else {
      let known = ValueGetter.names(of: type)
      invalid(
        "in “\(node)”, \(name) is used on \(base.words)",
        hint: known.isEmpty ? nil : "use one for \(type.kind.words): \(known)")
      return nil
    }
    if type == .binary, externalValues > 0 {
      unsupported("in “\(node)”, \(name) is used on content in external storage, of which only nil tests are supported")
      return nil
    }
    return result
  }

  /// Whether a path reaches the number of a Float attribute.
  static func isFloat(
    _ base: ExpressionNode, _ steps: [KeyPathStep], _ scope: ExpressionScope, variables: [String: String]
  ) -> Bool {
    var typing = ExpressionTyping(scope, variables: variables)
    let type = typing.type(of: ExpressionNode.path(base, steps))
    return type.member == .value(.float)
  }

  private mutating func property(
    _ name: String, of entityName: String, isMany: Bool, isOrdered: Bool, _ node: ExpressionNode
  ) -> ExpressionType {
    guard let entity = scope.model.entity(named: entityName) else {
      return invalid("the model \(scope.model.name) has no entity \(entityName)")
    }
    for ancestor in scope.model.lineage(of: entity).reversed() {
      if let attribute = ancestor.attributes.first(where: { $0.name == name }) {
        if attribute.isTransient {
          invalid("in “\(node)”, \(entityName).\(name) is transient: no store contains its values")
        }
        if attribute.hasExternalForm { externalValues += 1 }
        return isMany ? .values(attribute.type) : .value(attribute.type)
      }
      if let relationship = ancestor.relationships.first(where: { $0.name == name }) {
        if relationship.isTransient {
          invalid("in “\(node)”, \(entityName).\(name) is transient: no store contains its objects")
        }
        let destination = relationship.destinationEntityName
        if relationship.isToMany {
          return .objects(entity: destination, isOrdered: relationship.isOrdered && !isMany)
        }
        return isMany ? .objects(entity: destination, isOrdered: isOrdered) : .object(entity: destination)
      }
      if ancestor.fetchedProperties.contains(where: { $0.name == name }) {
        return unsupported("in “\(node)”, \(entityName).\(name) is a fetched property, which is not supported")
      }
    }
    refuse(unknown: name, of: entity, node)
    return .unknown
  }

  private mutating func refuse(unknown name: String, of entity: Entity, _ node: ExpressionNode) {
    // Further findings are not reported, and the search for similar names takes time.
    guard findings.count < Self.maximumFindings else { return }
    if name == "objectID" {
      unsupported(
        "in “\(node)”, of an objectID only its path in the store is supported",
        hint: "write objectID.URIRepresentation.path")
      return
    }
    let model = scope.model
    let names = Array(model.allAttributes(of: entity).keys) + Array(model.allRelationships(of: entity).keys)
    let lowered = name.lowercased()
    var hint = names.filter { $0.lowercased() == lowered }.min().map { "use '\($0)'" }
    if let composite = model.allComposites(of: entity)[name] {
      hint = "use an element of the composite \(name), such as \(name).\(composite.elements.first?.name ?? "")"
    }
    if hint == nil, let heir = model.subtree(of: entity).dropFirst().first(where: { $0.hasProperty(named: name) }) {
      hint = "only its subentity \(heir.name) has it"
    }
    if hint == nil, names.count <= 40 {
      hint = "\(entity.name) has: " + names.sorted().joined(separator: ", ")
    }
    invalid("in “\(node)”, \(entity.name) of \(model.name) has no attribute or relationship \(name)", hint: hint)
  }

  private mutating func objectPath(of base: ExpressionType, _ node: ExpressionNode) -> ExpressionType {
    switch base {
    case .object, .null: return .value(.string)
    case .objects: return .values(.string)
    case .unknown: return .unknown
    case .value, .values, .destinationObjects: return invalid("in “\(node)”, objectID is used on \(base.words)")
    }
  }

  private mutating func collect(
    _ operation: CollectionOperator, _ base: ExpressionType, _ rest: ArraySlice<KeyPathStep>, _ node: ExpressionNode
  ) -> ExpressionType {
    if base == .unknown { return .unknown }
    guard base.isMany, !base.isDestination else {
      return invalid(
        "in “\(node)”, \(operation.rawValue) requires a to-many relationship before it, but there is \(base.words)")
    }
    let hasSecond = rest.contains { if case .collection = $0 { true } else { false } }
    guard !hasSecond, rest.isEmpty != operation.takesPath else {
      return unsupported(
        "“\(node)” has more than one collection operator in one key path",
        hint: "put the inner one in parentheses: (a.@distinctUnionOfObjects.b).@count")
    }
    let inner = follow(base.member, rest, node)
    if inner == .unknown { return .unknown }
    switch (operation, inner) {
    case (.count, _): return .value(.integer64)
    case (.unionOfObjects, .value(let type)), (.distinctUnionOfObjects, .value(let type)): return .values(type)
    case (.unionOfObjects, .object(let entity)), (.distinctUnionOfObjects, .object(let entity)),
      (.distinctUnionOfSets, .objects(let entity, _)):
      return .objects(entity: entity, isOrdered: false)
    case (.unionOfObjects, _), (.distinctUnionOfObjects, _):
      return invalid(
        "in “\(node)”, \(operation.rawValue) requires one value of each member, but there are \(inner.words)",
        hint: "write @distinctUnionOfSets for the members of to-manys")
    case (.distinctUnionOfSets, _):
      return invalid(
        "in “\(node)”, @distinctUnionOfSets requires a to-many of each member, but there is \(inner.words)",
        hint: "write @distinctUnionOfObjects")
    default: return combined(operation, inner, node)
    }
  }
}
