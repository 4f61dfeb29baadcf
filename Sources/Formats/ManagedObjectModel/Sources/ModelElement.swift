// One XML element of a model with its known attributes (docs/formats/model-files.md, "Model contents"; the lists are
// from 989 files). An attribute that is not listed is reported once and ignored.

import PropertyLists

/// An element of a `contents` file.
struct ModelElement {
  let name: String
  let line: Int
  private let values: [String: String]

  init(name: String, attributes: [XMLAttribute], line: Int) {
    self.name = name
    self.line = line
    values = Dictionary(attributes.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
  }

  /// The value of an attribute, also an empty one.
  subscript(_ attribute: String) -> String? { values[attribute] }

  /// The value of an attribute; nil if it is absent or empty.
  func text(_ attribute: String) -> String? {
    guard let value = values[attribute], !value.isEmpty else { return nil }
    return value
  }

  /// Whether an attribute is true. Xcode writes YES; newer parts of it write true.
  func isTrue(_ attribute: String) -> Bool {
    switch values[attribute] {
    case "YES", "yes", "true", "1": true
    default: false
    }
  }

  /// Whether it has no attributes but these.
  func hasOnly(_ attributes: Set<String>) -> Bool { attributes.isSuperset(of: values.keys) }

  /// Whether the attributes of this element are known.
  var isKnown: Bool { Self.known[name] != nil }

  /// Attributes that are unknown for this element, sorted.
  var unknownAttributes: [String] {
    guard let known = Self.known[name] else { return [] }
    return values.keys.filter { !known.contains($0) }.sorted()
  }

  private static let known: [String: Set<String>] = [
    "model": [
      "type", "documentVersion", "userDefinedModelVersionIdentifier", "lastSavedToolsVersion", "systemVersion",
      "minimumToolsVersion", "sourceLanguage", "macOSVersion", "iOSVersion", "watchOSVersion", "tvOSVersion", "name",
      "usedWithCloudKit", "usedWithSwiftData",
    ],
    "entity": [
      "name", "representedClassName", "parentEntity", "isAbstract", "elementID", "versionHashModifier", "syncable",
      "codeGenerationType", "renamingIdentifier", "coreSpotlightDisplayNameExpression",
    ],
    "attribute": [
      "name", "attributeType", "optional", "usesScalarValueType", "defaultValueString", "defaultDateTimeInterval",
      "valueTransformerName", "customClassName", "indexed", "transient", "minValueString", "maxValueString",
      "minDateTimeInterval", "maxDateTimeInterval", "regularExpressionString", "elementID", "renamingIdentifier",
      "allowsExternalBinaryDataStorage", "preserveAfterDeletion", "versionHashModifier", "derived",
      "derivationExpression", "composite", "spotlightIndexingEnabled", "storedInTruthFile", "syncable",
      "allowsCloudEncryption",
    ],
    "relationship": [
      "name", "destinationEntity", "deletionRule", "inverseName", "inverseEntity", "optional", "toMany", "maxCount",
      "minCount", "ordered", "transient", "elementID", "renamingIdentifier", "indexed", "syncable",
      "versionHashModifier", "spotlightIndexingEnabled", "storedInTruthFile",
    ],
    "fetchedProperty": [
      "name", "optional", "syncable", "elementID", "transient", "versionHashModifier", "spotlightIndexingEnabled",
      "storedInTruthFile",
    ],
    "fetchIndex": ["name", "partialIndexPredicate"],
    "fetchIndexElement": ["property", "expression", "expressionType", "type", "order"],
    "constraint": ["value"],
    "index": ["value"],
    "configuration": ["name", "usedWithCloudKit"],
    "memberEntity": ["name"],
    "composite": ["name", "elementID"],
  ]
}

extension Relationship.DeleteRule {
  /// Finds the rule with that name in XML; nil for an unknown name.
  init?(xmlName: String) {
    let rules: [String: Self] = ["No Action": .noAction, "Nullify": .nullify, "Cascade": .cascade, "Deny": .deny]
    guard let rule = rules[xmlName] else { return nil }
    self = rule
  }
}

extension Substring {
  /// The text without spaces at both ends.
  var trimmingSpaces: String {
    let space = UInt8(ascii: " ")
    guard let first = utf8.firstIndex(where: { $0 != space }), let last = utf8.lastIndex(where: { $0 != space })
    else { return "" }
    return String(self[first...last])
  }
}
