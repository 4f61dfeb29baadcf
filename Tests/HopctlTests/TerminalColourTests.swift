// What a reader at a terminal sees in colour, and that nobody else gets escape sequences.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

@Suite(
  .blocking, .enabled(if: Program.isBuilt, Program.absence),
  .enabled(if: access("/usr/bin/script", X_OK) == 0, "script(1) of util-linux, which makes a terminal, is not there"))
struct TerminalColourTests {
  private static let (green, yellow, red) = ("\u{1b}[32m", "\u{1b}[33m", "\u{1b}[1;31m")
  private static let end = "\u{1b}[0m"

  /// What a terminal gets from a command.
  private func seen(_ room: Room, _ words: [String], variables: [String] = ["TERM=xterm"]) throws -> String {
    let program = try #require(Program.path)
    let command = ([program.string] + words).map { "'\($0)'" }.joined(separator: " ")
    return try room.wait(
      room.start(program: "/usr/bin/script", ["-qec", command, "/dev/null"], variables: variables)
    ).output
  }

  @Test func statesAndVerdictsHaveColours() throws {
    let room = try Room()
    let current = try room.store("current.sqlite", version: "Zoo 10")
    let behind = try room.store("behind.sqlite")
    try room.file("text.sqlite", "no store")
    #expect(
      try seen(room, ["identify", current, "--models", room.model]).contains("(\(Self.green)current\(Self.end))"))
    #expect(try seen(room, ["identify", behind, "--models", room.model]).contains("(\(Self.yellow)behind\(Self.end);"))
    let text = try seen(room, ["identify", room.path("text.sqlite"), "--models", room.model])
    #expect(text.contains("\(Self.red)not a Core Data store\(Self.end)"))
    #expect(text.contains("\(Self.red)hopctl:\(Self.end) "))
    let checked = try seen(room, ["check", room.model, "--rows", "5"])
    #expect(checked.contains("\(Self.green)ok\(Self.end) "), "\(checked)")
    let verified = try seen(room, ["verify", behind, "--models", room.model])
    #expect(verified.contains("  \(Self.green)ok\(Self.end)  "), "\(verified)")
  }

  @Test func columnsStandWhereTheyStandWithoutColours() throws {
    let room = try Room()
    let store = try room.store("store.sqlite")
    let words = ["verify", store, "--models", room.model]
    let coloured = try seen(room, words)
    let bare = [Self.green, Self.yellow, Self.red, Self.end].reduce(coloured.replacing("\r\n", with: "\n")) {
      $0.replacing($1, with: "")
    }
    #expect(bare == (try room.run(words: words)).output && bare != coloured)
  }

  @Test func nobodyElseGetsEscapeSequences() throws {
    let room = try Room()
    try room.file("text.sqlite", "no store")
    let words = ["identify", room.path("text.sqlite"), "--models", room.model]
    let piped = try room.run(words: words, variables: ["TERM=xterm"])
    #expect(!piped.output.contains("\u{1b}") && !piped.errors.contains("\u{1b}"))
    for variables in [["TERM=xterm", "NO_COLOR=1"], ["TERM=dumb"]] {
      #expect(!(try seen(room, words, variables: variables)).contains("\u{1b}"), "\(variables)")
    }
  }

  @Test func namesOfStrangersStayEscapedOnATerminal() throws {
    let room = try Room()
    try room.file("red\u{1b}[31m.sqlite", "no store")
    let text = try seen(room, ["identify", room.path("red\u{1b}[31m.sqlite"), "--models", room.model])
    #expect(!text.contains("red\u{1b}") && text.contains("red\\x1b[31m.sqlite"), "\(text)")
  }
}
