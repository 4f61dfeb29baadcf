// The pages of `check --html` and of a fleet as a reader meets them: the verdict and what is lost come first, then the
// origin of the page; long names keep what tells them apart. How the pages look is tools/report-pictures's.

import BlockingTests
import FoundationEssentials
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct ReportPageTests {
  private func page(_ room: Room, _ model: String, status: Int32 = 0) throws -> String {
    let outcome = try room.run(
      "check", room.path(model), "--scratch", room.path.string, "--html", room.path("page.html"))
    #expect(outcome.status == status, "\(outcome.output)\(outcome.errors)")
    return try String(contentsOfFile: room.path("page.html"), encoding: .utf8)
  }

  /// Whether the texts stand in the page in this order.
  private func expectOrder(_ page: String, _ texts: String...) throws {
    var place = page.startIndex
    for text in texts {
      let found = try #require(page[place...].firstRange(of: text), "\(text) is missing or comes too early")
      place = found.upperBound
    }
  }

  @Test func verdictAndLossesComeFirst() throws {
    let room = try Room()
    let page = try page(room, "Zoo.xcdatamodeld")
    try expectOrder(
      page, "<h1>hopctl check</h1>", "<p class=\"verdict green\">green: 2 of 2 versions",
      "<b>Dropped in Zoo:</b> Animal.colour, Animal.born<",
      "<p class=\"figures\">", "<main>", "What is dropped", "<table class=\"matrix\">", "What each hop does")
  }

  @Test func aPageSaysWhenAndByWhatItWasMade() throws {
    let room = try Room()
    let version = try room.run("--version").output.split(separator: ",")[0]
    let page = try page(room, "Zoo.xcdatamodeld")
    let time = try #require(page.firstRange(of: "<time datetime=\"20"))
    #expect(page[time.upperBound...].prefix { $0 != "\"" }.count == "26-01-31T12:00:00Z".count)
    #expect(page.contains("UTC</time>, \(version), "))
    #expect(!page.contains("commit <code"), "the folder is in no repository")
  }

  @Test func aPageSaysWhichCommitWasChecked() throws {
    let room = try Room()
    let git = """
      set -e; cd -- "$FOLDER"; git init -q; git add Zoo.xcdatamodeld
      git -c user.name=a -c user.email=a@example.org commit -qm one; git rev-parse HEAD
      """
    let made = try room.shell(git, ["FOLDER=\(room.path.string)", "PATH=/usr/bin:/bin", "HOME=\(room.path.string)"])
    let commit = try #require(made.output.split(separator: "\n").last, "\(made.errors)")
    let mark = "commit <code title=\"\(commit)\">\(commit.prefix(12))</code>"
    #expect(try page(room, "Zoo.xcdatamodeld").contains("\(mark), "))
    let file = "Zoo.xcdatamodeld/Zoo 2.xcdatamodel/contents"
    let old = try String(contentsOfFile: room.path(file), encoding: .utf8)
    try room.file(file, old + "\n")
    #expect(try page(room, "Zoo.xcdatamodeld").contains("\(mark) with uncommitted changes"))
    try room.file(file, old)
    #expect(try !page(room, "Zoo.xcdatamodeld").contains("uncommitted"))
    try room.file("Zoo.xcdatamodeld/Zoo 11.xcdatamodel/contents", old)
    #expect(try page(room, "Zoo.xcdatamodeld").contains("\(mark) with uncommitted changes"))
  }

  @Test func theRepositoryOfAStrangerStartsNothing() throws {
    let room = try Room()
    let script = """
      set -e; cd -- "$FOLDER"; git init -q; git add Zoo.xcdatamodeld
      git -c user.name=a -c user.email=a@example.org commit -qm one
      printf '#!/bin/sh\\ntouch "%s/started"\\ncat\\n' "$FOLDER" >run; chmod +x run
      git config core.fsmonitor "$FOLDER/run"; git config filter.any.clean "$FOLDER/run"
      echo '* filter=any' >.gitattributes; rm -f started
      """
    let made = try room.shell(script, ["FOLDER=\(room.path.string)", "PATH=/usr/bin:/bin", "HOME=\(room.path.string)"])
    #expect(made.status == 0, "\(made.errors)")
    try room.file(
      "Zoo.xcdatamodeld/.xccurrentversion",
      try String(
        contentsOfFile: room.path("Zoo.xcdatamodeld/.xccurrentversion"), encoding: .utf8) + "\n")
    #expect(try page(room, "Zoo.xcdatamodeld").contains("with uncommitted changes"))
    #expect(!FileManager.default.fileExists(atPath: room.path("started")), "a program of the repository was started")
  }

  @Test func longNamesKeepWhatTellsThemApart() throws {
    let room = try Room()
    let names = ["01", "01-hotfix", "02", "03-for-the-watch-extension-and-widgets"].map {
      "NotesModel-release-2026.\($0)"
    }
    for (number, name) in names.enumerated() {
      let more = (0...number).map { "<attribute name='a\($0)' optional='YES' attributeType='String'/>" }.joined()
      try room.file(
        "Notes.xcdatamodeld/\(name).xcdatamodel/contents",
        "<?xml version=\"1.0\"?><model><entity name='Note'>\(more)</entity></model>")
    }
    try room.file(
      "Notes.xcdatamodeld/.xccurrentversion",
      "<?xml version=\"1.0\"?><plist version=\"1.0\"><dict><key>_XCCurrentVersionName</key><string>\(names[3])"
        + ".xcdatamodel</string></dict></plist>")
    let page = try page(room, "Notes.xcdatamodeld")
    for (name, short) in zip(names, ["…01", "…01-hotfix", "…02", "…03-for-the…-and-widgets"]) {
      #expect(page.contains("<th scope=\"row\" title=\"\(name)\">\(short)</th>"), "\(name)")
      #expect(page.contains(">\(short)</text>"), "\(name) in the drawing")
      #expect(page.contains("<title>\(name)"), "\(name) in full")
    }
    #expect(page.contains("“…” stands for “NotesModel-release-2026.”"))
    #expect(page.contains(">3 inferred</span>") && !page.contains("inferred</span> <span"), "a pill for each hop")
  }

  @Test func nothingBreaksWordsAndManyRemarksAreFolded() throws {
    let room = try Room()
    let attributes = (1...5).map { "<attribute name='part\($0)' optional='YES' attributeType='String'/>" }
    try room.modelVersion(1, "<entity name='Book'>\(attributes.joined(separator: "\n"))</entity>")
    try room.modelVersion(
      2, "<entity name='Book'>\n<attribute name='pages' attributeType='Date' optional='YES'/></entity>")
    try room.currentVersion(2)
    let page = try page(room, "Model.xcdatamodeld")
    #expect(!page.contains("overflow-wrap:anywhere") && !page.contains("break-all"))
    try expectOrder(
      page, "Dropped in Model:</b> Book.part1, Book.part2, Book.part3, Book.part4, Book.part5",
      "<details><summary><h3>What is dropped: 5</h3></summary>", "<details><summary>5 drops</summary>")
    #expect(page.contains("\u{a0}KiB</td>"))
  }

  @Test func thePageOfAFleetSaysWhenItWasMade() throws {
    let room = try Room()
    try room.store("a.sqlite")
    let outcome = try room.run(
      "fleet", "scan", room.path("stores"), "--models", room.model, "--output", room.path("manifest.ndjson"), "--html",
      room.path("scan.html"))
    #expect(outcome.status == 0, "\(outcome.errors)")
    let page = try String(contentsOfFile: room.path("scan.html"), encoding: .utf8)
    try expectOrder(
      page, "<h1>hopctl fleet scan</h1>", "<b>1 store,", "<time datetime=\"20", "hopctl ", "<h2>Versions</h2>")
    #expect(!page.contains("overflow-wrap: anywhere"))
  }
}
