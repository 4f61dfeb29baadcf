// The ways out of a broken hop that `hopctl check` prints, taken at their word: what is to be pasted is pasted, what is
// to be typed is typed, and the check is green. Each case of Tests/CheckCases that offers a way is tried with every
// way.

import BlockingTests
import FoundationEssentials
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct WayOutTests {
  /// Cases whose single finding is one that text can mend.
  static let cases = CheckCase.all.filter { item in
    item.expected.status == 65 && item.expected.freeze == nil && item.expected.findings.count == 1
      && item.besides.isEmpty && !gaps.contains(item.name)
  }

  /// Cases whose ways do not suffice yet by themselves: the next hop needs one too, rows that are spoilt or
  /// contradictory stay in the way, or the skeleton has a line for the attribute already, which the new one must
  /// replace.
  private static let gaps: Set<String> = [
    "second-hop-breaks", "unique-new", "identifier-contradicts-name", "type-renamed-and-changed",
  ]

  private struct Way {
    let kind: String
    let lines: [String]
    let entity: String
    let property: String?
  }

  private func ways(_ item: CheckCase, _ room: Room, _ words: [String]) throws -> [Way] {
    let finding = try #require(try room.run(words: words + ["--json"]).json().models?.list.first?.findings?.list.first)
    return (finding.remedies?.list ?? []).map { way in
      Way(
        kind: way.kind?.text ?? "",
        lines: (way[dynamicMember: "text"]?.text ?? "").split(separator: "\n").map(String.init),
        entity: finding.entity?.text ?? "",
        property: finding.property?.text)
    }
  }

  private func shell(_ room: Room, _ line: String) throws -> Outcome {
    try room.shell(
      "cd -- \"$FOLDER\"; hopctl() { \"$HOPCTL\" \"$@\"; }; " + line,
      [
        "FOLDER=\(room.path.string)", "PATH=/usr/bin:/bin", "TMPDIR=\(room.path.string)",
        "HOPCTL=\(try #require(Program.path).string)",
      ])
  }

  @Test func thereAreCases() { #expect(Self.cases.count > 20) }

  @Test(arguments: cases)
  func theMappingModelThatIsProposedMakesItGreen(_ item: CheckCase) throws {
    let room = try Room()
    try room.model(of: item)
    let words = ["check", room.path("Model.xcdatamodeld")] + (item.expected.arguments ?? [])
    guard let way = try ways(item, room, words).first(where: { $0.kind == "mapping-model" }),
      let infer = way.lines.first, let check = way.lines.last
    else { return }
    let made = try shell(room, infer)
    #expect(made.status == 0, "\(made.errors)")
    guard let start = way.lines.firstIndex(where: { $0.contains("add this line") }) else { return }
    let names = way.lines[start].matches(of: #/destination = "[^"]*"/#).map { String($0.output) }
    #expect(!names.isEmpty)
    let file = try #require(
      FileManager.default.contentsOfDirectory(atPath: room.path.string).first { $0.hasSuffix(".hopmap.toml") })
    let text = String(decoding: try Data(contentsOf: URL(filePath: room.path(file))), as: UTF8.self)
    var lines: [Substring] = []
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      lines.append(line)
      // The version is named in the same way, above the entities.
      if names.contains(String(line)), lines.contains("[[entity]]") { lines.append(way.lines[start + 1][...]) }
    }
    try room.file(file, lines.joined(separator: "\n"))
    let outcome = try shell(room, check)
    // A value that is the same in all rows is only an example where it must differ.
    let isExample = way.lines[start].contains("an example") || way.lines[start].contains("of its own")
    #expect(outcome.status == (isExample ? outcome.status : 0), "\(way.lines) \(outcome.output)\(outcome.errors)")
  }

  @Test(arguments: cases)
  func theElementThatIsProposedMakesItGreen(_ item: CheckCase) throws {
    let room = try Room()
    try room.model(of: item)
    let words = ["check", room.path("Model.xcdatamodeld")] + (item.expected.arguments ?? [])
    for way in try ways(item, room, words) where ["default", "renaming-identifier"].contains(way.kind) {
      let elements = way.lines.dropFirst().map { $0.replacing("or, optional: ", with: "") }
      for element in elements where element.hasPrefix("<attribute") && !element.contains("OLD NAME") {
        try room.model(of: item)
        let number = try #require((1...item.versions).last { item.entities($0) != nil })
        let version = way.lines[0].contains("Model \(number)") ? number : number - 1
        let name = version == 1 ? "Model" : "Model \(version)"
        let path = "Model.xcdatamodeld/\(name).xcdatamodel/contents"
        let text = String(decoding: try Data(contentsOf: URL(filePath: room.path(path))), as: UTF8.self)
        let property = try #require(way.property)
        let lines = text.split(separator: "\n").map { line in
          line.contains("<attribute name='\(property)'") ? element : String(line)
        }
        try room.file(path, lines.joined(separator: "\n"))
        let outcome = try room.run(words: words)
        #expect(outcome.status == 0, "\(element): \(outcome.output)\(outcome.errors)")
      }
    }
  }
}
