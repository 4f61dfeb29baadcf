// The properties of a compiled model: attributes with their defaults and validation rules, relationships, fetched
// properties (docs/formats/model-files.md, "Compiled models"). Where source and archive write a fact differently, this
// file and ModelContentsReader produce the same value (docs/decisions/0011).

import Diagnostics
import PropertyLists

/// Makes properties of archived descriptions.
enum CompiledProperties {
  static func attribute(_ object: ArchivedObject, userInfo: [String: String]) throws(HopdError) -> Attribute {
    let number = try object.integer("NSAttributeType") ?? 0
    guard let type = Int(exactly: number).flatMap(AttributeType.init(rawValue:)) else {
      throw object.damaged("its attribute type \(number) is unknown")
    }
    guard type != .composite || object.isKind(of: "NSCompositeAttributeDescription") else {
      throw object.damaged("it is of type Composite, but no composite attribute")
    }
    let flags = try object.integer("NSFlagsKey") ?? 0
    var attribute = Attribute(
      name: try object.string("NSPropertyName") ?? "", type: type, isOptional: try object.boolean("NSIsOptional"),
      isTransient: try object.boolean("NSIsTransient"), defaultValue: try defaultValue(of: object, type: type),
      renamingIdentifier: try object.text("NSRenamingIdentifier"),
      versionHashModifier: try object.text("NSVersionHashModifier"), isIndexed: try object.boolean("NSIsIndexed"),
      allowsExternalStorage: flags & 4 != 0, preservesAfterDeletion: flags & 16 != 0,
      valueTransformerName: try object.text("NSValueTransformerName"),
      // All other types have Foundation's class for the type, which is no information.
      customClassName: type == .transformable ? try object.text("NSAttributeValueClassName") : nil, userInfo: userInfo)
    if object.isKind(of: "NSDerivedAttributeDescription") {
      guard let expression = try object.object("NSDerivationExpression") else {
        throw object.damaged("it is derived but has no derivation expression")
      }
      guard try object.value("NSFilteringPredicate").isNull else {
        // The filter is documented as part of the hash, and it decides the value; no source form has one
        // (docs/formats/version-hashes.md, "Derived attributes").
        throw HopdError(
          .unsupportedModel, "it is derived with a filtering predicate, of which no example is known",
          hint: "stop at an earlier version, or remove the filter from the model")
      }
      attribute.derivationExpression = DerivationText(try ArchivedExpressionText.expression(expression)).text
    }
    attribute.allowsCloudEncryption = try object.boolean("NSAllowsCloudEncryption")
    try addValidation(of: object, to: &attribute)
    return attribute
  }

  static func relationship(_ object: ArchivedObject, userInfo: [String: String]) throws(HopdError) -> Relationship {
    let maximum = try object.integer("NSMaxCount") ?? 0
    let rule = try object.integer("NSDeleteRule") ?? 1
    guard let deleteRule = Int(exactly: rule).flatMap(Relationship.DeleteRule.init(rawValue:)) else {
      throw object.damaged("its delete rule \(rule) is unknown")
    }
    // The archive has the names in addition to the references; old archives may have only the references.
    var destination = try object.text("_NSDestinationEntityName")
    if destination == nil { destination = try object.object("NSDestinationEntity")?.string("NSEntityName") }
    var inverse = try object.text("_NSInverseRelationshipName")
    if inverse == nil {
      inverse = try CompiledModelReader.unproxied(try object.object("NSInverseRelationship"))?.string("NSPropertyName")
    }
    return Relationship(
      name: try object.string("NSPropertyName") ?? "", destinationEntityName: destination ?? "", inverseName: inverse,
      isOptional: try object.boolean("NSIsOptional"), isTransient: try object.boolean("NSIsTransient"),
      isToMany: maximum != 1, isOrdered: try object.boolean("NSIsOrdered"), maxCount: Relationship.storedCount(maximum),
      minCount: Relationship.storedCount(try object.integer("NSMinCount") ?? 0), deleteRule: deleteRule,
      renamingIdentifier: try object.text("NSRenamingIdentifier"),
      versionHashModifier: try object.text("NSVersionHashModifier"), userInfo: userInfo)
  }

  static func fetchedProperty(
    _ object: ArchivedObject, userInfo: [String: String]
  ) throws(HopdError) -> FetchedProperty {
    let request = try object.object("NSFetchRequest")
    var property = FetchedProperty(
      name: try object.string("NSPropertyName") ?? "", isOptional: try object.boolean("NSIsOptional"),
      fetchEntityName: try object.text("_NSFetchRequestEntityName"),
      renamingIdentifier: try object.text("NSRenamingIdentifier"), userInfo: userInfo)
    if property.fetchEntityName == nil {
      property.fetchEntityName = try request?.object("NSEntity")?.string("NSEntityName")
    }
    if let predicate = try request?.object("NSPredicate") {
      property.predicate = try ArchivedExpressionText.predicate(predicate)
    }
    if try object.text("NSVersionHashModifier") != nil {
      property.hasOptions = true
    } else if let request {
      property.hasOptions = try hasOptions(request)
    }
    return property
  }

  /// Whether a request has more than an entity and a predicate.
  private static func hasOptions(_ request: ArchivedObject) throws(HopdError) -> Bool {
    for key in [
      "NSSortDescriptors", "NSValuesToFetch", "NSValuesToGroupBy", "NSHavingPredicate",
      "NSRelationshipKeyPathsForPrefetching",
    ] where !(try request.value(key).isNull) {
      return true
    }
    for key in ["NSResultType", "NSFetchOffset", "NSFetchLimit", "NSBatchSize"]
    where try request.integer(key) ?? 0 != 0 {
      return true
    }
    return try request.integer("NSFetchRequestFlags") ?? 30 != 30
  }

  // MARK: Defaults

  private static func defaultValue(
    of object: ArchivedObject, type: AttributeType
  ) throws(HopdError) -> AttributeDefault? {
    let value = try object.value("NSDefaultValue")
    if value.isNull { return nil }
    switch type.form {
    case .integer:
      if let whole = value.integer { return .integer(whole) }
      if let number = number(value) { return .integer(Int64(exactly: number.rounded(.towardZero)) ?? 0) }
    case .boolean: if let number = number(value) { return .boolean(number != 0) }
    case .real: if let number = number(value), number.isFinite { return .double(type.traits.rounded(number)) }
    case .decimal: if let text = try decimal(value) { return .decimal(text) }
    case .string: if let text = value.string { return .string(text) }
    case .date: if case .date(let seconds) = value, seconds.isFinite { return .date(seconds) }
    case .uuid:
      if let uuid = value.object, uuid.isKind(of: "NSUUID"), case .data(let bytes) = try uuid.value("NS.uuidbytes"),
        bytes.count == 16
      {
        return .uuid(bytes)
      }
    case .uri:
      if let url = value.object, url.isKind(of: "NSURL"), try url.value("NS.base").isNull,
        let text = try url.string("NS.relative")
      {
        return .string(text)
      }
    case .binary:
      // With external storage a value begins with a prefix byte for its location, which a default cannot have.
      if case .data(let bytes) = value, (try object.integer("NSFlagsKey") ?? 0) & 4 == 0 { return .binary(bytes) }
    case .other, .transformable: break
    }
    // An object of the app's own class, or one that does not fit the type: it can be reported, but not written.
    return .archived(className: value.object?.className ?? value.kind)
  }

  /// The number of a value as a double; exact below 2^53, as is every default that an editor can write.
  private static func number(_ value: ArchivedValue) -> Double? {
    switch value {
    case .integer(let number): Double(number)
    case .real(let number): number
    case .boolean(let flag): flag ? 1 : 0
    default: nil
    }
  }

  /// A decimal as text with its scale: mantissa 0 and exponent −1 are "0.0".
  private static func decimal(_ value: ArchivedValue) throws(HopdError) -> String? {
    guard let object = value.object else { return number(value).map { ValidationBound.text($0) } }
    return try object.decimalText()
  }

  // MARK: Validation

  /// Adds minimum, maximum and pattern, which the compiler turns into predicates; other predicates are kept as text.
  private static func addValidation(of object: ArchivedObject, to attribute: inout Attribute) throws(HopdError) {
    var budget = 1_000
    for value in try object.elements("NSValidationPredicates") {
      guard let predicate = value.object else { throw object.damaged("a validation predicate is \(value.kind)") }
      for part in try ArchivedExpressionText.conjuncts(of: predicate, budget: &budget) {
        guard let rule = try ArchivedExpressionText.comparison(part), apply(rule, to: &attribute) else {
          attribute.otherValidations.append(try ArchivedExpressionText.predicate(part))
          continue
        }
      }
    }
  }

  private static func apply(_ rule: ArchivedExpressionText.Comparison, to attribute: inout Attribute) -> Bool {
    let isLength = attribute.type == .string && rule.left == "length"
    guard rule.left == "SELF" || isLength else { return false }
    switch (rule.operation, rule.right) {
    case (6, .string(let pattern)) where !isLength && attribute.type == .string && attribute.regularExpression == nil:
      attribute.regularExpression = pattern
      return true
    case (3, let value) where attribute.minimum == nil && (isLength || attribute.type != .string):
      attribute.minimum = bound(value, attribute.type)
      return attribute.minimum != nil
    case (1, let value) where attribute.maximum == nil && (isLength || attribute.type != .string):
      attribute.maximum = bound(value, attribute.type)
      return attribute.maximum != nil
    default: return false
    }
  }

  private static func bound(_ value: ArchivedValue, _ type: AttributeType) -> String? {
    switch value {
    case .integer(let number): ValidationBound(String(number), type: type)?.text
    case .real(let number), .date(let number): ValidationBound(ValidationBound.text(number), type: type)?.text
    case .object: (try? decimal(value)).flatMap { ValidationBound($0, type: type)?.text }
    default: nil
    }
  }
}
