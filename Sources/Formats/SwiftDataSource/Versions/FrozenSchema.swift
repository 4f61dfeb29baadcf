// A version as it was shipped, as Swift source: a VersionedSchema with copies of its classes and of everything that
// they store. Derived back, it has the same version hashes.

import Diagnostics
import ManagedObjectModel

/// Writes the source of a frozen version.
package struct FrozenSchema {
  let target: SourceTarget
  private let roots: [SourceSymbol]
  /// `versionIdentifier` in the source; 1.0.0 without one.
  private let declared: String
  /// The types to write, classes first, each under a name of its own.
  private var order: [Int] = []
  private(set) var names: [Int: String] = [:]
  private var taken: Set<String> = []

  /// Takes a version of a target; `classes` are the entities of its model, in their order.
  package init(_ version: SourceVersion, _ derived: DerivedModel, of target: SourceTarget) throws(HopdError) {
    self.target = target
    declared = version.identifier
    guard derived.model != nil else { throw derived.refusal(at: version.place) }
    roots = derived.classes.sorted { $0.key < $1.key }.compactMap { _, path in
      target.types.first { $0.isModel && $0.path == path }
    }
    for root in roots { add(root.index) }
    var index = 0
    while index < order.count {
      for (property, scope) in stored(order[index]) { addTypes(of: type(of: property, in: scope)) }
      index += 1
    }
  }

  private mutating func add(_ index: Int) {
    guard names[index] == nil else { return }
    let symbol = target.types[index]
    // Nested types of two classes may have one name.
    let candidates = [symbol.name, symbol.path.joined()] + (2...).lazy.prefix(1_000).map { "\(symbol.name)\($0)" }
    let name = candidates.first { !taken.contains($0) } ?? symbol.name
    taken.insert(name)
    names[index] = name
    order.append(index)
  }

  private mutating func addTypes(of type: ResolvedType?) {
    switch type {
    case .structure(let index)?, .enumeration(let index)?: add(index)
    case .optional(let inner)?, .array(let inner)?, .set(let inner)?: addTypes(of: inner)
    case .dictionary(let key, let value)?:
      addTypes(of: key)
      addTypes(of: value)
    default: break
    }
  }

  /// The stored properties of a type.
  private func stored(_ index: Int) -> [(property: SourceProperty, scope: SourceScope)] {
    let symbol = target.types[index]
    return (symbol.declaration.properties ?? []).filter { property in
      property.isStatic != true && property.isLazy != true
        && property.attributes?.contains { $0.isNamed("Transient") } != true
    }.map { ($0, symbol.inside) }
  }

  func type(of property: SourceProperty, in scope: SourceScope) -> ResolvedType? {
    property.type.map { target.resolve($0, in: scope) }
      ?? property.value.flatMap { target.impliedType(of: $0, in: scope) }
  }

  // MARK: Text

  /// Returns a version number as three numbers; nil for any other text.
  package static func number(_ text: String) -> String? {
    VersionNumber.padded(text.split(separator: ".", omittingEmptySubsequences: false))
  }

  /// Returns the source under the name of the version; `origin` says what it was made from, and `identifier` is the
  /// version's own. Without one it is the number of the tag, otherwise that of the name, so that several frozen
  /// versions of one plan differ.
  package func text(name: String, origin: String, tag: String? = nil, identifier: String? = nil) -> String {
    let own = identifier ?? tag.flatMap(VersionNumber.ofTag) ?? VersionNumber.ofName(name) ?? declared
    let numbers = own.split(separator: ".").joined(separator: ", ")
    let list = roots.map { "\(names[$0.index] ?? $0.name).self" }.joined(separator: ", ")
    var lines = [
      "import Foundation", "import SwiftData", "", "/// The models as \(origin) shipped them. Nothing here may change.",
      "enum \(name): VersionedSchema {", "  static let versionIdentifier = Schema.Version(\(numbers))", "",
      "  static var models: [any PersistentModel.Type] {", "    [\(list)]", "  }",
    ]
    for index in order { lines += [""] + declaration(index).map { "  " + $0 } }
    return (lines + ["}"]).joined(separator: "\n") + "\n"
  }

  private func declaration(_ index: Int) -> [String] {
    let symbol = target.types[index]
    let name = names[index] ?? symbol.name
    switch symbol.declaration.kind {
    case .enum: return enumeration(symbol, name)
    case .struct:
      let members = stored(index).map { "  var \(Self.plain($0.property.name)): \(typeText($0.property, $0.scope))" }
      return ["struct \(name): Codable {"] + members + ["}"]
    default: return model(symbol, name)
    }
  }

  private func enumeration(_ symbol: SourceSymbol, _ name: String) -> [String] {
    let raw = symbol.declaration.inherited?.first.map { target.resolve($0, in: symbol.scope) }
    var prefix = ""
    if case .plain(let type, _)? = raw { prefix = "\(type), " }
    let cases = (symbol.declaration.cases ?? []).map { one in
      "  case \(Self.plain(one.name))" + (one.rawValue.map { " = \($0.source)" } ?? "")
    }
    return ["enum \(name): \(prefix)Codable {"] + cases + ["}"]
  }

  private func model(_ symbol: SourceSymbol, _ name: String) -> [String] {
    var lines = ["@Model", "final class \(name) {"]
    for macro in symbol.declaration.macros ?? [] where ["Unique", "Index"].contains(macro.name) {
      lines.append("  #\(macro.name)<\(name)>(\(arguments(macro, symbol)))")
    }
    var parameters: [String] = []
    var assignments: [String] = []
    for (property, scope) in stored(symbol.index) {
      let type = typeText(property, scope)
      for attribute in property.attributes ?? []
      where attribute.isNamed("Attribute") || attribute.isNamed("Relationship") {
        lines.append("  @\(attribute.name)" + (attribute.arguments == nil ? "" : "(\(arguments(attribute, symbol)))"))
      }
      let value = initial(property, scope).map { " = \($0)" } ?? ""
      if value.isEmpty, let shipped = property.value {
        lines.append("  // Shipped with the default \(shipped.text), which is code of the app.")
      }
      let own = Self.plain(property.name)
      lines.append("  var \(own): \(type)\(value)")
      if value.isEmpty {
        parameters.append("\(own): \(type)")
        assignments.append("    self.\(own) = \(own)")
      }
    }
    lines += ["", "  init(\(parameters.joined(separator: ", "))) {"] + assignments + ["  }", "}"]
    return lines
  }

  private func arguments(_ attribute: SourceAttribute, _ symbol: SourceSymbol) -> String {
    (attribute.arguments ?? []).map { argument in
      var value = argument.value
      // A key path names the frozen copy.
      if case .keyPath(let root?, let names) = value, case .name(let path) = root, !names.isEmpty {
        let type = SourceType.name(path + names.dropLast().map { SourceTypeName(name: $0) })
        if case .model(let index) = target.resolve(type, in: symbol.inside), let name = self.names[index] {
          value = .keyPath(root: .name([SourceTypeName(name: name)]), [names[names.count - 1]])
        }
      }
      return (argument.label.map { "\($0): " } ?? "") + value.source
    }.joined(separator: ", ")
  }

  private func typeText(_ property: SourceProperty, _ scope: SourceScope) -> String {
    guard let type = type(of: property, in: scope) else { return property.type?.text ?? "Never" }
    return text(of: type) ?? property.type?.text ?? "Never"
  }

  /// A type under the names of the copies; nil for one of another module.
  func text(of type: ResolvedType) -> String? {
    switch type {
    case .plain(let name, _), .unproven(let name): name
    case .model(let index), .structure(let index), .enumeration(let index): names[index]
    case .resolvedColor: "Color.Resolved"
    case .optional(let inner): text(of: inner).map { "\($0)?" }
    case .array(let inner): text(of: inner).map { "[\($0)]" }
    case .set(let inner): text(of: inner).map { "Set<\($0)>" }
    case .dictionary(let key, let value):
      text(of: key).flatMap { key in text(of: value).map { "[\(key): \($0)]" } }
    case .other: nil
    }
  }

  private static let keywords: Set<String> = [
    "as", "break", "case", "class", "continue", "default", "defer", "deinit", "do", "else", "enum", "extension",
    "fallthrough", "false", "for", "func", "guard", "if", "import", "in", "init", "inout", "internal", "is", "let",
    "nil", "operator", "private", "protocol", "public", "repeat", "rethrows", "return", "self", "static", "struct",
    "subscript", "super", "switch", "throw", "throws", "true", "try", "typealias", "var", "where", "while",
  ]

  static func plain(_ name: String) -> String { keywords.contains(name) ? "`\(name)`" : name }
}

extension SourceExpression {
  /// The expression as Swift.
  var source: String {
    switch self {
    case .string(let text): "\"\(text.map(Self.escaped).joined())\""
    case .path(let path): path.first == "" ? "." + path.dropFirst().joined(separator: ".") : path.joined(separator: ".")
    case .array(let elements): "[\(elements.map(\.source).joined(separator: ", "))]"
    case .call(let callee, let arguments):
      callee.source + "("
        + arguments.map { ($0.label.map { "\($0): " } ?? "") + $0.value.source }.joined(separator: ", ") + ")"
    default: text
    }
  }

  private static func escaped(_ character: Character) -> String {
    switch character {
    case "\"": "\\\""
    case "\\": "\\\\"
    case "\n": "\\n"
    case "\r": "\\r"
    case "\t": "\\t"
    case "\0": "\\0"
    default: String(character)
    }
  }
}
