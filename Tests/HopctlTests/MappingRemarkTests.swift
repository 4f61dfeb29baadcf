// What was given for a migration and has no effect on it is reported: a program that nothing names, a mapping model
// that the way passes over; each remark once. And a text mapping that hopd would refuse is not printed as a good one.

import BlockingTests
import DurableFiles
import Glibc
import SystemPackage
import Testing

@Suite("Remarks on mapping models", .blocking, .enabled(if: Program.isBuilt, Program.absence))
struct MappingRemarkTests {
  private func count(_ part: String, in text: String) -> Int { text.components(of: part) }

  @Test("A program for a policy that nothing names is told, with the name that was meant")
  func unusedPolicy() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    for command in [["plan"], ["rehearse"], ["migrate"]] {
      let reported = try room.run(
        words: command + [store, "--models", room.model, "--policy", "Nobody=/bin/true"])
      #expect(reported.status == 0, "\(reported.errors)")
      #expect(
        count("--policy: no mapping model or stage uses Nobody", in: reported.errors) == 1,
        "\(command): \(reported.errors)")
    }
    let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
    let books = root.appending("Examples/Books").string
    let book = room.path("stores/b.sqlite")
    try #require(
      try room.run("create", book, "--models", books, "--model-version", "Books", "--rows", "5").status == 0)
    let plan = try room.run("plan", book, "--models", books, "--policy", "BookToBokPolicy=/bin/true", "--json")
    #expect(plan.errors.contains("use 'BookToBookPolicy'"), "\(plan.errors)")
    let right = try room.run("plan", book, "--models", books, "--policy", "App.BookToBookPolicy=/bin/true")
    #expect(!right.errors.contains("no mapping model or stage uses"), "\(right.errors)")
  }

  @Test("A mapping model over several versions that the way takes one by one is told, and --route takes it")
  func passedOver() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let mapping = room.path("Zoo to Zoo 10.hopmap.toml")
    let made = try room.run("mapping", "infer", room.model, "Zoo", "Zoo 10", "--output", mapping)
    try #require(made.status == 0, "\(made.errors)")
    let words = [store, "--models", room.model, "--mappings", mapping]
    let plan = try room.run(words: ["plan"] + words)
    #expect(plan.status == 0 && plan.output.contains("Zoo 2"), "\(plan)")
    let all = plan.output + plan.errors
    #expect(count("leads from Zoo to Zoo 10 at once and is not used", in: all) == 1, "\(all)")
    #expect(all.contains("--route shortest"))
    let shortest = try room.run(words: ["plan"] + words + ["--route", "shortest"])
    #expect(shortest.status == 0, "\(shortest.errors)")
    #expect(!(shortest.output + shortest.errors).contains("is not used"), "\(shortest)")
    let migrated = try room.run(words: ["migrate"] + words)
    #expect(migrated.status == 0 && count("is not used", in: migrated.output + migrated.errors) == 1, "\(migrated)")
  }

  @Test("A remark on the models is made once by migrate, also of a rehearsal")
  func once() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    try room.file("Zoo.xcdatamodeld/Zoo 3.xcdatamodel/contents", "<?xml version=\"1.0\"?><model></model>")
    for command in [["rehearse"], ["migrate"]] {
      let reported = try room.run(words: command + [store, "--models", room.model, "--to", "Zoo 10"])
      #expect(reported.status == 0, "\(reported.errors)")
      let lines = reported.errors.split(separator: "\n").filter { $0.hasPrefix("warning: ") }
      #expect(!lines.isEmpty && Set(lines).count == lines.count, "\(command): \(reported.errors)")
      #expect(count("“Zoo 3” is ignored", in: reported.errors) == 1, "\(command): \(reported.errors)")
    }
  }

  @Test("A text that hopd would refuse ends with 65")
  func refusedText() throws {
    let room = try Room()
    let file = room.path("Bad.hopmap.toml")
    let made = try room.run("mapping", "infer", room.model, "Zoo", "Zoo 2", "--output", room.path("Good.hopmap.toml"))
    try #require(made.status == 0, "\(made.errors)")
    let good = try room.run("mapping", "show", room.path("Good.hopmap.toml"), "--models", room.model, "--text")
    #expect(good.status == 0 && !good.output.isEmpty, "\(good)")
    let line = "destination = \"Animal\"\n"
    try #require(good.output.contains(line))
    try room.file(
      "Bad.hopmap.toml", good.output.replacing(line, with: line + "attributes = { name = '$source.nothing' }\n"))
    let bad = try room.run("mapping", "show", file, "--models", room.model, "--text")
    #expect(bad.status == 65 && bad.output.isEmpty && bad.errors.contains("nothing"), "\(bad)")
  }

  @Test("A text mapping that cannot be written whole leaves no file beside the models")
  func fullDisk() throws {
    let room = try Room()
    let file = room.path("Zoo to Zoo 2.hopmap.toml")
    let words = ["mapping", "infer", room.model, "Zoo", "Zoo 2", "--output", file]
    // As on a full disk, files can be made but not grow; what hopctl tells goes through a pipe.
    let line = "(trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\") 2>&1 | cat"
    let program = try #require(Program.path).string
    let full = try room.wait(room.start(program: "/bin/sh", ["-c", line, program] + words))
    #expect(full.output.contains("\(file): cannot write the file"), "\(full)")
    #expect(try LinuxFileSystem().names(in: room.path).allSatisfy { !$0.string.contains("hopmap") })
    let made = try room.run(words: words)
    #expect(made.status == 0, "\(made.errors)")
    #expect(try room.run("mapping", "show", file, "--models", room.model).status == 0)
    let again = try room.run(words: words)
    #expect(again.status == 73 && again.errors.contains("file already exists"), "\(again)")
    let names = try LinuxFileSystem().names(in: room.path).map(\.string).filter { $0.contains("hopmap") }
    #expect(names == ["Zoo to Zoo 2.hopmap.toml"])
  }
}

extension String {
  /// How often a part is in it.
  fileprivate func components(of part: String) -> Int {
    split(separator: part, omittingEmptySubsequences: false).count - 1
  }
}
