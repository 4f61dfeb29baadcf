// Writes a model in the form that Core Data archives into its stores: the graph of a compiled model with inherited
// properties repeated in every subentity. The form comes from the caches of 26 stores of fw 637–1344 that Apple's
// software made; a part that none of them shows and no documentation settles is refused by name, because an archive
// with a slight error is worse than none.

import Diagnostics
import PropertyLists

extension HopdError.Code {
  /// The model cache of the store is left empty, because a part of the model has no known archived form; a store works
  /// without the cache.
  package static let modelCacheLeftEmpty = HopdError.Code("model-cache-left-empty", severity: .note)
}

extension ManagedObjectModel {
  /// Encodes the model as a compiled model, the form in which Core Data of that framework version keeps a copy in a
  /// store.
  ///
  /// Throws if a part's archived form is unknown; the error names every such part.
  package func archived(frameworkVersion: Int64) throws(HopdError) -> [UInt8] {
    var archive = ModelArchive(model: self, frameworkVersion: frameworkVersion)
    return try archive.encode()
  }
}

/// Builds the archive of one model.
struct ModelArchive {
  /// Largest number of own and inherited properties of all entities. The largest cache seen has 53; more would be
  /// megabytes in every store, and beyond what readers accept.
  static let maximumProperties = 8_000

  typealias Writer = KeyedArchiveWriter
  typealias Fields = [(key: String, field: KeyedArchiveWriter.Field)]

  let model: ManagedObjectModel
  /// Whether fetch indexes are archived, as from fw 836 on; their older forms are archived before too
  /// (docs/formats/model-files.md, "Model cache archives").
  private let hasFetchIndexes: Bool
  /// Whether an attribute that has a fetch index of its own gets no second one with the attribute's name.
  private let hasNoSecondIndexes: Bool
  var writer = Writer()
  private var entities: [String: Writer.Object] = [:]
  /// By entity, own and inherited: subentities have their own objects for inherited relationships.
  var relationships: [PropertyKey: Writer.Object] = [:]
  /// The composite attribute whose elements are being written: problems of an element are reported for it.
  var openComposite: String?
  private var noUserInfo: Writer.Object?
  /// Elements of indexes that are expressions: they are numbered through all entities.
  private var expressions = 0
  /// All expressions share one object for SELF.
  var selfExpression: Writer.Object?
  private var problems: [HopdError] = []

  init(model: ManagedObjectModel, frameworkVersion: Int64) {
    self.model = model
    hasFetchIndexes = frameworkVersion > 754
    hasNoSecondIndexes = FetchIndex.standsAlone(frameworkVersion: frameworkVersion)
  }

  mutating func encode() throws(HopdError) -> [UInt8] {
    let properties = model.entities.reduce(0) { sum, entity in
      sum
        + model.lineage(of: entity).reduce(0) {
          $0 + $1.attributes.count + $1.composites.count + $1.relationships.count + $1.fetchedProperties.count
        }
    }
    guard properties <= Self.maximumProperties else {
      throw Self.leftEmpty(
        "the model has \(properties) own and inherited properties; more than \(Self.maximumProperties) are not kept",
        Place())
    }
    for entity in model.entities {
      entities[entity.name] = writer.makeObject(.entity)
      for name in model.allRelationships(of: entity).keys {
        relationships[PropertyKey(entity: entity.name, property: name)] = writer.makeObject(.relationship)
      }
    }
    let root = makeRoot()
    guard problems.isEmpty else {
      throw problems.count == 1
        ? problems[0]
        : HopdError(
          .modelCacheLeftEmpty,
          "the copy of the model in the store is omitted: \(problems.count) parts have no known archived form",
          hint: Self.hint, reasons: problems)
    }
    return PropertyList.encodeBinary(writer.archive(root: root))
  }

  // MARK: Problems

  static let hint = "ignore this, because apps have their own model, or pass the compiled model (.momd, .mom)"

  static func leftEmpty(_ message: String, _ place: Place) -> HopdError {
    HopdError(.modelCacheLeftEmpty, "the copy of the model in the store is omitted: \(message)", at: place, hint: hint)
  }

  mutating func refuse(_ message: String, _ entity: String, _ property: String? = nil) {
    // An inherited property is reported once, for the entity that declares it.
    guard problems.count < ModelLimits.findings,
      (openComposite ?? property).map({ name in model.entity(named: entity)?.hasProperty(named: name) ?? false })
        ?? true
    else { return }
    problems.append(Self.leftEmpty(message, Place(entity: entity, property: openComposite ?? property)))
  }

  // MARK: Model and entities

  private mutating func makeRoot() -> Writer.Object {
    let root = writer.makeObject(.model)
    for entity in model.entities { fill(entity, model: root) }
    for (name, elements) in model.composites.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) })
    where !elements.isEmpty {
      refuse("the archived form of the composite type \(name) is unknown", name)
    }
    // In the order of their names, with a table of the names next to the values (docs/formats/model-files.md, "Model
    // cache archives").
    let names = writer.makeList(model.entities.map { .text($0.name) })
    let mapping = writer.makeObject(
      .knownKeysMapping,
      [("keys", .object(names)), ("length", .integer(model.entities.count)), ("version", .integer(1))])
    let values = writer.makeList(model.entities.map { reference(toEntity: $0.name, isOwner: true) })
    let byName = writer.makeObject(
      .knownKeysDictionary,
      [
        ("searchMapping", .object(mapping)), ("emptyToken", .text("__empty_slot_token_4c24_98dc_ac1e_b773__")),
        ("values", .object(values)), ("version", .integer(1)),
      ])
    var fields: Fields = [("NSEntities", .object(byName)), ("NSFetchRequestTemplates", .null)]
    if !model.configurations.isEmpty {
      let entries = model.configurations.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
        .map { (key: $0.key, value: Writer.Reference.object(makeSet(ofEntities: $0.value))) }
      fields.append(("NSConfigurations", .object(writer.makeDictionary(entries, .mutableDictionary))))
    }
    let identifiers = writer.makeList(model.versionIdentifiers.map { .text($0) }, .set)
    fields.append(("NSVersionIdentifiers", .object(identifiers)))
    writer.setFields(of: root, fields)
    return root
  }

  private mutating func makeSet(ofEntities names: [String]) -> Writer.Object {
    var seen: Set<String> = []
    return writer.makeList(
      names.filter { seen.insert($0).inserted }.map { reference(toEntity: $0, isOwner: false) }, .set)
  }

  /// Entities are written where the model and their parents list them; all other references to them are conditional
  /// (docs/formats/model-files.md, "Model cache archives").
  func reference(toEntity name: String?, isOwner: Bool) -> Writer.Reference {
    guard let object = name.flatMap({ entities[$0] }) else { return .null }
    return isOwner ? .object(object) : .conditional(object)
  }

  mutating func fill(_ entity: Entity, model root: Writer.Object) {
    guard let object = entities[entity.name] else { return }
    let children = model.subentities(of: entity).map {
      (key: $0.name, value: reference(toEntity: $0.name, isOwner: true))
    }
    var fields: Fields = [
      ("NSEntityName", .text(entity.name)), ("NSClassNameForEntity", .text(entity.className)),
      ("NSManagedObjectModel", .reference(.conditional(root))),
      ("NSSuperentity", .reference(reference(toEntity: entity.parentName, isOwner: false))),
      ("NSSubentities", .object(writer.makeDictionary(children, .mutableDictionary))),
      ("NSProperties", .object(writer.makeDictionary(properties(of: entity), .mutableDictionary))),
      ("NSUserInfo", .object(userInfo(entity.userInfo))), ("NSRenamingIdentifier", .text(entity.renamingIdentifier)),
      ("NSVersionHashModifier", .text(entity.versionHashModifier)),
    ]
    if entity.isAbstract { fields.append(("NSIsAbstract", .boolean(true))) }
    let fetchIndexes = allFetchIndexes(of: entity)
    if hasFetchIndexes && !fetchIndexes.isEmpty {
      let indexes = fetchIndexes.map { Writer.Reference.object(makeIndex($0, of: entity)) }
      fields.append(("NSFetchIndexDescriptions", .object(writer.makeList(indexes, .mutableArray))))
    }
    let compound = compoundIndexes(of: entity)
    if !compound.isEmpty { fields.append(("NSCompoundIndexes", .object(makeLists(compound)))) }
    if !entity.uniquenessConstraints.isEmpty {
      fields.append(("NSUniqueTuples", .object(makeLists(entity.uniquenessConstraints))))
    }
    writer.setFields(of: object, fields)
  }

  private mutating func makeLists(_ lists: [[String]]) -> Writer.Object {
    let elements = lists.map { Writer.Reference.object(writer.makeList($0.map { .text($0) }, .mutableArray)) }
    return writer.makeList(elements, .mutableArray)
  }

  mutating func userInfo(_ entries: [String: String]) -> Writer.Object {
    if entries.isEmpty, let noUserInfo { return noUserInfo }
    let object = writer.makeDictionary(
      entries.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }.map { ($0.key, .text($0.value)) })
    if entries.isEmpty { noUserInfo = object }
    return object
  }

  // MARK: Indexes

  private mutating func makeIndex(_ index: FetchIndex, of entity: Entity) -> Writer.Object {
    let object = writer.makeObject(.fetchIndex)
    var condition: Writer.Object?
    if let text = index.partialPredicate {
      condition = ModelPredicate(text).map { makePredicate($0) }
      if condition == nil {
        refuse("the archived form of the predicate of the fetch index \(index.name) is unknown", entity.name)
      }
    }
    let elements = index.elements.map { element -> Writer.Reference in
      let expression = element.propertyName == nil ? makeIndexedExpression(element) : nil
      guard let property = element.propertyName ?? expression?.name, element.kind != .unknown else {
        refuse("the archived form of the computed fetch index \(index.name) is unknown", entity.name)
        return .null
      }
      var fields: Fields = [
        ("NSPropertyName", .text(property)), ("NSFetchIndexElementType", .integer(element.kind == .rTree ? 1 : 0)),
        ("NSFetchIndexDescription", .reference(.conditional(object))), ("NSAscending", .boolean(element.isAscending)),
      ]
      if let expression { fields.append(("NSIndexedProperty", .object(expression.object))) }
      return .object(writer.makeObject(.fetchIndexElement, fields))
    }
    writer.setFields(
      of: object,
      [
        ("NSIndexName", .text(index.name)),
        ("NSPartialIndexPredicate", .reference(condition.map { .object($0) } ?? .null)),
        ("NSIndexElements", .object(writer.makeList(elements))),
        ("NSEntity", .reference(reference(toEntity: entity.name, isOwner: false))),
      ])
    return object
  }

  /// Writes an element that is the object itself or its entity, with its name; nil for another expression.
  private mutating func makeIndexedExpression(_ element: FetchIndex.Element) -> (name: String, object: Writer.Object)? {
    let (expression, type): (Writer.Object, Int)
    switch element.rowPart {
    case .object?: (expression, type) = (makeSelf(), 2000)
    case .entity?: (expression, type) = (makePath(["entity"]), 0)
    case nil: return nil
    }
    expressions += 1
    let name = "expression\(expressions)"
    return (
      name,
      writer.makeObject(
        Writer.ClassName("NSExpressionDescription", "NSPropertyDescription"),
        [
          ("NSPropertyName", .text(name)), ("NSRenamingIdentifier", .text(name)), ("NSEntity", .null),
          ("NSExpression", .object(expression)), ("NSExpressionType", .integer(type)), ("NSIsOptional", .boolean(true)),
          ("NSIsReadOnly", .boolean(true)), ("_P", .integer(247)),
        ])
    )
  }

  /// One index for each indexed attribute, named after it, then the declared ones; the order of the former has no rule.
  private func allFetchIndexes(of entity: Entity) -> [FetchIndex] {
    let implied = Self.implicitlyIndexed(in: entity)
    let declared = Set(entity.fetchIndexes.map(\.name))
    let names = entity.attributes.filter { $0.isIndexed || implied.contains($0.name) }.map(\.name)
      .filter { !declared.contains($0) && !(hasNoSecondIndexes && implied.contains($0)) }
    return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
      .map { FetchIndex(name: $0, elements: [FetchIndex.Element(propertyName: $0)]) } + entity.fetchIndexes
  }

  /// The old form of indexes, written in addition to the new one: an index of several properties is a compound index …
  private mutating func compoundIndexes(of entity: Entity) -> [[String]] {
    entity.compoundIndexes
      + entity.fetchIndexes.compactMap { index in
        guard index.elements.count > 1 else { return nil }
        guard index.elements.allSatisfy({ $0.kind == .binary }) else {
          refuse(
            "the archived form of the fetch index \(index.name) over several properties, not all of them plain, is not "
              + "known", entity.name)
          return nil
        }
        // One with a relationship among its elements has no older form.
        let relationships = model.allRelationships(of: entity)
        guard !index.elements.contains(where: { $0.propertyName.map { relationships[$0] != nil } ?? false }) else {
          return nil
        }
        return index.elements.compactMap { $0.propertyName ?? $0.rowPart?.rawValue }
      }
  }

  /// … and an ascending index of one attribute is a flag of that attribute.
  static func implicitlyIndexed(in entity: Entity) -> Set<String> {
    Set(entity.fetchIndexes.compactMap(\.plainProperty))
  }
}

extension KeyedArchiveWriter.ClassName {
  static let model = Self("NSManagedObjectModel")
  static let entity = Self("NSEntityDescription")
  static let attribute = Self("NSAttributeDescription", "NSPropertyDescription")
  static let compositeAttribute = Self(
    "NSCompositeAttributeDescription", "NSAttributeDescription", "NSPropertyDescription")
  static let derivedAttribute = Self("NSDerivedAttributeDescription", "NSAttributeDescription", "NSPropertyDescription")
  static let relationship = Self("NSRelationshipDescription", "NSPropertyDescription")
  static let fetchIndex = Self("NSFetchIndexDescription")
  static let fetchIndexElement = Self("NSFetchIndexElementDescription")
  static let set = Self("NSSet")
  static let mutableArray = Self("NSMutableArray", "NSArray")
  static let mutableDictionary = Self("NSMutableDictionary", "NSDictionary")
  static let knownKeysMapping = Self("NSKnownKeysMappingStrategy1", "NSKnownKeysMappingStrategy")
  static let knownKeysDictionary = Self(
    "NSKnownKeysDictionary1", "NSKnownKeysDictionary", "NSMutableDictionary", "NSDictionary")
}

// Properties in the archive of a model.

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
        objects[relationship.name] = fill(relationship, of: entity)
      }
      for fetched in ancestor.fetchedProperties {
        if objects[fetched.name] == nil { order.append(fetched.name) }
        objects[fetched.name] = make(fetched, of: entity)
      }
    }
    order.sort { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    return order.map { name in (name, objects[name].map { .object($0) } ?? .null) }
  }

  private mutating func common(
    name: String, entity: Entity, renamingIdentifier: String, modifier: String?, userInfo entries: [String: String],
    isIndexed: Bool = false, isOptional: Bool, isTransient: Bool, isReadOnly: Bool = false, isOrdered: Bool = false,
    hasPredicates: Bool = false, isEncrypted: Bool = false
  ) -> Fields {
    // docs/formats/model-files.md, "Property flags".
    let flags: [(bits: Int64, isSet: Bool)] = [
      (0x01, true), (0x02, isOptional), (0x04, isReadOnly), (0x08, isTransient), (0x30, !hasPredicates),
      (0x40, entries.isEmpty), (0x80, modifier == nil), (0x400, isOrdered), (0x800, isEncrypted),
    ]
    var fields: Fields = [
      ("NSPropertyName", .text(name)), ("NSEntity", .reference(reference(toEntity: entity.name, isOwner: false))),
      ("NSRenamingIdentifier", .text(renamingIdentifier)),
      ("_P", .integer(flags.reduce(0) { $0 | ($1.isSet ? $1.bits : 0) })),
    ]
    // Truth values are written only if true.
    for (key, value) in [
      ("NSIsOptional", isOptional), ("NSIsTransient", isTransient), ("NSIsReadOnly", isReadOnly),
      ("NSIsIndexed", isIndexed), ("NSAllowsCloudEncryption", isEncrypted),
    ] where value {
      fields.append((key, .boolean(true)))
    }
    if let modifier { fields.append(("NSVersionHashModifier", .text(modifier))) }
    if !entries.isEmpty { fields.append(("NSUserInfo", .object(userInfo(entries)))) }
    return fields
  }

  /// Writes a composite with its elements, each of which is an attribute without an entity
  /// (docs/formats/model-files.md, "Compiled models").
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
      isTransient: attribute.isTransient, isReadOnly: attribute.isDerived, hasPredicates: !rules.isEmpty,
      isEncrypted: attribute.allowsCloudEncryption)
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

  /// Writes a fetched property with its request.
  private mutating func make(_ property: FetchedProperty, of entity: Entity) -> Writer.Object {
    let predicate = property.predicate.flatMap { ModelPredicate($0) }
    let target = property.fetchEntityName.flatMap { model.entity(named: $0) }
    if property.hasOptions || target == nil || (predicate == nil) != (property.predicate == nil) {
      refuse("the archived form of this fetched property is unknown", entity.name, property.name)
    }
    let condition = predicate.map { Writer.Reference.object(makePredicate($0)) } ?? .null
    let request = writer.makeObject(
      Writer.ClassName("NSFetchRequest", "NSPersistentStoreRequest"),
      [
        ("NSEntity", .reference(reference(toEntity: target?.name, isOwner: false))),
        ("NSPredicate", .reference(condition)), ("NSHavingPredicate", .null),
        ("NSSortDescriptors", .null), ("NSValuesToFetch", .null), ("NSValuesToGroupBy", .null),
        ("NSRelationshipKeyPathsForPrefetching", .null), ("NSHasFetchRequestFlags", .boolean(true)),
        ("NSFetchRequestFlags", .integer(30)), ("NSResultType", .integer(0)), ("NSFetchOffset", .integer(0)),
        ("NSFetchLimit", .integer(0)), ("NSBatchSize", .integer(0)), ("NSAllocationType", .integer(0)),
      ])
    let fields = common(
      name: property.name, entity: entity, renamingIdentifier: property.renamingIdentifier, modifier: nil,
      userInfo: property.userInfo, isOptional: property.isOptional, isTransient: true, isReadOnly: true)
    return writer.makeObject(
      Writer.ClassName("NSFetchedPropertyDescription", "NSPropertyDescription"),
      fields + [
        ("_NSFetchRequestEntityName", .text(property.fetchEntityName)), ("NSFetchRequest", .object(request)),
      ])
  }

  mutating func fill(_ relationship: Relationship, of entity: Entity) -> Writer.Object? {
    guard let object = relationships[PropertyKey(entity: entity.name, property: relationship.name)] else { return nil }
    if relationship.isToMany && relationship.maxCount == 1 {
      refuse("a to-many relationship of at most one object reads as to-one", entity.name, relationship.name)
    }
    var fields = common(
      name: relationship.name, entity: entity, renamingIdentifier: relationship.renamingIdentifier,
      modifier: relationship.versionHashModifier, userInfo: relationship.userInfo,
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
