// What an operator answers where two models leave something open: how a name goes on, which way is taken. Each through
// the program, as the hint of the refusal says it.

import BlockingTests
import FoundationEssentials
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct InferenceAnswersTests {
  /// A model whose versions have these attributes, written as XML, and a store of the first with five objects.
  private func world(_ versions: [String]) throws -> (room: Room, models: String, store: String) {
    let room = try Room()
    for (index, attributes) in versions.enumerated() {
      try room.file(
        "Notes.xcdatamodeld/Notes \(index + 1).xcdatamodel/contents",
        "<?xml version='1.0'?><model><entity name='Note'>\(attributes)</entity></model>")
    }
    try room.file(
      "Notes.xcdatamodeld/.xccurrentversion",
      """
      <?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict><key>_XCCurrentVersionName</key>
      <string>Notes \(versions.count).xcdatamodel</string></dict></plist>
      """)
    try room.file("stores/.none", "")
    let (models, store) = (room.path("Notes.xcdatamodeld"), room.path("stores/a.sqlite"))
    let made = try room.run("create", store, "--models", models, "--model-version", "Notes 1", "--rows", "5")
    try #require(made.status == 0, "\(made.errors)")
    return (room, models, store)
  }

  private func attribute(_ name: String, _ type: String, _ more: String = "optional='YES'") -> String {
    "<attribute name='\(name)' attributeType='\(type)' \(more)/>"
  }

  @Test func aForgottenRenamingIdentifierHasTwoAnswers() throws {
    // `text` was renamed from `body` once; the next version has lost the identifier.
    let versions = [
      attribute("text", "String", "optional='YES' elementID='body'"),
      attribute("text", "String") + attribute("more", "UUID"),
    ]
    let (room, models, store) = try world(versions)
    let texts = "SELECT group_concat(quote(ZTEXT)) FROM ZNOTE"
    let before = try room.sql(store, texts)
    let refused = try room.run("migrate", store, "--models", models)
    #expect(refused.status == 65)
    #expect(
      refused.errors.contains("--no-rename") && refused.errors.contains("--rename Note.text="), "\(refused.errors)")
    #expect(try room.sql(store, texts) == before)
    for answer in [["--no-rename"], ["--rename", "Note.text=text"], ["--rename", "Note.text="]] {
      let copy = room.path("stores/copy\(answer.joined()).sqlite")
      let outcome = try room.run(words: ["migrate", store, "--models", models, "--output", copy] + answer)
      #expect(outcome.status == 0, "\(answer): \(outcome.errors)")
      let isKept = answer.last != "Note.text="
      #expect((try room.sql(copy, texts) == before) == isKept, "\(answer)")
    }
    #expect(try room.run("migrate", store, "--models", models, "--rename", "nonsense").status == 64)
  }

  @Test func aValueThatTheNewTypeCannotHoldMayBeDropped() throws {
    for (before, after, code) in [
      ("Date", "Integer 32", "not-inferable"), ("String", "URI", "not-inferable"),
      ("Integer 64", "Integer 16", "number-does-not-fit"),
    ] {
      let (room, models, store) = try world([
        attribute("kept", "String") + attribute("changed", before),
        attribute("kept", "String") + attribute("changed", after),
      ])
      _ = try room.sql(store, "UPDATE ZNOTE SET ZCHANGED = 70000")
      let refused = try room.run("migrate", store, "--models", models, "--json")
      #expect(refused.status == 65)
      let error = try refused.json().error
      let reasons = [error].compactMap(\.self) + (error?.reasons?.list ?? [])
      #expect(reasons.contains { $0.code?.text == code }, "\(before): \(refused.errors)")
      let answer = try #require(refused.errors.firstMatch(of: /--rename (\S+)/)?.1, "\(refused.errors)")
      let kept = "SELECT group_concat(quote(ZKEPT)) FROM ZNOTE"
      let texts = try room.sql(store, kept)
      let outcome = try room.run("migrate", store, "--models", models, "--rename", String(answer))
      #expect(outcome.status == 0, "\(before): \(outcome.errors)")
      #expect(outcome.errors.contains("dropped with 5 values"), "\(outcome.errors)")
      #expect(try room.sql(store, "SELECT count(ZCHANGED) FROM ZNOTE") == "0")
      #expect(try room.sql(store, kept) == texts)
    }
  }

  @Test func bothReadingsMayGiveTheSameRows() throws {
    let versions = [
      attribute("text", "String", "optional='YES' elementID='body'"),
      attribute("text", "String") + attribute("more", "UUID"),
    ]
    let (room, models, store) = try world(versions)
    _ = try room.sql(store, "UPDATE ZNOTE SET ZTEXT = NULL")
    #expect(try room.run("migrate", store, "--models", models).status == 0)
  }

  @Test func routes() throws {
    // The second version lacks `text`; the third has it again.
    let text = attribute("text", "String")
    let versions = [text, attribute("other", "Integer 16"), text + attribute("more", "Integer 16")]
    let (room, models, store) = try world(versions)
    let kept = try room.sql(store, "SELECT group_concat(quote(ZTEXT)) FROM ZNOTE")
    for (route, isKept, hops) in [("progressive", false, 2), ("direct", true, 1), ("shortest", true, 1)] {
      let copy = room.path("stores/\(route).sqlite")
      let plan = try room.run("plan", store, "--models", models, "--route", route, "--json").json()
      #expect(plan.hops?.list.count == hops, "\(route)")
      #expect(try room.run("migrate", store, "--models", models, "--output", copy, "--route", route).status == 0)
      let found = try room.sql(copy, "SELECT group_concat(quote(ZTEXT)) FROM ZNOTE")
      #expect((found == kept) == isKept, "\(route)")
    }
    #expect(try room.run("plan", store, "--models", models, "--route", "scenic").status == 64)
  }

  @Test func anImpossibleVersionIsSkippedAndReported() throws {
    // No string becomes a date, and no date a string; the first version and the last agree.
    let versions = [
      attribute("when", "String"), attribute("when", "Date"), attribute("when", "String") + attribute("more", "UUID"),
    ]
    let (room, models, store) = try world(versions)
    let kept = try room.sql(store, "SELECT group_concat(quote(ZWHEN)) FROM ZNOTE")
    let outcome = try room.run("migrate", store, "--models", models)
    #expect(outcome.status == 0)
    #expect((outcome.output + outcome.errors).contains("Notes 2"), "\(outcome.errors)")
    #expect(try room.sql(store, "SELECT group_concat(quote(ZWHEN)) FROM ZNOTE") == kept)
  }

  @Test func numbersThatFitGoOnAndOthersAreNamed() throws {
    let (room, models, store) = try world([attribute("size", "Integer 32"), attribute("size", "Integer 16")])
    _ = try room.sql(store, "UPDATE ZNOTE SET ZSIZE = 7; UPDATE ZNOTE SET ZSIZE = 40000 WHERE Z_PK = 3")
    let refused = try room.run("plan", store, "--models", models)
    #expect(refused.status == 65 && refused.errors.contains("Note.size, row 3"), "\(refused.errors)")
    #expect(!refused.errors.contains("40000"))
    _ = try room.sql(store, "UPDATE ZNOTE SET ZSIZE = 32767 WHERE Z_PK = 3")
    #expect(try room.run("migrate", store, "--models", models).status == 0)
    #expect(try room.sql(store, "SELECT ZSIZE FROM ZNOTE WHERE Z_PK = 3").contains("32767"))
  }
}
