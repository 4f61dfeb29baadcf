// Every command line of hopctl that a document shows exists: its verb, and its options, as the program's own help lists
// them.

import BlockingTests
import FoundationEssentials
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct DocumentedCommandsTests {
  private static let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()

  /// The documents for users.
  private static func documents() -> [FilePath] {
    let files = FileManager.default
    var found = [root.appending("README.md")]
    let pages = (try? files.contentsOfDirectory(atPath: root.appending("docs").string)) ?? []
    found += pages.filter { $0.hasSuffix(".md") }.map { root.appending("docs").appending($0) }
    for folder in ["Examples", "Examples/Mappings"] {
      let path = root.appending(folder)
      found.append(path.appending("README.md"))
      for name in (try? files.contentsOfDirectory(atPath: path.string)) ?? [] {
        found.append(path.appending(name).appending("README.md"))
      }
    }
    return found.filter { files.fileExists(atPath: $0.string) }
  }

  /// The indented command lines of a document, continued lines joined, comments and quoted arguments taken off.
  private static func commands(in document: FilePath) throws -> [String] {
    let text = String(decoding: try Data(contentsOf: URL(filePath: document.string)), as: UTF8.self)
    var commands: [String] = []
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if let last = commands.last, last.hasSuffix("\\") {
        commands[commands.count - 1] = String(last.dropLast()) + line
      } else if line.hasPrefix("    hopctl ") {
        commands.append(String(line.dropFirst(4)))
      }
    }
    return commands.map { command in
      command.split(separator: " #", maxSplits: 1).first.map(String.init) ?? command
    }
  }

  @Test func everyCommandOfTheDocumentsExists() throws {
    let room = try Room()
    var helps: [[String]: String] = [:]
    func help(_ verb: [String]) throws -> String {
      if let known = helps[verb] { return known }
      let outcome = try room.run(words: verb + ["--help"])
      #expect(outcome.status == 0, "\(verb)")
      helps[verb] = outcome.output
      return outcome.output
    }
    var count = 0
    for document in Self.documents() {
      for command in try Self.commands(in: document) {
        let words = command.split(separator: " ").map(String.init).dropFirst()
        let first = try #require(words.first)
        let verb = ["model", "mapping", "fleet"].contains(first) ? Array(words.prefix(2)) : [first]
        let text = try help(verb)
        #expect(text.contains("USAGE: hopctl \(verb.joined(separator: " "))"), "\(document): \(command)")
        for word in words where word.hasPrefix("--") {
          let option = word.split(separator: "=").first.map(String.init) ?? word
          let isListed = text.split(whereSeparator: { " ,[]()|\n<>".contains($0) }).contains { $0 == option }
          #expect(isListed, "\(document): \(command): no option \(option)")
        }
        count += 1
      }
    }
    #expect(count > 30)
  }
}
