/// A value behind one reference: a copy costs one retain, and a copy that is changed gets a value of its own.
///
/// Entities and properties have up to twenty fields with references, and planning copies them all the time.
struct Boxed<Value: Sendable & Hashable>: Sendable, Hashable {
  /// `@unchecked Sendable`: only the sole owner of a box changes its value.
  private final class Box: @unchecked Sendable {
    var value: Value

    init(_ value: Value) { self.value = value }
  }

  private var box: Box

  init(_ value: Value) { box = Box(value) }

  var value: Value {
    _read { yield box.value }
    _modify {
      if !isKnownUniquelyReferenced(&box) { box = Box(box.value) }
      yield &box.value
    }
  }

  static func == (left: Boxed, right: Boxed) -> Bool { left.box === right.box || left.value == right.value }

  func hash(into hasher: inout Hasher) { hasher.combine(value) }
}
