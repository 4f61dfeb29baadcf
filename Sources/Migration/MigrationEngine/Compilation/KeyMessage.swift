/// A sentence with gaps for the columns of a row, which are keys and never users' values: `"key \(column: 0)"`.
package struct KeyMessage: Sendable, Hashable, ExpressibleByStringInterpolation {
  fileprivate enum Part: Sendable, Hashable {
    case text(String)
    case column(Int)
  }

  private let parts: [Part]

  package init(stringLiteral value: String) { parts = [.text(value)] }

  package init(stringInterpolation: StringInterpolation) { parts = stringInterpolation.parts }

  /// Returns the sentence about a row of keys.
  func text(keys: [Int64]) -> String {
    parts.map { part in
      switch part {
      case .text(let text): text
      case .column(let index): keys.indices.contains(index) ? String(keys[index]) : "NULL"
      }
    }.joined()
  }

  package struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var parts: [Part] = []

    package init(literalCapacity: Int, interpolationCount: Int) {}

    package mutating func appendLiteral(_ literal: String) { parts.append(.text(literal)) }

    package mutating func appendInterpolation(_ text: String) { parts.append(.text(text)) }

    package mutating func appendInterpolation(column index: Int) { parts.append(.column(index)) }
  }
}
