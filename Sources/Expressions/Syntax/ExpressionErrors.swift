// How expressions fail: not read, read but not supported here, or meaning nothing against the model. Branch on the
// codes.

import Diagnostics

extension HopdError.Code {
  /// The text of an expression or predicate breaks the grammar.
  package static let expressionSyntax = HopdError.Code("expression-syntax", exit: .dataError)
  /// An expression asks for something that Core Data knows and hopd does not do, or that only the app could do.
  package static let expressionUnsupported = HopdError.Code("expression-unsupported", exit: .dataError)
  /// An expression can be read but has no meaning where it stands: unknown key, wrong kind, clash of types.
  package static let expressionInvalid = HopdError.Code("expression-invalid", exit: .dataError)
}

/// Limits on the size of an expression, from text and from archives (docs/formats/expressions.md, "Where an expression
/// stands").
package enum ExpressionLimits {
  /// Bytes of one text.
  package static let textBytes = 64 << 10
  /// Parentheses, calls, lists and negations inside one another.
  package static let nesting = 100
  /// Nodes above one another in the tree: a sum of n terms has n of them.
  package static let height = 200
  /// Members of one list in braces.
  package static let members = 10_000
  /// Objects of one archived expression: a list that holds itself many times would unfold without end.
  package static let archivedNodes = 2_000
}
