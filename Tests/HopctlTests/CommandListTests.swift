// The list of commands as somebody reads it who types hopctl for the first time.

import BlockingTests
import SystemPackage
import Testing

@Suite("The list of commands", .blocking, .enabled(if: Program.isBuilt, Program.absence))
struct CommandListTests {
  /// The commands in a help text, by group, each with its line.
  private func groups(_ help: String) -> [(title: String, commands: [String])] {
    var found: [(title: String, commands: [String])] = []
    var isList = false
    for line in help.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasSuffix("SUBCOMMANDS:") {
        found.append((String(line.dropLast(13)).trimmingSpaces, []))
        isList = true
      } else if line.isEmpty {
        isList = false
      } else if isList, !found.isEmpty {
        found[found.count - 1].commands.append(String(line))
      }
    }
    return found
  }

  @Test("hopctl --help has at most 29 commands in four groups, one line each in 80 columns")
  func topLevel() throws {
    let room = try Room()
    let help = try room.run(words: ["--help"], variables: ["COLUMNS=80"])
    try #require(help.status == 0, "\(help.errors)")
    let groups = groups(help.output)
    #expect(groups.map(\.title) == ["MODEL", "STORE", "FLEET", "DAEMON"])
    let lines = groups.flatMap(\.commands)
    #expect(lines.count <= 29 && lines.count > 20, "\(lines.count)")
    for line in help.output.split(separator: "\n") { #expect(line.count <= 80, "\(line)") }
    // A wrapped abstract would be a line without a name.
    for line in lines { #expect(line.hasPrefix("  ") && line.dropFirst(2).first?.isLowercase == true, "\(line)") }
    for words in ["Exit status:", "65 invalid store or model", "77 permission denied\n", "--no-progress"] {
      #expect(help.output.contains(words), "\(words)")
    }
  }

  @Test(
    "Abstracts are imperatives on one line, without a full stop", arguments: [[], ["model"], ["mapping"], ["fleet"]])
  func abstracts(_ words: [String]) throws {
    let room = try Room()
    let help = try room.run(words: words + ["--help"], variables: ["COLUMNS=80"]).output
    for line in groups(help).flatMap(\.commands) {
      let parts = line.dropFirst(2).split(separator: " ", maxSplits: 1)
      let abstract = (parts.last.map { String($0) } ?? "").trimmingSpaces
      #expect(abstract.first?.isUppercase == true && !abstract.hasSuffix("."), "\(line)")
      #expect(abstract.split(separator: " ").first?.hasSuffix("s") == false, "\(line)")
    }
  }

  @Test("hopctl without arguments shows three commands and where the rest is")
  func bare() throws {
    let room = try Room()
    let shown = try room.run(words: [])
    #expect(shown.status == 0 && shown.output.hasSuffix("'hopctl help COMMAND' for one.\n"), "\(shown)")
    #expect(shown.output.split(separator: "\n").filter { $0.hasPrefix("hopctl ") }.count == 3)
  }

  @Test("The help of each command fits 80 columns, and its abstract is one line")
  func eachCommand() throws {
    let room = try Room()
    func names(_ words: [String]) throws -> [[String]] {
      let help = try room.run(words: words + ["--help"], variables: ["COLUMNS=80"])
      try #require(help.status == 0, "\(words): \(help.errors)")
      let lines = help.output.split(separator: "\n", omittingEmptySubsequences: false)
      for line in lines { #expect(line.count <= 80, "\(words): \(line)") }
      let abstract = try #require(lines.first, "\(words)")
      #expect(abstract.hasPrefix("OVERVIEW: ") && !abstract.hasSuffix("."), "\(words): \(abstract)")
      #expect(lines.count > 1 && lines[1].isEmpty, "\(words): the abstract has a second line, \(lines[1])")
      return groups(help.output).flatMap(\.commands).compactMap { line in
        line.split(separator: " ").first.map { words + [String($0)] }
      }
    }
    var waiting = try names([])
    var seen = 0
    while let words = waiting.popLast() {
      seen += 1
      waiting += try names(words).filter { $0.last != "help" }
    }
    #expect(seen > 35, "\(seen) commands")
  }

  @Test("A mistake that the argument parser finds has the form and the status of hopctl's own errors")
  func parserErrors() throws {
    let room = try Room()
    for (words, message, command) in [
      (["migrate"], "missing expected argument", "hopctl migrate"),
      (["fleet", "run", "--jbos", "1"], "unknown option '--jbos'", "hopctl fleet run"),
      (["check", "--jobs", "0"], "--jobs expects a number from 1 to 256", "hopctl check"),
    ] {
      let result = try room.run(words: words)
      #expect(result.status == 64 && result.output.isEmpty, "\(words): \(result)")
      #expect(result.errors.hasPrefix("hopctl: \(message)"), "\(words): \(result.errors)")
      #expect(result.errors.contains("run `\(command) --help` for its options"), "\(words): \(result.errors)")
    }
  }

  @Test("The help of a command shows its options by title")
  func titles() throws {
    let room = try Room()
    let help = try room.run("migrate", "--help").output
    for title in ["MODEL OPTIONS:", "MIGRATION OPTIONS:", "OUTPUT OPTIONS:"] {
      #expect(help.contains(title), "\(title)")
    }
  }
}

extension String {
  fileprivate var trimmingSpaces: String {
    let rest = drop { $0 == " " }
    return String(rest.reversed().drop { $0 == " " }.reversed())
  }
}
