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

  /// The row of the type.
  package var traits: AttributeTypeTraits {
    switch self {
    case .undefined: .init("Undefined", .other)
    case .integer16: .init("Integer 16", .integer, bits: 16, column: ("INTEGER", group: 0), valueClass: "NSNumber")
    case .integer32: .init("Integer 32", .integer, bits: 32, column: ("INTEGER", group: 0), valueClass: "NSNumber")
    case .integer64: .init("Integer 64", .integer, bits: 64, column: ("INTEGER", group: 0), valueClass: "NSNumber")
    case .decimal: .init("Decimal", .decimal, column: ("DECIMAL", group: 3), valueClass: "NSDecimalNumber")
    case .double: .init("Double", .real, bits: 64, column: ("FLOAT", group: 2), valueClass: "NSNumber")
    case .float: .init("Float", .real, bits: 32, column: ("FLOAT", group: 2), valueClass: "NSNumber")
    case .string: .init("String", .string, column: ("VARCHAR", group: 4), valueClass: "NSString")
    case .boolean: .init("Boolean", .boolean, column: ("INTEGER", group: 0), valueClass: "NSNumber")
    case .date: .init("Date", .date, column: ("TIMESTAMP", group: 2), valueClass: "NSDate")
    case .binary: .init("Binary", .binary, column: ("BLOB", group: 8), valueClass: "NSData")
    case .uuid: .init("UUID", .uuid, column: ("BLOB", group: 6), valueClass: "NSUUID")
    case .uri: .init("URI", .uri, column: ("VARCHAR", group: 5), valueClass: "NSURL")
    case .transformable: .init("Transformable", .transformable, column: ("BLOB", group: 7))
    case .objectID: .init("Object ID", .other)
    case .composite: .init("Composite", .other)
    }
  }

  /// The name that Xcode shows.
  package var name: String { traits.name }
  /// The form of the values.
  package var form: AttributeForm { traits.form }
  /// The values of an integer or Boolean; nil for other forms.
  package var integers: ClosedRange<Int64>? { traits.integers }

  /// Finds the type with that name in `.xcdatamodel` XML; nil for an unknown name.
  package init?(xmlName: String) {
    guard let type = Self.allCases.first(where: { $0.name == xmlName && $0 != .undefined }) else { return nil }
    self = type
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
  private struct Fields: Sendable, Hashable {
    var name: String
    var type: AttributeType
    var isOptional: Bool
    var isTransient: Bool
    var defaultValue: AttributeDefault?
    var renamingIdentifier: String
    var versionHashModifier: String?
    var isIndexed: Bool
    var allowsExternalStorage: Bool
    var preservesAfterDeletion: Bool
    var allowsCloudEncryption = false
    var derivationExpression: String?
    var compositeTypeName: String?
    var elements: [Attribute] = []
    var compositeName: String?
    var minimum: String?
    var maximum: String?
    var regularExpression: String?
    var otherValidations: [String] = []
    var valueTransformerName: String?
    var customClassName: String?
    var userInfo: [String: String]
  }

  private var fields: Boxed<Fields>

  package var name: String {
    get { fields.value.name }
    set { fields.value.name = newValue }
  }
  package var type: AttributeType {
    get { fields.value.type }
    set { fields.value.type = newValue }
  }
  /// XML without `optional="YES"` means required.
  package var isOptional: Bool {
    get { fields.value.isOptional }
    set { fields.value.isOptional = newValue }
  }
  /// Transient attributes have no column and are not part of the hash.
  package var isTransient: Bool {
    get { fields.value.isTransient }
    set { fields.value.isTransient = newValue }
  }
  package var defaultValue: AttributeDefault? {
    get { fields.value.defaultValue }
    set { fields.value.defaultValue = newValue }
  }
  /// `elementID`, or the attribute's own name.
  package var renamingIdentifier: String {
    get { fields.value.renamingIdentifier }
    set { fields.value.renamingIdentifier = newValue }
  }
  package var versionHashModifier: String? {
    get { fields.value.versionHashModifier }
    set { fields.value.versionHashModifier = newValue }
  }
  /// Old-style `indexed="YES"`.
  package var isIndexed: Bool {
    get { fields.value.isIndexed }
    set { fields.value.isIndexed = newValue }
  }
  /// allowsExternalBinaryDataStorage: values have a prefix byte and may be in external files.
  package var allowsExternalStorage: Bool {
    get { fields.value.allowsExternalStorage }
    set { fields.value.allowsExternalStorage = newValue }
  }
  /// preserveAfterDeletion: kept in history tombstones.
  package var preservesAfterDeletion: Bool {
    get { fields.value.preservesAfterDeletion }
    set { fields.value.preservesAfterDeletion = newValue }
  }
  /// allowsCloudEncryption: CloudKit keeps the value encrypted; stores do not.
  package var allowsCloudEncryption: Bool {
    get { fields.value.allowsCloudEncryption }
    set { fields.value.allowsCloudEncryption = newValue }
  }
  /// Text of the derivation expression as NSExpression prints it, `count:(pages)`; nil for ordinary attributes.
  package var derivationExpression: String? {
    get { fields.value.derivationExpression }
    set { fields.value.derivationExpression = newValue }
  }
  /// Name of the composite type, for type `composite`; only the source form has one.
  package var compositeTypeName: String? {
    get { fields.value.compositeTypeName }
    set { fields.value.compositeTypeName = newValue }
  }
  /// Elements of a composite in declared order.
  package var elements: [Attribute] {
    get { fields.value.elements }
    set { fields.value.elements = newValue }
  }
  /// Name of the composite attribute that this is an element of; its own name is then the key path, "author.year".
  package var compositeName: String? {
    get { fields.value.compositeName }
    set { fields.value.compositeName = newValue }
  }
  /// Minimum and maximum (numbers, lengths; seconds for dates) in the form of `ValidationBound`.
  package var minimum: String? {
    get { fields.value.minimum }
    set { fields.value.minimum = newValue }
  }
  package var maximum: String? {
    get { fields.value.maximum }
    set { fields.value.maximum = newValue }
  }
  package var regularExpression: String? {
    get { fields.value.regularExpression }
    set { fields.value.regularExpression = newValue }
  }
  /// Texts of validation predicates that are neither a bound nor a pattern; only models built in code have them.
  package var otherValidations: [String] {
    get { fields.value.otherValidations }
    set { fields.value.otherValidations = newValue }
  }
  package var valueTransformerName: String? {
    get { fields.value.valueTransformerName }
    set { fields.value.valueTransformerName = newValue }
  }
  package var customClassName: String? {
    get { fields.value.customClassName }
    set { fields.value.customClassName = newValue }
  }
  package var userInfo: [String: String] {
    get { fields.value.userInfo }
    set { fields.value.userInfo = newValue }
  }

  /// Creates an attribute; every parameter with a default may be omitted.
  package init(
    name: String, type: AttributeType, isOptional: Bool = false, isTransient: Bool = false,
    defaultValue: AttributeDefault? = nil, renamingIdentifier: String? = nil, versionHashModifier: String? = nil,
    isIndexed: Bool = false, allowsExternalStorage: Bool = false, preservesAfterDeletion: Bool = false,
    derivationExpression: String? = nil, compositeTypeName: String? = nil, minimum: String? = nil,
    maximum: String? = nil, regularExpression: String? = nil, valueTransformerName: String? = nil,
    customClassName: String? = nil, userInfo: [String: String] = [:]
  ) {
    fields = Boxed(
      Fields(
        name: name, type: type, isOptional: isOptional, isTransient: isTransient, defaultValue: defaultValue,
        renamingIdentifier: renamingIdentifier ?? name, versionHashModifier: versionHashModifier,
        isIndexed: isIndexed, allowsExternalStorage: allowsExternalStorage,
        preservesAfterDeletion: preservesAfterDeletion, derivationExpression: derivationExpression,
        compositeTypeName: compositeTypeName, minimum: minimum, maximum: maximum,
        regularExpression: regularExpression, valueTransformerName: valueTransformerName,
        customClassName: customClassName, userInfo: userInfo))
  }

  /// Whether triggers compute it.
  package var isDerived: Bool { derivationExpression != nil }
}
