import ArgumentParser
import Diagnostics

/// How a command talks.
struct OutputOptions: ParsableArguments {
  @Flag(help: "One JSON object on standard output.")
  var json = false

  @Flag(name: [.customShort("q"), .long], help: "Only errors.")
  var quiet = false

  @Flag(name: .customLong("no-progress"), help: "No progress bar, also on a terminal.")
  var noProgress = false

  /// A line of the result; left out with `--quiet` and with `--json`. Names in it may be anything that a stranger's
  /// file holds, so here control characters are escaped for all lines; `keepingNewlines` is for text whose newlines are
  /// hopctl's own.
  func line(_ text: String, keepingNewlines: Bool = false) throws(HopdError) {
    try line(TerminalText(text), keepingNewlines: keepingNewlines)
  }

  /// The same of a line whose words may have a mood: on a terminal they have colours.
  func line(_ text: TerminalText, keepingNewlines: Bool = false) throws(HopdError) {
    guard !json, !quiet else { return }
    let inColour = StandardStreams.Stream.output.showsColour
    try StandardStreams.write(
      text.rendered(inColour: inColour, keepingNewlines: keepingNewlines) + "\n", to: .output)
  }

  /// The result as JSON; nothing without `--json`.
  func object(_ value: JSONObject, isForReview: Bool = false) throws(HopdError) {
    try encoded(value, isForReview: isForReview)
  }

  /// The same of a value whose properties are its keys.
  func encoded(_ value: some Encodable, isForReview: Bool = false) throws(HopdError) {
    if json { try StandardStreams.write(JSONText.of(value, isForReview: isForReview) + "\n", to: .output) }
  }

  /// Lines of the result.
  func lines(_ lines: some Sequence<String>) throws(HopdError) {
    for text in lines { try line(text) }
  }

  /// The same of lines whose words may have a mood.
  func lines(_ lines: some Sequence<TerminalText>) throws(HopdError) {
    for text in lines { try line(text) }
  }

  /// Those of some remarks that were not made already: a plan repeats what the catalog says of its model.
  static func news(_ remarks: [HopdError], after told: [HopdError]) -> [HopdError] {
    remarks.filter { remark in !told.contains { $0.code == remark.code && $0.message == remark.message } }
  }

  /// Remarks on standard error.
  func warn(_ warnings: [HopdError]) {
    guard !quiet else { return }
    for warning in warnings { StandardStreams.tell(TerminalText("warning:", .attention) + " \(warning)") }
  }
}
