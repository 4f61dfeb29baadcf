// The text of an expression with its place, for errors that show how far it was parsed.

import Diagnostics

/// A text that is being parsed.
struct ExpressionSource {
  let scalars: [Unicode.Scalar]
  let place: Place

  init(_ text: String, at place: Place) throws(HopdError) {
    let count = text.utf8.count
    guard count <= ExpressionLimits.textBytes else {
      throw HopdError(
        .expressionSyntax,
        "the expression has \(count) bytes; more than \(ExpressionLimits.textBytes) are not read", at: place)
    }
    scalars = Array(text.unicodeScalars)
    self.place = place
  }

  /// Returns the text between two characters.
  func text(_ range: Range<Int>) -> String {
    var view = String.UnicodeScalarView()
    view.append(contentsOf: scalars[range.clamped(to: scalars.indices)])
    return String(view)
  }

  /// Creates a syntax error at that character.
  func syntax(_ message: String, at offset: Int, hint: String? = nil) -> HopdError {
    error(.expressionSyntax, message, at: offset, hint: hint)
  }

  /// Creates an error for a feature that is refused.
  func unsupported(_ message: String, at offset: Int, hint: String? = nil) -> HopdError {
    error(.expressionUnsupported, message, at: offset, hint: hint)
  }

  private func error(_ code: HopdError.Code, _ message: String, at offset: Int, hint: String?) -> HopdError {
    let offset = min(offset, scalars.count)
    var line = 1
    var column = 1
    for scalar in scalars[..<offset] {
      if scalar == "\n" {
        line += 1
        column = 1
      } else {
        column += 1
      }
    }
    // A place with a line is where the text begins in its file; without one, lines of the file mean nothing.
    var place = place
    if let first = place.line {
      place.line = first + line - 1
      place.column = line == 1 ? (place.column ?? 1) + column - 1 : column
    }
    let shown = 60
    let from = max(0, offset - shown)
    let read = (from > 0 ? "…" : "") + text(from..<offset)
    let position = line == 1 ? "character \(column)" : "line \(line), character \(column)"
    let sentence =
      offset == 0 ? "\(message) (\(position) of the expression)" : "\(message) (\(position), after “\(read)”)"
    return HopdError(code, sentence, at: place, hint: hint)
  }
}
