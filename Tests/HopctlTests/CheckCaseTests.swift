// Model changes that break a hop, changes that break none, and edits of versions that have shipped: Tests/CheckCases,
// one folder a case. For each, `hopctl check` must be red or green, and name the very entity and property.

import BlockingTests
import FoundationEssentials
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct CheckCaseTests {
  @Test func thereAreCases() throws {
    let folders = try FileManager.default.contentsOfDirectory(atPath: CheckCase.root.string).filter {
      $0 != "README.md"
    }
    #expect(Set(CheckCase.all.map(\.name)) == Set(folders), "a folder has no expected.json that can be read")
    #expect(CheckCase.all.count { $0.expected.status != 0 } >= 35)
  }

  @Test(arguments: CheckCase.all)
  func isJudgedAsExpected(_ item: CheckCase) throws {
    let room = try Room()
    try room.model(of: item)
    let model = room.path("Model.xcdatamodeld")
    let expected = item.expected
    var words = ["check", model, "--scratch", room.path.string] + (expected.arguments ?? [])
    if expected.freeze == true {
      words += ["--lock", room.path("hop.lock")]
      let frozen = try room.run(words: words + ["--freeze"])
      #expect(frozen.status == 0, "\(frozen.output)\(frozen.errors)")
      try change(item, room)
      if let to = expected.to { words += ["--to", to] }
      if let order = expected.order { words += ["--order"] + order }
    }
    if let current = expected.current { try room.currentVersion(current) }
    let text = try room.run(words: words)
    #expect(text.status == expected.status, "\(text.output)\(text.errors)")
    for word in expected.says ?? [] { #expect(text.output.contains(word), "\(word): \(text.output)") }
    for word in expected.saysNot ?? [] { #expect(!text.output.contains(word), "\(word): \(text.output)") }
    let outcome = try room.run(words: words + ["--json"])
    #expect(outcome.status == expected.status, "\(outcome.errors)")
    try judge(item, try #require(outcome.json().models?.list.first), text.output)
    // Nothing of the trials stays.
    let left = try FileManager.default.contentsOfDirectory(atPath: room.path.string)
    #expect(!left.contains { $0.hasPrefix("hopd-scratch") })
  }

  private func judge(_ item: CheckCase, _ model: JSON, _ text: String) throws {
    let expected = item.expected
    let findings = model.findings?.list ?? []
    let found = findings.map { finding in
      CheckCase.Finding(
        code: expected.anyCode == true ? "" : finding.code?.text ?? "", entity: finding.entity?.text,
        property: finding.property?.text)
    }
    let wanted = expected.findings.map {
      CheckCase.Finding(code: expected.anyCode == true ? "" : $0.code, entity: $0.entity, property: $0.property)
    }
    #expect(Set(found) == Set(wanted), "\(text)")
    let warnings = (model.warnings?.list ?? []).map {
      CheckCase.Finding(code: $0.code?.text ?? "", entity: $0.entity?.text, property: $0.property?.text)
    }
    #expect(Set(warnings) == Set(expected.warnings ?? []), "\(text)")
    for finding in findings {
      if let hop = expected.hop { #expect(finding.hop?.text == hop) }
      if let stops = expected.stops { #expect(finding.stops?.list.compactMap(\.text) == stops) }
      if let rows = expected.rowsDecide { #expect(finding.rowsDecide == .boolean(rows)) }
      if let ways = expected.ways { #expect(finding.remedies?.list.compactMap { $0.kind?.text } == ways) }
    }
  }

  private func change(_ item: CheckCase, _ room: Room) throws {
    for number in 1...item.versions {
      if let edited = item.entities(number, edited: true) { try room.modelVersion(number, edited) }
    }
    for (old, new) in item.expected.renamed ?? [:] {
      try FileManager.default.moveItem(
        atPath: room.path("Model.xcdatamodeld/\(old).xcdatamodel"),
        toPath: room.path("Model.xcdatamodeld/\(new).xcdatamodel"))
    }
    for name in item.expected.removed ?? [] {
      try FileManager.default.removeItem(atPath: room.path("Model.xcdatamodeld/\(name).xcdatamodel"))
    }
    if item.expected.added == true, let entities = item.entities(item.versions) {
      let more = "<entity name='Later'><attribute name='at' optional='YES' attributeType='Date'/></entity>"
      try room.modelVersion(item.versions + 1, entities + more)
      try room.currentVersion(item.versions + 1)
    }
  }
}
