// A class and its properties.

import Diagnostics
import ManagedObjectModel

extension ModelDerivation {
  /// Returns the entity of a class. Its name is the name of the class alone, also of a nested one (21 hashes of 3
  /// owners); conformances, access, methods and extensions do not count.
  mutating func entity(_ symbol: SourceSymbol) -> EntityDraft {
    var draft = EntityDraft(symbol: symbol)
    let declaration = symbol.declaration
    if declaration.isGeneric == true { refuse("the class is generic", at: declaration.position) }
    if let held = declaration.attributes?.first(where: { $0.isNamed("Model") })?.condition {
      refuse(condition: held, at: declaration.position)
    }
    for inherited in declaration.inherited ?? [] {
      guard case .name(let path) = inherited,
        target.symbol(path.map(\.name), in: symbol.scope)?.declaration.kind == .class
      else { continue }
      _ = settle(
        UnprovenForm(name: "inheritance", alternatives: []), "the class inherits from \(inherited.text)",
        at: declaration.position)
    }
    let before = refusals.count
    for property in declaration.properties ?? [] { add(property, to: &draft) }
    let isWhole = refusals.count == before
    begin(nil, of: symbol)
    for macro in declaration.macros ?? [] { add(macro, to: &draft) }
    if draft.places.isEmpty, isWhole {
      refuse("the class has no stored properties", at: declaration.position)
    }
    return draft
  }

  /// Adds a stored property: every `var` that is not computed, and a `let` (with a default, or with `@Attribute`: 7
  /// hashes of 2 owners). Left out are static and lazy ones, as they are in use, and `@Transient` ones (4 of 1).
  private mutating func add(_ property: SourceProperty, to draft: inout EntityDraft) {
    guard property.isStatic != true, property.isLazy != true else { return }
    let attributes = property.attributes ?? []
    guard !attributes.contains(where: { $0.isNamed("Transient") && $0.condition == nil }) else { return }
    let symbol = draft.symbol
    begin(property, of: symbol)
    if property.isTuple == true {
      return refuse("it declares several properties as a tuple", hint: "declare each property separately")
    }
    if let condition = property.condition { return refuse(condition: condition, at: property.position) }
    if let held = attributes.first(where: { $0.condition != nil }) {
      return refuse(condition: held.condition ?? "", at: held.position)
    }
    guard let type = type(of: property, in: symbol.inside) else { return }
    draft.places[property.name] = currentPlace
    let options = options(of: property)
    let (inner, isOptional) = type.unwrapped
    switch inner {
    case .model(let index) where options.transformer == nil:
      add(property, leadingTo: index, isToMany: false, isOptional: isOptional, options, to: &draft)
    case .array(.model(let index)) where options.transformer == nil:
      add(property, leadingTo: index, isToMany: true, isOptional: isOptional, options, to: &draft)
    default:
      if attributes.contains(where: { $0.isNamed("Relationship") }) {
        return refuse("it has @Relationship, but its type \(property.type?.text ?? "") is not a model")
      }
      guard let attribute = attribute(property, inner, isOptional: isOptional, options, in: symbol.inside) else {
        return
      }
      draft.attributes.append(attribute)
    }
    // One attribute: a constraint of one property (44 hashes of 6 owners).
    if options.isUnique { draft.constrain([property.name]) }
  }

  /// The type of a property: the one that is written, otherwise that of its default.
  private mutating func type(of property: SourceProperty, in scope: SourceScope) -> ResolvedType? {
    if let type = property.type { return target.resolve(type, in: scope) }
    guard let value = property.value else {
      refuse("it has neither a type nor a default")
      return nil
    }
    if let type = target.impliedType(of: value, in: scope) { return type }
    refuse(
      "its type is not written, and its default does not imply it: \(value.text)",
      hint: "declare the type of the property; this does not change the model")
    return nil
  }

  // MARK: Options

  /// The options of `@Attribute` and `@Relationship`.
  struct Options {
    var isUnique = false
    var isExternal = false
    var isTransient = false
    var isPreserved = false
    var isEncrypted = false
    var transformer: String?
    var originalName: String?
    var hashModifier: String?
    var deleteRule = Relationship.DeleteRule.nullify
    var inverse: SourceExpression?
    var hasRelationship = false
  }

  private mutating func options(of property: SourceProperty) -> Options {
    var options = Options()
    for attribute in property.attributes ?? [] {
      let isRelationship = attribute.isNamed("Relationship")
      guard isRelationship || attribute.isNamed("Attribute") else { continue }
      options.hasRelationship = options.hasRelationship || isRelationship
      for argument in attribute.arguments ?? [] {
        add(argument, of: attribute, isRelationship: isRelationship, to: &options)
      }
    }
    return options
  }

  private mutating func add(
    _ argument: SourceArgument, of attribute: SourceAttribute, isRelationship: Bool, to options: inout Options
  ) {
    switch (argument.label, argument.value) {
    // A new name is not in the hash (3 hashes of 1 owner).
    case ("originalName", .string(let name)): options.originalName = name
    case ("hashModifier", .string(let text)):
      let found = settle(.option("hashModifier"), "a hash modifier", at: attribute.position)
      options.hashModifier = found == UnprovenForm.counts ? text : nil
    // The rule does not count; its numbers are in the models that stores hold.
    case ("deleteRule", .path(let path)) where isRelationship: options.deleteRule = deleteRule(path, attribute)
    case ("inverse", let value) where isRelationship: options.inverse = value
    case ("minimumModelCount", _), ("maximumModelCount", _):
      _ = settle(
        UnprovenForm(name: "model counts", alternatives: []), "a count of objects", at: attribute.position)
    case (nil, let value) where !isRelationship: add(option: value, of: attribute, to: &options)
    default:
      refuse(
        "the argument \(argument.label.map { "\($0): " } ?? "")\(argument.value.text) is unknown",
        at: attribute.position)
    }
  }

  private mutating func deleteRule(_ path: [String], _ attribute: SourceAttribute) -> Relationship.DeleteRule {
    switch path.last {
    case "cascade": return .cascade
    case "deny": return .deny
    case "noAction": return .noAction
    case "nullify": return .nullify
    default:
      refuse("the delete rule \(path.joined(separator: ".")) is unknown", at: attribute.position)
      return .nullify
    }
  }

  private mutating func add(option: SourceExpression, of attribute: SourceAttribute, to options: inout Options) {
    let position = attribute.position
    switch option {
    case .path(let path):
      switch path.last {
      case "unique": options.isUnique = true
      // One bit of the attribute's flags (3 hashes of 2 owners).
      case "externalStorage": options.isExternal = true
      // Transient, and so not in the hash (2 hashes of 1 owner).
      case "ephemeral": options.isTransient = true
      case "preserveValueOnDeletion":
        let found = settle(.option("preserveValueOnDeletion"), "preserveValueOnDeletion", at: position)
        options.isPreserved = found == UnprovenForm.counts
      case "allowsCloudEncryption":
        _ = settle(.option("allowsCloudEncryption"), "allowsCloudEncryption", at: position)
        options.isEncrypted = true
      case "spotlight": _ = settle(.option("spotlight"), "spotlight", at: position)
      default: refuse("the option \(option.text) is unknown", at: position)
      }
    // The transformer has the name of its type (3 hashes of 1 owner).
    case .call(.path(let path), let arguments) where path.last == "transformable" && arguments.count == 1:
      switch arguments[0].value {
      case .path(let type) where type.count > 1 && type.last == "self": options.transformer = type[type.count - 2]
      case .string(let name): options.transformer = name
      default: refuse("the transformer \(arguments[0].value.text) is unknown", at: position)
      }
    default: refuse("the option \(option.text) is unknown", at: position)
    }
  }

  // MARK: Macros in the class

  private mutating func add(_ macro: SourceAttribute, to draft: inout EntityDraft) {
    guard ["Unique", "Index"].contains(macro.name) else { return }
    if let condition = macro.condition { return refuse(condition: condition, at: macro.position) }
    for argument in macro.arguments ?? [] {
      var list = argument.value
      var kind = FetchIndex.Element.Kind.binary
      if macro.name == "Index", case .call(.path(let path), let arguments) = list, arguments.count == 1 {
        guard path == ["", "binary"] || path == ["", "rtree"] else {
          return refuse("the index \(list.text) is unknown", at: macro.position)
        }
        kind = path.last == "rtree" ? .rTree : .binary
        list = arguments[0].value
      }
      guard case .array(let elements) = list else {
        return refuse("#\(macro.name) lists no key paths: \(list.text)", at: macro.position)
      }
      let names = elements.compactMap { element -> String? in
        guard case .keyPath(_, let names) = element else { return nil }
        return names.joined(separator: ".")
      }
      guard names.count == elements.count, !names.isEmpty else {
        return refuse("#\(macro.name) has something other than key paths: \(list.text)", at: macro.position)
      }
      add(names, kind, of: macro, to: &draft)
    }
  }

  private mutating func add(
    _ names: [String], _ kind: FetchIndex.Element.Kind, of macro: SourceAttribute, to draft: inout EntityDraft
  ) {
    if macro.name == "Index" {
      // Indexes are not in the hash (12 hashes of 2 owners); the name is read in the models that stores hold.
      let elements = names.map { FetchIndex.Element(propertyName: $0, kind: kind) }
      let kindName = kind == .rTree ? "RTree" : "Binary"
      draft.indexes.append(
        FetchIndex(name: "SwiftDataIndexOn\(kindName)\(names.joined())", elements: elements))
      return
    }
    // One constraint for each list, in written order, also over relationships (7 hashes of 2 owners).
    for name in names where draft.places[name] == nil {
      refuse("#Unique lists “\(name)”, which is not a stored property of the class", at: macro.position)
    }
    draft.constrain(names)
  }
}

extension EntityDraft {
  fileprivate mutating func constrain(_ names: [String]) {
    if !constraints.contains(names) { constraints.append(names) }
  }
}

extension SourceExpression {
  /// The expression as text, for a message.
  var text: String {
    switch self {
    case .string(let text): "\"\(text.prefix(40))\""
    case .interpolation: "a text"
    case .integer(let text), .real(let text), .other(let text): text
    case .boolean(let value): "\(value)"
    case .none: "nil"
    case .array(let elements):
      "[\(elements.prefix(4).map(\.text).joined(separator: ", "))\(elements.count > 4 ? ", …" : "")]"
    case .dictionary: "[:]"
    case .path(let path): path.joined(separator: ".")
    case .type(let type): type.text
    case .call(let callee, let arguments):
      callee.text + "("
        + arguments.prefix(4).map { ($0.label.map { "\($0): " } ?? "") + $0.value.text }.joined(separator: ", ") + ")"
    case .keyPath(let root, let names): "\\\(root?.text ?? "").\(names.joined(separator: "."))"
    case .cast(let value, let type): "\(value.text) as \(type.text)"
    case .sum(let parts): parts.prefix(4).map(\.text).joined(separator: " + ")
    }
  }
}
