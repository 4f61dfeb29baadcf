// Reads the `elements` file of an `.xcdatamodel` that was saved by an Xcode before 4.1: a keyed archive of the editor's
// own classes, in which entities are UML classes and Core Data's facts about them are in "stereotypes"
// (docs/formats/model-files.md, "Model elements"). The reader goes from the model to its entities to their properties
// and no further; names replace references, as in the other forms.

import Diagnostics
import PropertyLists

/// Builds the source of one model version from its `elements`.
struct ElementsReader {
  private let place: Place
  private var source: ModelSource
  private var size = ModelSize()
  private var factCount = 0
  private var warned: Set<String> = []

  private init(name: String, place: Place) {
    self.place = place
    source = ModelSource(name: name)
  }

  /// Reads the source in `bytes`; throws if they are not an archive of a model, if an object that matters is of an
  /// unknown class, and if the model is too large.
  static func read(_ bytes: [UInt8], name: String, at place: Place) throws(HopdError) -> ModelSource {
    let root = try KeyedArchive.decode(bytes, at: place).root()
    guard root.isKind(of: "XDPMModel") else { throw root.unknownClass(for: "a model of the editor") }
    var reader = ElementsReader(name: name, place: place)
    try reader.readModel(root)
    return reader.source
  }

  private mutating func readModel(_ root: ArchivedObject) throws(HopdError) {
    source.versionIdentifiers = [try root.string("_modelVersionIdentifier") ?? ""]
    guard let package = try root.object("_xd_rootPackage") else { throw root.damaged("it has no package of entities") }
    // Nested packages were never seen; without this check their entities would be missed silently.
    guard try package.entries("XDBucketForPackagesstorage").isEmpty else {
      throw package.damaged("it contains further packages, which are unknown")
    }
    for (_, value) in try package.entries("XDBucketForClassesstorage") {
      guard source.entities.count < ModelLimits.entities else {
        throw HopdError(.modelTooLarge, "the model has more than \(ModelLimits.entities) entities", at: place)
      }
      guard let object = value.object, object.isKind(of: "XDPMEntity") else {
        throw value.object?.unknownClass(for: "an entity") ?? package.damaged("one of its entities is \(value.kind)")
      }
      source.entities.append(try entity(object))
    }
    for (key, value) in try root.entries("_configurationsByName") {
      try readConfiguration(key, value, of: root)
    }
  }

  /// Reads a configuration. No example has one; it can only be a list of entities, or of their names.
  private mutating func readConfiguration(
    _ key: ArchivedValue, _ value: ArchivedValue, of root: ArchivedObject
  ) throws(HopdError) {
    guard let name = key.string, let list = value.object, list.isList else {
      throw root.damaged("one of its configurations is of a form that is unknown")
    }
    var members: [String] = []
    for member in try list.elements() {
      try countFact()
      var entity = member.string
      if let object = member.object { entity = try object.string("_name") }
      guard let entity else { throw list.damaged("a member of a configuration has no name") }
      members.append(entity)
    }
    try countFact()
    source.configurations.append(ModelSource.Configuration(name: name, members: members))
  }

  // MARK: Entities

  private mutating func entity(_ object: ArchivedObject) throws(HopdError) -> Entity {
    let name = try object.string("_name") ?? ""
    do throws(HopdError) {
      let facts = try facts(of: object)
      var entity = Entity(
        name: name, className: try facts.text("XD_PSK_entityClassName"), parentName: try parentName(of: object),
        isAbstract: try facts.isTrue("XD_PSK_isAbstract"), renamingIdentifier: try facts.text("XD_PSK_elementID"),
        versionHashModifier: try facts.text("XD_PSK_versionHashModifier"),
        userInfo: try userInfo(facts, "XD_PSK_userInfo"))
      for (_, value) in try object.entries("XDBucketForOwnedAttributesstorage") {
        try size.countProperty(at: place)
        guard let property = value.object else { throw object.damaged("one of its properties is \(value.kind)") }
        try add(property, to: &entity)
      }
      entity.compoundIndexes = try tuples(facts, "XDPMCompoundIndexes")
      entity.uniquenessConstraints = try tuples(facts, "XDPMUniquenessConstraints")
      entity.markIndexedAttributes()
      return entity
    } catch {
      throw error.located(Place(entity: name))
    }
  }

  /// The entity that this one specialises; UML would allow several.
  private mutating func parentName(of object: ArchivedObject) throws(HopdError) -> String? {
    let generalizations = try object.elements("XDBucketForGeneralizationsstorage")
    guard generalizations.count <= 1 else { throw object.damaged("it has \(generalizations.count) parents") }
    guard let generalization = generalizations.first?.object else { return nil }
    guard let parent = try generalization.object("_general")?.string("_name") else {
      throw generalization.damaged("it leads to no entity")
    }
    return parent
  }

  private mutating func add(_ object: ArchivedObject, to entity: inout Entity) throws(HopdError) {
    let name = try object.string("_name") ?? ""
    do throws(HopdError) {
      let facts = try facts(of: object)
      if object.isKind(of: "XDPMAttribute") {
        entity.attributes.append(try attribute(name, facts, object))
      } else if object.isKind(of: "XDPMRelationship") {
        entity.relationships.append(try relationship(name, facts, object))
      } else if object.isKind(of: "XDPMFetchedProperty") {
        // It has no column and is not part of the hash: the entity that it fetches does not matter.
        entity.fetchedProperties.append(
          FetchedProperty(
            name: name, isOptional: try facts.isTrue("XD_PPSK_isOptional"),
            renamingIdentifier: try facts.text("XD_PPSK_elementID"), userInfo: try userInfo(facts, "XD_PPSK_userInfo")))
      } else {
        throw object.unknownClass(for: "a property")
      }
    } catch {
      throw error.located(Place(property: name))
    }
  }

  private mutating func attribute(
    _ name: String, _ facts: Facts, _ object: ArchivedObject
  ) throws(HopdError) -> Attribute {
    let number = try facts.integer("XD_PAttK_attributeType") ?? 0
    guard let type = Int(exactly: number).flatMap(AttributeType.init(rawValue:)), type != .composite else {
      throw object.damaged("its attribute type \(number) is unknown")
    }
    func bound(_ key: String) throws(HopdError) -> String? {
      guard let text = try facts.text(key) else { return nil }
      // A bound of dates is text in the language of the editor.
      return type == .date ? nil : ValidationBound(text, type: type)?.text
    }
    return Attribute(
      name: name, type: type, isOptional: try facts.isTrue("XD_PPSK_isOptional"),
      isTransient: try facts.isTrue("XD_PPSK_isTransient"),
      defaultValue: defaultValue(try facts.string("XD_PAttK_defaultValueAsString"), type: type),
      renamingIdentifier: try facts.text("XD_PPSK_elementID"),
      versionHashModifier: try facts.text("XD_PPSK_versionHashModifier"),
      isIndexed: try facts.isTrue("XD_PPSK_isIndexed"),
      allowsExternalStorage: try facts.isTrue("XD_PAttK_allowsExternalBinaryDataStorage"),
      minimum: try bound("XD_PAttK_minValueString"), maximum: try bound("XD_PAttK_maxValueString"),
      regularExpression: try facts.text("XD_PAttK_regularExpressionString"),
      valueTransformerName: try facts.text("XD_PAttK_valueTransformerName"),
      userInfo: try userInfo(facts, "XD_PPSK_userInfo"))
  }

  /// A default is text, as in `contents`; that of a date is in the language of the editor, so its value is not certain.
  private func defaultValue(_ text: String?, type: AttributeType) -> AttributeDefault? {
    if type == .date { return text.map { _ in .archived(className: "NSDate") } }
    return AttributeDefault(text: text, interval: nil, type: type)
  }

  private mutating func relationship(
    _ name: String, _ facts: Facts, _ object: ArchivedObject
  ) throws(HopdError) -> Relationship {
    let rule = try facts.integer("XD_PRK_deleteRule") ?? 1
    guard let deleteRule = Int(exactly: rule).flatMap(Relationship.DeleteRule.init(rawValue:)) else {
      throw object.damaged("its delete rule \(rule) is unknown")
    }
    let isToMany = try facts.isTrue("XD_PRK_isToMany")
    let bound = try facts.integer("XD_PRK_maxCount").map(Relationship.storedCount)
    return Relationship(
      name: name, destinationEntityName: try facts.name("XD_PRK_destination") ?? "",
      inverseName: try facts.name("XD_PRK_inverseRelationship"), isOptional: try facts.isTrue("XD_PPSK_isOptional"),
      isTransient: try facts.isTrue("XD_PPSK_isTransient"), isToMany: isToMany,
      isOrdered: try facts.isTrue("XD_PRK_ordered"), maxCount: isToMany ? bound : 1,
      minCount: Relationship.storedCount(try facts.integer("XD_PRK_minCount") ?? 0), deleteRule: deleteRule,
      renamingIdentifier: try facts.text("XD_PPSK_elementID"),
      versionHashModifier: try facts.text("XD_PPSK_versionHashModifier"),
      userInfo: try userInfo(facts, "XD_PPSK_userInfo"))
  }

  // MARK: Facts

  /// The values in the stereotypes of an entity or property, by key.
  private struct Facts {
    let values: [String: ArchivedValue]
    let object: ArchivedObject

    /// The text of a key, also an empty one.
    func string(_ key: String) throws(HopdError) -> String? { try object.typed(values[key], key, "text", \.string) }

    /// The text of a key; nil where it is absent or empty.
    func text(_ key: String) throws(HopdError) -> String? { try string(key).flatMap { $0.isEmpty ? nil : $0 } }

    func integer(_ key: String) throws(HopdError) -> Int64? {
      try object.typed(values[key], key, "an integer", \.integer)
    }

    func isTrue(_ key: String) throws(HopdError) -> Bool {
      try object.typed(values[key], key, "a boolean", \.truth) ?? false
    }

    /// The name of the entity or property under a key.
    func name(_ key: String) throws(HopdError) -> String? {
      try object.typed(values[key], key, "an object", \.object)?.string("_name")
    }

    /// The list under a key.
    func elements(_ key: String) throws(HopdError) -> [ArchivedValue] {
      try object.typed(values[key], key, "a list", \.object)?.elements() ?? []
    }
  }

  /// Keys of stereotypes that were seen, both the ones that matter and the ones that do not.
  private static let known: Set<String> = [
    "XDPMCompoundIndexes", "XDPMUniquenessConstraints", "XD_PSK_classMapping", "XD_PSK_elementID",
    "XD_PSK_entityClassName", "XD_PSK_fetchRequestsArray", "XD_PSK_isAbstract", "XD_PSK_userInfo",
    "XD_PSK_versionHashModifier", "XD_PPSK_elementID", "XD_PPSK_isIndexed", "XD_PPSK_isOptional",
    "XD_PPSK_isSpotlightIndexed", "XD_PPSK_isStoredInTruthFile", "XD_PPSK_isTransient", "XD_PPSK_userInfo",
    "XD_PPSK_versionHashModifier", "XD_PAttK_allowsExternalBinaryDataStorage", "XD_PAttK_attributeType",
    "XD_PAttK_defaultValueAsString", "XD_PAttK_maxValueString", "XD_PAttK_minValueString",
    "XD_PAttK_regularExpressionString", "XD_PAttK_valueTransformerName", "XD_PRK_deleteRule", "XD_PRK_destination",
    "XD_PRK_inverseRelationship", "XD_PRK_isToMany", "XD_PRK_maxCount", "XD_PRK_minCount", "XD_PRK_ordered",
  ]

  /// An element's stereotypes as one dictionary: their keys do not overlap.
  private mutating func facts(of object: ArchivedObject) throws(HopdError) -> Facts {
    var values: [String: ArchivedValue] = [:]
    for (_, stereotype) in try object.entries("XDBucketForStereotypesstorage") {
      guard let stereotype = stereotype.object else { throw object.damaged("a stereotype is \(stereotype.kind)") }
      for (key, property) in try stereotype.entries("XDBucketForOwnedAttributesstorage") {
        try countFact()
        guard let key = key.string, let property = property.object else {
          throw stereotype.damaged("one of its values has no name")
        }
        guard Self.known.contains(key) else {
          let shown = String(key.prefix(100))
          if warned.count < ModelLimits.findings, warned.insert(shown).inserted {
            source.warnings.add("the model states “\(shown)”, which is unknown, ignoring it", at: place)
          }
          continue
        }
        values[key] = try property.value("_default")
      }
    }
    return Facts(values: values, object: object)
  }

  /// Reads lists of property names; a text with commas is several names, as in `contents`.
  private mutating func tuples(_ facts: Facts, _ key: String) throws(HopdError) -> [[String]] {
    var result: [[String]] = []
    for value in try facts.elements(key) {
      try countFact()
      var names: [String] = []
      var members = [value]
      if let list = value.object { members = try list.elements() }
      for member in members {
        try countFact()
        guard let text = member.string else { throw facts.object.damaged("\(key) holds \(member.kind)") }
        names += text.utf8.split(separator: UInt8(ascii: ",")).map { Substring($0).trimmingSpaces }
      }
      if !names.isEmpty { result.append(names) }
    }
    return result
  }

  /// The entries of the user info that are text: the editor writes nothing else.
  private mutating func userInfo(_ facts: Facts, _ key: String) throws(HopdError) -> [String: String] {
    guard let dictionary = facts.values[key]?.object, dictionary.isDictionary else { return [:] }
    var result: [String: String] = [:]
    for (key, value) in try dictionary.entries() {
      try countFact()
      if let key = key.string, let value = value.string { result[key] = value }
    }
    return result
  }

  /// A stereotype has some eight values for each property, so the limit is higher than in other readers.
  private mutating func countFact() throws(HopdError) {
    factCount += 1
    guard factCount <= ModelLimits.details * 4 else {
      throw HopdError(.modelTooLarge, "the model states more than \(ModelLimits.details * 4) facts", at: place)
    }
  }
}
