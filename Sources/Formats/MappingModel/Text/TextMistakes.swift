// Collects all mistakes of a TOML file that a person writes, so that an author repairs the file once, not once per
// mistake. An unknown key is a mistake too: its content would be ignored, and no row would show it.

import Diagnostics
import SystemPackage
import TOMLDocuments

/// Collects the mistakes of one file.
struct TextMistakes {
  /// The code of all mistakes.
  let code: HopdError.Code
  private(set) var errors: [HopdError] = []

  init(_ code: HopdError.Code) { self.code = code }

  mutating func add(_ message: String, at place: Place, _ hint: String) {
    errors.append(HopdError(code, message, at: place, hint: hint))
  }

  mutating func add(_ message: String, at node: TOMLNode, _ key: String, _ hint: String) {
    add(message, at: node.place(key: key.isEmpty ? nil : key), hint)
  }

  mutating func add(_ error: HopdError) { errors.append(error) }

  /// Runs `body` and collects its error.
  mutating func collect(_ place: Place, _ body: () throws(HopdError) -> Void) {
    do throws(HopdError) {
      try body()
    } catch {
      errors.append(error.located(place))
    }
  }

  /// Returns the entries of a table; unknown keys are mistakes. `header` returns the table's heading as the file writes
  /// it.
  mutating func table(
    _ node: TOMLNode, _ path: String, known: [String], header: (String) -> String = { "[\($0)]" }
  ) -> [String: TOMLNode]? {
    guard case .table(let entries) = node.value else {
      add("`\(path)` must be a table, not \(node.kind)", at: node, path, "write \(header(path))")
      return nil
    }
    for (key, value) in entries.sorted(by: { $0.key < $1.key }) where !known.contains(key) {
      let near = NearestName.among(known, to: key)
      add(
        "unknown key `\(key)`", at: value, path.isEmpty ? key : "\(path).\(key)",
        near.map { "use `\($0)`" } ?? "use one of: \(known.joined(separator: ", "))")
    }
    return entries
  }

  /// Returns the text of an entry of the table `path`; nil if it is not set, or is not text.
  mutating func string(_ entries: [String: TOMLNode], _ key: String, in path: String) -> Located<String>? {
    guard let node = entries[key] else { return nil }
    let place = node.place(key: path.isEmpty ? key : "\(path).\(key)")
    guard case .string(let text) = node.value, !text.isEmpty else {
      let what = if case .string = node.value { "an empty one" } else { node.kind }
      add("`\(key)` must be a string, not \(what)", at: place, "write \(key) = \"…\", or remove it")
      return nil
    }
    return Located(value: text, place: place)
  }

  /// Throws the mistakes: a single one itself, several as reasons of one error, in the order of the file.
  func check(_ file: FilePath) throws(HopdError) {
    if errors.count == 1, let only = errors.first { throw only }
    guard !errors.isEmpty else { return }
    let sorted = errors.enumerated().sorted { left, right in
      let (a, b) = (left.element.place, right.element.place)
      return (a.line ?? 0, a.column ?? 0, left.offset) < (b.line ?? 0, b.column ?? 0, right.offset)
    }
    throw HopdError(
      code, "the text mapping has \(errors.count) mistakes", at: Place(file: file), reasons: sorted.map(\.element))
  }
}
