// What policies in Python change by methods is sent like what they change by hooks, and what is changed outside both is
// an error.

import BlockingTests
import Diagnostics
import Glibc
import MigrationPolicy
import SystemPackage
import Testing

@testable import PolicyHost

@Suite(.blocking) struct PolicyMethodTests {
  /// A program of that text, whose library hopd finds as it does for users.
  private func open(_ text: String, library: String = "from hopd_policy import EntityMigrationPolicy, run") throws -> (
    conversation: any PolicyConversation, folder: Folder
  ) {
    let folder = try Folder()
    let path = folder.path.appending("policy.py")
    let file = try #require(fopen(path.string, "w"))
    fputs(library + "\n" + text, file)
    fclose(file)
    let binding = PolicyBinding(command: [try #require(Programs.python), path.string])
    return (try PolicyPrograms(["Policy": binding]).open(.books(policy: "Policy")), folder)
  }

  private final class Folder {
    let path: FilePath

    init() throws {
      var template = Array("/tmp/hopd-policy-method.XXXXXX".utf8CString)
      try #require(mkdtemp(&template) != nil)
      path = FilePath(String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }

    deinit {
      unlink(path.appending("policy.py").string)
      rmdir(path.string)
    }
  }

  private static let call = PolicyCall.method(selector: "made:", arguments: [["a"], ["b"]])
  private static let keys = PolicyKeys(next: ["Book": 4])

  private func made(_ key: Int64, _ title: PolicyValue) -> PolicyOperation {
    let id = PolicyObjectID(side: .destination, entity: "Book", key: key)
    return .insert(PolicyObject(id: id, values: ["title": title]))
  }

  @Test("What a method inserts comes with its results")
  func methodsSendTheirChanges() throws {
    let (conversation, folder) = try open(
      """
      class Policy(EntityMigrationPolicy):
          def method(self, selector, arguments, manager):
              manager.insert_new_object("Book")["title"] = arguments[0]
              return arguments[0] * 2
      run(Policy)
      """)
    defer { withExtendedLifetime(folder) { conversation.close() } }
    var asked = 0
    let reply = try conversation.call(Self.call, keys: Self.keys) { _ in
      asked += 1
      return .done
    }
    #expect(reply == .results(["aa", "bb"], [made(4, "a"), made(5, "b")]))
    #expect(asked == 0)
    try conversation.finish()
  }

  @Test("Results of a library that does not send what methods change are refused")
  func resultsWithoutChanges() throws {
    let (conversation, folder) = try open(
      """
      import json, struct, sys
      def read(): return json.loads(sys.stdin.buffer.read(struct.unpack(">I", sys.stdin.buffer.read(4))[0]))
      def write(text):
          sys.stdout.buffer.write(struct.pack(">I", len(text)) + text)
          sys.stdout.buffer.flush()
      read(); write(b'{"hello":1}'); read(); write(b'{"reply":"results","results":[null,null]}')
      """, library: "")
    defer { withExtendedLifetime(folder) { conversation.close() } }
    do {
      _ = try conversation.call(Self.call, keys: Self.keys) { _ in .done }
      Issue.record("it was taken")
    } catch let error as HopdError {
      #expect(error.code.name == "policy-protocol" && error.message.contains("older than this hopd"), "\(error)")
    }
  }

  private static let late = """
    import time
    class Policy(EntityMigrationPolicy):
        def begin(self, mapping, manager):
            self.book = manager.insert_new_object("Book")
            def change():
                time.sleep(0.2)
                try: HOW
                except Exception as error: print(error, flush=True)
            import threading
            self.thread = threading.Thread(target=change)
            self.thread.start()
    run(Policy)
    """

  @Test(
    "A change outside a call fails the next call, or the end",
    arguments: ["self.book['title'] = 'late'", "manager.delete(self.book)", "manager.table('t')['k'] = 1"])
  func changesOutsideCalls(how: String) throws {
    for continues in [true, false] {
      let (conversation, folder) = try open(Self.late.replacing("HOW", with: how))
      defer { withExtendedLifetime(folder) { conversation.close() } }
      _ = try conversation.call(.begin, keys: Self.keys) { _ in .done }
      usleep(600_000)
      do {
        if continues { _ = try conversation.call(.endInstanceCreation, keys: Self.keys) { _ in .done } }
        try conversation.finish()
        Issue.record("it was not told: \(how)")
      } catch let error as HopdError {
        #expect("\(error)".contains("outside hooks and methods"), "\(error)")
      }
    }
  }

  @Test("A program that ends badly after its last hook is an error")
  func badEnd() throws {
    let (conversation, folder) = try open(
      """
      import atexit, os
      atexit.register(lambda: os._exit(3))
      class Policy(EntityMigrationPolicy): pass
      run(Policy)
      """)
    defer { withExtendedLifetime(folder) { conversation.close() } }
    _ = try conversation.call(.end, keys: Self.keys) { _ in .done }
    #expect(throws: HopdError.self) { try conversation.finish() }
  }

  @Test("A program that ends early is quoted")
  func earlyEnd() throws {
    for text in ["import no_such_module_of_hopd", "import sys; sys.exit('nothing doing')"] {
      do {
        _ = try open(text)
        Issue.record("it went on")
      } catch let error as HopdError {
        let words = "\(error)"
        #expect(
          words.contains("No module named 'no_such_module_of_hopd'") || words.contains("nothing doing"), "\(words)")
      }
    }
  }

  /// The policy keeps a book of what it does at random, and writes it to the journal at the end.
  @Test("A policy at random, against its own book", arguments: 1...12)
  func anythingInAnyOrder(seed: Int) throws {
    let (conversation, folder) = try open(
      """
      import json, random
      class Policy(EntityMigrationPolicy):
          def __init__(self):
              self.random, self.book = random.Random(\(seed)), {}
          def act(self, manager):
              for _ in range(self.random.randrange(4)):
                  what = self.random.randrange(5)
                  if what < 2 or not self.book:
                      book = manager.insert_new_object("Book")
                      book["title"] = "new"
                      self.book[book.object_id.key] = [book, "new"]
                  else:
                      key = self.random.choice(sorted(self.book))
                      if what == 2:
                          manager.delete(self.book.pop(key)[0])
                      elif what == 3:
                          self.book[key][1] = str(self.random.random())
                          self.book[key][0]["title"] = self.book[key][1]
                      else:
                          assert {o.object_id.key for o in manager.fetch("Book")} == set(self.book)
          def method(self, selector, arguments, manager):
              self.act(manager)
              return arguments[0]
          def begin(self, mapping, manager): self.act(manager)
          def end_instance_creation(self, mapping, manager): self.act(manager)
          def end_relationship_creation(self, mapping, manager): self.act(manager)
          def perform_custom_validation(self, mapping, manager): self.act(manager)
          def end(self, mapping, manager):
              self.act(manager)
              manager.log(json.dumps({key: value[1] for key, value in self.book.items()}, sort_keys=True))
      run(Policy)
      """)
    defer { withExtendedLifetime(folder) { conversation.close() } }
    let engine = FakeEngine()
    engine.keys = Self.keys
    let calls: [PolicyCall] = [
      .begin, Self.call, .endInstanceCreation, Self.call, Self.call, .endRelationshipCreation, Self.call,
      .performCustomValidation, .end,
    ]
    for call in calls { try engine.run(conversation, call) }
    try conversation.finish()
    let stored = engine.destination.map { ($0.key.key, $0.value["title"]?.string ?? "–") }.sorted { $0.0 < $1.0 }
    let text = "{" + stored.map { "\"\($0.0)\": \"\($0.1)\"" }.joined(separator: ", ") + "}"
    #expect(engine.log.last == text)
  }
}
