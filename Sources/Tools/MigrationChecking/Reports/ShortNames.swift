// Long names of versions in a report. Teams name versions after releases, and such names differ only at their end: a
// name cut at its end would be the same for all of them.

import Diagnostics

/// The names of a model's versions, short enough for a table and for the boxes of a graph.
package struct ShortNames: Sendable {
  /// The number of characters up to which a name is short.
  private static let limit = 24

  /// The beginning that all names share and that is left out; empty if they are short or share too little.
  package let shared: String

  /// Makes short names of the names of one model.
  package init(_ names: [String]) {
    let lines = names.map(\.printableLine)
    shared = lines.contains { $0.count > Self.limit } ? Self.shared(of: lines) : ""
  }

  /// Returns the name without the shared beginning.
  package func name(_ name: String) -> String {
    let line = name.printableLine
    return shared.isEmpty || !line.hasPrefix(shared) ? line : "…" + line.dropFirst(shared.count)
  }

  /// Returns the name for a box, with a gap in its middle if it is still long.
  package func label(_ name: String) -> String { Self.cut(self.name(name), to: Self.limit) }

  /// The sentence that resolves the gaps; empty if there are none.
  package var remark: String { shared.isEmpty ? "" : "“…” stands for “\(shared)”" }

  /// Returns a text of at most `most` characters: its beginning and its end.
  package static func cut(_ text: String, to most: Int) -> String {
    text.count > most ? "\(text.prefix((most - 1) / 2))…\(text.suffix(most / 2))" : text
  }

  /// Returns the beginning that all names share, as far as its last separator.
  private static func shared(of names: [String]) -> String {
    guard names.count > 1, var shared = names.first else { return "" }
    for name in names { while !name.hasPrefix(shared) { shared.removeLast() } }
    if let end = shared.lastIndex(where: { " -_.".contains($0) }) { shared = String(shared[...end]) }
    return shared.count < 6 || names.contains(shared) ? "" : shared
  }
}
