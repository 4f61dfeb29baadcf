// Structs and enums: composite attributes.

import ManagedObjectModel

extension ModelDerivation {
  /// Returns the elements of a struct: one for each stored property, in declared order (7 hashes of 2 owners). Coding
  /// keys do not count. An element is optional if its own type is, or if a composite around it is (7 of 2).
  mutating func elements(ofStruct index: Int, isOptional: Bool, around: [Int]) -> [Attribute]? {
    let symbol = target.types[index]
    let declaration = symbol.declaration
    let file = symbol.scope.file
    guard !around.contains(index), around.count < 8 else {
      refuse("the struct \(symbol.name) contains itself, or is nested too deeply", at: declaration.position, in: file)
      return nil
    }
    guard !target.conforms(symbol, to: ["RawRepresentable", "OptionSet"]) else {
      _ = settle(
        UnprovenForm(name: "RawRepresentable struct", alternatives: []), "the struct \(symbol.name)",
        at: declaration.position, in: file)
      return nil
    }
    var elements: [Attribute] = []
    var isWhole = true
    for property in declaration.properties ?? [] where property.isStatic != true {
      if let element = element(property, of: symbol, isInOptional: isOptional, around: around + [index]) {
        elements.append(element)
      } else {
        isWhole = false
      }
    }
    if isWhole, elements.isEmpty {
      refuse("the struct \(symbol.name) has no stored properties", at: declaration.position, in: file)
      return nil
    }
    return isWhole ? elements : nil
  }

  private mutating func element(
    _ property: SourceProperty, of symbol: SourceSymbol, isInOptional: Bool, around: [Int]
  ) -> Attribute? {
    let file = symbol.scope.file
    guard countElement(at: property.position, in: file) else { return nil }
    let what = "\(symbol.name).\(property.name)"
    if property.isTuple == true || property.isLazy == true {
      refuse("\(what) cannot be an element of a composite", at: property.position, in: file)
      return nil
    }
    if let condition = property.condition {
      refuse(condition: condition, at: property.position, in: file)
      return nil
    }
    if let wrapper = property.attributes?.first(where: { !$0.isNamed("available") }) {
      refuse("\(what) has the attribute @\(wrapper.name), whose effect is unknown", at: wrapper.position, in: file)
      return nil
    }
    guard
      let type = property.type.map({ target.resolve($0, in: symbol.inside) })
        ?? property.value.flatMap({ target.impliedType(of: $0, in: symbol.inside) })
    else {
      refuse("the type of \(what) is not written, and its default does not imply it", at: property.position, in: file)
      return nil
    }
    let (inner, isOwnOptional) = type.unwrapped
    let isOptional = isOwnOptional || isInOptional
    let text = property.type?.text ?? ""
    switch inner {
    case .plain(_, let type): return Attribute(name: property.name, type: type, isOptional: isOptional)
    case .structure(let index):
      // For the hash the elements of all levels are one list by their own names (1 hash with four nested structs).
      guard let elements = elements(ofStruct: index, isOptional: isOptional, around: around) else { return nil }
      var nested = Attribute(name: property.name, type: .composite, isOptional: isOptional)
      nested.elements = elements
      return nested
    case .enumeration(let index):
      return element(property.name, ofEnum: index, isOptional: isOptional, what, at: property.position, in: file)
    case .unproven, .array, .set, .dictionary:
      let before = currentPlace
      defer { begin(at: before) }
      begin(at: before.moved(to: property.position, file: target.files[file]))
      return collection(inner, isInStruct: true, text: "\(what): \(text)").map {
        var attribute = Attribute(name: property.name, type: $0, isOptional: isOptional)
        attribute.describeArray(of: inner)
        return attribute
      }
    case .resolvedColor:
      _ = settle(
        UnprovenForm(name: "color in a struct", alternatives: []), what, at: property.position, in: file)
      return nil
    case .optional, .model, .other:
      refuse("\(what): \(unstorable(inner, text))", at: property.position, in: file)
      return nil
    }
  }

  /// An enum with raw values inside a struct: one element with the name of the property, optional (1 hash of 1 owner,
  /// four enums in optional structs; inside a required struct none was seen).
  private mutating func element(
    _ name: String, ofEnum index: Int, isOptional: Bool, _ what: String, at position: SwiftPosition, in file: Int
  ) -> Attribute? {
    guard let raw = elements(ofEnum: index, property: name) else { return nil }
    guard hasRawType(index) else {
      _ = settle(
        UnprovenForm(name: "enum without raw values in a struct", alternatives: []), what, at: position, in: file)
      return nil
    }
    guard var leaf = raw.first else { return nil }
    note(valuesOf: index, element: name, isOptional: isOptional)
    if !isOptional {
      guard let found = settle(.enumInRequiredStruct, what, at: position, in: file) else { return nil }
      leaf.isOptional = found == UnprovenForm.optional
    }
    return leaf
  }

  // MARK: Enums

  /// The type of an enum's raw values; nil if it has none.
  private func rawType(_ index: Int) -> ResolvedType? {
    let symbol = target.types[index]
    // The raw type is the first in the list, and no protocol has the name of such a type.
    guard let first = symbol.declaration.inherited?.first else { return nil }
    let type = target.resolve(first, in: symbol.scope)
    switch type {
    case .plain, .unproven: return type
    default: return nil
    }
  }

  func hasRawType(_ index: Int) -> Bool { rawType(index) != nil }

  /// Returns the elements of an enum; nil if it was refused. With raw values it has one, with the name of the property
  /// and the raw type, and always optional (String: 7 hashes of 2 owners, Int: 4 of 1): its cases do not count. Without
  /// raw values it has an optional String for each case, in declared order (4 of 2), so a new case changes the hash.
  mutating func elements(ofEnum index: Int, property: String) -> [Attribute]? {
    let symbol = target.types[index]
    let declaration = symbol.declaration
    let file = symbol.scope.file
    switch rawType(index) {
    case .plain(_, let type)?: return [Attribute(name: property, type: type, isOptional: true)]
    case .unproven(let name)?:
      let types = ResolvedType.unprovenTypes[name] ?? []
      let found = settle(.type(name, types), "the raw values of \(symbol.name)", at: declaration.position, in: file)
      return found.flatMap { AttributeType(word: $0) }.map { [Attribute(name: property, type: $0, isOptional: true)] }
    default: break
    }
    if target.conforms(symbol, to: ["RawRepresentable"]) {
      _ = settle(
        UnprovenForm(name: "RawRepresentable enum", alternatives: []), "the enum \(symbol.name)",
        at: declaration.position, in: file)
      return nil
    }
    let cases = declaration.cases ?? []
    if let payload = cases.first(where: { $0.hasPayload == true }) {
      _ = settle(
        UnprovenForm(name: "enum with payload", alternatives: []),
        "the case \(payload.name) of the enum \(symbol.name) has a payload", at: payload.position, in: file)
      return nil
    }
    if let held = cases.first(where: { $0.condition != nil }) {
      refuse(condition: held.condition ?? "", at: held.position, in: file)
      return nil
    }
    guard !cases.isEmpty else {
      refuse("the enum \(symbol.name) has no cases", at: declaration.position, in: file)
      return nil
    }
    return cases.map { Attribute(name: $0.name, type: .string, isOptional: true) }
  }
}
