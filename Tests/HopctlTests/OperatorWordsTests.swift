// What an operator reads who has nothing but the program: answers that say what was done, and statuses that say why
// not.

import Glibc
import SystemPackage
import Testing

@Suite("What an operator reads")
struct OperatorWordsTests {
  @Test("Unpinning says that hopd migrates the store again")
  func unpinning() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    #expect(try room.run("migrate", store, "--models", room.model).status == 0)
    #expect(try room.run("restore", store, "--yes").status == 0)
    let released = try room.run("resume", store)
    #expect(released.status == 0 && released.output.contains("hopd migrates it again"), "\(released)")
    #expect(!released.output.contains("does not migrate") && released.output.contains("hopctl retry"))
  }

  @Test("Help for a command that is none is refused with the command that was meant")
  func help() throws {
    let room = try Room()
    let wrong = try room.run("help", "identfy")
    #expect(wrong.status == 64 && wrong.errors.contains("run `hopctl identify`"), "\(wrong.errors)")
    for (word, meant) in [("release", "hopctl resume STORE"), ("lint", "hopctl check MODEL"), ("scan", "fleet scan")] {
      let told = try room.run("help", word)
      #expect(told.status == 64 && told.errors.contains(meant), "\(told.errors)")
    }
    #expect(try room.run("help", "model", "nosuch").status == 64)
    for words in [["help"], ["help", "identify"], ["help", "model", "hash"], ["help", "restore"]] {
      #expect(try room.run(words: words).status == 0, "\(words)")
    }
  }

  @Test("explain of a damaged store ends as a refusal and names the store")
  func damaged() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let descriptor = open(store, O_WRONLY)
    try #require(descriptor >= 0)
    let noise = [UInt8](repeating: 0xa5, count: 1 << 20)
    var status = stat()
    fstat(descriptor, &status)
    for page in stride(from: 4096, to: Int(status.st_size), by: 4096) {
      #expect(pwrite(descriptor, noise, 4096, off_t(page)) == 4096)
    }
    close(descriptor)
    let reported = try room.run("explain", store, "--models", room.model)
    #expect(
      reported.status == 65 && (reported.output + reported.errors).contains("a.sqlite"),
      "\(reported.output)\(reported.errors)")
  }

  @Test("explain refuses a file that is not a store with status 65, and names the reason with --quiet")
  func explainedText() throws {
    let room = try Room()
    try room.file("notes.txt", String(repeating: "not a store ", count: 100))
    let words = ["explain", room.path("notes.txt"), "--models", room.model]
    let told = try room.run(words: words)
    #expect(told.status == 65 && told.output.contains("not a SQLite database"), "\(told)")
    let quiet = try room.run(words: words + ["-q"])
    #expect(quiet.status == 65 && quiet.output.isEmpty && quiet.errors.contains("not a SQLite database"), "\(quiet)")
    #expect(try room.run(words: words + ["--json"]).json().state?.text == "not-a-store")
    // Without models too: a file that is no model should be a store.
    let bare = try room.run("explain", room.path("notes.txt"))
    #expect(bare.status == 65 && bare.output.contains("not a SQLite database"), "\(bare)")
  }

  @Test("A version that no model has is answered with the nearest name and with all that exist")
  func nearestVersion() throws {
    let room = try Room()
    for (typed, meant) in [("zoo2", "Zoo 2"), ("Zoo-10", "Zoo 10"), ("zoo", "Zoo"), ("Zoo 3", "Zoo 2")] {
      let told = try room.run(
        "create", room.path("new.sqlite"), "--models", room.model, "--model-version", typed)
      #expect(told.status == 64 && told.errors.contains("use '\(meant)'"), "\(typed): \(told.errors)")
      #expect(told.errors.contains("or one of: Zoo, Zoo 2, Zoo 10"), "\(told.errors)")
    }
  }

  @Test("prune without a path or without a rule is answered with a command that works")
  func pruneHints() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    #expect(try room.run("migrate", store, "--models", room.model).status == 0)
    let bare = try room.run("prune", "--dry-run")
    #expect(bare.status == 64, "\(bare)")
    #expect(bare.errors.contains("hint: run `hopctl prune . --dry-run --keep 1`"), "\(bare.errors)")
    let ruleless = try room.run("prune", room.path("stores"), "--dry-run")
    let hint = "hopctl prune \(room.path("stores")) --dry-run --keep 1"
    #expect(ruleless.status == 64 && ruleless.errors.contains("`\(hint)`"), "\(ruleless.errors)")
    #expect(try room.run(words: Array(hint.split(separator: " ").map(String.init).dropFirst())).status == 0)
  }

  @Test("Without a state directory every command about the daemon says that hopd does not run, with status 7")
  func noState() throws {
    let room = try Room()
    for words in [["status"], ["list"], ["history"], ["top", "--once"], ["pause", "zoo"]] {
      let told = try room.run(words: words + ["--state-directory", room.path("nowhere")])
      #expect(told.status == 7 && told.errors.contains("hopctl:"), "\(words): \(told)")
    }
  }

  @Test("A store of another app is told as one that has nothing in common with the models")
  func anotherApp() throws {
    let room = try Room()
    try room.file(
      "Other.xcdatamodeld/Other.xcdatamodel/contents",
      """
      <?xml version="1.0"?><model><entity name='Cloud'><attribute name='name' attributeType='String'/></entity></model>
      """)
    let store = room.path("other.sqlite")
    let made = try room.run("create", store, "--models", room.path("Other.xcdatamodeld"), "--model-version", "Other")
    try #require(made.status == 0, "\(made.errors)")
    let reported = try room.run("identify", store, "--models", room.model)
    #expect(reported.status == 65 && reported.errors.contains("no entity in common"), "\(reported.errors)")
    #expect(!reported.errors.contains("exclude"), "\(reported.errors)")
    let json = try room.run("identify", store, "--models", room.model, "--json")
    #expect(json.output.contains("foreign-store"), "\(json.output)")
  }

  @Test("The verbs of other tools, and a file without a command are answered by the command that is meant")
  func otherVerbs() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    for (words, meant) in [
      (["info", store], "hopctl identify"), (["show", store], "hopctl dump"), (["diff"], "hopctl model diff"),
      (["log"], "hopctl history"), (["version"], "hopctl --version"), (["upgrade", store], "hopctl migrate"),
      (["completion"], "--generate-completion-script"), (["release", store], "hopctl resume STORE"),
      (["cancel", store], "hopctl pause STORE --now"), (["next", store], "hopctl retry STORE --first"),
      (["unit-dropin"], "hopctl check-config --drop-in"), (["work", "."], "hopctl fleet run"),
      (["lint", room.model], "hopctl check MODEL"), (["schema"], "hopctl model schema"), (["undo"], "hopctl restore"),
      (["scan", "."], "hopctl fleet scan"), (["report", "results"], "hopctl fleet report"),
      ([room.path.string], "hopctl fleet scan"), ([store], "hopctl identify \(store)"),
      ([room.model], "hopctl check \(room.model)"),
      (["model", "frobnicate"], "hopctl model --help"),
    ] {
      let told = try room.run(words: words)
      #expect(told.status == 64 && told.errors.contains(meant), "\(words): \(told)")
    }
    #expect(try room.run("set").output.contains("memory_limit"))
    #expect(try room.run("explain", store, "--models", room.path("none")).status == 66)
  }

  @Test("Several stores are identified one after the other, and one that is none does not keep the rest back")
  func severalStores() throws {
    let room = try Room()
    let (first, second) = (try room.store("a.sqlite"), try room.store("b.sqlite", version: "Zoo 10"))
    let both = try room.run("identify", first, second, "--models", room.model)
    #expect(both.status == 0 && both.output.contains("\(first): Zoo ") && both.output.contains("\(second): Zoo 10"))
    let missing = room.path("none.sqlite")
    let three = try room.run("identify", first, missing, second, "--models", room.model, "--json")
    let stores = try three.json().stores?.list ?? []
    #expect(three.status == 66 && stores.count == 3 && stores[1].error?.code?.text == "not-found", "\(three)")
    #expect(stores[2].state?.text == "current")
  }
}
