// Properties in the archive of a model.

import Diagnostics
import PropertyLists

extension ModelArchive {
  /// Writes own and inherited properties, each as an object of this entity alone.
  mutating func properties(of entity: Entity) -> [(key: String, value: Writer.Reference)] {
    var objects: [String: Writer.Object] = [:]
    var order: [String] = []
    for ancestor in model.lineage(of: entity) {
      let indexed = Self.implicitlyIndexed(in: ancestor)
      for attribute in ancestor.attributes + ancestor.composites where !attribute.isElement {
        if objects[attribute.name] == nil { order.append(attribute.name) }
        objects[attribute.name] = makeAttribute(attribute, isIndexed: indexed.contains(attribute.name), of: entity)
      }
      for relationship in ancestor.relationships {
        if objects[relationship.name] == nil { order.append(relationship.name) }
        let isIndexed = indexed.contains(relationship.name)
        objects[relationship.name] = fill(relationship, isIndexed: isIndexed, of: entity)
      }
      for fetched in ancestor.fetchedProperties where ancestor.name == entity.name {
        refuse("the archived form of fetched properties is not known well enough", entity.name, fetched.name)
      }
    }
    order.sort { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    return order.map { name in (name, objects[name].map { .object($0) } ?? .null) }
  }

  private mutating func common(
    name: String, entity: Entity, renamingIdentifier: String, modifier: String?, userInfo entries: [String: String],
    isIndexed: Bool, isOptional: Bool, isTransient: Bool, isReadOnly: Bool = false, isOrdered: Bool = false,
    hasPredicates: Bool = false
  ) -> Fields {
    // docs/formats/model-files.md, "Property flags".
    let flags: [(bits: Int64, isSet: Bool)] = [
      (0x01, true), (0x02, isOptional), (0x04, isReadOnly), (0x08, isTransient), (0x30, !hasPredicates),
      (0x40, entries.isEmpty), (0x80, modifier == nil), (0x400, isOrdered),
    ]
    var fields: Fields = [
      ("NSPropertyName", .text(name)), ("NSEntity", .reference(reference(toEntity: entity.name, isOwner: false))),
      ("NSRenamingIdentifier", .text(renamingIdentifier)),
      ("_P", .integer(flags.reduce(0) { $0 | ($1.isSet ? $1.bits : 0) })),
    ]
    // Truth values are written only if true.
    for (key, value) in [
      ("NSIsOptional", isOptional), ("NSIsTransient", isTransient), ("NSIsReadOnly", isReadOnly),
      ("NSIsIndexed", isIndexed),
    ] where value {
      fields.append((key, .boolean(true)))
    }
    if let modifier { fields.append(("NSVersionHashModifier", .text(modifier))) }
    if !entries.isEmpty { fields.append(("NSUserInfo", .object(userInfo(entries)))) }
    return fields
  }

  /// Writes a composite with its elements, each of which is an attribute without an entity
  /// (docs/formats/composite-attributes.md, "Archive").
  private mutating func makeComposite(_ composite: Attribute, _ fields: Fields, of entity: Entity) -> Writer.Object {
    openComposite = composite.name
    defer { openComposite = nil }
    let elements = composite.elements.map { element in
      Writer.Reference.object(makeAttribute(element, isIndexed: false, of: entity, isElement: true))
    }
    return writer.makeObject(
      .compositeAttribute, fields + [("NSCompositeElements", .object(writer.makeList(elements, .mutableArray)))])
  }

  private mutating func makeAttribute(
    _ attribute: Attribute, isIndexed: Bool, of entity: Entity, isElement: Bool = false
  ) -> Writer.Object {
    let rules = validation(of: attribute, in: entity)
    var fields = common(
      name: attribute.name, entity: entity, renamingIdentifier: attribute.renamingIdentifier,
      modifier: attribute.versionHashModifier, userInfo: attribute.userInfo,
      isIndexed: attribute.isIndexed || isIndexed, isOptional: attribute.isOptional,
      isTransient: attribute.isTransient, isReadOnly: attribute.isDerived, hasPredicates: !rules.isEmpty)
    if isElement { fields = fields.map { $0.key == "NSEntity" ? ($0.key, .null) : $0 } }
    if !rules.isEmpty {
      let predicates = writer.makeList(rules.map { .object($0.predicate) })
      let codes = writer.makeList(rules.map { .scalar(.integer($0.errorCode)) })
      fields.append(("NSValidationPredicates", .object(predicates)))
      fields.append(("NSValidationWarnings", .object(codes)))
    }
    let storage: Int64 = (attribute.allowsExternalStorage ? 4 : 0) | (attribute.preservesAfterDeletion ? 16 : 0)
    fields += [
      ("NSAttributeType", .integer(attribute.type.rawValue)),
      ("NSAttributeValueClassName", .text(valueClass(of: attribute, in: entity))),
      ("NSDefaultValue", .reference(defaultValue(of: attribute, in: entity))),
      ("NSValueTransformerName", .text(attribute.valueTransformerName)), ("NSFlagsKey", .integer(storage)),
    ]
    if !attribute.elements.isEmpty, !attribute.isNestedComposite { return makeComposite(attribute, fields, of: entity) }
    guard let expression = attribute.derivationExpression else { return writer.makeObject(.attribute, fields) }
    fields.append(("NSDerivationExpression", .reference(derivation(expression, of: attribute, in: entity))))
    fields.append(("NSFilteringPredicate", .null))
    return writer.makeObject(.derivedAttribute, fields)
  }

  mutating func fill(_ relationship: Relationship, isIndexed: Bool, of entity: Entity) -> Writer.Object? {
    guard let object = relationships[PropertyKey(entity: entity.name, property: relationship.name)] else { return nil }
    if relationship.isToMany && relationship.maxCount == 1 {
      refuse("a to-many relationship of at most one object reads as to-one", entity.name, relationship.name)
    }
    var fields = common(
      name: relationship.name, entity: entity, renamingIdentifier: relationship.renamingIdentifier,
      modifier: relationship.versionHashModifier, userInfo: relationship.userInfo, isIndexed: isIndexed,
      isOptional: relationship.isOptional, isTransient: relationship.isTransient, isOrdered: relationship.isOrdered)
    // The inverse is the destination's own object for it, declared or inherited.
    let inverse = relationship.inverseName.flatMap {
      relationships[PropertyKey(entity: relationship.destinationEntityName, property: $0)]
    }
    fields += [
      ("NSDestinationEntity", .reference(reference(toEntity: relationship.destinationEntityName, isOwner: false))),
      ("NSInverseRelationship", .reference(inverse.map { .object($0) } ?? .null)),
      ("_NSDestinationEntityName", .text(relationship.destinationEntityName)),
      ("_NSInverseRelationshipName", .text(relationship.inverseName)),
      ("NSDeleteRule", .integer(relationship.deleteRule.rawValue)),
      // Truncated to 32 bits: the largest 64-bit count becomes −1.
      ("NSMinCount", .integer(Int32(truncatingIfNeeded: relationship.minCount))),
      ("NSMaxCount", .integer(Int32(truncatingIfNeeded: relationship.maxCount))),
    ]
    if relationship.isOrdered { fields.append(("NSIsOrdered", .boolean(true))) }
    writer.setFields(of: object, fields)
    return object
  }
}
