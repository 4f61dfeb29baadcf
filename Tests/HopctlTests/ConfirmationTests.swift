// The question before a command changes something: what a person at a terminal is shown and asked, and that a script is
// not asked. `script` of util-linux makes the terminal.

import BlockingTests
import Glibc
import SystemPackage
import Testing

@Suite(
  "Questions", .blocking, .enabled(if: Program.isBuilt, Program.absence),
  .enabled(if: access("/usr/bin/script", X_OK) == 0, "script(1) of util-linux, which makes a terminal, is not there"))
struct ConfirmationTests {
  /// Runs hopctl at a terminal, where a person types one line.
  private func asked(_ room: Room, _ words: [String], answer: String) throws -> Outcome {
    let command = ([try #require(Program.path).string] + words).map { "'\($0)'" }.joined(separator: " ")
    let line = "printf '%s\\n' \"$1\" | /usr/bin/script -qec \"$2\" /dev/null"
    return try room.wait(room.start(program: "/bin/sh", ["-c", line, "sh", answer, command]))
  }

  private func backups(_ room: Room, _ store: String) throws -> Int? {
    try room.run("backups", store, "--json").json().stores?.list.first?.backups?.list.count
  }

  @Test("fleet run lists what it would migrate and asks; no changes nothing")
  func fleetRun() throws {
    let room = try Room()
    try room.store("a.sqlite")
    try room.store("b.sqlite", version: "Zoo 2")
    try room.store("c.sqlite", version: "Zoo 10")
    let words = ["fleet", "run", room.path("stores"), "--models", room.model]
    let before = try room.snapshot()
    let refused = try asked(room, words, answer: "n")
    #expect(refused.status == 1, "\(refused)")
    for shown in [
      "would migrate 2 stores, ", "a.sqlite", "Zoo → Zoo 10", "Zoo 2 → Zoo 10", "drops Animal", "Animal.colour",
      "1 store is already current", "Migrate 2 stores in place? The current stores become backups. [y/N]",
      "no store was migrated",
    ] { #expect(refused.output.contains(shown), "\(shown): \(refused.output)") }
    #expect(try room.snapshot() == before)
    let bare = try asked(room, words + ["--backup", "none"], answer: "")
    #expect(bare.status == 1 && bare.output.contains("No backup is kept. [y/N]"), "\(bare)")
    #expect(try room.snapshot() == before)
    let done = try asked(room, words, answer: "yes")
    #expect(done.status == 0 && done.output.contains("done: 2 migrated, 1 already current"), "\(done)")
    // Nothing is left to migrate, so nothing is asked.
    let again = try asked(room, words, answer: "n")
    #expect(again.status == 0 && !again.output.contains("[y/N]"), "\(again)")
  }

  @Test("fleet run --yes does not ask, and neither does one without a terminal")
  func fleetRunWithoutQuestion() throws {
    let room = try Room()
    try room.store("a.sqlite")
    let words = ["fleet", "run", room.path("stores"), "--models", room.model]
    let yes = try asked(room, words + ["--yes"], answer: "n")
    #expect(yes.status == 0 && !yes.output.contains("[y/N]") && yes.output.contains("done: 1 migrated"), "\(yes)")
    try room.store("b.sqlite")
    let job = try room.run(words: words)
    #expect(job.status == 0 && job.output.contains("done: 1 migrated") && !job.errors.contains("[y/N]"), "\(job)")
    #expect(try room.run(words: words + ["--yes", "--dry-run"]).status == 64)
  }

  @Test("A canary asks for its sample alone")
  func canary() throws {
    let room = try Room()
    for name in ["a", "b", "c"] { try room.store("\(name).sqlite") }
    let words = ["fleet", "run", room.path("stores"), "--models", room.model, "--canary", "1"]
    let refused = try asked(room, words, answer: "n")
    #expect(refused.status == 1 && refused.output.contains("Migrate 1 store in place?"), "\(refused)")
  }

  @Test("prune shows the backups and asks")
  func prune() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    try #require(try room.run("migrate", store, "--models", room.model).status == 0)
    let refused = try asked(room, ["prune", store, "--keep", "0"], answer: "n")
    #expect(refused.status == 1 && refused.output.contains("would remove "), "\(refused)")
    #expect(refused.output.contains("Delete them? This cannot be undone. [y/N]"), "\(refused)")
    #expect(refused.output.contains("cancelled; no backup was deleted"), "\(refused)")
    #expect(try backups(room, store) == 1)
    // Without anything to remove nothing is asked.
    let none = try asked(room, ["prune", store, "--keep", "1"], answer: "n")
    #expect(none.status == 0 && !none.output.contains("[y/N]"), "\(none)")
    let done = try asked(room, ["prune", store, "--keep", "0"], answer: "y")
    #expect(done.status == 0 && done.output.contains("1 backup removed"), "\(done)")
    #expect(try backups(room, store) ?? 0 == 0)
  }

  @Test("restore names the backup and asks")
  func restore() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    try #require(try room.run("migrate", store, "--models", room.model).status == 0)
    let refused = try asked(room, ["restore", store], answer: "no")
    #expect(refused.status == 1 && refused.output.contains("[y/N]"), "\(refused)")
    #expect(refused.output.contains("restore cancelled"), "\(refused)")
    #expect(try room.run("identify", store, "--models", room.model, "--json").json().version?.text == "Zoo 10")
    let done = try asked(room, ["restore", store], answer: "YES")
    #expect(done.status == 0 && done.output.contains("restored \(store): Zoo"), "\(done)")
  }
}
