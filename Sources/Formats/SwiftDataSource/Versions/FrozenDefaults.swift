// The defaults of a frozen version: those that mean the same without the code of the app.

import ManagedObjectModel

extension FrozenSchema {
  /// Returns the default of a property as Swift; nil if it has none, or one that only the app's code makes.
  func initial(_ property: SourceProperty, _ scope: SourceScope) -> String? {
    property.value.flatMap { constant($0, of: type(of: property, in: scope)?.unwrapped.type, in: scope) }
  }

  private func constant(
    _ value: SourceExpression, of type: ResolvedType?, in scope: SourceScope, depth: Int = 0
  ) -> String? {
    guard depth < 16 else { return nil }
    func inner(_ value: SourceExpression, of type: ResolvedType?) -> String? {
      constant(value, of: type, in: scope, depth: depth + 1)
    }
    switch value {
    case .string, .integer, .real, .boolean, .none: return value.source
    case .array(let elements):
      var element: ResolvedType?
      if case .array(let one)? = type { element = one.unwrapped.type }
      if case .set(let one)? = type { element = one.unwrapped.type }
      let texts = elements.compactMap { inner($0, of: element) }
      return texts.count == elements.count ? "[\(texts.joined(separator: ", "))]" : nil
    case .dictionary(isEmpty: true): return "[:]"
    case .cast(let value, _): return inner(value, of: type)
    case .call(.type(let named), let arguments) where arguments.isEmpty:
      return text(of: target.resolve(named, in: scope)).map { "\($0)()" }
    case .call(.path(let path), let arguments):
      guard isPlain(path.last == "init" ? Array(path.dropLast()) : path, type, in: scope) else { return nil }
      let texts = arguments.compactMap { argument in
        inner(argument.value, of: nil).map { (argument.label.map { "\($0): " } ?? "") + $0 }
      }
      guard texts.count == arguments.count else { return nil }
      return SourceExpression.path(path).source + "(\(texts.joined(separator: ", ")))"
    case .path(let path): return member(path, of: type, in: scope)
    default: return nil
    }
  }

  /// A case of an enum, or a constant of a type of Swift or Foundation.
  private func member(_ path: [String], of type: ResolvedType?, in scope: SourceScope) -> String? {
    guard let name = path.last, path.count > 1 else { return nil }
    let owner = Array(path.dropLast())
    if isPlain(owner, type, in: scope) {
      return SourceTarget.constants.contains(name) ? SourceExpression.path(path).source : nil
    }
    let found =
      owner == [""] ? type : target.resolve(SourceType.name(owner.map { SourceTypeName(name: $0) }), in: scope)
    guard case .enumeration(let index)? = found, let own = names[index],
      target.types[index].declaration.cases?.contains(where: { $0.name == name && $0.hasPayload != true }) == true
    else { return nil }
    return owner == [""] ? ".\(Self.plain(name))" : "\(own).\(Self.plain(name))"
  }

  /// Whether a path names a type of Swift or Foundation; an empty name is the type that is expected.
  private func isPlain(_ path: [String], _ type: ResolvedType?, in scope: SourceScope) -> Bool {
    let found =
      path == [""] || path.isEmpty
      ? type : target.resolve(SourceType.name(path.map { SourceTypeName(name: $0) }), in: scope)
    switch found {
    case .plain?, .unproven?: return true
    default: return false
    }
  }
}

/// The number of a version, "1.2.0".
enum VersionNumber {
  /// The number of a tag such as v1.2 or release-1.2.3; nil for any other.
  static func ofTag(_ tag: String) -> String? {
    padded(tag.drop { !$0.isASCIIDigit }.split(separator: ".", omittingEmptySubsequences: false))
  }

  /// The number at the end of a name: SchemaV2 is 2.0.0, SchemaV2_1 is 2.1.0.
  static func ofName(_ name: String) -> String? {
    let end = name.reversed().prefix { $0.isASCIIDigit || $0 == "_" }.reversed().drop { $0 == "_" }
    return padded(String(end).split(separator: "_", omittingEmptySubsequences: false))
  }

  /// One to three numbers as three; nil for anything else.
  static func padded(_ parts: [Substring]) -> String? {
    guard (1...3).contains(parts.count),
      parts.allSatisfy({ (1...9).contains($0.count) && $0.allSatisfy(\.isASCIIDigit) })
    else { return nil }
    let numbers = parts.compactMap { Int($0) } + [0, 0]
    return numbers.prefix(3).map(String.init).joined(separator: ".")
  }
}

extension Character {
  fileprivate var isASCIIDigit: Bool { ("0"..."9").contains(self) }
}
