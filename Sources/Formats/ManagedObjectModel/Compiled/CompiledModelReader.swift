// Reads a compiled model, the keyed archive of a `.mom` file or of a store's model cache: archive in, an unchecked
// ModelSource out (docs/formats/model-files.md, "Compiled models"). The reader goes from the model to its entities to
// their properties and no further, so cycles in the archive do not matter; names replace references, as in the source
// form.

import Diagnostics
import PropertyLists

extension ModelReader {
  /// Reads one version from the bytes of a compiled model: a `.mom` file, or the inflated content of a store's
  /// Z_MODELCACHE.
  ///
  /// The model keeps the bytes (`compiledForm`). Throws if they are not an archive of a model, if an object that
  /// matters is of an unknown class, and if the model breaks a rule.
  package static func read(
    compiled bytes: [UInt8], name: String, at place: Place = Place()
  ) throws(HopdError) -> (model: ManagedObjectModel, warnings: [ModelWarning]) {
    do throws(HopdError) {
      let source = try CompiledModelReader.read(bytes, name: name, at: place)
      let model = try ModelValidation.validated(source, at: place)
      return (model.compiled(to: bytes), source.warnings)
    } catch {
      // The remedy is the same for every fault of an archive.
      throw error.hinted("copy the compiled model from the app again, or pass the model's source form")
    }
  }
}

/// Builds the source of one model version from its archive.
struct CompiledModelReader {
  private let place: Place
  private var source: ModelSource
  private var size = ModelSize()

  private init(name: String, place: Place) {
    self.place = place
    source = ModelSource(name: name)
  }

  static func read(_ bytes: [UInt8], name: String, at place: Place) throws(HopdError) -> ModelSource {
    let root = try KeyedArchive.decode(bytes, at: place).root()
    guard root.isKind(of: "NSManagedObjectModel") else { throw root.unknownClass(for: "a managed object model") }
    var reader = CompiledModelReader(name: name, place: place)
    try reader.readModel(root)
    return reader.source
  }

  private mutating func readModel(_ root: ArchivedObject) throws(HopdError) {
    source.versionIdentifiers = try root.elements("NSVersionIdentifiers").compactMap(\.string).sorted()
    let entries = try root.entries("NSEntities")
    guard entries.count <= ModelLimits.entities else {
      throw HopdError(.modelTooLarge, "the model has more than \(ModelLimits.entities) entities", at: place)
    }
    for (_, value) in entries {
      guard let object = value.object, object.isKind(of: "NSEntityDescription") else {
        throw root.damaged("one of its entities is \(value.kind)")
      }
      source.entities.append(try entity(object))
    }
    source.entities = withoutCopies(source.entities)
    for index in source.entities.indices { markComputedElements(of: index) }
    if try root.object("NSEntities")?.isKind(of: "NSKnownKeysDictionary1") == true { unmarkUnnamedIndexes() }
    for (key, value) in try root.entries("NSConfigurations") {
      guard let name = key.string, let members = value.object else { throw root.damaged("a configuration has no name") }
      var names: [String] = []
      for member in try members.elements() {
        try size.countDetail(at: place)
        guard let name = try Self.name(of: member, "NSEntityName") else {
          throw members.damaged("a member of a configuration has no name")
        }
        names.append(name)
      }
      try size.countDetail(at: place)
      source.configurations.append(ModelSource.Configuration(name: name, members: names))
    }
  }

  // MARK: Entities

  private mutating func entity(_ object: ArchivedObject) throws(HopdError) -> Entity {
    let name = try object.string("NSEntityName") ?? ""
    do throws(HopdError) {
      var entity = Entity(
        name: name, className: try object.text("NSClassNameForEntity"),
        parentName: try object.object("NSSuperentity")?.string("NSEntityName"),
        isAbstract: try object.boolean("NSIsAbstract"), renamingIdentifier: try object.text("NSRenamingIdentifier"),
        versionHashModifier: try object.text("NSVersionHashModifier"), userInfo: try userInfo(object))
      for (_, value) in try object.entries("NSProperties") {
        try size.countProperty(at: place)
        guard let property = try Self.unproxied(value.object) else {
          throw object.damaged("one of its properties is \(value.kind)")
        }
        try add(property, to: &entity)
      }
      entity.uniquenessConstraints = try tuples("NSUniqueTuples", object)
      entity.compoundIndexes = try tuples("NSCompoundIndexes", object, unnamed: "?")
      for value in try object.elements("NSFetchIndexDescriptions") {
        // A layout leaves out an index without elements; nothing else depends on it.
        var index = FetchIndex(name: "?", elements: [])
        if let object = value.object, object.isKind(of: "NSFetchIndexDescription") { index = try fetchIndex(object) }
        entity.fetchIndexes.append(index)
      }
      // For frameworks older than fetch indexes the compiler repeats an index of several properties as a compound
      // index.
      let repeated = Set(entity.fetchIndexes.map { index in index.elements.compactMap(\.name) })
      entity.compoundIndexes.removeAll { repeated.contains($0) }
      return entity
    } catch {
      throw error.located(Place(entity: name))
    }
  }

  private mutating func add(_ property: ArchivedObject, to entity: inout Entity) throws(HopdError) {
    let name = try property.string("NSPropertyName") ?? ""
    do throws(HopdError) {
      if property.isKind(of: "NSCompositeAttributeDescription") {
        entity.attributes.append(try composite(property, depth: 0))
      } else if property.isKind(of: "NSAttributeDescription") {
        entity.attributes.append(try CompiledProperties.attribute(property, userInfo: try userInfo(property)))
      } else if property.isKind(of: "NSRelationshipDescription") {
        entity.relationships.append(try CompiledProperties.relationship(property, userInfo: try userInfo(property)))
      } else if property.isKind(of: "NSFetchedPropertyDescription") {
        entity.fetchedProperties.append(
          try CompiledProperties.fetchedProperty(property, userInfo: try userInfo(property)))
      } else {
        throw property.unknownClass(for: "a property")
      }
    } catch {
      throw error.located(Place(property: name))
    }
  }

  /// Reads a composite attribute with its elements in declared order (docs/formats/model-files.md, "Compiled models").
  private mutating func composite(_ property: ArchivedObject, depth: Int) throws(HopdError) -> Attribute {
    guard depth <= ModelValidation.maximumCompositeDepth else {
      throw HopdError(.modelTooLarge, "composites are nested deeper than \(ModelValidation.maximumCompositeDepth)")
    }
    var attribute = try CompiledProperties.attribute(property, userInfo: try userInfo(property))
    guard attribute.type == .composite else {
      throw property.damaged("it is a composite attribute and not of type Composite")
    }
    for value in try property.elements("NSCompositeElements") {
      try size.countProperty(at: place)
      guard let element = try Self.unproxied(value.object), element.isKind(of: "NSAttributeDescription") else {
        throw property.damaged("one of its elements is not an attribute")
      }
      attribute.elements.append(
        element.isKind(of: "NSCompositeAttributeDescription")
          ? try composite(element, depth: depth + 1)
          : try CompiledProperties.attribute(element, userInfo: try userInfo(element)))
    }
    guard !attribute.elements.isEmpty else { throw property.damaged("it is a composite attribute without elements") }
    return attribute
  }

  /// Removes copies of inherited properties. Models built in code repeat them in every subentity; the compiler writes
  /// own properties only (docs/formats/model-files.md, "Compiled models"). A property equal to the ancestor's is
  /// therefore not a declaration.
  private func withoutCopies(_ entities: [Entity]) -> [Entity] {
    let byName = Dictionary(entities.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    return entities.map { entity in
      var result = entity
      var parent = entity.parentName
      // Nearest ancestor first: its declarations hide those of its own ancestors.
      var decided: Set<String> = []
      for _ in 0..<ModelLimits.inheritanceDepth {
        guard let ancestor = parent.flatMap({ byName[$0] }) else { break }
        let known = decided
        result.attributes.removeAll { !known.contains($0.name) && ancestor.attributes.contains($0) }
        result.relationships.removeAll { !known.contains($0.name) && ancestor.relationships.contains($0) }
        result.fetchedProperties.removeAll { !known.contains($0.name) && ancestor.fetchedProperties.contains($0) }
        decided.formUnion(ancestor.propertyNames)
        parent = ancestor.parentName
      }
      return result
    }
  }

  // MARK: Indexes and constraints

  /// Reads lists of property names; a member is a name, a property, or a proxy for an inherited one. `unnamed` stands
  /// for a member of another kind, if that is not an error.
  private mutating func tuples(
    _ field: String, _ object: ArchivedObject, unnamed: String? = nil
  ) throws(HopdError) -> [[String]] {
    var result: [[String]] = []
    for value in try object.elements(field) {
      try size.countDetail(at: place)
      guard let tuple = value.object else {
        // Old compound indexes also have one text per index, with names separated by commas.
        guard let text = value.string else { throw object.damaged("\(field) holds \(value.kind)") }
        result.append(text.split(separator: ",").map { $0.trimmingSpaces })
        continue
      }
      var names: [String] = []
      for member in try tuple.elements() {
        try size.countDetail(at: place)
        guard let name = try Self.name(of: member, "NSPropertyName") ?? unnamed else {
          throw tuple.damaged("a member of \(field) has no name")
        }
        names.append(name)
      }
      if !names.isEmpty { result.append(names) }
    }
    return result
  }

  private mutating func fetchIndex(_ object: ArchivedObject) throws(HopdError) -> FetchIndex {
    var index = FetchIndex(name: try object.string("NSIndexName") ?? "", elements: [])
    if let predicate = try object.object("NSPartialIndexPredicate") {
      index.partialPredicate = (try? ArchivedExpressionText.predicate(predicate)) ?? "?"
    }
    for value in try object.elements("NSIndexElements") {
      try size.countDetail(at: place)
      guard let element = value.object else {
        index.elements.append(FetchIndex.Element(kind: .unknown))
        continue
      }
      let kind: FetchIndex.Element.Kind =
        switch try element.integer("NSFetchIndexElementType") ?? 0 {
        case 0: .binary
        case 1: .rTree
        default: .unknown
        }
      let expression = try indexedExpression(of: element)
      index.elements.append(
        FetchIndex.Element(
          propertyName: expression == nil ? try element.string("NSPropertyName") ?? "" : nil, expression: expression,
          kind: kind, isAscending: try element.boolean("NSAscending")))
    }
    return index
  }

  /// The expression of an index element, as the editor writes it; nil for a property.
  private func indexedExpression(of element: ArchivedObject) throws(HopdError) -> String? {
    guard let property = try element.object("NSIndexedProperty"), property.isKind(of: "NSExpressionDescription"),
      let expression = try property.object("NSExpression")
    else { return nil }
    return expression.className == "NSSelfExpression"
      ? "self" : (try? ArchivedExpressionText.expression(expression)) ?? "?"
  }

  /// Marks elements that name no property of the entity as expressions, where the archive has only their name.
  private mutating func markComputedElements(of index: Int) {
    guard !source.entities[index].fetchIndexes.isEmpty else { return }
    var names: Set<String> = []
    var current: String? = source.entities[index].name
    let byName = Dictionary(source.entities.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    for _ in 0...ModelLimits.inheritanceDepth {
      guard let entity = current.flatMap({ byName[$0] }) else { break }
      names.formUnion(entity.propertyNames)
      current = entity.parentName
    }
    for position in source.entities[index].fetchIndexes.indices {
      var elements = source.entities[index].fetchIndexes[position].elements
      for number in elements.indices {
        guard elements[number].expression == nil else { continue }
        let name = elements[number].propertyName ?? ""
        guard !names.contains(name), !name.contains(".") else { continue }
        (elements[number].propertyName, elements[number].expression) = (nil, name.isEmpty ? "archived" : name)
      }
      source.entities[index].fetchIndexes[position].elements = elements
    }
  }

  /// Clears the old flag of attributes without a fetch index of their name, in a store's copy of the model: there the
  /// flag alone stands for no index. Up to fw 754 there are no fetch indexes, and the flag decides
  /// (docs/formats/model-files.md, "Model cache archives").
  private mutating func unmarkUnnamedIndexes() {
    guard source.entities.contains(where: { !$0.fetchIndexes.isEmpty }) else { return }
    for index in source.entities.indices {
      let named = Set(source.entities[index].fetchIndexes.filter { $0.plainProperty == $0.name }.map(\.name))
      for place in source.entities[index].attributes.indices
      where !named.contains(source.entities[index].attributes[place].name) {
        source.entities[index].attributes[place].isIndexed = false
      }
    }
  }

  // MARK: Helpers

  /// The name of a list's member: a text is the name itself, an object has it in `field`.
  private static func name(of member: ArchivedValue, _ field: String) throws(HopdError) -> String? {
    if let name = member.string { return name }
    return try unproxied(member.object)?.string(field)
  }

  /// The property behind a proxy for an inherited property; one step, because proxies do not nest.
  static func unproxied(_ object: ArchivedObject?) throws(HopdError) -> ArchivedObject? {
    guard let object, object.isKind(of: "_NSPropertyDescriptionProxy") else { return object }
    return try object.object("NSUnderlyingProperty")
  }

  /// The entries of the user info that are text: the editor writes nothing else, and only text has a meaning here.
  private mutating func userInfo(_ object: ArchivedObject) throws(HopdError) -> [String: String] {
    var result: [String: String] = [:]
    for (key, value) in try object.entries("NSUserInfo") {
      try size.countDetail(at: place)
      if let key = key.string, let value = value.string { result[key] = value }
    }
    return result
  }
}
