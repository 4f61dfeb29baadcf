// Reads the `contents` file of an `.xcdatamodel`: XML elements in, an unchecked ModelSource out
// (docs/formats/model-files.md, "Model contents"). It only transcribes the file; ModelValidation checks that names
// exist, so that all faults are reported together.

import Diagnostics
import PropertyLists

/// The limits of a model; a hostile one ends in an error in less than a second.
package enum ModelLimits {
  /// Entities of one version.
  package static let entities = 5_000
  /// Own properties of all entities of one version.
  package static let properties = 50_000
  /// Own and inherited properties of all entities: the number that hashing and the store layout process.
  package static let inheritedProperties = 200_000
  /// Levels of inheritance.
  package static let inheritanceDepth = 64
  /// User info entries, index elements, constraints and configuration members of one version.
  package static let details = 100_000
  /// Versions of one bundle.
  package static let versions = 500
  /// Findings reported for one version; the others are only counted.
  package static let findings = 100
}

/// The amount of a model that was read.
struct ModelSize {
  private var properties = 0
  private var details = 0

  mutating func countProperty(at place: Place) throws(HopdError) {
    properties += 1
    guard properties <= ModelLimits.properties else {
      throw HopdError(.modelTooLarge, "the model has more than \(ModelLimits.properties) properties", at: place)
    }
  }

  mutating func countDetail(at place: Place) throws(HopdError) {
    details += 1
    guard details <= ModelLimits.details else {
      throw HopdError(
        .modelTooLarge,
        "the model has more than \(ModelLimits.details) user info entries, index elements, constraints and members",
        at: place)
    }
  }
}

/// Builds the source of one model version from XML events.
final class ModelContentsReader: XMLEventHandler {
  /// The kind of an open element, which decides the meaning of its children.
  private enum Node {
    case model, entity, attribute, relationship, fetchedProperty, fetchRequest, fetchIndex, fetchIndexElement
    case uniquenessConstraints, uniquenessConstraint, compoundIndexes, compoundIndex, configuration, composite
    case userInfo
    /// An element whose attributes contain everything, or one that does not matter, with all its descendants.
    case closed
  }

  /// XML attributes that hold text of any length.
  private static let texts: Set<String> = [
    "defaultValueString", "predicateString", "partialIndexPredicate", "regularExpressionString",
  ]

  private let place: Place
  private var source: ModelSource
  private var stack: [Node] = []
  private var warned: Set<String> = []
  private var size = ModelSize()

  private var entity: Entity?
  private var entityLine = 0
  private var lines: [String: [Int]] = [:]
  private var attribute: Attribute?
  private var relationship: Relationship?
  private var fetchedProperty: FetchedProperty?
  private var fetchIndex: FetchIndex?
  private var names: [String] = []
  private var configuration: ModelSource.Configuration?
  private var composite: ModelSource.Composite?

  private init(name: String, place: Place) {
    self.place = place
    source = ModelSource(name: name)
  }

  /// Reads the source in `bytes`; throws if they are not a model or too large, and records all other faults in the
  /// source.
  static func read(_ bytes: [UInt8], name: String, at place: Place) throws(HopdError) -> ModelSource {
    let reader = ModelContentsReader(name: name, place: place)
    try XMLReader.read(bytes, at: place, to: reader)
    return reader.source
  }

  func text(_ text: String, at position: XMLPosition) {}

  func startElement(_ name: String, attributes: [XMLAttribute], at position: XMLPosition) throws(HopdError) {
    // Names and types are printed in messages; texts meant for people may be long.
    for attribute in attributes where attribute.value.utf8.count > ModelLimits.nameBytes {
      guard !Self.texts.contains(attribute.name) && !(name == "entry" && attribute.name == "value") else { continue }
      throw HopdError(
        .modelTooLarge, "“\(attribute.name)” of <\(name)> has more than \(ModelLimits.nameBytes) bytes",
        at: at(position.line))
    }
    let element = ModelElement(name: name, attributes: attributes, line: position.line)
    let node = try open(element)
    stack.append(node)
    if node != .closed || element.isKnown {
      for unknown in element.unknownAttributes {
        warn(once: "\(name) \(unknown)", "unknown attribute “\(unknown)” of <\(name)>, ignoring it", element)
      }
    }
  }

  private func open(_ element: ModelElement) throws(HopdError) -> Node {
    guard let parent = stack.last else { return try openModel(element) }
    switch (parent, element.name) {
    case (.model, _): return try openPart(element)
    case (.configuration, "memberEntity"):
      try countDetail(element)
      configuration?.members.append(element["name"] ?? "")
      return .closed
    case (.entity, "attribute"), (.composite, "attribute"):
      try countProperty(element)
      attribute = attribute(from: element)
      return .attribute
    case (.entity, "relationship"):
      try countProperty(element)
      relationship = relationship(from: element)
      return .relationship
    case (.entity, "fetchedProperty"):
      try countProperty(element)
      fetchedProperty = FetchedProperty(
        name: element["name"] ?? "", isOptional: element.isTrue("optional"),
        renamingIdentifier: element.text("elementID"))
      fetchedProperty?.hasOptions = element["versionHashModifier"] != nil
      return .fetchedProperty
    case (.fetchedProperty, "fetchRequest"):
      addRequest(element)
      return .fetchRequest
    case (.entity, "fetchIndex"):
      try countDetail(element)
      fetchIndex = FetchIndex(
        name: element["name"] ?? "", elements: [], partialPredicate: element.text("partialIndexPredicate"))
      return .fetchIndex
    case (.fetchIndex, "fetchIndexElement"):
      try countDetail(element)
      fetchIndex?.elements.append(indexElement(from: element))
      return .fetchIndexElement
    case (.entity, "uniquenessConstraints"): return .uniquenessConstraints
    case (.entity, "compoundIndexes"): return .compoundIndexes
    case (.uniquenessConstraints, "uniquenessConstraint"):
      names = []
      return .uniquenessConstraint
    case (.uniquenessConstraint, "constraint"):
      try countDetail(element)
      names.append(element["value"] ?? "")
      return .closed
    case (.compoundIndexes, "compoundIndex"):
      names = []
      return .compoundIndex
    case (.compoundIndex, "index"):
      try addIndexedNames(element)
      return .closed
    case (.entity, "userInfo"), (.attribute, "userInfo"), (.relationship, "userInfo"), (.fetchedProperty, "userInfo"):
      return .userInfo
    case (.userInfo, "entry"):
      try countDetail(element)
      addUserInfo(element)
      return .closed
    case (.fetchIndex, "userInfo"), (.composite, "userInfo"), (.closed, _): return .closed
    default: return ignored(element)
    }
  }

  /// A value may contain several names. Split by bytes: by characters it would take a hundred times as long.
  private func addIndexedNames(_ element: ModelElement) throws(HopdError) {
    for name in (element["value"] ?? "").utf8.split(separator: UInt8(ascii: ",")) {
      try countDetail(element)
      names.append(Substring(name).trimmingSpaces)
    }
  }

  /// Opens an element directly below the model.
  private func openPart(_ element: ModelElement) throws(HopdError) -> Node {
    switch element.name {
    case "entity": return try openEntity(element)
    case "configuration":
      configuration = ModelSource.Configuration(name: element["name"] ?? "", line: element.line)
      try countDetail(element)
      return .configuration
    case "composite":
      composite = ModelSource.Composite(name: element["name"] ?? "", line: element.line)
      try countDetail(element)
      return .composite
    case "elements", "fetchRequest", "userInfo": return .closed
    default: return ignored(element)
    }
  }

  private func ignored(_ element: ModelElement) -> Node {
    warn(once: element.name, "unknown element <\(element.name)>, ignoring it and what it contains", element)
    return .closed
  }

  func endElement(_ name: String, at position: XMLPosition) {
    switch stack.popLast() {
    case .entity?:
      guard var finished = entity.take() else { return }
      finished.markIndexedAttributes()
      source.entities.append(finished)
      source.entityLines.append(entityLine)
      source.propertyLines.append(lines)
    case .attribute?:
      guard let finished = attribute.take() else { return }
      if composite != nil {
        composite?.elements.append(finished)
      } else {
        entity?.attributes.append(finished)
      }
    case .relationship?: if let finished = relationship.take() { entity?.relationships.append(finished) }
    case .fetchedProperty?: if let finished = fetchedProperty.take() { entity?.fetchedProperties.append(finished) }
    case .fetchIndex?: if let finished = fetchIndex.take() { entity?.fetchIndexes.append(finished) }
    case .uniquenessConstraint?: if !names.isEmpty { entity?.uniquenessConstraints.append(names) }
    case .compoundIndex?: if !names.isEmpty { entity?.compoundIndexes.append(names) }
    case .configuration?: if let finished = configuration.take() { source.configurations.append(finished) }
    case .composite?: if let finished = composite.take() { source.composites.append(finished) }
    default: break
    }
  }

  // MARK: Elements

  private func openModel(_ element: ModelElement) throws(HopdError) -> Node {
    guard element.name == "model" else {
      throw HopdError(
        .invalidModel, "this is no Core Data model: it begins with <\(element.name)>, not with <model>",
        at: at(element.line))
    }
    source.versionIdentifiers = [element["userDefinedModelVersionIdentifier"] ?? ""]
    if let version = element["documentVersion"], version != "1.0" {
      warn(
        once: "documentVersion", "the model has document version “\(version)”; 1.0 is known, reading it alike", element)
    }
    return .model
  }

  private func openEntity(_ element: ModelElement) throws(HopdError) -> Node {
    guard source.entities.count < ModelLimits.entities else {
      throw HopdError(.modelTooLarge, "the model has more than \(ModelLimits.entities) entities", at: at(element.line))
    }
    entityLine = element.line
    lines = [:]
    entity = Entity(
      name: element["name"] ?? "", className: element.text("representedClassName"),
      parentName: element.text("parentEntity"), isAbstract: element.isTrue("isAbstract"),
      renamingIdentifier: element.text("elementID"), versionHashModifier: element.text("versionHashModifier"))
    warnOfRenamingIdentifier(element)
    return .entity
  }

  private func attribute(from element: ModelElement) -> Attribute {
    let name = element["name"] ?? ""
    let typeName = element.text("attributeType")
    let type = typeName.map { AttributeType(xmlName: $0) } ?? .undefined
    if type == nil {
      fault("the attribute type “\(typeName ?? "")” is unknown", element, property: name)
    }
    let isDerived = element.isTrue("derived")
    let derivation = element.text("derivationExpression")
    if isDerived && derivation == nil {
      fault("the attribute is derived but has no derivation expression", element, property: name)
    }
    warnOfRenamingIdentifier(element)
    let isDate = type == .date
    var attribute = Attribute(
      name: name, type: type ?? .undefined, isOptional: element.isTrue("optional"),
      isTransient: element.isTrue("transient"),
      defaultValue: AttributeDefault(
        text: element["defaultValueString"], interval: element["defaultDateTimeInterval"], type: type ?? .undefined),
      renamingIdentifier: element.text("elementID"), versionHashModifier: element.text("versionHashModifier"),
      isIndexed: element.isTrue("indexed"), allowsExternalStorage: element.isTrue("allowsExternalBinaryDataStorage"),
      preservesAfterDeletion: element.isTrue("preserveAfterDeletion"),
      derivationExpression: isDerived ? derivation.map { DerivationText($0).text } : nil,
      compositeTypeName: element.text("composite"),
      minimum: bound(isDate ? "minDateTimeInterval" : "minValueString", element, type),
      maximum: bound(isDate ? "maxDateTimeInterval" : "maxValueString", element, type),
      regularExpression: element.text("regularExpressionString"),
      valueTransformerName: element.text("valueTransformerName"), customClassName: element.text("customClassName"))
    attribute.allowsCloudEncryption = element.isTrue("allowsCloudEncryption")
    return attribute
  }

  private func relationship(from element: ModelElement) -> Relationship {
    let name = element["name"] ?? ""
    let isToMany = element.isTrue("toMany")
    var rule = Relationship.DeleteRule.nullify
    if let text = element.text("deletionRule") {
      if let known = Relationship.DeleteRule(xmlName: text) {
        rule = known
      } else {
        warn(once: "deletionRule \(text)", "unknown deletion rule “\(text)”, taking Nullify", element)
      }
    }
    warnOfRenamingIdentifier(element)
    return Relationship(
      name: name, destinationEntityName: element["destinationEntity"] ?? "", inverseName: element.text("inverseName"),
      isOptional: element.isTrue("optional"), isTransient: element.isTrue("transient"), isToMany: isToMany,
      isOrdered: element.isTrue("ordered"), maxCount: count("maxCount", element, property: name),
      minCount: count("minCount", element, property: name) ?? 0, deleteRule: rule,
      renamingIdentifier: element.text("elementID"), versionHashModifier: element.text("versionHashModifier"))
  }

  private func addRequest(_ element: ModelElement) {
    fetchedProperty?.fetchEntityName = element.text("entity")
    fetchedProperty?.predicate = element.text("predicateString")
    if !element.hasOnly(["name", "entity", "predicateString"]) { fetchedProperty?.hasOptions = true }
  }

  private func indexElement(from element: ModelElement) -> FetchIndex.Element {
    let kind: FetchIndex.Element.Kind =
      switch element["type"]?.lowercased() ?? "binary" {
      case "binary": .binary
      case "rtree": .rTree
      default: .unknown
      }
    return FetchIndex.Element(
      propertyName: element.text("property"), expression: element.text("expression"),
      expressionType: element.text("expressionType"), kind: kind,
      isAscending: element["order"]?.lowercased() != "descending")
  }

  private func addUserInfo(_ element: ModelElement) {
    guard let key = element["key"], stack.count >= 2 else { return }
    let value = element["value"] ?? ""
    switch stack[stack.count - 2] {
    case .attribute: attribute?.userInfo[key] = value
    case .relationship: relationship?.userInfo[key] = value
    case .fetchedProperty: fetchedProperty?.userInfo[key] = value
    default: entity?.userInfo[key] = value
    }
  }

  // MARK: Helpers

  private func bound(_ name: String, _ element: ModelElement, _ type: AttributeType?) -> String? {
    guard let type, let text = element.text(name) else { return nil }
    return ValidationBound(text, type: type)?.text
  }

  private func count(_ name: String, _ element: ModelElement, property: String) -> Int64? {
    guard let text = element.text(name) else { return nil }
    guard let number = Int64(text), number >= 0 else {
      fault("\(name) is “\(text)”; it must be an integer from 0", element, property: property)
      return nil
    }
    return Relationship.storedCount(number)
  }

  private func countProperty(_ element: ModelElement) throws(HopdError) {
    try size.countProperty(at: at(element.line))
    lines[element["name"] ?? "", default: []].append(element.line)
  }

  private func countDetail(_ element: ModelElement) throws(HopdError) { try size.countDetail(at: at(element.line)) }

  private func warnOfRenamingIdentifier(_ element: ModelElement) {
    guard element.text("renamingIdentifier") != nil else { return }
    warn(
      once: "renamingIdentifier",
      "“renamingIdentifier” is not what Xcode writes for a renaming identifier and is not honoured; "
        + "set it in the model editor, which writes elementID", element)
  }

  private func fault(_ message: String, _ element: ModelElement, property: String?) {
    guard source.errors.count < ModelLimits.findings else { return }
    let part = Place(entity: entity?.name ?? composite?.name, property: property)
    source.errors.append(HopdError(.invalidModel, message, at: part.filled(from: at(element.line))))
  }

  private func warn(once key: String, _ message: String, _ element: ModelElement) {
    guard warned.count < ModelLimits.findings, warned.insert(key).inserted else { return }
    source.warnings.add(message, at: at(element.line))
  }

  private func at(_ line: Int) -> Place { Place(line: line).filled(from: place) }
}
