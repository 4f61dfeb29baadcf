// How hopctl says that a migration waits for the window of its watch: in status, and after an order.

/// A wait for the window of a watch.
struct WindowWait {
  /// Such as "until 22:00".
  let until: String

  /// The sentence about it; `watch` is the name of the watch, if it is known.
  func sentence(_ watch: String? = nil) -> String {
    "its migration waits \(until), when the window of \(watch.map { "the watch \($0)" } ?? "its watch") opens"
  }
}
