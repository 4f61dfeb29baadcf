import BlockingTests
import Diagnostics
import Glibc
import MigrationPolicy
import SystemPackage
import Testing

@testable import PolicyHost

/// Batches that go to programs while the engine does something else.
@Suite(.blocking) struct PolicyBatchTests {
  private final class Room {
    let folder: FilePath

    init() throws {
      var template = Array("/tmp/hopd-policy-batch.XXXXXX".utf8CString)
      try #require(mkdtemp(&template) != nil)
      folder = FilePath(String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }

    func path(_ name: String) -> String { folder.appending(name).string }

    func program(_ text: String) throws -> [String] {
      let file = try #require(fopen(path("policy"), "w"))
      fputs(
        """
        import os, sys, json, struct, time
        sys.path.insert(0, '\(Programs.root.appending("python").string)')
        from hopd_policy import EntityMigrationPolicy, run
        def read():
            head = sys.stdin.buffer.read(4)
            return sys.stdin.buffer.read(struct.unpack('>I', head)[0]) if head else None
        def write(body):
            sys.stdout.buffer.write(struct.pack('>I', len(body)) + body)
            sys.stdout.buffer.flush()

        """ + text, file)
      fclose(file)
      return [try #require(Programs.python), "-S", path("policy")]
    }

    deinit {
      for name in ["policy", "seen"] { unlink(path(name)) }
      rmdir(folder.string)
    }
  }

  private static func id(_ entity: String, _ key: Int64, _ side: PolicyObjectID.Side = .destination) -> PolicyObjectID {
    PolicyObjectID(side: side, entity: entity, key: key)
  }

  private static func instances(_ keys: ClosedRange<Int64>) -> [PolicySourceInstance] {
    keys.map { key in
      PolicySourceInstance(
        source: PolicyObject(
          id: id("Book", key, .source),
          values: ["title": .string("Book \(key)"), "authorName": .string("A\(key % 3)")]),
        standard: PolicyObject(id: id("Book", key), values: ["title": .string("Book \(key)")]))
    }
  }

  /// Two batches through a program; its final result, and how many requests it sent.
  private func changes(_ command: [String]) throws -> (operations: [[PolicyOperation]], requests: Int) {
    let conversation = try PolicyPrograms(["MHWBookToBookPolicy": PolicyBinding(command: command)]).open(
      .books(policy: "Library.MHWBookToBookPolicy", userInfo: ["modelVersion": "2"]))
    defer { conversation.close() }
    let engine = FakeEngine()
    engine.keys = PolicyKeys(next: ["Book": 1000, "Author": 1, "File": 1])
    try engine.run(conversation, .begin)
    var all: [[PolicyOperation]] = []
    var keys = engine.keys
    for range in [Int64(1)...40, 41...60] {
      let instances = Self.instances(range)
      for instance in instances {
        // The engine still has the values that a batch leaves out.
        engine.source[instance.source.id] = instance.source.values.merging(
          ["users": .objects([]), "fileURL": .null]) { $1 }
      }
      var order: [String] = []
      var batch = PolicyBatch(instances)
      batch.encode()
      let reply = try conversation.create(
        batch, keys: keys, meanwhile: { order.append("meanwhile") },
        answering: { request in
          if order.last != "answer" { order.append("answer") }
          return try engine.reply(to: request)
        })
      guard case .done(let operations) = reply else { return ([], 0) }
      #expect(order.first == "meanwhile" && order.filter { $0 == "meanwhile" }.count == 1, "\(order)")
      let spelledOut = PolicyOperation.spelledOut(operations) { instances[$0] }
      for case .insert(let object) in spelledOut where object.id.entity == "Author" {
        keys.next["Author"] = object.id.key + 1
      }
      all.append(spelledOut)
    }
    return (all, engine.requests)
  }

  /// The libraries for Swift and Python make the same changes.
  @Test(.disabled(if: Sanitizer.isOn, Sanitizer.reason)) func bothLanguagesMakeTheSameChanges() throws {
    let swift = try changes(Programs.swiftExample())
    let python = try changes(Programs.example("book_to_book_policy.py"))
    #expect(swift.operations == python.operations && swift.requests == python.requests)
    #expect(swift.operations.count == 2 && swift.requests > 0)
    let inserted = swift.operations.joined().compactMap { if case .insert(let object) = $0 { object.id } else { nil } }
    #expect(inserted.filter { $0.entity == "Book" }.count == 60)
    #expect(inserted.filter { $0.entity == "Author" }.map(\.key) == [1, 2, 3])
  }

  private func conversation(_ command: [String], timeout: Duration = .seconds(20)) throws -> any PolicyConversation {
    try PolicyPrograms(["Policy": PolicyBinding(command: command, limits: PolicyLimits(timeout: timeout))]).open(
      .books(policy: "Policy"))
  }

  private func create(
    _ conversation: any PolicyConversation, meanwhile: () throws -> Void = {}
  ) throws -> PolicyBatchReply {
    try conversation.create(
      PolicyBatch(Self.instances(1...3)), keys: PolicyKeys(next: ["Book": 9]), meanwhile: meanwhile,
      answering: { _ in .done })
  }

  /// The engine's work waits for the program's, which comes only if the program has the batch by then.
  @Test func theProgramWorksMeanwhile() throws {
    let room = try Room()
    let conversation = try conversation(
      room.program(
        "class Policy(EntityMigrationPolicy):\n    def create_destination_instances(self, source, mapping, manager):\n"
          + "        open('\(room.path("seen"))', 'w').close()\n        manager.insert_standard_instance(source)\n"
          + "run(Policy)"))
    defer { conversation.close() }
    var isSeen = false
    let reply = try create(conversation) {
      for _ in 0..<2_000 where !isSeen {
        isSeen = access(room.path("seen"), F_OK) == 0
        if !isSeen { usleep(10_000) }
      }
    }
    #expect(isSeen)
    #expect(reply == .done((0..<3).map { .standard($0, replacing: [:]) }))
  }

  /// Time that the engine takes meanwhile is not the program's.
  @Test func onlyWaitingCountsAgainstTheLimit() throws {
    let room = try Room()
    let conversation = try conversation(
      room.program("class Policy(EntityMigrationPolicy): pass\nrun(Policy)"), timeout: .seconds(5))
    defer { conversation.close() }
    let reply = try create(conversation) { usleep(5_500_000) }
    #expect(reply == .done((0..<3).map { .standard($0, replacing: [:]) }))
  }

  private func failure(_ text: String, timeout: Duration = .seconds(20), meanwhile: () throws -> Void = {}) throws
    -> HopdError
  {
    let room = try Room()
    let conversation = try conversation(room.program(text), timeout: timeout)
    defer { conversation.close() }
    do {
      _ = try create(conversation, meanwhile: meanwhile)
    } catch let error as HopdError {
      return error
    }
    throw HopdError(.internalError, "nothing failed")
  }

  private static let hello = "read(); write(b'{\"hello\":1}')\nread()\n"

  @Test func whatAProgramDoesWrongIsReportedAsEver() throws {
    let broken: [(String, String)] = [
      ("write(b'\\x05\\x00')", "cannot be read"),
      ("write(b'')", "cannot be read"),
      ("write(b'{\"reply\":\"results\",\"results\":[],\"operations\":[]}')", "belongs to another call"),
      ("write(b'{\"hello\":1}')", "said hello in the middle"),
      (
        "write(b'{\"reply\":\"failed\",\"reason\":\"no luck\"}')",
        "failed in createDestinationInstances: no luck"
      ),
      ("os._exit(3)", "ended in createDestinationInstances with exit status 3"),
    ]
    for (text, words) in broken {
      let error = try failure(Self.hello + text + "\ntime.sleep(60)")
      #expect(error.message.contains(words) && error.code.name.hasPrefix("policy-"), "\(text): \(error)")
    }
    let late = try failure(Self.hello + "time.sleep(60)", timeout: .milliseconds(1500))
    #expect(late.code.name == "policy-limit" && late.message.contains("took longer"), "\(late)")
    let dead = try failure(Self.hello + "os._exit(4)", meanwhile: { usleep(300_000) })
    #expect(dead.message.contains("exit status 4"), "\(dead)")
  }

  /// A failure of the engine during a call is reported, and the program ends.
  @Test func ourOwnFailureEndsTheProgram() throws {
    let start = ContinuousClock.now
    let error = try failure(
      Self.hello + "time.sleep(60)", meanwhile: { throw HopdError(.internalError, "our own") })
    #expect(error.message == "our own")
    #expect(ContinuousClock.now - start < .seconds(50))
  }
}
