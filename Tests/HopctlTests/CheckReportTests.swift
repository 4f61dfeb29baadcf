// The reports of `hopctl check`, judged by programs that this project did not write: xmllint, with the schema of
// Jenkins where it is at hand, the JSON schema of the SARIF standard, Graphviz, and a browser. Where such a program is
// absent its test is skipped and says so; `tools/report-judges` installs them.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

/// Programs that judge.
private enum Judge {
  static func has(_ program: String) -> Bool { access("/usr/bin/\(program)", X_OK) == 0 }

  /// What tools/report-judges has put below .build.
  static let folder = CheckCase.root.removingLastComponent().removingLastComponent().appending(".build/report-judges")
  static var python: FilePath { folder.appending("bin/python") }
  static var schema: FilePath { folder.appending("junit-10.xsd") }
  static var sarifSchema: FilePath { folder.appending("sarif-schema-2.1.0.json") }
}

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct CheckReportTests {
  /// A model with names that mean something to XML, HTML and shells, and a hop that breaks.
  private func room() throws -> Room {
    let room = try Room()
    let entity = { (more: String) in
      "<entity name='Book'>\n<attribute name='a&lt;b&gt;&quot;&amp;' optional='YES' attributeType='String'/>"
        + "\(more)</entity>"
    }
    try room.modelVersion(1, entity(""))
    try room.modelVersion(2, entity("<attribute name='note' optional='YES' attributeType='String'/>"))
    try room.modelVersion(3, entity("\n<attribute name='x&lt;/script&gt;' attributeType='String'/>"))
    try room.currentVersion(3)
    return room
  }

  private func checked(_ room: Room, _ words: String...) throws -> Outcome {
    let outcome = try room.run(
      words: ["check", room.path("Model.xcdatamodeld"), "--scratch", room.path.string] + words,
      variables: ["GITHUB_WORKSPACE=\(room.path.string)", "GITHUB_STEP_SUMMARY=\(room.path("step-summary"))"])
    #expect(outcome.status == 65, "\(outcome.errors)")
    return outcome
  }

  @Test("A report that could not be written is told before the work")
  func missingFolder() throws {
    let room = try room()
    for option in ["--junit", "--sarif", "--html"] {
      let outcome = try room.run("check", room.path("Model.xcdatamodeld"), option, room.path("no/such/report"))
      #expect(outcome.status == 66 && outcome.output.isEmpty, "\(outcome)")
      #expect(outcome.errors.contains("mkdir -p \(room.path("no/such"))"), "\(outcome.errors)")
    }
  }

  private func text(_ room: Room, _ name: String) throws -> String {
    String(decoding: try Data(contentsOf: URL(filePath: room.path(name))), as: UTF8.self)
  }

  @Test(.enabled(if: Judge.has("xmllint"), "xmllint is not installed: tools/report-judges"))
  func junitIsWellFormedAndFitsTheSchema() throws {
    let room = try room()
    _ = try checked(room, "--junit", room.path("junit.xml"))
    var words = ["--noout", room.path("junit.xml")]
    if FileManager.default.fileExists(atPath: Judge.schema.string) {
      words = ["--schema", Judge.schema.string] + words
    }
    let outcome = try room.wait(room.start(program: "/usr/bin/xmllint", words))
    #expect(outcome.status == 0, "\(outcome.errors)")
    let report = try text(room, "junit.xml")
    #expect(report.contains("tests=\"2\" failures=\"2\""))
    #expect(report.contains("missing-required-value"))
  }

  @Test func sarifPointsToTheLine() throws {
    let room = try room()
    _ = try checked(room, "--sarif", room.path("log.sarif"))
    let log = try JSONDecoder().decode(JSON.self, from: Data(try text(room, "log.sarif").utf8))
    let result = try #require(log.runs?.list.first?.results?.list.first)
    let place = try #require(result.locations?.list.first?.physicalLocation)
    #expect(place.artifactLocation?.uri?.text == "Model.xcdatamodeld/Model%203.xcdatamodel/contents")
    #expect(place.region?.startLine?.int == 5)
    #expect(result.ruleId?.text == "missing-required-value")
  }

  @Test(
    .enabled(
      if: FileManager.default.fileExists(atPath: Judge.sarifSchema.string), "no schema of SARIF: tools/report-judges"),
    arguments: ["red", "warned", "refused"])
  func sarifFitsTheStandard(_ kind: String) throws {
    let room = try kind == "warned" ? suspiciousRoom() : room()
    if kind == "refused" { try room.file("Model.xcdatamodeld/Model 3.xcdatamodel/contents", "<model>") }
    let outcome = try room.run(
      "check", room.path("Model.xcdatamodeld"), "--scratch", room.path.string, "--sarif", room.path("log.sarif"))
    #expect(outcome.status == (kind == "warned" ? 0 : 65), "\(outcome.output)\(outcome.errors)")
    let code = """
      import json, sys, jsonschema
      log, schema = (json.load(open(name, encoding='utf-8')) for name in sys.argv[1:])
      jsonschema.validators.validator_for(schema)(schema).validate(log)
      print(*(result['level'] for result in log['runs'][0]['results']))
      """
    let judged = try room.wait(
      room.start(program: Judge.python, ["-c", code, room.path("log.sarif"), Judge.sarifSchema.string]))
    #expect(judged.status == 0, "\(judged.errors)")
    #expect(judged.output.contains(kind == "warned" ? "warning" : "error"))
  }

  /// A model whose hop drops values under a name that has perhaps changed.
  private func suspiciousRoom() throws -> Room {
    let room = try Room()
    for (number, name) in ["e_mail", "email"].enumerated() {
      try room.modelVersion(
        number + 1, "<entity name='Book'>\n<attribute name='\(name)' optional='YES' attributeType='String'/>\n</entity>"
      )
    }
    try room.currentVersion(2)
    return room
  }

  @Test func aSuspectedRenameIsAWarningInEveryReport() throws {
    let room = try suspiciousRoom()
    let outcome = try room.run(
      words: [
        "check", room.path("Model.xcdatamodeld"), "--scratch", room.path.string, "--github", "--junit",
        room.path("junit.xml"), "--sarif", room.path("log.sarif"), "--html", room.path("page.html"),
      ],
      variables: ["GITHUB_WORKSPACE=\(room.path.string)", "GITHUB_STEP_SUMMARY=\(room.path("step-summary"))"])
    #expect(outcome.status == 0, "\(outcome.errors)")
    let line = try #require(outcome.output.split(separator: "\n").first { $0.hasPrefix("::warning ") })
    #expect(line.contains("file=Model.xcdatamodeld/Model 2.xcdatamodel/contents,line=4,"))
    let log = try JSONDecoder().decode(JSON.self, from: Data(try text(room, "log.sarif").utf8))
    let result = try #require(log.runs?.list.first?.results?.list.first)
    #expect(result.level?.text == "warning" && result.ruleId?.text == "rename-suspected")
    #expect(result.locations?.list.first?.physicalLocation?.region?.startLine?.int == 4)
    let junit = try text(room, "junit.xml")
    #expect(junit.contains("failures=\"0\"") && junit.contains("<system-out>warning: "))
    for name in ["step-summary", "page.html"] {
      #expect(try text(room, name).contains("a renaming identifier may be missing"))
    }
  }

  @Test("What goes is told in every report, and fails the check on request", arguments: [false, true])
  func aDropIsToldInEveryReport(_ fails: Bool) throws {
    let room = try Room()
    let title = "<attribute name='title' optional='YES' attributeType='String'/>"
    try room.modelVersion(
      1,
      "<entity name='Book'>\n\(title)\n<attribute name='pages' optional='YES' attributeType='Integer 32'/>\n</entity>"
        + "<entity name='Shelf'>\(title)</entity>")
    try room.modelVersion(2, "<entity name='Book'>\n\(title)\n</entity>")
    try room.currentVersion(2)
    let words = [
      "check", room.path("Model.xcdatamodeld"), "--scratch", room.path.string, "--junit", room.path("junit.xml"),
      "--sarif", room.path("log.sarif"), "--html", room.path("page.html"),
    ]
    let outcome = try room.run(
      words: words + ["--github"] + (fails ? ["--fail-on-drop"] : []),
      variables: ["GITHUB_WORKSPACE=\(room.path.string)", "GITHUB_STEP_SUMMARY=\(room.path("step-summary"))"])
    #expect(outcome.status == (fails ? 65 : 0), "\(outcome.output)\(outcome.errors)")
    #expect(outcome.output.contains("Model drops: Book.pages, Shelf (all rows)"))
    let level = fails ? "error" : "warning"
    let lines = outcome.output.split(separator: "\n").filter { $0.hasPrefix("::\(level) ") }
    #expect(lines.count == 2 && lines[0].contains("file=Model.xcdatamodeld/Model 2.xcdatamodel/contents,line=3,"))
    let log = try JSONDecoder().decode(JSON.self, from: Data(try text(room, "log.sarif").utf8))
    let results = log.runs?.list.first?.results?.list ?? []
    #expect(results.map { $0.ruleId?.text } == ["data-dropped", "data-dropped"])
    #expect(results.allSatisfy { $0.level?.text == level })
    for name in ["junit.xml", "page.html", "step-summary"] {
      let report = try text(room, name)
      #expect(report.contains("Book.pages") && report.contains("Shelf"), "\(name)")
    }
    #expect(try text(room, "junit.xml").contains("failures=\"\(fails ? 1 : 0)\""))
    let json = try room.run(words: words + ["--json"]).json()
    let model = try #require(json.models?.list.first)
    #expect(model.drops?.list.map { $0.property?.text } == ["pages", nil])
    let dropped = try #require(model.versions?.list.first?.dropped?.list)
    #expect(dropped.map { $0.entity?.text } == ["Book", "Shelf"])
    #expect(dropped.allSatisfy { $0.allowed == .boolean(false) && ($0.count?.int ?? 0) > 0 })
  }

  @Test func noReportOfAnEarlierRunStays() throws {
    let room = try room()
    let names = ["junit.xml", "log.sarif", "page.html", "step-summary"]
    func run(_ words: [String], _ status: Int32) throws {
      for name in names where name != "step-summary" { try room.file(name, "stale") }
      let outcome = try room.run(
        words: ["check", room.path("Model.xcdatamodeld"), "--scratch", room.path.string, "--github"] + words + [
          "--junit", room.path("junit.xml"), "--sarif", room.path("log.sarif"), "--html", room.path("page.html"),
        ],
        variables: ["GITHUB_WORKSPACE=\(room.path.string)", "GITHUB_STEP_SUMMARY=\(room.path("step-summary"))"])
      #expect(outcome.status == status, "\(outcome.errors)")
      #expect(outcome.output.contains("::error "))
      for name in names {
        #expect(try text(room, name).contains("nothing checked") || name == "log.sarif" || name == "junit.xml")
      }
      for name in names { #expect(try text(room, name) != "stale", "\(name)") }
      #expect(try text(room, "junit.xml").contains("failures=\"1\""))
    }
    try run(["--since", "Model 9"], 64)
    try run(["--base", "HEAD"], 64)
    try room.file("hop.lock", "format = 7")
    try run(["--lock", room.path("hop.lock")], 78)
    try room.file("Model.xcdatamodeld/Model 3.xcdatamodel/contents", "<model>")
    try run([], 65)
    try FileManager.default.removeItem(atPath: room.path("Model.xcdatamodeld"))
    try run([], 66)
  }

  @Test(
    .enabled(
      if: FileManager.default.fileExists(atPath: Judge.sarifSchema.string), "no validator: tools/report-judges"),
    arguments: [
      ("github-actions", "action.yml"), ("github-workflows", "Examples/ci/github-workflow.yml"),
      ("gitlab-ci", "Examples/ci/gitlab-job.yml"),
    ])
  func theFilesOfPipelinesFitTheirSchemas(_ schema: String, _ name: String) throws {
    let room = try Room()
    let file = CheckCase.root.removingLastComponent().removingLastComponent().appending(name)
    let outcome = try room.wait(
      room.start(
        program: Judge.folder.appending("bin/check-jsonschema"),
        ["--builtin-schema", "vendor.\(schema)", file.string]))
    #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
  }

  @Test func githubGetsAnnotationsAndASummary() throws {
    let room = try room()
    let outcome = try checked(room, "--github")
    let line = try #require(outcome.output.split(separator: "\n").first { $0.hasPrefix("::error ") })
    #expect(line.contains("file=Model.xcdatamodeld/Model 3.xcdatamodel/contents,line=5,"))
    #expect(!line.contains("\r"))
    let summary = try text(room, "step-summary")
    #expect(summary.contains("| Version |") && summary.contains("❌ failed"))
    // Between fences every character is itself.
    let outside = summary.split(separator: "```", omittingEmptySubsequences: false).enumerated()
      .filter { $0.offset % 2 == 0 }.map(\.element).joined()
    #expect(!outside.contains("</script>"), "a name of the model became a tag of the page")
  }

  @Test func aPageRunsNothingAndNeedsNothing() throws {
    let room = try room()
    _ = try checked(room, "--html", room.path("page.html"))
    let page = try text(room, "page.html")
    for word in ["<script", "</script>", "src=", "@import", "url(http", "href="] {
      #expect(!page.contains(word), "\(word)")
    }
    #expect(page.contains("lang=\"en\"") && page.contains("<title>") && page.contains("prefers-color-scheme:dark"))
  }

  /// Light and dark, as wide as a screen and as narrow as a phone: nothing sticks out, and everything has its name.
  @Test(
    .enabled(if: Judge.has("chromium"), "chromium is not installed: tools/report-judges"),
    arguments: [(1200, false), (360, false), (360, true)])
  func aBrowserShowsThePage(_ width: Int, _ isDark: Bool) throws {
    let room = try room()
    _ = try checked(room, "--html", room.path("page.html"))
    // The page is shown inside another one of that width, whose script measures it: the page itself runs none.
    let probe = """
      <!DOCTYPE html><meta charset="utf-8"><body style="margin:0"><pre id="out">nothing</pre>
      <script>
      const frame = document.createElement('iframe');
      frame.style = 'border:0;width:\(width)px;height:4000px';
      frame.onload = () => {
        const page = frame.contentDocument, root = page.documentElement;
        const sticking = [...page.querySelectorAll('body *')]
          .filter(e => e.getBoundingClientRect().right > \(width) + 1);
        const isUnnamed = e => !page.getElementById(e.getAttribute('aria-labelledby'));
        const unnamed = [...page.querySelectorAll('svg[role=img]')].filter(e => !e.getAttribute('aria-label')).length
          + [...page.querySelectorAll('table')].filter(e => !e.caption || !e.caption.textContent).length
          + [...page.querySelectorAll('section')].filter(isUnnamed).length;
        const style = frame.contentWindow.getComputedStyle(page.body);
        document.getElementById('out').textContent = JSON.stringify({
          wide: root.scrollWidth, sticking: sticking.length, unnamed, ink: style.color, paper: style.backgroundColor,
          headings: page.querySelectorAll('h1').length, rows: page.querySelectorAll('.matrix tbody tr').length});
      };
      frame.src = 'page.html';
      document.body.append(frame);
      </script></body>
      """
    try room.file("probe.html", probe)
    var words = [
      "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--virtual-time-budget=5000",
      "--user-data-dir=\(room.path("browser"))", "--dump-dom",
    ]
    if isDark { words.append("--blink-settings=preferredColorScheme=0") }
    let outcome = try room.wait(
      room.start(program: "/usr/bin/chromium", words + ["file://\(room.path("probe.html"))"]))
    let start = try #require(outcome.output.ranges(of: "{\"wide\"").first?.lowerBound, "\(outcome.output)")
    let end = try #require(outcome.output[start...].firstIndex(of: "}"))
    let found = try JSONDecoder().decode(JSON.self, from: Data(outcome.output[start...end].utf8))
    #expect((found.wide?.int ?? .max) <= width)
    #expect(found.sticking?.int == 0)
    #expect(found.unnamed?.int == 0)
    #expect(found.headings?.int == 1)
    #expect(found.rows?.int == 3)
    if isDark { #expect(found.paper?.text != "rgb(255, 255, 255)") }
  }

  @Test(arguments: ["svg", "mermaid"])
  func aGraphIsDrawn(_ format: String) throws {
    let room = try room()
    let outcome = try room.run("explain", room.path("Model.xcdatamodeld"), "--graph", format)
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.output.contains("Model 2") && outcome.output.contains("inferred"))
    guard format == "svg", Judge.has("xmllint") else { return }
    try room.file("graph.svg", outcome.output)
    let judged = try room.wait(
      room.start(program: FilePath("/usr/bin/xmllint"), ["--noout", room.path("graph.svg")]))
    #expect(judged.status == 0, "\(judged.errors)")
  }

  @Test("The graph escapes characters that change how a line reads", arguments: ["svg", "mermaid"])
  func graphOfHostileName(_ format: String) throws {
    let room = try room()
    let model = room.path("Model.xcdatamodeld")
    try FileManager.default.moveItem(
      atPath: "\(model)/Model.xcdatamodel", toPath: "\(model)/Mod\u{202e}el\u{7f}.xcdatamodel")
    let outcome = try room.run("explain", model, "--graph", format)
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.output.contains("u{202e}el") && outcome.output.contains("x7f"))
    #expect(!outcome.output.unicodeScalars.contains { $0 == "\u{202e}" || $0 == "\u{7f}" })
  }
}
