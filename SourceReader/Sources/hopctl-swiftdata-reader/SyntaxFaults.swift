// The syntax errors of a file, in the words of Swift's own parser. The parser goes on after an error with what it takes
// the text for, so a file with one says nothing for certain.

import SwiftDiagnostics
import SwiftParserDiagnostics
import SwiftSyntax

/// Finds the syntax errors.
enum SyntaxFaults {
  private static let most = 8

  /// Returns the first errors; nil if there is none.
  static func first(of tree: SourceFileSyntax, _ positions: SourceLocationConverter) -> [SyntaxFault]? {
    guard tree.hasError else { return nil }
    let errors = ParseDiagnosticsGenerator.diagnostics(for: tree).filter {
      // `@objc (Name)` is an error since Swift 6 only, and is parsed as it was meant.
      $0.diagMessage.severity == .error && !$0.message.hasPrefix("extraneous whitespace")
        && !isForOtherCompilers($0.node)
    }
    guard !errors.isEmpty else { return nil }
    return errors.prefix(most).map { error in
      let place = positions.location(for: error.position)
      let message = error.message.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      return SyntaxFault(
        String(message.prefix(200)), position: SwiftPosition(line: place.line, column: place.column))
    }
  }

  /// Whether a node is in an `#if` about the version of the compiler, which parses only the clause that it takes.
  private static func isForOtherCompilers(_ node: Syntax) -> Bool {
    sequence(first: node, next: \.parent).contains { around in
      guard let branches = around.as(IfConfigDeclSyntax.self) else { return false }
      return branches.clauses.contains { clause in
        let condition = clause.condition?.trimmedDescription ?? ""
        return condition.contains("compiler(") || condition.contains("swift(")
      }
    }
  }
}

extension [UInt8] {
  /// Whether the text has a word without which a file declares no model, version or plan.
  var mayDeclareModels: Bool {
    ["@Model", "VersionedSchema", "SchemaMigrationPlan"].contains { word in
      let word = Array(word.utf8)
      var rest = self[...]
      while let start = rest.firstIndex(of: word[0]) {
        rest = rest[start...]
        if rest.starts(with: word), !(rest.dropFirst(word.count).first?.isOfIdentifier ?? false) { return true }
        rest = rest.dropFirst()
      }
      return false
    }
  }
}

extension UInt8 {
  fileprivate var isOfIdentifier: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), 0x80...:
      true
    default: false
    }
  }
}
