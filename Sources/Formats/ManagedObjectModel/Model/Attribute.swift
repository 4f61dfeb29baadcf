/// The type of an attribute, with Core Data's own numbers (docs/formats/model-files.md, "Attribute types").
package enum AttributeType: Int, Sendable, Hashable, CaseIterable {
  /// No type: legal for transient attributes.
  case undefined = 0
  case integer16 = 100
  case integer32 = 200
  case integer64 = 300
  case decimal = 400
  case double = 500
  case float = 600
  case string = 700
  case boolean = 800
  case date = 900
  case binary = 1000
  case uuid = 1100
  case uri = 1200
  case transformable = 1800
  case objectID = 2000
  case composite = 2100

  /// The name in `.xcdatamodel` XML; nil for undefined, for which the XML attribute is omitted.
  package var xmlName: String? {
    switch self {
    case .undefined: nil
    case .integer16: "Integer 16"
    case .integer32: "Integer 32"
    case .integer64: "Integer 64"
    case .decimal: "Decimal"
    case .double: "Double"
    case .float: "Float"
    case .string: "String"
    case .boolean: "Boolean"
    case .date: "Date"
    case .binary: "Binary"
    case .uuid: "UUID"
    case .uri: "URI"
    case .transformable: "Transformable"
    case .objectID: "Object ID"
    case .composite: "Composite"
    }
  }
}

/// The default value of an attribute, in the attribute's type (docs/formats/model-files.md, "Default values").
package enum AttributeDefault: Sendable, Hashable {
  /// Integer 16/32/64.
  case integer(Int64)
  /// Boolean.
  case boolean(Bool)
  /// Double and Float.
  case double(Double)
  /// Decimal, as the text of the model: the scale is kept.
  case decimal(String)
  /// String and URI.
  case string(String)
  /// Date: seconds since 2001-01-01 00:00 UTC.
  case date(Double)
  /// UUID, 16 bytes.
  case uuid([UInt8])
  /// Binary; only models built in code have one.
  case binary([UInt8])
  /// An object of that class, which only the app can turn into a stored value: it is reported, never written.
  case archived(className: String)
}

/// An attribute as its entity declares it.
package struct Attribute: Sendable, Hashable {
  package var name: String
  package var type: AttributeType
  /// XML without `optional="YES"` means required.
  package var isOptional: Bool
  /// Transient attributes have no column and are not part of the hash.
  package var isTransient: Bool
  package var defaultValue: AttributeDefault?
  /// `elementID`, else the own name.
  package var renamingIdentifier: String
  package var versionHashModifier: String?
  /// Old-style `indexed="YES"`.
  package var isIndexed: Bool
  /// allowsExternalBinaryDataStorage: values have a prefix byte and may be in external files.
  package var allowsExternalStorage: Bool
  /// preserveAfterDeletion: kept in history tombstones.
  package var preservesAfterDeletion: Bool
  /// Text of the derivation expression as NSExpression prints it, `count:(pages)`; nil for ordinary attributes.
  package var derivationExpression: String?
  /// Name of the composite type, for type `composite`; only the source form has one.
  package var compositeTypeName: String?
  /// Elements of a composite in declared order.
  package var elements: [Attribute] = []
  /// Name of the composite attribute that this is an element of; its own name is then the key path, "author.year".
  package var compositeName: String?
  /// Minimum and maximum (numbers, lengths; seconds for dates) in the form of `ValidationBound`.
  package var minimum: String?
  package var maximum: String?
  package var regularExpression: String?
  /// Texts of validation predicates that are neither a bound nor a pattern; only models built in code have them.
  package var otherValidations: [String] = []
  package var valueTransformerName: String?
  package var customClassName: String?
  package var userInfo: [String: String]

  /// Makes an attribute; every parameter with a default may be omitted.
  package init(
    name: String, type: AttributeType, isOptional: Bool = false, isTransient: Bool = false,
    defaultValue: AttributeDefault? = nil, renamingIdentifier: String? = nil, versionHashModifier: String? = nil,
    isIndexed: Bool = false, allowsExternalStorage: Bool = false, preservesAfterDeletion: Bool = false,
    derivationExpression: String? = nil, compositeTypeName: String? = nil, minimum: String? = nil,
    maximum: String? = nil, regularExpression: String? = nil, valueTransformerName: String? = nil,
    customClassName: String? = nil, userInfo: [String: String] = [:]
  ) {
    self.name = name
    self.type = type
    self.isOptional = isOptional
    self.isTransient = isTransient
    self.defaultValue = defaultValue
    self.renamingIdentifier = renamingIdentifier ?? name
    self.versionHashModifier = versionHashModifier
    self.isIndexed = isIndexed
    self.allowsExternalStorage = allowsExternalStorage
    self.preservesAfterDeletion = preservesAfterDeletion
    self.derivationExpression = derivationExpression
    self.compositeTypeName = compositeTypeName
    self.minimum = minimum
    self.maximum = maximum
    self.regularExpression = regularExpression
    self.valueTransformerName = valueTransformerName
    self.customClassName = customClassName
    self.userInfo = userInfo
  }

  /// Whether triggers compute it.
  package var isDerived: Bool { derivationExpression != nil }
}
