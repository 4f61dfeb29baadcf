// `hopctl check`, `explain` and `model diff` from outside: exit statuses, the extent of a check, and what differs
// between a store and the versions.

import BlockingTests
import FoundationEssentials
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct CheckCommandTests {
  private func check(_ room: Room, _ words: String...) throws -> Outcome {
    try room.run(words: ["check", room.model, "--scratch", room.path.string, "--json"] + words)
  }

  private func verdicts(_ outcome: Outcome) throws -> [String: String] {
    let versions = try outcome.json().models?.list.first?.versions?.list ?? []
    return Dictionary(
      versions.map { ($0.name?.text ?? "", $0.verdict?.text ?? "") }, uniquingKeysWith: { first, _ in first })
  }

  @Test func aModelWhoseVersionsAllReachTheCurrentOneIsGreen() throws {
    let room = try Room()
    let outcome = try check(room)
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(try verdicts(outcome) == ["Zoo": "passed", "Zoo 2": "passed", "Zoo 10": "current"])
    #expect(try outcome.json().result?.text == "green")
  }

  @Test func wrongUseIsReported() throws {
    let room = try Room()
    #expect(try room.run("check").status == 6)
    #expect(try room.run("check", room.path("nothing.xcdatamodeld")).status == 66)
    #expect(try check(room, "--only", "Zoo 3").status == 64)
    #expect(try check(room, "--since", "Zoo 3").status == 64)
    #expect(try check(room, "--lock", room.path("none.lock")).status == 66)
    try room.file("hop.lock", "format = 7\n")
    #expect(try check(room, "--lock", room.path("hop.lock")).status == 78)
  }

  @Test("With --quiet a failed check still names what failed, on standard error")
  func quiet() throws {
    let room = try Room()
    let words = ["check", room.model, "--scratch", room.path.string, "-q"]
    let green = try room.run(words: words)
    #expect(green.status == 0 && green.output.isEmpty && green.errors.isEmpty, "\(green)")
    let red = try room.run(words: words + ["--fail-on-drop"])
    #expect(red.status == 65 && red.output.isEmpty && red.errors.contains("hopctl: Zoo: "), "\(red)")
    #expect(red.errors.contains("colour"), "\(red.errors)")
  }

  @Test func theExtentIsKept() throws {
    let room = try Room()
    #expect(try verdicts(check(room, "--only", "Zoo 2"))["Zoo"] == "skipped")
    #expect(try verdicts(check(room, "--since", "Zoo 2"))["Zoo"] == "skipped")
    let hurried = try check(room, "--budget", "0.000001")
    #expect(hurried.status == 0)
    #expect(try verdicts(hurried)["Zoo"] == "untested")
  }

  @Test func storesOfUsersAreMigratedOnACopy() throws {
    let room = try Room()
    try room.store("old.sqlite")
    try room.store("new.sqlite", version: "Zoo 10")
    let broken = try room.store("broken.sqlite")
    try room.sql(broken, "UPDATE Z_PRIMARYKEY SET Z_ENT = Z_ENT + 50")
    let before = try room.snapshot()
    let outcome = try check(room, "--stores", room.path("stores"))
    #expect(outcome.status == 65)
    let stores = try outcome.json().stores?.list ?? []
    #expect(stores.compactMap { $0.verdict?.text } == ["failed", "current", "passed"])
    #expect(try room.snapshot() == before)
  }

  @Test func anEditedVersionIsNamedByGit() throws {
    let room = try Room()
    let git = """
      cd -- "$FOLDER"; git init -q; git add Zoo.xcdatamodeld
      git -c user.name=a -c user.email=a@example.org commit -qm one; git tag v1
      """
    #expect(
      try room.shell(git, ["FOLDER=\(room.path.string)", "PATH=/usr/bin:/bin", "HOME=\(room.path.string)"]).status == 0)
    #expect(try check(room, "--base", "v1").status == 0)
    #expect(try check(room, "--base", "v2").status == 64)
    let file = "Zoo.xcdatamodeld/Zoo 2.xcdatamodel/contents"
    let old = String(decoding: try Data(contentsOf: URL(filePath: room.path(file))), as: UTF8.self)
    try room.file(
      file, old.replacing("name='born' optional='YES' attributeType='Date'", with: "name='born' attributeType='Date'"))
    let outcome = try check(room, "--base", "v1")
    #expect(outcome.status == 65)
    let finding = try #require(outcome.json().models?.list.first?.findings?.list.first)
    #expect(finding.code?.text == "shipped-version-changed")
    #expect(finding.entity?.text == "Animal" && finding.property?.text == "born")
    #expect(finding.message?.text?.contains("optional → required") == true)
  }

  @Test func aStablePlanIsTheSameForTheSameStore() throws {
    let (first, second) = (try Room(), try Room())
    let plans = try [first, second].map { room in
      try room.run("plan", room.store("a.sqlite"), "--models", room.model, "--stable", "--json")
    }
    #expect(plans.allSatisfy { $0.status == 0 })
    #expect(plans[0].output == plans[1].output)
    #expect(try plans[0].json().estimate == nil && plans[0].json().store?.text == "a.sqlite")
    #expect(plans[0].output.split(separator: "\n").count > 20, "one line is no text for a review")
  }

  @Test func theFilesForPipelinesWork() throws {
    let room = try Room()
    let folder = CheckCase.root.removingLastComponent().removingLastComponent().appending("Examples/ci")
    let script = """
      cd -- "$FOLDER"; git init -q; mkdir ci; cp "$EXAMPLES/check-models" ci/
      ci/check-models Zoo.xcdatamodeld --scratch . >/dev/null; test -s hopd-reports/junit.xml \
      -a -s hopd-reports/hopd.sarif
      GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY="$PWD/step-summary" ci/check-models Zoo.xcdatamodeld --scratch . \
      >/dev/null
      test -s step-summary
      cp "$EXAMPLES/pre-commit" .git/hooks/pre-commit
      git config user.name a; git config user.email a@example.org
      git add Zoo.xcdatamodeld; git commit -qm good
      cp -r "Zoo.xcdatamodeld/Zoo 10.xcdatamodel" "Zoo.xcdatamodeld/Zoo 11.xcdatamodel"
      sed -i "s#<attribute name='name'#<attribute name='tag' attributeType='String'/><attribute name='name'#" \
        "Zoo.xcdatamodeld/Zoo 11.xcdatamodel/contents"
      sed -i 's/Zoo 10/Zoo 11/' Zoo.xcdatamodeld/.xccurrentversion
      git add Zoo.xcdatamodeld
      if git commit -qm bad >out 2>&1; then echo 'a broken model was committed'; exit 1; fi
      grep -q 'Animal.tag' out
      """
    let outcome = try room.shell(
      script,
      [
        "FOLDER=\(room.path.string)", "EXAMPLES=\(folder.string)", "PATH=/usr/bin:/bin", "HOME=\(room.path.string)",
        "HOPCTL=\(try #require(Program.path).string)", "TMPDIR=\(room.path.string)",
      ])
    #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
  }

  @Test func aLockIsTheSameEveryTime() throws {
    let room = try Room()
    let lock = room.path("hop.lock")
    #expect(try check(room, "--lock", lock, "--freeze").status == 0)
    let first = try Data(contentsOf: URL(filePath: lock))
    #expect(try check(room, "--lock", lock, "--freeze").status == 0)
    #expect(try Data(contentsOf: URL(filePath: lock)) == first)
    let lines = String(decoding: first, as: UTF8.self).split(separator: "\n").filter { $0.hasPrefix("entity.") }
    #expect(lines.count == 9, "a line for each entity of each version")
    #expect(try check(room, "--lock", lock).status == 0)
  }

  @Test func aStoreOfNoVersionIsExplainedPropertyByProperty() throws {
    let room = try Room()
    let store = try room.store("a.sqlite", version: "Zoo 2")
    let file = "Zoo.xcdatamodeld/Zoo 2.xcdatamodel/contents"
    let old = String(decoding: try Data(contentsOf: URL(filePath: room.path(file))), as: UTF8.self)
    try room.file(
      file,
      old.replacing(
        "name='born' optional='YES' attributeType='Date'", with: "name='born' optional='YES' attributeType='String'"))
    let outcome = try room.run("explain", store, "--models", room.model)
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.output.contains("closest: Zoo 2 of Zoo"))
    #expect(outcome.output.contains("Animal.born: type String → Date, in the store"))
    #expect(outcome.output.contains("next: hopctl explain \(store) --models MODEL"), "\(outcome.output)")
    try room.sql(store, "DELETE FROM Z_MODELCACHE")
    let unknown = try room.run("explain", store, "--models", room.model).output
    #expect(unknown.ranges(of: "contains no copy of its model").count == 1, "\(unknown)")
  }

  @Test func aStoreOnItsWayIsToldTheCommand() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let outcome = try room.run("explain", store, "--models", room.model)
    #expect(outcome.output.contains("next: hopctl migrate \(store) --models \(room.model)"), "\(outcome.output)")
  }

  @Test func linesEndWithoutBlanks() throws {
    let room = try Room()
    let outcome = try room.run("check", room.model)
    #expect(outcome.output.contains("current\n"), "\(outcome)")
    #expect(outcome.output.split(separator: "\n").allSatisfy { !$0.hasSuffix(" ") }, "\(outcome)")
  }

  @Test func aDifferenceSaysWhatHappensToRows() throws {
    let room = try Room()
    let outcome = try room.run("model", "diff", room.model, "Zoo 2", "Zoo 10")
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.output.contains("- colour  (String, optional)  values dropped"), "\(outcome.output)")
    #expect(outcome.output.contains("+ legs  (Integer 16)  existing rows get the default 4"))
    let json = try room.run("model", "diff", room.model, "Zoo 2", "Zoo 10", "--json").json()
    let animal = json.entities?.list.first { $0.name?.text == "Animal" }
    #expect(Set(animal?.properties?.list.compactMap { $0.effect?.text } ?? []) == ["dropped", "defaulted"])
    #expect(try room.run("model", "diff", room.model, "Zoo 2", "Zoo 10", "--markdown").output.contains("| + | legs |"))
  }

  @Test func aRenameWithoutAnIdentifierIsSuspected() throws {
    let room = try Room()
    try room.modelVersion(
      1, "<entity name='Book'><attribute name='e_mail' optional='YES' attributeType='String'/></entity>")
    try room.modelVersion(
      2, "<entity name='Book'><attribute name='email' optional='YES' attributeType='String'/></entity>")
    try room.currentVersion(2)
    let outcome = try room.run("model", "diff", room.path("Model.xcdatamodeld"), "Model", "Model 2")
    #expect(outcome.output.contains("added email, dropped e_mail, same type: a renaming identifier may be missing"))
  }
}
