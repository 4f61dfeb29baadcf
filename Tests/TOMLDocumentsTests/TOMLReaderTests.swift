// TOML 1.0, section by section: texts with their values, and texts that the specification forbids with the place of the
// mistake.

import Diagnostics
import SystemPackage
import Testing

@testable import TOMLDocuments

@Suite struct TOMLReaderTests {
  private static func read(_ text: String) throws(HopdError) -> TOMLNode {
    try TOMLNode(toml: text, file: "/x.toml", code: .internalError)
  }

  /// A tree in one line: keys sorted, strings in quotes, kinds that hopd does not use by name.
  private static func shown(_ node: TOMLNode) -> String {
    switch node.value {
    case .table(let entries):
      "{" + entries.sorted { $0.key < $1.key }.map { "\($0.key)=\(shown($0.value))" }.joined(separator: " ") + "}"
    case .array(let elements): "[" + elements.map(shown).joined(separator: " ") + "]"
    case .string(let text): text.debugDescription
    case .integer(let number): "\(number)"
    case .real(let number): "\(number)"
    case .boolean(let flag): "\(flag)"
    case .other(let kind): kind
    }
  }

  @Test(arguments: TOMLCases.valid.indices) func readsWhatIsValid(_ index: Int) throws {
    let (text, expected) = TOMLCases.valid[index]
    let node = try Self.read(text)
    #expect(Self.shown(node) == "{\(expected)}", "\(text.debugDescription)")
    // The same with the line ends of Windows, except inside strings of several lines, where they become LF anyway.
    let other = text.replacing("\r\n", with: "\n").replacing("\n", with: "\r\n")
    #expect(Self.shown(try Self.read(other)) == "{\(expected)}", "\(other.debugDescription)")
  }

  @Test(arguments: TOMLCases.invalid.indices) func refusesWhatIsNotValid(_ index: Int) throws {
    let (text, place, words) = TOMLCases.invalid[index]
    let error = #expect(throws: HopdError.self, "\(text.debugDescription)") { _ = try Self.read(text) }
    guard let error else { return }
    let found = "\(error.place.line ?? 0):\(error.place.column ?? 0)"
    #expect(found == place, "\(text.debugDescription)\n\(error)")
    #expect(error.message.contains(words), "\(text.debugDescription)\n\(error)")
    #expect(error.code == .internalError && error.place.file == "/x.toml")
  }

  @Test func everyKeyAndElementHasItsPlace() throws {
    let text = """
      a = 1
      [b.'c']
      "d e".f = [ 1,
       { g = 2, é.h = 3 } ]
      [[i]]
      [[i]]
      j=1
      [i.k]
      l=1
      """
    var places: [String: String] = [:]
    func note(_ node: TOMLNode, _ path: String) {
      places[path] = node.position.map { "\($0.line):\($0.column)" }
      switch node.value {
      case .table(let entries): for (key, entry) in entries { note(entry, "\(path)/\(key)") }
      case .array(let elements): for (number, element) in elements.enumerated() { note(element, "\(path)/\(number)") }
      default: break
      }
    }
    note(try Self.read(text.replacing("é", with: "\"é\"")), "")
    #expect(
      places == [
        "/a": "1:1", "/b": "2:1", "/b/c": "2:1", "/b/c/d e": "3:1", "/b/c/d e/f": "3:7", "/b/c/d e/f/0": "3:13",
        "/b/c/d e/f/1": "4:2", "/b/c/d e/f/1/g": "4:4", "/b/c/d e/f/1/é": "4:11", "/b/c/d e/f/1/é/h": "4:15",
        "/i": "5:1", "/i/0": "5:1", "/i/1": "6:1", "/i/1/j": "7:1", "/i/1/k": "8:1", "/i/1/k/l": "9:1",
      ])
  }

  @Test func numbersKeepTheirValue() throws {
    let node = try Self.read("nan = -nan\nzero = -0.0\nsmall = 5e-324\nexact = 0.1")
    guard case .table(let entries) = node.value, case .real(let nan)? = entries["nan"]?.value,
      case .real(let zero)? = entries["zero"]?.value, case .real(let small)? = entries["small"]?.value,
      case .real(let exact)? = entries["exact"]?.value
    else {
      Issue.record("not four doubles")
      return
    }
    #expect(nan.isNaN && zero.sign == .minus && small == .leastNonzeroMagnitude && exact == 0.1)
  }
}
