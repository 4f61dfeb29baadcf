// hop.lock and git: what `--freeze` writes and what it refuses, and what a pull request is compared with.

import BlockingTests
import FoundationEssentials
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct LockTests {
  private static let title = "<attribute name='title' attributeType='String'/>"
  private static let note = "<attribute name='note' optional='YES' attributeType='String'/>"
  private static let more = "<attribute name='more' optional='YES' attributeType='Integer 16'/>"
  private static let extra = "<attribute name='extra' optional='YES' attributeType='Date'/>"

  /// Three versions of a model.
  private func room() throws -> Room {
    let room = try Room()
    try version(1, [Self.title], room)
    try version(2, [Self.title, Self.note], room)
    try version(3, [Self.title, Self.note, Self.more], room)
    try room.currentVersion(3)
    return room
  }

  private func version(_ number: Int, _ attributes: [String], _ room: Room) throws {
    try room.modelVersion(number, "<entity name='Book'>\n\(attributes.joined(separator: "\n"))\n</entity>")
  }

  private func check(_ room: Room, _ words: String..., model: String = "Model.xcdatamodeld") throws -> Outcome {
    try room.run(
      words: ["check", room.path(model), "--lock", room.path("hop.lock"), "--scratch", room.path.string] + words)
  }

  private func lock(_ room: Room) throws -> String {
    String(decoding: try Data(contentsOf: URL(filePath: room.path("hop.lock"))), as: UTF8.self)
  }

  @discardableResult
  private func git(_ room: Room, _ script: String) throws -> Outcome {
    let outcome = try room.shell(
      "set -e; cd -- \"$FOLDER\"; git() { command git -c user.name=a -c user.email=a@example.org \"$@\"; }; " + script,
      ["FOLDER=\(room.path.string)", "PATH=/usr/bin:/bin", "HOME=\(room.path.string)"])
    #expect(outcome.status == 0, "\(outcome.errors)")
    return outcome
  }

  private func commit(_ room: Room, _ message: String = "one") throws {
    try git(
      room, "git init -q; git add Model.xcdatamodeld; [ ! -e hop.lock ] || git add hop.lock; git commit -qm \(message)")
  }

  // MARK: --freeze

  @Test func aNotedLineIsNotWrittenOver() throws {
    let room = try room()
    #expect(try check(room, "--freeze").status == 0)
    let before = try lock(room)
    try version(2, [Self.title, Self.note, Self.extra], room)
    let refused = try check(room, "--freeze")
    #expect(refused.status == 65)
    #expect(refused.output.contains("Book.extra: the version Model 2 has shipped, and the property extra was added"))
    #expect(refused.output.contains("nothing was frozen"))
    #expect(refused.output.contains("--freeze --replace 'Model 2'"))
    #expect(try lock(room) == before)
    #expect(try check(room, "--freeze", "--replace", "Model").status == 65, "another version was named")
    #expect(try check(room, "--freeze", "--replace", "Model 9").status == 64)
    let replaced = try check(room, "--freeze", "--replace", "Model 2")
    #expect(replaced.status == 0, "\(replaced.output)\(replaced.errors)")
    #expect(replaced.output.contains("replaced: the version Model 2 has shipped, and the property extra was added"))
    #expect(try lock(room) != before)
    #expect(try check(room).status == 0)
  }

  @Test func anAllowedDropIsKeptAndFreezesNothingByItself() throws {
    let room = try room()
    try version(3, [Self.title, Self.more], room)
    #expect(try check(room, "--fail-on-drop", "--freeze").output.contains("nothing was frozen"))
    let line = "allowed_drops.\"Model 3\".\"Book.note\" = \"nobody writes notes\""
    try room.file("hop.lock", "format = 1\n[[model]]\nname = \"Model\"\n\(line)\n")
    let allowed = try check(room, "--fail-on-drop")
    #expect(allowed.status == 0, "\(allowed.output)")
    #expect(allowed.output.contains("Model 2 drops: Book.note (allowed)"))
    #expect(try check(room, "--fail-on-drop", "--freeze").status == 0)
    let frozen = try lock(room)
    #expect(frozen.contains(line + "\n") && frozen.contains("name = \"Model 3\""))
    // The folder of the version gets another name, and the reason goes with it.
    try FileManager.default.moveItem(
      atPath: room.path("Model.xcdatamodeld/Model 3.xcdatamodel"),
      toPath: room.path("Model.xcdatamodeld/Model 4.xcdatamodel"))
    try room.currentVersion(4)
    #expect(try check(room, "--freeze").status == 0)
    #expect(try lock(room).contains(line.replacing("Model 3", with: "Model 4")))
    #expect(try check(room, "--fail-on-drop").status == 0)
    try room.file("hop.lock", "format = 1\n[[model]]\nname = \"Model\"\nallowed_drops = [\"Book.note\"]\n")
    #expect(try check(room).status == 78, "not a table")
  }

  @Test func aLockOfAllowedDropsHidesNoShippedVersion() throws {
    let room = try room()
    try commit(room)
    try version(2, [Self.title, Self.note, Self.extra], room)
    let line = "allowed_drops.\"Model 3\".\"Book.extra\" = \"it was never used\""
    try room.file("hop.lock", "format = 1\n[[model]]\nname = \"Model\"\n\(line)\n")
    let outcome = try check(room, "--base", "HEAD")
    #expect(outcome.status == 65)
    #expect(outcome.output.contains("has shipped, and the property extra was added"), "\(outcome.output)")
  }

  @Test("Freezing what is frozen says that nothing has changed")
  func unchanged() throws {
    let room = try room()
    #expect(try check(room, "--freeze").output.contains("froze 3 versions"))
    let before = try lock(room)
    let again = try check(room, "--freeze")
    #expect(again.status == 0 && again.output.contains("already has the 3 versions"), "\(again.output)")
    #expect(try !again.output.contains("froze") && lock(room) == before)
  }

  @Test("The example of hop.lock(5) is a lock of Examples/Books")
  func manPage() throws {
    let room = try Room()
    let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
    let page = String(
      decoding: try Data(contentsOf: URL(filePath: root.appending("docs/man/hop.lock.5").string)), as: UTF8.self)
    let start = try #require(page.ranges(of: ".Bd -literal\n").first)
    let end = try #require(page[start.upperBound...].ranges(of: ".Ed").first)
    let example = String(page[start.upperBound..<end.lowerBound])
    #expect(example.contains("allowed_drops") && example.contains("entity.Author"))
    let model = root.appending("Examples/Books/Books.xcdatamodeld").string
    func check(_ text: String) throws -> Outcome {
      try room.file("hop.lock", text)
      return try room.run("check", model, "--lock", room.path("hop.lock"), "--scratch", room.path.string)
    }
    let same = try check(example)
    // No program is bound to its policy, so the hop itself is not tried.
    #expect(same.output.contains("needs a policy") && !same.output.contains("has shipped"), "\(same)")
    let other = try check(example.replacing("\"0c7242b3", with: "\"1c7242b3"))
    #expect(other.output.contains("the version Books 2 has shipped"), "\(other)")
  }

  @Test func aNewVersionIsNotedBesideTheOthers() throws {
    let room = try room()
    try room.currentVersion(2)
    let first = try check(room, "--freeze")
    #expect(first.output.contains("skipped: Model 3 comes after the current version"), "\(first.output)")
    let before = try lock(room)
    #expect(!before.contains("Model 3"))
    try room.currentVersion(3)
    let second = try check(room, "--freeze")
    #expect(second.output.contains("new: Model 3"))
    #expect(try lock(room).hasPrefix(before))
  }

  @Test func aVersionThatIsGoneStaysNotedUntilSomebodySaysSo() throws {
    let room = try room()
    #expect(try check(room, "--freeze").status == 0)
    try FileManager.default.removeItem(atPath: room.path("Model.xcdatamodeld/Model 2.xcdatamodel"))
    #expect(try check(room, "--freeze").status == 65)
    #expect(try lock(room).contains("Model 2"))
    let removed = try check(room, "--freeze", "--replace", "Model 2")
    #expect(removed.status == 0 && removed.output.contains("removed: Model 2"), "\(removed.output)")
    #expect(try !lock(room).contains("Model 2"))
  }

  @Test func aRenamedModelIsComparedUnderItsOldName() throws {
    let room = try room()
    #expect(try check(room, "--freeze").status == 0)
    try FileManager.default.moveItem(
      atPath: room.path("Model.xcdatamodeld"), toPath: room.path("Books.xcdatamodeld"))
    let outcome = try check(room, model: "Books.xcdatamodeld")
    #expect(outcome.status == 0 && outcome.output.contains("is called Books now"), "\(outcome.output)")
    try room.file(
      "Books.xcdatamodeld/Model 2.xcdatamodel/contents",
      "<model>\n<entity name='Book'>\(Self.title)\(Self.note)\(Self.extra)</entity>\n</model>")
    #expect(try check(room, model: "Books.xcdatamodeld").status == 65)
    #expect(try check(room, "--freeze", "--replace", "Model 2", model: "Books.xcdatamodeld").status == 0)
    #expect(
      try lock(room).contains("name = \"Books\"") && !lock(room).contains("name = \"Model\"\n\n[[model.version]]"))
  }

  @Test func aRenamedVersionIsNotedUnderItsNewName() throws {
    let room = try room()
    #expect(try check(room, "--freeze").status == 0)
    let before = try lock(room)
    try FileManager.default.moveItem(
      atPath: room.path("Model.xcdatamodeld/Model 2.xcdatamodel"),
      toPath: room.path("Model.xcdatamodeld/Model 2b.xcdatamodel"))
    let outcome = try check(room, "--freeze")
    #expect(outcome.status == 0 && outcome.output.contains("renamed: Model 2 to Model 2b"), "\(outcome.output)")
    #expect(try lock(room) == before.replacing("\"Model 2\"", with: "\"Model 2b\""))
    #expect(try !check(room).output.contains("warning"))
  }

  // MARK: --base

  @Test func theLockAtTheBaseDecides() throws {
    let room = try room()
    #expect(try check(room, "--freeze").status == 0)
    try commit(room)
    try version(2, [Self.title, Self.note, Self.extra], room)
    try FileManager.default.removeItem(atPath: room.path("hop.lock"))
    #expect(try check(room, "--freeze").status == 0)
    #expect(try check(room).status == 0, "by the lock that was made anew")
    let outcome = try check(room, "--base", "HEAD")
    #expect(outcome.status == 65)
    #expect(outcome.output.contains("Book.extra: the version Model 2 has shipped"), "\(outcome.output)")
    let allowed = try check(room, "--base", "HEAD", "--replace", "Model 2")
    #expect(allowed.status == 0 && allowed.output.contains("replaced: "), "\(allowed.output)")
  }

  @Test func aLockThatIsNewInThePullRequestIsComparedWithTheModelsThere() throws {
    let room = try room()
    try commit(room)
    try version(2, [Self.title, Self.note, Self.extra], room)
    #expect(try check(room, "--freeze").status == 0)
    #expect(try check(room, "--base", "HEAD").status == 65)
  }

  @Test func aLostLineIsRed() throws {
    let room = try room()
    #expect(try check(room, "--freeze").status == 0)
    try commit(room)
    #expect(try check(room, "--base", "HEAD").status == 0)
    let whole = try lock(room)
    let start = try #require(whole.ranges(of: "\n[[model.version]]\nname = \"Model 3\"").first?.lowerBound)
    try room.file("hop.lock", String(whole[..<start]))
    let lost = try check(room, "--base", "HEAD")
    #expect(lost.status == 65 && lost.output.contains("Model 3 is in the lock at HEAD, and no more"), "\(lost.output)")
    let line = try #require(whole.split(separator: "\n").first { $0.hasPrefix("entity.Book") })
    let hash = line.split(separator: "\"")[1]
    try room.file(
      "hop.lock", whole.replacing(hash, with: String(repeating: "0", count: hash.count), maxReplacements: 1))
    let edited = try check(room, "--base", "HEAD")
    #expect(
      edited.status == 65 && edited.output.contains("the line of Book in Model is another one"), "\(edited.output)")
    try FileManager.default.removeItem(atPath: room.path("hop.lock"))
    let gone = try room.run("check", room.path("Model.xcdatamodeld"), "--scratch", room.path.string, "--base", "HEAD")
    #expect(gone.status == 65 && gone.output.contains("the lock here has none of them"), "\(gone.output)")
  }

  @Test func aVersionThatNobodyNotedIsReported() throws {
    let room = try room()
    try room.currentVersion(2)
    #expect(try check(room, "--freeze").status == 0)
    try room.currentVersion(3)
    try commit(room)
    let outcome = try check(room, "--base", "HEAD")
    #expect(outcome.status == 0)
    #expect(outcome.output.contains("warning: ") && outcome.output.contains("the version Model 3 is at HEAD"))
    #expect(try check(room, "--freeze").status == 0)
    #expect(try !check(room, "--base", "HEAD").output.contains("warning: "))
  }

  @Test func aLockThatNobodyCanReadIsReported() throws {
    let room = try room()
    try room.file("hop.lock", "<<<<<<< HEAD\nformat = 1\n")
    try commit(room)
    let outcome = try check(room, "--freeze")
    #expect(outcome.status == 78 && outcome.errors.contains("remove it"), "\(outcome.errors)")
    try FileManager.default.removeItem(atPath: room.path("hop.lock"))
    #expect(try check(room, "--freeze").status == 0)
    #expect(try check(room, "--base", "HEAD").status == 78)
  }

  // MARK: The hook

  @Test func theHookChecksACommitOfTheLockAlone() throws {
    let room = try room()
    let examples = CheckCase.root.removingLastComponent().removingLastComponent().appending("Examples/ci")
    let script = """
      set -e; cd -- "$FOLDER"; mkdir App; mv Model.xcdatamodeld App/; git init -q
      git config user.name a; git config user.email a@example.org
      hopctl() { "$HOPCTL" "$@"; }
      hopctl check App/Model.xcdatamodeld --freeze >/dev/null
      cp "$EXAMPLES/pre-commit" .git/hooks/pre-commit
      git add App hop.lock; git commit -qm one
      # A commit that touches no model is none of its business.
      echo text >README; git add README; git commit -qm text >out 2>&1
      if grep -q versions out; then echo 'a commit without models was checked'; exit 1; fi
      sed -i '0,/\\["/s/\\["......../["00000000/' hop.lock; git add hop.lock
      if git commit -qm lock >out 2>&1; then echo 'a broken lock was committed'; cat out; exit 1; fi
      if grep -E "$TMPDIR|/tmp/" out; then echo 'a temporary path'; exit 1; fi
      grep -q 'App/Model.xcdatamodeld' out
      git checkout -q HEAD -- hop.lock
      # An edit of what has shipped, with its line in the lock.
      sed -i "s#<entity name='Book'>#&<attribute name='extra' optional='YES' attributeType='Date'/>#" \
        "App/Model.xcdatamodeld/Model 2.xcdatamodel/contents"
      rm hop.lock; hopctl check App/Model.xcdatamodeld --freeze >/dev/null
      git add App hop.lock
      if git commit -qm both >out 2>&1; then echo 'an edit with its line was committed'; cat out; exit 1; fi
      grep -q 'Book.extra' out
      git config --add hopd.option 'replace=Model 2'
      git commit -qm allowed >out 2>&1 || { cat out; exit 1; }
      git config --unset-all hopd.option
      # Other models, and words with spaces.
      git config --add hopd.model App/Other.xcdatamodeld
      sed -i "s#<entity name='Book'>#&<attribute name='bad' attributeType='Date'/>#" \
        "App/Model.xcdatamodeld/Model 3.xcdatamodel/contents"
      git add App; git commit -qm elsewhere >out 2>&1 || { cat out; exit 1; }
      """
    let outcome = try room.shell(
      script,
      [
        "FOLDER=\(room.path.string)", "EXAMPLES=\(examples.string)", "PATH=/usr/bin:/bin", "HOME=\(room.path.string)",
        "HOPCTL=\(try #require(Program.path).string)", "TMPDIR=\(room.path.string)",
      ])
    #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
  }
}
