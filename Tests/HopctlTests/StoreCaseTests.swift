// Stores as nobody should make them, each with what hopctl must answer: Tests/StoreCases, one folder a case. For every
// case identify, plan, migrate --output and migrate are run, and what they leave on the disk is compared with what was
// there.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct StoreCaseTests {
  @Test func thereAreCases() {
    #expect(StoreCase.all.count >= 60)
    for case .failure(let unreadable) in StoreCase.all {
      Issue.record("\(unreadable.name)/expected.json: \(unreadable.why)")
    }
  }

  @Test(arguments: StoreCase.all.compactMap { try? $0.get() })
  func isAnsweredAsExpected(_ item: StoreCase) throws {
    let room = try Room()
    let (source, place) = (room.path("source"), room.path("place"))
    let store = "\(source)/\(item.fileName)"
    try make(item, room, store)
    // With the same owner, times, links and pipes; a name that leads elsewhere leads there still.
    #expect(try room.shell(#"cp -a -- "$A" "$B""#, ["A=\(source)", "B=\(place)"]).status == 0)
    let before = try room.listing(source)
    let models = ["--models", item.models]
    let more = item.expected.arguments ?? []
    let scratch = room.path("scratch")
    try FileManager.default.createDirectory(atPath: scratch, withIntermediateDirectories: true)

    // Those that only look leave everything as it was.
    let identify = item.expected.identify
    let found = try answer(item, "identify", identify, room, ["identify", store] + models)
    if let state = identify.state { #expect(try found.json().state?.text == state) }
    #expect(try room.listing(source) == before, "identify changed something")
    try answer(item, "plan", item.expected.plan, room, ["plan", store, "--scratch", scratch] + models + more)
    #expect(try room.listing(source) == before, "plan changed something")
    try FileManager.default.createDirectory(atPath: room.path("out"), withIntermediateDirectories: true)
    let copy = item.expected.copy
    let made = room.path("out/new.sqlite")
    try answer(item, "copy", copy, room, ["migrate", store, "--output", made] + models + more)
    #expect(try room.listing(source) == before, "migrate --output changed something")
    if copy.status == 0 {
      try judge(item, copy, room, folder: room.path("out"), file: "new.sqlite", source: source)
    } else {
      #expect(try room.listing(room.path("out")).isEmpty)
    }

    // And the one that replaces, on the copy.
    let replaced = "\(place)/\(item.fileName)"
    let wanted = item.expected.place
    let outcome = try answer(item, "place", wanted, room, ["migrate", replaced] + models + more)
    guard wanted.status == 0 else {
      if item.expected.mayReadLogs != true {
        #expect(try room.listing(place) == before, "a refusal changed something")
      }
      return
    }
    try judge(item, wanted, room, folder: place, file: item.fileName, source: source)
    let backup = FilePath(try #require(try outcome.json().backup?.text))
    let facts = ["SELECT name, sql FROM sqlite_master ORDER BY 1, 2"] + Array(try carried(item, wanted).keys.sorted())
    #expect(
      try room.ask(backup.removingLastComponent().string, item.fileName, facts)
        == room.ask(source, item.fileName, facts))
  }

  /// The store as `hopctl create` makes it, then changed by make.sql and make.
  private func make(_ item: StoreCase, _ room: Room, _ store: String) throws {
    let wanted = item.expected.store
    try FileManager.default.createDirectory(
      atPath: FilePath(store).removingLastComponent().string, withIntermediateDirectories: true)
    var words = ["create", store, "--models", item.models, "--model-version", wanted.version]
    words += ["--rows", "\(wanted.rows ?? 30)", "--seed", "7", "--quiet"]
    if let framework = wanted.framework { words += ["--framework-version", "\(framework)"] }
    let created = try room.run(words: words)
    try #require(created.status == 0, "\(created.errors)")
    let script = """
      cd "$(dirname -- "$STORE")"
      if [ -e "$CASE/make.sql" ]; then sqlite3 -bail -batch "$STORE" <"$CASE/make.sql"; fi
      if [ -e "$CASE/make" ]; then . "$CASE/make"; fi
      """
    let outcome = try room.shell(
      script, ["STORE=\(store)", "CASE=\(item.folder)", "NAME=\(item.fileName)", "COMMON=\(StoreCase.root.string)"])
    try #require(outcome.status == 0, "\(item.name): make failed: \(outcome.errors)")
  }

  @discardableResult
  private func answer(
    _ item: StoreCase, _ command: String, _ wanted: StoreCase.Answer, _ room: Room, _ words: [String]
  ) throws -> Outcome {
    let outcome = try room.run(words: words + ["--json", "--no-progress"])
    #expect(outcome.status == wanted.status, "\(item.name), \(command): \(outcome.errors)")
    let error = try outcome.json().error
    let code = error?.code?.text
    if let expected = wanted.code { #expect(code == expected, "\(item.name), \(command): \(outcome.errors)") }
    if outcome.status != 0 {
      #expect(code != nil && code != "internal-error" && error?.message?.text?.isEmpty == false)
      #expect(outcome.errors.contains("hint: "), "\(item.name), \(command): \(outcome.errors)")
    }
    for word in wanted.says ?? [] { #expect(outcome.errors.contains(word), "\(command): \(outcome.errors)") }
    // Values of attributes stand in no message; the cases mark theirs.
    #expect(!outcome.errors.contains("S3CRET") && !outcome.output.contains("S3CRET"))
    return outcome
  }

  private func carried(_ item: StoreCase, _ wanted: StoreCase.Answer) throws -> [String: String] {
    try wanted.carried ?? item.carriedByModel()
  }

  /// A result: a proper store of its version, sound, with what the source held.
  private func judge(
    _ item: StoreCase, _ wanted: StoreCase.Answer, _ room: Room, folder: String, file: String, source: String
  ) throws {
    let verified = try room.run(
      words: ["verify", "\(folder)/\(file)", "--models", item.models, "--verify", "full", "--quiet"])
    #expect(verified.status == item.expected.verify?.status ?? 0, "\(item.name): \(verified.errors)")
    for word in item.expected.verify?.says ?? [] { #expect(verified.errors.contains(word), "\(verified.errors)") }
    let pairs = try carried(item, wanted).sorted { $0.key < $1.key }
    let checks = (wanted.checks ?? [:]).sorted { $0.key < $1.key }
    let answers = try room.ask(
      folder, file, ["PRAGMA integrity_check"] + checks.map(\.key) + pairs.map(\.value))
    #expect(answers.first == "ok\n")
    for (check, answer) in zip(checks, answers.dropFirst()) {
      #expect(answer == check.value + "\n", "\(item.name): \(check.key)")
    }
    let held = try room.ask(source, item.fileName, pairs.map(\.key))
    #expect(Array(answers.suffix(pairs.count)) == held, "\(item.name): not carried as it was")
  }
}
