// The mistakes of a TOML file that a person writes, all of them at once: an author repairs a file once, not once per
// mistake. An unknown key is one too: what it was to say would be left out, and no row would show it.

import Diagnostics
import SystemPackage
import TOMLDocuments

/// Collects the mistakes of one file.
struct TextMistakes {
  /// The code of all of them.
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

  /// The entries of a table; unknown keys are mistakes. `header` is how the file names such a table.
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
        near.map { "did you mean `\($0)`?" } ?? "the keys are: \(known.joined(separator: ", "))")
    }
    return entries
  }

  /// The text of an entry of the table `path`; nil where it is not set, or is no text.
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

  /// Throws what was found: one mistake as it is, several as reasons of one error, in the order of the file.
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
