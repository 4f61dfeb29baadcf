// The conditions of `#if`: true, false, or not decided by what is defined.

import SwiftSyntax

/// Decides conditions of `#if`.
struct Conditions {
  /// Conditions by their text. SwiftData itself and what it needs can be imported wherever it is used.
  private var known: [String: Bool] = [
    "canImport(SwiftData)": true, "canImport(Foundation)": true, "canImport(SwiftUI)": true, "true": true,
    "false": false,
  ]

  init(_ definitions: [String: Bool]) { known.merge(definitions) { _, given in given } }

  /// The clauses of an `#if` that may be compiled, each with the text of what it needs; nil where it is compiled for
  /// certain.
  func clauses(of node: IfConfigDeclSyntax) -> [(clause: IfConfigClauseSyntax, condition: String?)] {
    var result: [(IfConfigClauseSyntax, String?)] = []
    /// The undecided conditions of the clauses before.
    var undecided: [String] = []
    for clause in node.clauses {
      let decided = clause.condition.map(value(of:)) ?? true
      if decided == false { continue }
      let own = decided == nil ? clause.condition.map(Self.text) : nil
      let needs = undecided.map { "!(\($0))" } + (own.map { [$0] } ?? [])
      result.append((clause, needs.isEmpty ? nil : needs.joined(separator: " && ")))
      if decided == true { break }
      if let own { undecided.append(own) }
    }
    return result
  }

  private static func text(_ node: ExprSyntax) -> String {
    String(node.trimmedDescription.filter { !$0.isWhitespace }.prefix(200))
  }

  private func value(of node: ExprSyntax) -> Bool? {
    if let known = known[Self.text(node)] { return known }
    if let not = node.as(PrefixOperatorExprSyntax.self), not.operator.text == "!" {
      return value(of: not.expression).map { !$0 }
    }
    if let tuple = node.as(TupleExprSyntax.self), tuple.elements.count == 1, let only = tuple.elements.first {
      return value(of: only.expression)
    }
    guard let sequence = node.as(SequenceExprSyntax.self) else { return nil }
    // `&&` binds its sides before `||` does.
    var alternatives: [Bool?] = []
    var current: Bool? = true
    for element in sequence.elements {
      if let sign = element.as(BinaryOperatorExprSyntax.self) {
        switch sign.operator.text {
        case "&&": continue
        case "||":
          alternatives.append(current)
          current = true
        default: return nil
        }
      } else {
        let next = value(of: element)
        current = current == false || next == false ? false : current == nil || next == nil ? nil : true
      }
    }
    alternatives.append(current)
    if alternatives.contains(true) { return true }
    return alternatives.allSatisfy { $0 == false } ? false : nil
  }
}
