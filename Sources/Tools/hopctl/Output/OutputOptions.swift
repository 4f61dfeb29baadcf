import ArgumentParser
import Diagnostics

/// The output options of a command.
struct OutputOptions: ParsableArguments {
  @Flag(help: "Print JSON")
  var json = false

  @Flag(name: [.customShort("q"), .long], help: "Print only errors")
  var quiet = false

  @Flag(name: .customLong("no-progress"), help: "Hide the progress bar")
  var noProgress = false

  /// Prints a line of the result; nothing with `--quiet` or `--json`. Names in it may come from untrusted files, so
  /// control characters are escaped here for all lines; `keepingNewlines` is for text with newlines of hopctl's own.
  func line(_ text: String, keepingNewlines: Bool = false) throws(HopdError) {
    try line(TerminalText(text), keepingNewlines: keepingNewlines)
  }

  /// The same for a line whose words may have a mood, which a terminal shows in color.
  func line(_ text: TerminalText, keepingNewlines: Bool = false) throws(HopdError) {
    guard !json, !quiet else { return }
    let inColor = StandardStreams.Stream.output.showsColor
    try StandardStreams.write(
      text.rendered(inColor: inColor, keepingNewlines: keepingNewlines) + "\n", to: .output)
  }

  /// Prints the result as JSON; nothing without `--json`.
  func object(_ value: JSONObject, isForReview: Bool = false) throws(HopdError) {
    try encoded(value, isForReview: isForReview)
  }

  /// The same for a value whose properties are the keys.
  func encoded(_ value: some Encodable, isForReview: Bool = false) throws(HopdError) {
    if json { try StandardStreams.write(JSONText.of(value, isForReview: isForReview) + "\n", to: .output) }
  }

  /// Prints lines of the result.
  func lines(_ lines: some Sequence<String>) throws(HopdError) {
    for text in lines { try line(text) }
  }

  /// The same for lines whose words may have a mood.
  func lines(_ lines: some Sequence<TerminalText>) throws(HopdError) {
    for text in lines { try line(text) }
  }

  /// Returns the remarks that were not printed yet: a plan repeats the catalog's remarks on its model.
  static func news(_ remarks: [HopdError], after reported: [HopdError]) -> [HopdError] {
    remarks.filter { remark in !reported.contains { $0.code == remark.code && $0.message == remark.message } }
  }

  /// Prints warnings to standard error.
  func warn(_ warnings: [HopdError]) { warn(texts: warnings.map(\.description)) }

  /// The same for warnings that hopd has sent.
  func warn(texts: [String]) {
    guard !quiet else { return }
    for text in texts { StandardStreams.report(TerminalText("warning:", .attention) + " \(text)") }
  }
}
