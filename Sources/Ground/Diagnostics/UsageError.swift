// Mistakes in a command line. ArgumentParser has its own form of messages; hopctl and hopd print them as their own
// errors: lower case, one line, the suggestion in the hint.

extension HopdError {
  /// Creates the error for a message of ArgumentParser. `command` is the command as typed, such as "hopctl fleet run".
  package static func usage(parserMessage: String, command: String) -> HopdError {
    var message = parserMessage[...]
    let suggested = message.removeTail(from: ". Did you mean ").flatMap { $0.quotedWords.first }
    let accepted = message.removeTail(from: ". Please provide one of ").map(\.listedValues) ?? []
    while let last = message.last, last == "." || last.isWhitespace { message.removeLast() }
    var text = message.prefix(1).lowercased() + message.dropFirst()
    if !accepted.isEmpty { text += ": expected \(accepted.joined(separator: ", "))" }
    let help = "run `\(command) --help` for its options"
    // ArgumentParser suggests the nearest option, however far it is.
    let near = message.quotedWords.last.flatMap { NearestName.among([suggested].compactMap(\.self), to: $0) }
    return HopdError(.usage, text, hint: near.map { "pass \($0), or \(help)" } ?? help)
  }
}

extension Substring {
  /// Removes the last `start` and the text after it; returns that text.
  fileprivate mutating func removeTail(from start: String) -> Substring? {
    guard let range = ranges(of: start).last else { return nil }
    let tail = self[range.upperBound...]
    self = self[..<range.lowerBound]
    return tail
  }

  /// The words between single quotes.
  fileprivate var quotedWords: [String] {
    split(separator: "'", omittingEmptySubsequences: false).enumerated().compactMap { index, part in
      index % 2 == 1 ? String(part) : nil
    }
  }

  /// The values of "'a', 'b' or 'c'.", or of one line each that starts with a hyphen.
  fileprivate var listedValues: [String] {
    let lines = split(separator: "\n").compactMap { line in
      line.hasPrefix("  - ") ? String(line.dropFirst(4)) : nil
    }
    return lines.isEmpty ? quotedWords : lines
  }
}
