import BlockingTests
import Glibc
import MigrationPolicy
import SystemPackage
import Testing

@testable import PolicyHost

/// What the Python library sends to the engine, beyond what the examples need.
@Suite(.blocking) struct PythonLibraryTests {
  private static let book = PolicyObjectID(side: .destination, entity: "Book", key: 1)

  /// One call on a policy of that Python text; the reply and the requests before it.
  private func run(
    _ hook: String, values: [String: PolicyValue], fetched: PolicyAnswer = .done
  ) throws -> (reply: PolicyReply, requests: [PolicyRequest]) {
    var template = Array("/tmp/hopd-policy-python.XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let folder = FilePath(String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
    let path = folder.appending("policy.py")
    defer {
      unlink(path.string)
      rmdir(folder.string)
    }
    let file = try #require(fopen(path.string, "w"))
    fputs(
      """
      import sys
      sys.path.insert(0, '\(Programs.root.appending("python").string)')
      from hopd_policy import *
      class Policy(EntityMigrationPolicy):
          def create_destination_instances(self, source, mapping, manager):
      \(hook)
      run(Policy)
      """, file)
    fclose(file)
    let binding = PolicyBinding(command: [try #require(Programs.python), path.string])
    var introduction = PolicyIntroduction.books(policy: "Policy")
    for name in values.keys {
      introduction.sourceEntities[0].properties[name] = PolicyProperty(kind: "any")
      introduction.destinationEntities[0].properties[name] = PolicyProperty(kind: "any")
    }
    let conversation = try PolicyPrograms(["Policy": binding]).open(introduction)
    defer { conversation.close() }
    let source = PolicyObject(id: PolicyObjectID(side: .source, entity: "Book", key: 1), values: values)
    let call = PolicyCall.createDestinationInstances([
      PolicySourceInstance(source: source, standard: PolicyObject(id: Self.book, values: ["title": "standard"]))
    ])
    var requests: [PolicyRequest] = []
    let reply = try conversation.call(call, keys: PolicyKeys(next: ["Book": 9])) { request in
      requests.append(request)
      if case .fetch = request { return fetched }
      return .done
    }
    return (reply, requests)
  }

  @Test func everyKindOfValueComesBack() throws {
    let values: [String: PolicyValue] = [
      "a": .integer(.min), "b": .integer(.max), "c": .double(1), "d": .double(-0.0), "e": .double(.infinity),
      "f": .double(0.1),
      "g": .double(.leastNonzeroMagnitude), "h": .boolean(true), "i": .string("ä\"\\\u{0}\u{2028}😀"),
      "j": .date(700_000_000.123456789),
      "k": .date(-0.5), "l": .data([0, 255]), "m": .uuid([UInt8](0..<16)), "n": .uri("x:/y?z"),
      "o": .transformable([1]),
      "p": .decimal("123456789012345678901234567890.50"), "q": .null, "r": .data([]),
    ]
    let hook = """
              book = manager.insert_new_object("Book")
              for name in source.attribute_names:
                  if len(name) == 1: book[name] = source[name]
      """
    let (reply, requests) = try run(hook, values: values)
    let made = PolicyObjectID(side: .destination, entity: "Book", key: 9)
    #expect(reply == .done([.insert(PolicyObject(id: made, values: values))]))
    #expect(requests.isEmpty)
    guard case .done(let operations) = reply, case .insert(let object)? = operations.first else { return }
    #expect(object.values["d"]?.double?.sign == .minus)
    let (nan, _) = try run("        manager.insert_standard_instance(source)['title'] = float('nan')", values: [:])
    guard case .done(let changes) = nan, case .insert(let inserted)? = changes.first else {
      Issue.record("\(nan)")
      return
    }
    #expect(inserted.values["title"]?.double?.isNaN == true)
  }

  /// A question sees every change before it, and changes after it do not join an insertion that has gone out.
  @Test func changesGoOutBeforeAQuestionThatTheyCouldAlter() throws {
    let hook = """
              book = manager.insert_standard_instance(source)
              book["title"] = "one"
              [found] = manager.fetch("Book", "title == %@ AND x IN %@", "it's", [1, None])
              assert found is book and found["title"] == "one"
              book["title"] = "two"
      """
    let (reply, requests) = try run(hook, values: [:], fetched: .ids([Self.book]))
    let source = PolicyObjectID(side: .source, entity: "Book", key: 1)
    #expect(
      requests == [
        .apply([
          .insert(PolicyObject(id: Self.book, values: ["title": "one"])),
          .associate(source: source, destination: Self.book),
        ]),
        .fetch(side: .destination, entity: "Book", predicate: #"title == 'it\'s' AND x IN {1, NULL}"#, limit: nil),
      ])
    #expect(reply == .done([.set(PolicyObject(id: Self.book, values: ["title": "two"]))]))
  }

  /// Keys that Python treats as equal are three to a table, and a table is requested once per call and written at its
  /// end.
  @Test func tablesTellKindsOfKeysApart() throws {
    let hook = """
              table = manager.table("t")
              table[1], table[1.0], table[True] = "a", "b", "c"
              table[1] = "d"
              assert (table[1], table[1.0], table[True]) == ("d", "b", "c")
      """
    let (_, requests) = try run(hook, values: [:])
    #expect(
      requests == [
        .remember(table: "t", key: 1, "d"), .remember(table: "t", key: .double(1), "b"),
        .remember(table: "t", key: true, "c"),
      ])
  }

  @Test("A mistake that the library finds has the line of the policy, words of its author's own have none")
  func lines() throws {
    for (statement, hasLine) in [("source['titel']", true), ("raise PolicyError('12 books')", false)] {
      let hook = "        from hopd_policy import PolicyError\n        " + statement
      let error = #expect(throws: (any Error).self) { try run(hook, values: ["title": "t"]) }
      let text = error.map { "\($0)" } ?? ""
      #expect(text.contains(#/ \(policy\.py, line \d+\)/#) == hasLine, "\(text)")
    }
  }

  @Test(arguments: [
    ("source['title'] = 'x'", "belongs to the source store"),
    ("source['titel']", "no property titel in the source model"),
    ("manager.insert_standard_instance(source)['author.name']", #"write object["author"]["name"]"#),
    ("manager.insert_new_object('Film')", "no entity Film"),
    ("manager.insert_standard_instance(source)['title'] = object()", "no attribute takes"),
    ("manager.insert_standard_instance(source)['author'] = 'x'", "takes objects"),
    ("manager.fetch('Book', 'a == %@', 1, 2)", "as many arguments"),
  ])
  func mistakesAreReported(_ statement: String, _ text: String) throws {
    let error = #expect(throws: (any Error).self) { try run("        " + statement, values: ["title": "t"]) }
    #expect("\(error.map { "\($0)" } ?? "")".contains(text))
  }
}
