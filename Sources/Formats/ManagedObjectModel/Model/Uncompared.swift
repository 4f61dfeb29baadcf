/// A value that is part of another one but not of its identity: all instances are equal.
struct Uncompared<Value: Sendable>: Sendable, Hashable {
  var value: Value

  static func == (left: Uncompared, right: Uncompared) -> Bool { true }
  func hash(into hasher: inout Hasher) {}
}

extension Sequence where Element: Hashable {
  /// The position of each element, from 0; for equal ones the first.
  package var places: [Element: Int] {
    Dictionary(enumerated().map { ($0.element, $0.offset) }, uniquingKeysWith: { first, _ in first })
  }
}
