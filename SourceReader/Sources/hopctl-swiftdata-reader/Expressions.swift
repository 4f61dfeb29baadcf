// Types and expressions as facts. Whatever has another form keeps the beginning of its text, for messages.

import SwiftSyntax

/// Converts types and expressions.
enum Expressions {
  /// The deepest nesting, and the longest array, that models use; anything beyond is only text.
  private static let depth = 16
  private static let count = 4_096
  private static let textLimit = 120

  static func text(_ node: some SyntaxProtocol) -> String {
    let words = node.trimmedDescription.prefix(4 * textLimit).split(whereSeparator: \.isWhitespace)
    return String(words.joined(separator: " ").prefix(textLimit))
  }

  // MARK: Types

  static func type(_ node: TypeSyntax, depth: Int = 0) -> SourceType {
    let other = SourceType.other(text(node))
    guard depth < Self.depth else { return other }
    func inner(_ node: TypeSyntax) -> SourceType { type(node, depth: depth + 1) }
    switch node.as(TypeSyntaxEnum.self) {
    case .optionalType(let type): return .optional(inner(type.wrappedType))
    case .implicitlyUnwrappedOptionalType(let type): return .optional(inner(type.wrappedType))
    case .arrayType(let type): return .array(inner(type.element))
    case .dictionaryType(let type): return .dictionary(inner(type.key), inner(type.value))
    case .tupleType(let type):
      guard type.elements.count == 1, let only = type.elements.first, only.firstName == nil else { return other }
      return inner(only.type)
    case .attributedType(let type):
      return type.specifiers.isEmpty && type.attributes.isEmpty ? inner(type.baseType) : other
    case .identifierType, .memberType:
      guard let path = path(of: node, depth: depth) else { return other }
      return normalized(path)
    default: return other
    }
  }

  private static func path(of node: TypeSyntax, depth: Int) -> [SourceTypeName]? {
    guard depth < Self.depth else { return nil }
    func name(_ token: TokenSyntax, _ clause: GenericArgumentClauseSyntax?) -> SourceTypeName {
      SourceTypeName(
        name: token.plainText,
        arguments: clause.map { clause in
          clause.arguments.map { argument in
            argument.argument.as(TypeSyntax.self).map { type($0, depth: depth + 1) } ?? .other(text(argument))
          }
        })
    }
    if let type = node.as(IdentifierTypeSyntax.self) { return [name(type.name, type.genericArgumentClause)] }
    guard let type = node.as(MemberTypeSyntax.self), let base = path(of: type.baseType, depth: depth + 1) else {
      return nil
    }
    return base + [name(type.name, type.genericArgumentClause)]
  }

  /// The long forms of optionals, arrays and dictionaries as the short ones.
  private static func normalized(_ path: [SourceTypeName]) -> SourceType {
    let names = path.first?.name == "Swift" ? Array(path.dropFirst()) : path
    if names.count == 1, let arguments = names[0].arguments {
      switch (names[0].name, arguments.count) {
      case ("Optional", 1): return .optional(arguments[0])
      case ("Array", 1): return .array(arguments[0])
      case ("Dictionary", 2): return .dictionary(arguments[0], arguments[1])
      default: break
      }
    }
    return .name(names.isEmpty ? path : names)
  }

  // MARK: Expressions

  static func expression(_ node: ExprSyntax, depth: Int = 0) -> SourceExpression {
    let other = { SourceExpression.other(text(node)) }
    guard depth < Self.depth else { return other() }
    func inner(_ node: ExprSyntax) -> SourceExpression { expression(node, depth: depth + 1) }
    switch node.as(ExprSyntaxEnum.self) {
    case .stringLiteralExpr(let literal):
      return literal.representedLiteralValue.map { .string($0) } ?? .interpolation
    case .integerLiteralExpr(let literal): return .integer(decimal(literal.literal.text))
    case .floatLiteralExpr(let literal): return .real(literal.literal.text.filter { $0 != "_" })
    case .booleanLiteralExpr(let literal): return .boolean(literal.literal.tokenKind == .keyword(.true))
    case .nilLiteralExpr: return .none
    case .prefixOperatorExpr(let prefix): return negative(prefix) { inner($0) } ?? other()
    case .tupleExpr(let tuple):
      guard tuple.elements.count == 1, let only = tuple.elements.first, only.label == nil else { return other() }
      return inner(only.expression)
    case .arrayExpr(let array):
      guard array.elements.count <= count else { return other() }
      return .array(array.elements.map { inner($0.expression) })
    case .dictionaryExpr(let dictionary):
      if case .colon = dictionary.content { return .dictionary(isEmpty: true) }
      return .dictionary(isEmpty: false)
    case .declReferenceExpr, .memberAccessExpr: return path(of: node, depth: 0).map { .path($0) } ?? other()
    case .genericSpecializationExpr: return type(from: node).map { .type($0) } ?? other()
    case .functionCallExpr(let call): return self.call(call, depth: depth) ?? other()
    case .keyPathExpr(let path): return keyPath(path) ?? other()
    case .macroExpansionExpr: return other()
    case .sequenceExpr(let sequence): return sum(sequence, inner) ?? other()
    case .asExpr(let cast) where cast.questionOrExclamationMark == nil:
      return .cast(inner(cast.expression), type(cast.type))
    default: return other()
    }
  }

  static func arguments(_ list: LabeledExprListSyntax, depth: Int = 0) -> [SourceArgument] {
    list.map { SourceArgument(label: $0.label?.plainText, value: expression($0.expression, depth: depth + 1)) }
  }

  /// Digits without separators; other bases become decimal.
  private static func decimal(_ text: String) -> String {
    let digits = text.filter { $0 != "_" }
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] where digits.hasPrefix(prefix) {
      return UInt64(digits.dropFirst(2), radix: radix).map { String($0) } ?? digits
    }
    return digits
  }

  private static func negative(
    _ prefix: PrefixOperatorExprSyntax, _ inner: (ExprSyntax) -> SourceExpression
  ) -> SourceExpression? {
    guard prefix.operator.text == "-" || prefix.operator.text == "+" else { return nil }
    let sign = prefix.operator.text == "-" ? "-" : ""
    switch inner(prefix.expression) {
    case .integer(let digits) where !digits.hasPrefix("-"): return .integer(sign + digits)
    case .real(let digits) where !digits.hasPrefix("-"): return .real(sign + digits)
    default: return nil
    }
  }

  private static func path(of node: ExprSyntax, depth: Int) -> [String]? {
    guard depth < Self.depth else { return nil }
    if let name = node.as(DeclReferenceExprSyntax.self) {
      return name.argumentNames == nil ? [name.baseName.plainText] : nil
    }
    guard let member = node.as(MemberAccessExprSyntax.self), member.declName.argumentNames == nil else { return nil }
    let name = member.declName.baseName.plainText
    guard let base = member.base else { return ["", name] }
    return path(of: base, depth: depth + 1).map { $0 + [name] }
  }

  /// The type that an expression such as `[String]` or `Set<Int>` names.
  private static func type(from node: ExprSyntax) -> SourceType? {
    if let array = node.as(ArrayExprSyntax.self), array.elements.count == 1, let only = array.elements.first {
      return type(from: only.expression).map { .array($0) }
    }
    if let dictionary = node.as(DictionaryExprSyntax.self), case .elements(let elements) = dictionary.content,
      elements.count == 1, let only = elements.first, let key = type(from: only.key), let value = type(from: only.value)
    {
      return .dictionary(key, value)
    }
    if let optional = node.as(OptionalChainingExprSyntax.self) {
      return type(from: optional.expression).map { .optional($0) }
    }
    if let generic = node.as(GenericSpecializationExprSyntax.self),
      let path = path(of: generic.expression, depth: 0), let last = path.last
    {
      let arguments = generic.genericArgumentClause.arguments.map { argument in
        argument.argument.as(TypeSyntax.self).map { type($0) } ?? .other(text(argument))
      }
      return normalized(
        path.dropLast().map { SourceTypeName(name: $0) } + [SourceTypeName(name: last, arguments: arguments)])
    }
    return path(of: node, depth: 0).map { .name($0.map { SourceTypeName(name: $0) }) }
  }

  private static func call(_ node: FunctionCallExprSyntax, depth: Int) -> SourceExpression? {
    let callee: SourceExpression
    switch node.calledExpression.as(ExprSyntaxEnum.self) {
    case .arrayExpr, .dictionaryExpr, .genericSpecializationExpr:
      guard let type = type(from: node.calledExpression) else { return nil }
      callee = .type(type)
    default:
      guard let path = path(of: node.calledExpression, depth: 0) else { return nil }
      callee = .path(path)
    }
    // A closure behind the call is an argument that no rule needs.
    var given = arguments(node.arguments, depth: depth)
    if let closure = node.trailingClosure { given.append(SourceArgument(label: nil, value: .other(text(closure)))) }
    return .call(callee, given)
  }

  private static func keyPath(_ node: KeyPathExprSyntax) -> SourceExpression? {
    var names: [String] = []
    for component in node.components {
      guard case .property(let property) = component.component, property.declName.argumentNames == nil else {
        return nil
      }
      names.append(property.declName.baseName.plainText)
    }
    // A nested type, as in `\SchemaV1.Item.name`, is a type with a member.
    return .keyPath(root: node.root.map { type($0) }, names)
  }

  private static func sum(
    _ node: SequenceExprSyntax, _ inner: (ExprSyntax) -> SourceExpression
  ) -> SourceExpression? {
    var parts: [SourceExpression] = []
    for (index, element) in node.elements.enumerated() {
      if index % 2 == 0 {
        parts.append(inner(element))
      } else if let sign = element.as(BinaryOperatorExprSyntax.self) {
        guard sign.operator.text == "+" else { return nil }
      } else if let cast = element.as(UnresolvedAsExprSyntax.self), index == 1, node.elements.count == 3,
        cast.questionOrExclamationMark == nil, let value = parts.first,
        let written = node.elements.last?.as(TypeExprSyntax.self)
      {
        return .cast(value, type(written.type))
      } else {
        return nil
      }
    }
    return .sum(parts)
  }
}

extension TokenSyntax {
  /// The text without the backticks around a keyword that is used as a name.
  var plainText: String {
    let text = self.text
    return text.count > 2 && text.hasPrefix("`") && text.hasSuffix("`") ? String(text.dropFirst().dropLast()) : text
  }
}
