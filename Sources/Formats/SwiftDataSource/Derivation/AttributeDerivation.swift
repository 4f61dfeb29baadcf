// The attribute of a property: its type, and its default.

import Diagnostics
import ManagedObjectModel

extension ModelDerivation {
  /// Returns the attribute of a property; nil if it was refused. It is optional exactly if its type is (71 hashes of 8
  /// owners); a default makes it neither optional nor required.
  mutating func attribute(
    _ property: SourceProperty, _ type: ResolvedType, isOptional: Bool, _ options: Options, in scope: SourceScope
  ) -> Attribute? {
    let text = property.type?.text ?? property.value?.text ?? ""
    guard var attribute = bare(property, type, isOptional: isOptional, options, text: text, in: scope) else {
      return nil
    }
    attribute.isTransient = options.isTransient
    attribute.allowsExternalStorage = options.isExternal
    attribute.preservesAfterDeletion = options.isPreserved
    attribute.allowsCloudEncryption = options.isEncrypted
    attribute.versionHashModifier = options.hashModifier
    if let name = options.originalName { attribute.renamingIdentifier = name }
    if attribute.type != .composite, options.transformer == nil, let value = property.value {
      attribute.defaultValue = DefaultValue.of(value, type: attribute.type)
      if case .archived? = attribute.defaultValue, !attribute.isOptional {
        remark(
          .frozenDefault,
          "its default \(value.text) is not a constant: SwiftData sets one value in all rows of older versions, and "
            + "hopd gives none", hint: "make a new property optional, or set a constant and fill it in a stage")
      }
    }
    return attribute
  }

  private mutating func bare(
    _ property: SourceProperty, _ type: ResolvedType, isOptional: Bool, _ options: Options, text: String,
    in scope: SourceScope
  ) -> Attribute? {
    let name = property.name
    // Any type with a transformer is Transformable, with the type as its class (3 hashes of 1 owner).
    if let transformer = options.transformer {
      return Attribute(
        name: name, type: .transformable, isOptional: isOptional, valueTransformerName: transformer,
        customClassName: property.type.map { $0.unwrapped.text })
    }
    switch type {
    case .plain(_, let type): return Attribute(name: name, type: type, isOptional: isOptional)
    case .resolvedColor:
      // Four floats, of which those of a required color are required (1 hash of 1 owner).
      let elements = ["linearRed", "linearGreen", "linearBlue", "opacity"].map {
        Attribute(name: $0, type: .float, isOptional: isOptional)
      }
      return composite(name, isOptional: isOptional, elements)
    case .structure(let index):
      return elements(ofStruct: index, isOptional: isOptional, around: []).map {
        composite(name, isOptional: isOptional, $0)
      }
    case .enumeration(let index):
      guard let elements = elements(ofEnum: index, property: name) else { return nil }
      note(valuesOf: index, element: name, isOptional: isOptional)
      if !hasRawType(index) {
        remark(
          .casesCount, "its enum has no raw values: a new case is a new version of the model",
          hint: "declare raw values for the enum in a new version; then its cases no longer count")
      }
      return composite(name, isOptional: isOptional, elements)
    case .unproven, .array, .set, .dictionary:
      return collection(type, isInStruct: false, text: text).map {
        var attribute = Attribute(name: name, type: $0, isOptional: isOptional)
        attribute.describeArray(of: type)
        return attribute
      }
    case .optional, .model, .other:
      refuse(unstorable(type, text))
      return nil
    }
  }

  /// Returns the attribute type of a collection, or of a type that is not proven; nil if it was refused.
  ///
  /// Of an array the element decides, not the place: Transformable for Strings (13 hashes of 4 owners; also inside a
  /// struct, 1 of 1), Ints (2 of 1) and Data (2 of 1). Arrays of structs and enums are Binary inside a struct (2 of 1).
  /// As a property, a dictionary from String to a struct is Binary (1 of 1).
  mutating func collection(_ type: ResolvedType, isInStruct: Bool, text: String) -> AttributeType? {
    let place = isInStruct ? " in a struct" : ""
    let form: UnprovenForm
    switch type {
    case .unproven(let name): form = .type(name, ResolvedType.unprovenTypes[name] ?? [])
    case .array(.plain("String", _)), .array(.plain("Int", _)), .array(.plain("Data", _)): return .transformable
    case .array(.plain(let name, _)), .array(.unproven(let name)):
      form = .collection("array of \(name)", binaryFirst: false)
    case .array(.structure) where isInStruct: return .binary
    case .array(.enumeration(let index)) where isInStruct && hasRawType(index): return .binary
    case .array(.structure): form = .collection("array of a struct", binaryFirst: true)
    case .array(.enumeration(let index)):
      let kind = hasRawType(index) ? "enum with raw values" : "enum without raw values"
      form = .collection("array of an \(kind)\(place)", binaryFirst: true)
    case .array(.array): form = .collection("array of arrays", binaryFirst: false)
    case .array(.optional): form = .collection("array of optionals", binaryFirst: false)
    case .array(.resolvedColor): form = .collection("array of colors", binaryFirst: true)
    case .set(let element) where !element.isForeign: form = .collection("set\(place)", binaryFirst: true)
    case .dictionary(.plain("String", _), .structure) where !isInStruct: return .binary
    case .dictionary(let key, let value) where !key.isForeign && !value.isForeign:
      form = .collection("dictionary of \(value.word)\(place)", binaryFirst: true)
    default:
      refuse(unstorable(type, text))
      return nil
    }
    return settle(form, text).flatMap { AttributeType(word: $0) }
  }

  /// Why a type is not an attribute.
  func unstorable(_ type: ResolvedType, _ text: String) -> String {
    switch type {
    case .other(let name, let reason): "its type \(name) cannot be stored: \(reason)"
    case .array(let inner), .set(let inner), .optional(let inner): unstorable(inner, text)
    case .dictionary(let key, let value): unstorable(key.isForeign ? key : value, text)
    case .model(let index): "its type \(text) contains the model \(target.types[index].name), but is not a relationship"
    default: "its type \(text) cannot be stored"
    }
  }

  private func composite(_ name: String, isOptional: Bool, _ elements: [Attribute]) -> Attribute {
    var attribute = Attribute(name: name, type: .composite, isOptional: isOptional)
    attribute.elements = elements
    return attribute
  }
}

extension ResolvedType {
  /// Whether it has a part that is not a value of the target or of Foundation.
  var isForeign: Bool {
    switch self {
    case .other, .model: true
    case .optional(let inner), .array(let inner), .set(let inner): inner.isForeign
    case .dictionary(let key, let value): key.isForeign || value.isForeign
    default: false
    }
  }

  /// A word for the kind of type.
  fileprivate var word: String {
    switch self {
    case .plain(let name, _), .unproven(let name): name
    case .structure: "a struct"
    case .enumeration: "an enum"
    default: "collections"
    }
  }
}

extension Attribute {
  /// Names the class and the transformer of a Transformable array, as in the models that stores hold.
  mutating func describeArray(of type: ResolvedType) {
    guard self.type == .transformable else { return }
    valueTransformerName = "NSSecureUnarchiveFromData"
    if case .array(.plain(let name, _)) = type { customClassName = "Array<\(name)>" }
  }
}

extension SourceType {
  /// The type without optionality around it.
  var unwrapped: SourceType { if case .optional(let inner) = self { inner } else { self } }
}
