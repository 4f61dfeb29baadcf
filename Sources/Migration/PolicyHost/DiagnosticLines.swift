// Lines that a program writes to standard error: up to a limit they go to the journal, and the last ones are kept for
// the error message. A program that writes without end is not blocked, but only its beginning goes to the journal.

import Diagnostics

extension HopdError {
  /// The begin of a reason that quotes a line of a program.
  static let quote = "the program wrote: "

  /// The error without the reasons that quote these lines, which were reported as they came.
  package func withoutQuotes(of reported: [String]) -> HopdError {
    guard !reported.isEmpty else { return self }
    let quotes = Set(reported.map { Self.quote + DiagnosticLines.quoted($0) })
    var rest = self
    rest.reasons = reasons.filter { !quotes.contains($0.message) }.map { $0.withoutQuotes(of: reported) }
    return rest
  }
}

/// Lines of a program's standard error.
struct DiagnosticLines {
  /// Bytes of one line; the rest of it is left out.
  static let lineLimit = 4096
  /// Bytes that are passed on per program.
  static let totalLimit = 256 << 10
  /// Lines that an error quotes, and characters of each.
  static let lastCount = 10
  static let quotedLimit = 300

  /// Whether the program has closed it.
  var isClosed = false
  /// The last lines, oldest first.
  private(set) var last: [String] = []
  private let observer: (String) -> Void
  private var line: [UInt8] = []
  private var isCut = false
  private var total = 0
  private var isFlood = false

  init(_ observer: @escaping (String) -> Void) { self.observer = observer }

  mutating func add(_ bytes: some Sequence<UInt8>) {
    for byte in bytes {
      if byte == UInt8(ascii: "\n") {
        finishLine()
      } else if line.count < Self.lineLimit {
        line.append(byte)
      } else {
        isCut = true
      }
    }
  }

  /// The program has ended: takes the last line without its newline.
  mutating func finish() {
    if !line.isEmpty { finishLine() }
  }

  /// A line as an error quotes it: the end of a long one, as messages of Python end with the cause.
  static func quoted(_ line: String) -> String {
    line.count > quotedLimit ? "… " + line.suffix(quotedLimit) : line
  }

  private mutating func finishLine() {
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    let text = String(decoding: line, as: UTF8.self) + (isCut ? " … (cut)" : "")
    let size = line.count
    line.removeAll(keepingCapacity: true)
    isCut = false
    guard !text.isEmpty else { return }
    last.append(text)
    if last.count > Self.lastCount { last.removeFirst() }
    guard !isFlood else { return }
    total += size + 1
    if total > Self.totalLimit {
      isFlood = true
      observer("… (the program writes more than \(Self.totalLimit >> 10) KiB; the rest is left out)")
    } else {
      observer(text)
    }
  }
}
