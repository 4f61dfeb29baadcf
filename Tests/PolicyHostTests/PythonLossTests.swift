// Cases in which the work of a policy in Python could get lost silently: each is an error that tells the author what to
// write instead, or does what was meant.

import BlockingTests
import Diagnostics
import Glibc
import MigrationPolicy
import SystemPackage
import Testing

@testable import PolicyHost

@Suite(.blocking) struct PythonLossTests {
  private static let keys = PolicyKeys(next: ["Book": 4, "Author": 1])

  /// A file that is removed with its folder.
  private final class Folder {
    let path: FilePath
    var program: String { path.appending("policy.py").string }

    init() throws {
      var template = Array("/tmp/hopd-policy-loss.XXXXXX".utf8CString)
      try #require(mkdtemp(&template) != nil)
      path = FilePath(platformString: template)
    }

    deinit {
      unlink(program)
      rmdir(path.string)
    }
  }

  /// The program of a policy with these methods.
  private func program(_ body: String) throws -> (folder: Folder, command: [String]) {
    let folder = try Folder()
    let file = try #require(fopen(folder.program, "w"))
    fputs(
      """
      import sys
      sys.path.insert(0, '\(Programs.root.appending("python").string)')
      from hopd_policy import *
      class Policy(EntityMigrationPolicy):
      \(body)
      run(Policy)
      """, file)
    fclose(file)
    return (folder, [try #require(Programs.python), "-B", folder.program])
  }

  /// A policy with these methods, run by those calls.
  private func run(_ body: String, _ calls: [PolicyCall] = [.begin]) throws -> (
    replies: [PolicyReply], engine: FakeEngine
  ) {
    let (folder, command) = try program(body)
    defer { withExtendedLifetime(folder) {} }
    let binding = PolicyBinding(command: command)
    let conversation = try PolicyPrograms(["Policy": binding]).open(.books(policy: "Policy"))
    defer { conversation.close() }
    let engine = FakeEngine()
    engine.keys = Self.keys
    let replies = try calls.map { try engine.run(conversation, $0) }
    try conversation.finish()
    return (replies, engine)
  }

  private func begin(_ lines: String) -> String {
    "    def begin(self, mapping, manager):\n"
      + lines.split(separator: "\n").map { "        \($0)\n" }.joined()
  }

  static let mistakes = [
    // A value that was read is a copy.
    ("book = manager.insert_new_object('Book')\nbook['authors'].append(book)", "a change of it would be lost"),
    ("author = manager.insert_new_object('Author')\nauthor['books'] += [author]", "a change of it would be lost"),
    ("manager.table('t')['k'] = [1]\nmanager.table('t')['k'].append(2)", "a change of it would be lost"),
    ("manager.user_info['k'] = {}", "instead of a dictionary"),
    ("mapping.user_info['k'] = 1", "does not support item assignment"),
    ("book = manager.insert_new_object('Book')\nbook.title = 'x'", "in brackets: object[\"title\"]"),
    // A value that cannot be sent is reported where it is set.
    ("manager.insert_new_object('Book')['title'] = {1}", "of type set: an attribute holds one value"),
    (
      "import datetime\nmanager.insert_new_object('Book')['title'] = datetime.date.today()",
      "of type date: give a datetime with time"
    ),
    ("manager.insert_new_object('Book')['title'] = 2 ** 64", "beyond 64 bits"),
    ("manager.insert_new_object('Book')['authors'] = ['x']", "objects are wanted"),
    ("manager.insert_new_object('Book').add(None, 'authors')", "objects are wanted, and this is of type NoneType"),
    ("manager.insert_new_object('Book')['authors'] = {'x': 1}", "it takes objects"),
    ("list(manager.table('t'))", "key by key"),
    // A value that was sent in vain fails the call, though the policy ignores the exception.
    (
      """
      manager.insert_new_object('Author')
      manager.insert_new_object('Book')['title'] = '\\ud800'
      try: manager.fetch('Book')
      except Exception: pass
      """, "changes could not be sent"
    ),
    (
      """
      manager.insert_new_object('Book')['title'] = '\\ud800'
      for _ in range(2):
          try: manager.fetch('Book')
          except Exception: pass
      """, "changes could not be sent"
    ),
  ]

  @Test("A mistake in a hook is an error", arguments: mistakes.indices)
  func mistakesAreErrors(_ index: Int) throws {
    let (lines, words) = Self.mistakes[index]
    let error = #expect(throws: (any Error).self) { try run(begin(lines)) }
    #expect("\(error.map { "\($0)" } ?? "")".contains(words), "\(String(describing: error))")
  }

  @Test(
    "A hook that nobody would call, or that does nothing, is an error",
    arguments: [
      ("def createDestinationInstances(self, source, mapping, manager): pass", "is create_destination_instances"),
      ("def create_destination_instance(self, source, mapping, manager): pass", "is create_destination_instances"),
      (
        "def createDestinationInstancesForSourceInstance_entityMapping_manager_error_(self, *_): pass",
        "is create_destination_instances"
      ),
      ("def endEntityMapping(self, mapping, manager): pass", "is end"),
      ("async def begin(self, mapping, manager): pass", "begin did nothing"),
      ("def begin(self, mapping, manager): yield", "begin did nothing"),
      ("def begin(self, mapping, manager): return False", "returned False"),
    ])
  func hooksThatDoNothing(_ method: String, _ words: String) throws {
    let error = #expect(throws: (any Error).self) { try run("    " + method) }
    #expect("\(error.map { "\($0)" } ?? "")".contains(words), "\(String(describing: error))")
  }

  @Test("A hook that an instance has is called like that of a class")
  func hooksOfInstances() throws {
    let (replies, _) = try run(
      """
          def __init__(self):
              self.create_destination_instances = lambda source, mapping, manager: manager.insert_new_object("Author")
      """,
      [
        .createDestinationInstances([
          PolicySourceInstance(
            source: PolicyObject(id: PolicyObjectID(side: .source, entity: "Book", key: 1), values: [:]),
            standard: PolicyObject(id: PolicyObjectID(side: .destination, entity: "Book", key: 1), values: [:]))
        ])
      ])
    let made = PolicyObjectID(side: .destination, entity: "Author", key: 1)
    #expect(replies == [.done([.insert(PolicyObject(id: made, values: [:]))])])
  }

  @Test("Methods give values, objects and collections of objects")
  func results() throws {
    let body = """
          def titled_manager_mapping_policy(self, what, manager, mapping, policy):
              assert mapping.name == "BookToBook" and policy is self
              author = manager.insert_new_object("Author")
              return {"one": author, "list": [author], "set": {author}, "none": [], "nil": None,
                      "lazy": (a for a in [author]), "text": "x"}[what]
      """
    let kinds = ["one", "list", "set", "none", "nil", "lazy", "text"]
    let call = PolicyCall.method(
      selector: "titled:manager:mapping:policy:",
      arguments: kinds.map {
        [.string($0), .variable(.manager), .variable(.entityMapping), .variable(.entityPolicy)]
      })
    let (replies, _) = try run(body, [call])
    guard case .results(let results, let operations)? = replies.first else {
      Issue.record("\(replies)")
      return
    }
    func author(_ key: Int64) -> PolicyObjectID { PolicyObjectID(side: .destination, entity: "Author", key: key) }
    #expect(
      results == [
        .object(author(1)), .objects([author(2)]), .objects([author(3)]), .objects([]), .null, .objects([author(6)]),
        "x",
      ])
    #expect(operations.count == 7)
  }

  @Test("What an older handle sets on a deleted object is sent behind the deletion, and so refused")
  func handles() throws {
    let lines = """
      book = manager.insert_new_object('Book')
      other = manager.object(book.object_id)
      manager.delete(other)
      book['title'] = 'back'
      """
    let (folder, command) = try program(begin(lines))
    defer { withExtendedLifetime(folder) {} }
    let conversation = try PolicyPrograms(["Policy": PolicyBinding(command: command)]).open(.books(policy: "Policy"))
    defer { conversation.close() }
    let reply = try conversation.call(.begin, keys: Self.keys) { _ in .done }
    let book = PolicyObjectID(side: .destination, entity: "Book", key: 4)
    #expect(
      reply
        == .done([
          .insert(PolicyObject(id: book, values: [:])), .delete(book),
          .set(PolicyObject(id: book, values: ["title": "back"])),
        ]))
  }

  @Test("A method gives nothing else", arguments: ["[1]", "{}", "object()", "self.later()"])
  func wrongResults(_ expression: String) throws {
    let body = """
          async def later(self): return 1
          def titled(self): return \(expression)
      """
    #expect(throws: HopdError.self) { try run(body, [.method(selector: "titled", arguments: [[]])]) }
  }

  @Test("A fetch names values, objects and key paths, and its order")
  func fetches() throws {
    let lines = """
      import uuid
      book = manager.insert_new_object("Book")
      found = manager.fetch("Book", "%K == %@ AND id == %@ AND x IN %@ AND t == '%@' AND n < %ld", "author.name", book,
          uuid.UUID(int=1), [book, b"\\x0a"], 3, sort=["title", "-author.name"], limit=5)
      """
    var requests: [PolicyRequest] = []
    let (folder, command) = try program(begin(lines))
    defer { withExtendedLifetime(folder) {} }
    let binding = PolicyBinding(command: command)
    let conversation = try PolicyPrograms(["Policy": binding]).open(.books(policy: "Policy"))
    defer { conversation.close() }
    _ = try conversation.call(.begin, keys: Self.keys) { request in
      requests.append(request)
      if case .fetch = request { return .objects([]) }
      return .done
    }
    let book = PolicyObjectID(side: .destination, entity: "Book", key: 4)
    #expect(
      requests.last
        == .fetch(
          side: .destination, entity: "Book",
          predicate: "#author.#name == $object0 AND id == CAST('00000000-0000-0000-0000-000000000001', 'NSUUID')"
            + " AND x IN {$object0, CAST('0A', 'NSData')} AND t == '%@' AND n < 3",
          limit: 5, objects: ["object0": book],
          sort: [PolicySort(keyPath: "title"), PolicySort(keyPath: "author.name", ascending: false)]))
  }

  @Test("A table knows its keys, whatever they are")
  func tables() throws {
    let (_, engine) = try run(
      begin(
        """
        from datetime import datetime, timezone
        from decimal import Decimal
        table, author = manager.table("t"), manager.insert_new_object("Author")
        moment = datetime(2001, 1, 1, 0, 0, 5, tzinfo=timezone.utc)
        table[Date(5)], table[moment] = 1, 2
        table[Date(5)] = 3
        table["list"] = [author, author]
        assert table["list"] == [author, author] and "list" in table and "none" not in table
        assert table.setdefault("list", 1) == [author, author] and table.setdefault("new", 7) == 7
        del table["new"]
        assert table["new"] is None
        manager.user_info["count"] = 3
        """))
    let author = PolicyObjectID(side: .destination, entity: "Author", key: 1)
    #expect(engine.tables["t"]?[.date(5)] == 3)
    #expect(engine.tables["t"]?["list"] == .objects([author, author]))
    #expect(engine.tables["t"]?["new"] == .null)
    #expect(engine.tables["userInfo"] == ["count": 3])
  }
}
