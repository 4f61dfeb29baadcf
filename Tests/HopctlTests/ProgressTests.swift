// `--progress json`, as a program reads it, and commands that are mistyped.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence)) struct ProgressTests {
  private static let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()

  /// Lines of standard error that are JSON.
  private func lines(_ outcome: Outcome) throws -> [JSON] {
    try outcome.errors.split(separator: "\n").filter { $0.hasPrefix("{") }
      .map { try JSONDecoder().decode(JSON.self, from: Data($0.utf8)) }
  }

  private func share(_ line: JSON) -> Double { if case .number(let number)? = line.fraction { number } else { -1 } }

  private func check(_ outcome: Outcome) throws {
    #expect(outcome.status == 0, "\(outcome.errors)")
    let lines = try lines(outcome)
    #expect(lines.last?.part?.text == "done")
    let shares = lines.map(share)
    #expect(shares.last == 1 && shares.dropLast().allSatisfy { $0 >= 0 && $0 < 1 } && shares == shares.sorted())
    let keys: Set<String> = [
      "part", "fraction", "elapsed", "remaining", "hop", "hops", "from", "to", "subject", "rows", "totalRows",
      "rowsPerSecond",
    ]
    for line in lines { #expect(line.keys == keys) }
  }

  @Test(arguments: [[], ["--replace", "in-place"], ["--verify", "full"]])
  func aMappedChainTellsHowFarItIs(_ words: [String]) throws {
    let room = try Room()
    let workload = Self.root.appending("Benchmarks/Workload")
    let models = workload.appending("Workload.xcdatamodeld").string
    let store = room.path("w.sqlite")
    #expect(
      try room.run("create", store, "--models", models, "--model-version", "Workload", "--rows", "2000").status == 0)
    let mappings = workload.appending("Mappings").string
    try check(
      try room.run(
        words: ["migrate", store, "--models", models, "--mappings", mappings, "--progress", "json"] + words))
  }

  @Test(.enabled(if: access("/usr/bin/python3", X_OK) == 0, "python3 is not there"))
  func aPolicyAndARehearsalTellHowFarTheyAre() throws {
    let room = try Room()
    let books = Self.root.appending("Examples/Books")
    let store = room.path("b.sqlite")
    #expect(
      try room.run("create", store, "--models", books.string, "--model-version", "Books", "--rows", "500").status == 0)
    let words = [
      store, "--models", books.string, "--policy", "BookToBookPolicy=\(books.appending("book_to_book.py"))",
      "--invalid-rows", "quarantine", "--progress", "json",
    ]
    try check(try room.run(words: ["rehearse"] + words))
    try check(try room.run(words: ["migrate"] + words + ["--json"]))
  }

  @Test func withoutTheOptionNothingIsToldToAProgram() throws {
    let room = try Room()
    #expect(try room.run("create", room.path("a.sqlite"), "--models", room.model, "--model-version", "Zoo").status == 0)
    for form in ["bar", "none"] {
      let outcome = try room.run(
        "rehearse", room.path("a.sqlite"), "--models", room.model, "--progress", form)
      #expect(outcome.status == 0 && !outcome.errors.contains("fraction"))
    }
    #expect(try room.run("migrate", room.path("a.sqlite"), "--models", room.model, "--progress", "loud").status == 64)
  }

  @Test(arguments: [
    (["statsu"], " status"), (["migrat", "a.sqlite"], " migrate"), (["model", "lst", "x"], " model list"),
    (["help", "histroy"], " history"), (["pasue", "--json"], " pause"),
  ]) func aMistypedCommandIsNamed(_ words: [String], _ meant: String) throws {
    let room = try Room()
    let outcome = try room.run(words: words)
    #expect(outcome.status == 64 && outcome.errors.contains("hint: run `hopctl\(meant)`"), "\(outcome.errors)")
    if words.contains("--json") { #expect(try outcome.json().error?.code?.text == "usage") }
  }

  @Test func aWordThatLooksLikeNothingGetsNoSuggestion() throws {
    let outcome = try Room().run("frobnicate")
    #expect(outcome.status == 64 && outcome.errors.contains("hint: run `hopctl --help` for its commands"))
  }
}
