// The declarations of a file as facts: types with their stored properties, and the calls that name models.

import SwiftSyntax

/// Collects the facts of one file.
struct DeclarationCollector {
  let positions: SourceLocationConverter
  let conditions: Conditions

  func position(_ node: some SyntaxProtocol) -> SwiftPosition {
    let location = positions.location(for: node.positionAfterSkippingLeadingTrivia)
    return SwiftPosition(line: location.line, column: location.column)
  }

  mutating func file(_ tree: SourceFileSyntax) -> SourceFile {
    var file = SourceFile()
    add(tree.statements, condition: nil, to: &file)
    let collector = UseCollector(positions: self)
    collector.walk(tree)
    file.uses = collector.uses
    file.faults = SyntaxFaults.first(of: tree, positions) ?? collector.faults.prefix(8).map(\.self).nonEmpty
    return file
  }

  private func add(_ statements: CodeBlockItemListSyntax, condition: String?, to file: inout SourceFile) {
    for item in statements {
      guard case .decl(let node) = item.item else { continue }
      if let branches = node.as(IfConfigDeclSyntax.self) {
        for (clause, needs) in conditions.clauses(of: branches) {
          guard case .statements(let inner) = clause.elements else { continue }
          add(inner, condition: Self.both(condition, needs), to: &file)
        }
      } else if let variable = node.as(VariableDeclSyntax.self) {
        file.variables += properties(of: variable, condition: condition, keepsComputed: true)
      } else if let found = declaration(node, condition: condition) {
        file.declarations.append(found)
      }
    }
  }

  static func both(_ outer: String?, _ inner: String?) -> String? {
    guard let outer, let inner else { return outer ?? inner }
    return "\(outer) && \(inner)"
  }

  // MARK: Types

  private func declaration(_ node: DeclSyntax, condition: String?) -> SourceDeclaration? {
    switch node.as(DeclSyntaxEnum.self) {
    case .classDecl(let type): return group(type, .class, type.name, type.genericParameterClause, condition)
    case .structDecl(let type): return group(type, .struct, type.name, type.genericParameterClause, condition)
    case .enumDecl(let type): return group(type, .enum, type.name, type.genericParameterClause, condition)
    case .actorDecl(let type): return group(type, .actor, type.name, type.genericParameterClause, condition)
    case .protocolDecl(let type): return group(type, .protocol, type.name, nil, condition)
    case .extensionDecl(let type):
      guard case .name(let path) = Expressions.type(type.extendedType) else { return nil }
      var result = group(type, .extension, nil, nil, condition)
      result.name = path.map(\.name)
      result.position = position(type.extendedType)
      return result
    case .typeAliasDecl(let type):
      var result = SourceDeclaration(kind: .typealias, name: [type.name.plainText], position: position(type.name))
      result.aliased = Expressions.type(type.initializer.value)
      result.isGeneric = type.genericParameterClause == nil ? nil : true
      result.isPrivate = Self.isPrivate(type.modifiers)
      result.condition = condition
      return result
    default: return nil
    }
  }

  private func group(
    _ node: some DeclGroupSyntax, _ kind: SourceDeclaration.Kind, _ name: TokenSyntax?,
    _ generics: GenericParameterClauseSyntax?, _ condition: String?
  ) -> SourceDeclaration {
    var result = SourceDeclaration(
      kind: kind, name: name.map { [$0.plainText] } ?? [], position: name.map { position($0) } ?? position(node))
    result.isPrivate = Self.isPrivate(node.modifiers)
    result.isGeneric = generics == nil ? nil : true
    result.condition = condition
    result.attributes = attributes(node.attributes).nonEmpty
    result.inherited = node.inheritanceClause?.inheritedTypes.map { Expressions.type($0.type) }
    add(node.memberBlock.members, condition: nil, to: &result)
    return result
  }

  private static func isPrivate(_ modifiers: DeclModifierListSyntax) -> Bool? {
    modifiers.contains { [.keyword(.private), .keyword(.fileprivate)].contains($0.name.tokenKind) && $0.detail == nil }
      ? true : nil
  }

  private func add(_ members: MemberBlockItemListSyntax, condition: String?, to result: inout SourceDeclaration) {
    for item in members {
      switch item.decl.as(DeclSyntaxEnum.self) {
      case .ifConfigDecl(let branches):
        for (clause, needs) in conditions.clauses(of: branches) {
          guard case .decls(let inner) = clause.elements else { continue }
          add(inner, condition: Self.both(condition, needs), to: &result)
        }
      case .variableDecl(let variable):
        result.properties.add(properties(of: variable, condition: condition, keepsComputed: false))
      case .enumCaseDecl(let cases): result.cases.add(enumCases(of: cases, condition: condition))
      case .macroExpansionDecl(let macro):
        var found = SourceAttribute(name: macro.macroName.plainText, position: position(macro))
        found.arguments = Expressions.arguments(macro.arguments)
        found.condition = condition
        result.macros.add([found])
      default:
        if let nested = declaration(item.decl, condition: condition) { result.members.add([nested]) }
      }
    }
  }

  private func enumCases(of node: EnumCaseDeclSyntax, condition: String?) -> [SourceCase] {
    node.elements.map { element in
      var result = SourceCase(name: element.name.plainText, position: position(element.name))
      result.hasPayload = element.parameterClause == nil ? nil : true
      result.rawValue = element.rawValue.map { Expressions.expression($0.value) }
      result.condition = condition
      return result
    }
  }

  // MARK: Properties

  private func properties(
    of node: VariableDeclSyntax, condition: String?, keepsComputed: Bool
  ) -> [SourceProperty] {
    func has(_ keyword: Keyword) -> Bool { node.modifiers.contains { $0.name.tokenKind == .keyword(keyword) } }
    let isStatic = has(.static) || has(.class)
    var result: [SourceProperty] = []
    // A type counts for the names before it, as in `var a, b: Int`.
    var type: TypeSyntax?
    for binding in node.bindings.reversed() {
      if let own = binding.typeAnnotation { type = own.type } else if binding.initializer != nil { type = nil }
      let body = binding.accessorBlock
      if let body, Self.isComputed(body), !isStatic, !keepsComputed { continue }
      guard let name = binding.pattern.as(IdentifierPatternSyntax.self) else {
        var tuple = SourceProperty(name: Expressions.text(binding.pattern), position: position(binding.pattern))
        tuple.isTuple = true
        result.append(tuple)
        continue
      }
      var property = SourceProperty(name: name.identifier.plainText, position: position(name.identifier))
      property.isStatic = isStatic ? true : nil
      property.isConstant = node.bindingSpecifier.tokenKind == .keyword(.let) ? true : nil
      property.isLazy = has(.lazy) ? true : nil
      property.condition = condition
      property.type = type.map { Expressions.type($0) }
      property.value =
        binding.initializer.map { Expressions.expression($0.value) } ?? body.flatMap(Self.onlyExpression)
      property.attributes = attributes(node.attributes).nonEmpty
      result.append(property)
    }
    return result.reversed()
  }

  private static func isComputed(_ block: AccessorBlockSyntax) -> Bool {
    switch block.accessors {
    case .getter: true
    case .accessors(let list):
      list.contains { ![.keyword(.willSet), .keyword(.didSet)].contains($0.accessorSpecifier.tokenKind) }
    }
  }

  /// The expression that is all of a getter.
  private static func onlyExpression(_ block: AccessorBlockSyntax) -> SourceExpression? {
    let body: CodeBlockItemListSyntax?
    switch block.accessors {
    case .getter(let items): body = items
    case .accessors(let list): body = list.first { $0.accessorSpecifier.tokenKind == .keyword(.get) }?.body?.statements
    }
    guard let body else { return nil }
    guard body.count == 1, let only = body.first else { return .other(Expressions.text(body)) }
    switch only.item {
    case .expr(let expression): return Expressions.expression(expression)
    case .stmt(let statement):
      guard let value = statement.as(ReturnStmtSyntax.self)?.expression else { return .other(Expressions.text(body)) }
      return Expressions.expression(value)
    default: return .other(Expressions.text(body))
    }
  }

  private func attributes(_ list: AttributeListSyntax, condition: String? = nil) -> [SourceAttribute] {
    list.flatMap { element -> [SourceAttribute] in
      switch element {
      case .attribute(let attribute):
        var result = SourceAttribute(name: Expressions.text(attribute.attributeName), position: position(attribute))
        if case .argumentList(let arguments) = attribute.arguments {
          result.arguments = Expressions.arguments(arguments)
        }
        result.condition = condition
        return [result]
      case .ifConfigDecl(let branches):
        return conditions.clauses(of: branches).flatMap { clause, needs -> [SourceAttribute] in
          guard case .attributes(let inner) = clause.elements else { return [] }
          return attributes(inner, condition: Self.both(condition, needs))
        }
      }
    }
  }
}

extension Optional {
  /// Appends to a list that is nil as long as it is empty.
  fileprivate mutating func add<Element>(_ elements: [Element]) where Wrapped == [Element] {
    if elements.isEmpty { return }
    if self == nil { self = [] }
    self?.append(contentsOf: elements)
  }
}

extension Array {
  fileprivate var nonEmpty: [Element]? { isEmpty ? nil : self }
}
