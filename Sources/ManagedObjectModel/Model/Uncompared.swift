/// A value that travels with another without taking part in its identity: all are equal.
struct Uncompared<Value: Sendable>: Sendable, Hashable {
  var value: Value

  static func == (left: Uncompared, right: Uncompared) -> Bool { true }
  func hash(into hasher: inout Hasher) {}
}

extension Sequence where Element: Hashable {
  /// Where each element is, from 0; of equal ones the first.
  package var places: [Element: Int] {
    Dictionary(enumerated().map { ($0.element, $0.offset) }, uniquingKeysWith: { first, _ in first })
  }
}
