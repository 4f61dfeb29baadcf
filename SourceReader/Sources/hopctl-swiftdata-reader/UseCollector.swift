// The calls that name the models of a container, wherever they are in a file.

import SwiftSyntax

/// Finds the calls.
final class UseCollector: SyntaxVisitor {
  private let positions: DeclarationCollector
  private(set) var uses: [SchemaUse] = []
  /// Syntax errors that the parser does not report.
  private(set) var faults: [SyntaxFault] = []
  private var scope: [String] = []
  private var previews = 0

  init(positions: DeclarationCollector) {
    self.positions = positions
    super.init(viewMode: .sourceAccurate)
  }

  override func visit(_ node: FunctionCallExprSyntax) -> SyntaxVisitorContinueKind {
    let name: String? =
      if let name = node.calledExpression.as(DeclReferenceExprSyntax.self) {
        name.baseName.text
      } else {
        node.calledExpression.as(MemberAccessExprSyntax.self)?.declName.baseName.text
      }
    if let name, ["Schema", "ModelContainer", "modelContainer"].contains(name) {
      let arguments = Expressions.arguments(node.arguments)
      var use = SchemaUse(
        name: name, position: positions.position(node.calledExpression), arguments: arguments, scope: scope)
      if let member = node.calledExpression.as(MemberAccessExprSyntax.self) {
        use.position = positions.position(member.declName)
      }
      if previews > 0 { use.isPreview = true }
      uses.append(use)
    }
    return .visitChildren
  }

  // The parser takes `init` in the next line for the value.
  override func visit(_ node: InitializerClauseSyntax) -> SyntaxVisitorContinueKind {
    if node.value.firstToken(viewMode: .sourceAccurate)?.tokenKind == .keyword(.`init`) {
      faults.append(SyntaxFault("expected expression in variable", position: positions.position(node.equal)))
    }
    return .visitChildren
  }

  // An `#if` whose clause is not compiled has no uses.
  override func visit(_ node: IfConfigDeclSyntax) -> SyntaxVisitorContinueKind {
    for (clause, _) in positions.conditions.clauses(of: node) { walk(clause) }
    return .skipChildren
  }

  override func visit(_ node: MacroExpansionExprSyntax) -> SyntaxVisitorContinueKind { enter(macro: node.macroName) }
  override func visitPost(_ node: MacroExpansionExprSyntax) { leave(macro: node.macroName) }
  override func visit(_ node: MacroExpansionDeclSyntax) -> SyntaxVisitorContinueKind { enter(macro: node.macroName) }
  override func visitPost(_ node: MacroExpansionDeclSyntax) { leave(macro: node.macroName) }

  private func enter(macro name: TokenSyntax) -> SyntaxVisitorContinueKind {
    if name.text == "Preview" { previews += 1 }
    return .visitChildren
  }

  private func leave(macro name: TokenSyntax) {
    if name.text == "Preview" { previews -= 1 }
  }

  // The types around a call.

  override func visit(_ node: ClassDeclSyntax) -> SyntaxVisitorContinueKind { enter(node.name.plainText) }
  override func visitPost(_ node: ClassDeclSyntax) { scope.removeLast() }
  override func visit(_ node: StructDeclSyntax) -> SyntaxVisitorContinueKind { enter(node.name.plainText) }
  override func visitPost(_ node: StructDeclSyntax) { scope.removeLast() }
  override func visit(_ node: EnumDeclSyntax) -> SyntaxVisitorContinueKind { enter(node.name.plainText) }
  override func visitPost(_ node: EnumDeclSyntax) { scope.removeLast() }
  override func visit(_ node: ActorDeclSyntax) -> SyntaxVisitorContinueKind { enter(node.name.plainText) }
  override func visitPost(_ node: ActorDeclSyntax) { scope.removeLast() }
  override func visit(_ node: ExtensionDeclSyntax) -> SyntaxVisitorContinueKind {
    enter(Expressions.text(node.extendedType))
  }
  override func visitPost(_ node: ExtensionDeclSyntax) { scope.removeLast() }

  private func enter(_ name: String) -> SyntaxVisitorContinueKind {
    scope.append(name)
    return .visitChildren
  }
}
