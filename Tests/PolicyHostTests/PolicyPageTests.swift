import BlockingTests
import Diagnostics
import Glibc
import MigrationPolicy
import SystemPackage
import Testing

@testable import PolicyHost

/// The code blocks of docs/POLICIES.md run, and the messages of Examples/Policies/MESSAGES.md are messages.
@Suite(.blocking) struct PolicyPageTests {
  /// Blocks of the page by the word behind their opening fence.
  private static func blocks(_ kind: String, of page: String = "docs/POLICIES.md") throws -> [String] {
    let file = try #require(fopen(Programs.root.appending(page).string, "r"))
    defer { fclose(file) }
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    let text = String(decoding: buffer[..<fread(&buffer, 1, buffer.count, file)], as: UTF8.self)
    var blocks: [String] = []
    var current: String?
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if let block = current {
        if line == "```" { blocks.append(block) }
        current = line == "```" ? nil : block + line + "\n"
      } else if line == "```\(kind)" {
        current = ""
      }
    }
    return blocks
  }

  private func folder() throws -> FilePath {
    var template = Array("/tmp/hopd-policy-page.XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    return FilePath(String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
  }

  private func write(_ text: String, to path: FilePath) throws {
    let file = try #require(fopen(path.string, "w"))
    fputs(text, file)
    fclose(file)
  }

  /// Two books of Kafka, one without an author, one of Gombrowicz: the results that the page promises.
  private func check(_ command: [String]) throws {
    func id(_ entity: String, _ key: Int64, _ side: PolicyObjectID.Side = .destination) -> PolicyObjectID {
      PolicyObjectID(side: side, entity: entity, key: key)
    }
    let engine = FakeEngine()
    engine.keys = PolicyKeys(next: ["Book": 5, "Author": 1])
    let names: [PolicyValue] = ["Franz Kafka", .null, "Witold Gombrowicz", "Franz Kafka"]
    let instances = names.enumerated().map { index, name in
      PolicySourceInstance(
        source: PolicyObject(id: id("Book", Int64(index) + 1, .source), values: ["title": "t", "authorName": name]),
        standard: PolicyObject(id: id("Book", Int64(index) + 1), values: ["title": "t"]))
    }
    let programs = PolicyPrograms(["BookToBookPolicy": PolicyBinding(command: command)])
    let conversation = try programs.open(.books(policy: "Library.BookToBookPolicy"))
    defer { conversation.close() }
    // In two calls, so that the second finds the author of the first in the table.
    for call in [
      PolicyCall.begin, .createDestinationInstances(Array(instances[..<2])),
      .createDestinationInstances(Array(instances[2...])),
      .endInstanceCreation, .end,
    ] { try engine.run(conversation, call) }
    let authors = (1...4).map { engine.destination[id("Book", $0)]?["author"] }
    #expect(authors == [.object(id("Author", 1)), nil, .object(id("Author", 2)), .object(id("Author", 1))])
    #expect(engine.destination[id("Author", 1)] == ["name": "Franz Kafka"])
    #expect(engine.destination.count == 6 && engine.associations.count == 4)
  }

  /// Three books of two authors and none: the page's method makes each author once.
  private func checkMethod(_ command: [String]) throws {
    func id(_ entity: String, _ key: Int64, _ side: PolicyObjectID.Side = .destination) -> PolicyObjectID {
      PolicyObjectID(side: side, entity: entity, key: key)
    }
    let engine = FakeEngine()
    engine.keys = PolicyKeys(next: ["Author": 1])
    for (index, name) in (["Franz Kafka", .null, "Franz Kafka"] as [PolicyValue]).enumerated() {
      engine.source[id("Book", Int64(index) + 1, .source)] = ["authorName": name]
    }
    let programs = PolicyPrograms(["BookToBookPolicy": PolicyBinding(command: command)])
    let conversation = try programs.open(.books(policy: "Library.BookToBookPolicy"))
    defer { conversation.close() }
    let arguments = (1...3).map { [PolicyValue.object(id("Book", $0, .source)), .variable(.manager)] }
    let reply = try engine.run(conversation, .method(selector: "authorOf:manager:", arguments: arguments))
    guard case .results(let results, _) = reply else {
      Issue.record("\(reply)")
      return
    }
    // A list of one is as good as the object.
    let found = results.map { if case .object(let id) = $0 { PolicyValue.objects([id]) } else { $0 } }
    let kafka = PolicyValue.objects([id("Author", 1)])
    #expect(found[0] == kafka && found[2] == kafka && (found[1] == .objects([]) || found[1] == .list([])))
    #expect(engine.destination == [id("Author", 1): ["name": "Franz Kafka"]])
  }

  /// The examples have the page's programs; those of stages run in StageCommandTests.
  @Test(arguments: [("Books/book_to_book.py", "python", 0), ("Stages/trips.py", "python", 2)])
  func theExampleIsThePages(_ name: String, _ kind: String, _ number: Int) throws {
    let file = try #require(fopen(Programs.root.appending("Examples").appending(name).string, "r"))
    defer { fclose(file) }
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    let program = String(decoding: buffer[..<fread(&buffer, 1, buffer.count, file)], as: UTF8.self)
    #expect(try Self.blocks(kind)[number] == program)
  }

  @Test(arguments: [0, 1])
  func thePythonPoliciesOfThePageRun(_ number: Int) throws {
    let blocks = try Self.blocks("python")
    try #require(blocks.count == 3)
    let block = blocks[number]
    let folder = try folder()
    defer {
      unlink(folder.appending("policy.py").string)
      rmdir(folder.string)
    }
    let path = Programs.root.appending("python").string
    try write("import sys\nsys.path.insert(0, '\(path)')\n" + block, to: folder.appending("policy.py"))
    let command = [try #require(Programs.python), folder.appending("policy.py").string]
    if number == 0 { try check(command) } else { try checkMethod(command) }
  }

  private static let compiler = ["/usr/bin/swiftc"].first { access($0, X_OK) == 0 } ?? searched("swiftc")

  private static func searched(_ name: String) -> String? {
    guard let path = getenv("PATH") else { return nil }
    return String(cString: path).split(separator: ":").map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
  }

  /// Compiled against the library that is among the tests.
  @Test(
    .enabled(if: PolicyPageTests.compiler != nil, "no swiftc in PATH"), .disabled(if: Sanitizer.isOn, Sanitizer.reason),
    arguments: [0, 1])
  func theSwiftPoliciesOfThePageRun(_ number: Int) throws {
    let blocks = try Self.blocks("swift")
    try #require(blocks.count == 2)
    let block = blocks[number]
    let folder = try folder()
    let build = FilePath(try Programs.swiftExample()[0]).removingLastComponent()
    defer {
      for name in ["main.swift", "policy", "log"] { unlink(folder.appending(name).string) }
      rmdir(folder.string)
    }
    try write(block, to: folder.appending("main.swift"))
    let script =
      "cd '\(folder.string)' && '\(Self.compiler ?? "")' -swift-version 6 -module-name Page -I "
      + "'\(build.string)/Modules' main.swift "
      + "'\(build.string)'/MigrationPolicy.build/*.o -o policy > log 2>&1"
    try #require(system(script) == 0, "the Swift code of the page does not compile: see \(script)")
    let command = [folder.appending("policy").string]
    if number == 0 { try check(command) } else { try checkMethod(command) }
  }

  /// Every message of the page is one, and a conversation told there is a conversation: what the program sends is read
  /// as the engine reads it during the call before.
  @Test func theMessagesOfThePageAreMessages() throws {
    var counts = (engine: 0, program: 0)
    for block in try Self.blocks("messages", of: "Examples/Policies/MESSAGES.md") {
      var call: PolicyCall?
      for line in block.split(separator: "\n") {
        let json = Array(line.dropFirst(2).utf8)
        switch line.first {
        case "→":
          let message = try PolicyWire.decodeEngine(json)
          if case .call(let made, _) = message { call = made }
          let again = try #require(PolicyWire.encode(message))
          #expect(try PolicyWire.decodeEngine(Array(again.dropFirst(4))) == message)
          counts.engine += 1
        case "←":
          let message = try PolicyWire.decodeProgram(json, during: call)
          if case .reply(.done(let operations)) = message, case .createDestinationInstances = call {
            #expect(operations.count == 6)
          }
          counts.program += 1
        default: Issue.record("a line that is not a message: \(line.prefix(40))")
        }
      }
    }
    #expect(counts.engine >= 14 && counts.program >= 14)
  }
}
