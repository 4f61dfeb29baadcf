// The type of a property that is not written: that of its default (6 hashes of 2 owners).

import ManagedObjectModel

extension SourceTarget {
  /// Returns the type of an expression; nil if its form does not imply it.
  func impliedType(of value: SourceExpression, in scope: SourceScope, depth: Int = 0) -> ResolvedType? {
    guard depth < 16 else { return nil }
    switch value {
    case .string, .interpolation: return .plain("String", .string)
    case .integer: return .plain("Int", .integer64)
    case .real: return .plain("Double", .double)
    case .boolean: return .plain("Bool", .boolean)
    case .array(let elements):
      // Literals of one kind; an array of others may have any type.
      let types = Set(elements.map { $0.isLiteral ? impliedType(of: $0, in: scope, depth: depth + 1) : nil })
      guard types.count == 1, let first = types.first, let type = first else { return nil }
      return .array(type)
    case .call(.type(let type), _): return resolve(type, in: scope)
    case .cast(_, let type): return resolve(type, in: scope)
    case .call(.path(let path), let arguments):
      let names = path.last == "init" ? Array(path.dropLast()) : path
      if let type = storable(names, in: scope) { return isCertain(arguments, of: type) ? type : nil }
      return path.count > 1 ? member(path, in: scope, isCall: true, depth: depth) : nil
    case .path(let path): return path.count > 1 ? member(path, in: scope, isCall: false, depth: depth) : nil
    case .none, .dictionary, .type, .call, .keyPath, .sum, .other: return nil
    }
  }

  /// Whether an initializer gives a value in any case. Foundation's types have others, whose value is optional, and so
  /// have enums with raw values.
  private func isCertain(_ arguments: [SourceArgument], of type: ResolvedType) -> Bool {
    let labels = arguments.map { $0.label ?? "" }
    switch type {
    case .plain, .unproven:
      if labels == [""] { if case .string = arguments[0].value { return type == .plain("String", .string) } }
      return labels.isEmpty || labels == [""] && arguments[0].value.isNumber || Self.initializers.contains(labels)
    case .enumeration: return false
    default: return !labels.contains("rawValue")
    }
  }

  private static let initializers: Set<[String]> = [
    ["timeIntervalSinceNow"], ["timeIntervalSince1970"], ["timeIntervalSinceReferenceDate"], ["timeInterval", "since"],
    ["repeating", "count"], ["count"], ["describing"],
  ]

  /// The type of that name; nil for a name that is none.
  private func storable(_ path: [String], in scope: SourceScope) -> ResolvedType? {
    guard path.first?.isEmpty == false else { return nil }
    let type = resolve(SourceType.name(path.map { SourceTypeName(name: $0) }), in: scope)
    if case .other = type { return nil }
    return type
  }

  /// The type of a member of a type, `Status.active` or `Date.now`.
  private func member(_ path: [String], in scope: SourceScope, isCall: Bool, depth: Int) -> ResolvedType? {
    guard let name = path.last, let type = storable(Array(path.dropLast()), in: scope) else { return nil }
    let index: Int
    switch type {
    case .enumeration(let found), .structure(let found), .model(let found): index = found
    // Of Foundation's types, such members are values of the type itself: Date.now, Int.max, Double.zero.
    case .plain: return isCall || !Self.constants.contains(name) ? nil : type
    default: return nil
    }
    if types[index].declaration.cases?.contains(where: { $0.name == name }) == true { return type }
    guard !isCall, let (property, inner) = staticProperty(name, of: types[index]) else { return nil }
    return property.type.map { resolve($0, in: inner) }
      ?? property.value.flatMap { impliedType(of: $0, in: inner, depth: depth + 1) }
  }
}

extension SourceTarget {
  /// Members of the types of Swift and Foundation that are values of the type itself; an app may declare others.
  static let constants: Set<String> = [
    "now", "distantPast", "distantFuture", "zero", "max", "min", "pi", "infinity", "greatestFiniteMagnitude",
  ]
}

extension SourceExpression {
  fileprivate var isNumber: Bool {
    switch self {
    case .integer, .real: true
    default: false
    }
  }

  fileprivate var isLiteral: Bool {
    switch self {
    case .string, .interpolation, .integer, .real, .boolean: true
    default: false
    }
  }
}
