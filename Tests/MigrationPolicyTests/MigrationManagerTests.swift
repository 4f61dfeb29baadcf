import LocalPolicies
import Testing

@testable import MigrationPolicy

/// The messages of a policy written in Swift to the engine, hook by hook.
@Suite(.serialized) struct MigrationManagerTests {
  private static let book = PolicyEntity(
    name: "Book", root: "Book", isAbstract: false,
    properties: [
      "title": PolicyProperty(kind: "String"), "pages": PolicyProperty(kind: "Integer 32"),
      "author": PolicyProperty(kind: "to-one", destination: "Author"),
    ])
  private static let author = PolicyEntity(
    name: "Author", root: "Author", isAbstract: false,
    properties: ["name": PolicyProperty(kind: "String"), "books": PolicyProperty(kind: "to-many", destination: "Book")])

  /// A policy whose hooks are closures.
  private final class Scripted: EntityMigrationPolicy {
    nonisolated(unsafe) static var create: ((ManagedObject, EntityMapping, MigrationManager) throws -> Void)?

    override func createDestinationInstances(
      forSource source: ManagedObject, in mapping: EntityMapping, manager: MigrationManager
    ) throws {
      try Self.create?(source, mapping, manager)
    }

    override func method(_ selector: String, arguments: [PolicyValue], manager: MigrationManager) throws -> PolicyValue
    {
      .list([.string(selector)] + arguments)
    }
  }

  /// The engine's answers.
  private struct Answers {
    static let done = Answers { _ in .done }
    let answer: @Sendable (PolicyRequest) -> PolicyAnswer

    init(_ answer: @escaping @Sendable (PolicyRequest) -> PolicyAnswer) { self.answer = answer }
  }

  private static func id(_ side: PolicyObjectID.Side, _ key: Int64, _ entity: String = "Book") -> PolicyObjectID {
    PolicyObjectID(side: side, entity: entity, key: key)
  }

  private static func instance(_ key: Int64) -> PolicySourceInstance {
    PolicySourceInstance(
      source: PolicyObject(id: id(.source, key), values: ["title": "old", "author": .null]),
      standard: PolicyObject(id: id(.destination, key), values: ["title": "standard", "pages": 1]))
  }

  /// Runs one call over books 1…count, and returns the reply and the requests before it.
  private func run(
    books count: Int64 = 1, policy: EntityMigrationPolicy.Type = Scripted.self,
    asking: Answers = .done,
    _ create: ((ManagedObject, EntityMapping, MigrationManager) throws -> Void)? = nil
  ) throws -> (reply: PolicyReply, requests: [PolicyRequest]) {
    let introduction = PolicyIntroduction(
      policy: "App.Scripted", mapping: "BookToBook", mappingType: "custom", source: "Book", destination: "Book",
      userInfo: [:],
      expressions: ["title": "$source.title"], sourceVersion: "1", destinationVersion: "2",
      sourceEntities: [Self.book, Self.author],
      destinationEntities: [Self.book, Self.author])
    let conversation = try LocalPolicies(["Scripted": policy]).open(introduction)
    Scripted.create = create
    defer { Scripted.create = nil }
    var requests: [PolicyRequest] = []
    let reply = try conversation.call(
      .createDestinationInstances((1...count).map(Self.instance)), keys: PolicyKeys(next: ["Book": 100, "Author": 1])
    ) { request in
      requests.append(request)
      return asking.answer(request)
    }
    return (reply, requests)
  }

  @Test func hooksAndTheirDefaults() throws {
    // The default: insert and associate.
    let plain = try run(policy: EntityMigrationPolicy.self)
    #expect(
      plain.reply
        == .done([
          .insert(Self.instance(1).standard),
          .associate(source: Self.id(.source, 1), destination: Self.id(.destination, 1)),
        ]))
    #expect(plain.requests.isEmpty)

    // No object is made: the source is left out.
    #expect(try run { _, _, _ in }.reply == .done([]))

    // Calls super, then finds its object as authors of Core Data policies do, without any request; the change is merged
    // into the insertion.
    let changed = try run(books: 2) { source, mapping, manager in
      try manager.insertStandardInstance(for: source)
      let made = try manager.destinationInstances(forEntityMappingNamed: mapping.name, sourceInstances: [source])
      #expect(made.map(\.objectID) == [Self.id(.destination, source.objectID.key)])
      let title = try source.string(forKey: "title")
      try made[0].setValue(.string("\(title ?? "") \(made[0].value(forKey: "pages").integer ?? 0)"), forKey: "title")
    }
    guard case .done(let operations) = changed.reply else {
      Issue.record("\(changed.reply)")
      return
    }
    #expect(operations.count == 4 && changed.requests.isEmpty)
    #expect(
      operations.first == .insert(PolicyObject(id: Self.id(.destination, 1), values: ["title": "old 1", "pages": 1])))
  }

  @Test func newObjectsHaveTheNextKeys() throws {
    let made = try run(books: 2) { source, mapping, manager in
      let book = try manager.insertNewObject(forEntityName: "Book")
      let author = try manager.insertNewObject(forEntityName: "Author")
      try author.setValue("n", forKey: "name")
      try author.add([book], to: "books")
      try manager.associate(sourceInstance: source, withDestinationInstance: book, for: mapping)
    }
    guard case .done(let operations) = made.reply else {
      Issue.record("\(made.reply)")
      return
    }
    let inserted = operations.compactMap { if case .insert(let object) = $0 { object.id } else { nil } }
    #expect(
      inserted == [
        Self.id(.destination, 100), Self.id(.destination, 1, "Author"), Self.id(.destination, 101),
        Self.id(.destination, 2, "Author"),
      ])
  }

  /// A request sees every change before it, and later changes are not merged into an insertion that was already sent.
  @Test func changesGoOutBeforeAQuestionThatTheyCouldAlter() throws {
    let asked = try run(
      asking: Answers { request in
        if case .fetch = request { return .ids([Self.id(.destination, 1)]) }
        return .done
      }
    ) { source, _, manager in
      let book = try manager.insertStandardInstance(for: source)
      let found = try manager.fetch("Book", where: "title == %@ AND pages > %@", "it's", 3)
      #expect(found.first === book)
      try book.setValue(2, forKey: "pages")
    }
    #expect(asked.requests.count == 2)
    guard case .apply(let first)? = asked.requests.first, first.count == 2 else {
      Issue.record("\(asked.requests)")
      return
    }
    #expect(
      asked.requests.last
        == .fetch(side: .destination, entity: "Book", predicate: #"title == 'it\'s' AND pages > 3"#, limit: nil))
    #expect(asked.reply == .done([.set(PolicyObject(id: Self.id(.destination, 1), values: ["pages": 2]))]))
  }

  @Test func tablesAskOncePerCallAndWriteAtItsEnd() throws {
    let result = try run(
      books: 3,
      asking: Answers { request in
        if case .lookup = request { return .value(.null) }
        return .done
      }
    ) { source, _, manager in
      let table = manager.table("authors")
      if try table.value(for: "x").isNull { try table.setValue(.integer(source.objectID.key), for: "x") }
    }
    #expect(result.requests == [.lookup(table: "authors", key: "x"), .remember(table: "authors", key: "x", 1)])
  }

  /// Keys that are equal in Swift but distinct on disk stay distinct, and NaN is a key although it equals nothing.
  @Test func tablesTellKeysApartAsTheDiskDoes() throws {
    let keys: [PolicyValue] = ["e\u{301}", "\u{e9}", .double(.nan), .double(0), .double(-0.0), .integer(0), true]
    let result = try run { _, _, manager in
      let table = manager.table("t")
      for (number, key) in keys.enumerated() { try table.setValue(.integer(Int64(number)), for: key) }
      #expect(try table.value(for: .double(0)) == 4)
      #expect(try table.value(for: .double(.nan)) == 2)
    }
    let stored = result.requests.compactMap { if case .remember(_, _, let value) = $0 { value } else { nil } }
    #expect(stored == [0, 1, 2, 4, 5, 6])
  }

  /// A change after a deletion is sent after it, through any instance of the object, so that the engine can refuse it.
  @Test func nothingJoinsWhatWasDeletedSince() throws {
    let result = try run { _, _, manager in
      let book = try manager.insertNewObject(forEntityName: "Book")
      let id = book.objectID
      _ = try manager.object(with: id)
      let other = ManagedObject(book.entity, id.key, manager: manager)
      try manager.delete(other)
      try book.setValue("back", forKey: "title")
    }
    let id = Self.id(.destination, 100)
    #expect(
      result.reply
        == .done([
          .insert(PolicyObject(id: id, values: [:])), .delete(id),
          .set(PolicyObject(id: id, values: ["title": "back"])),
        ]))
  }

  /// If sending fails, the changes are lost and the call fails, even if the policy continues.
  @Test func changesThatCannotBeSentFailTheCall() throws {
    let result = try run(
      asking: Answers { request in
        if case .apply = request { return .refused("the pipe is full") }
        return .ids([])
      }
    ) { source, _, manager in
      try manager.insertStandardInstance(for: source)
      for _ in 0..<2 { _ = try? manager.fetch("Book") }
    }
    guard case .failed(let reason) = result.reply else {
      Issue.record("\(result.reply)")
      return
    }
    #expect(reason.contains("changes could not be sent") && reason.contains("the pipe is full"))
    #expect(result.requests.count == 1)
  }

  @Test func predicatesTakeArguments() throws {
    func text(_ format: String, _ arguments: PolicyValue...) throws -> String {
      var predicate = PolicyPredicateFormat(arguments)
      return try predicate.text(format)
    }
    let book = PolicyValue.object(Self.id(.destination, 3))
    #expect(try text("100% '%@'") == "100% '%@'", "without arguments nothing is replaced")
    #expect(
      try text("%K == %@ AND b = '%@ \\' %@' AND c == \"%d\"", "a.@count", 1)
        == "#a.@count == 1 AND b = '%@ \\' %@' AND c == \"%d\"")
    #expect(try text("a IN %@ AND b == %@", [book, book], book) == "a IN {$object0, $object0} AND b == $object0")
    #expect(try text("%d %ld %lld %f", -1, 2, true, 0.5) == "(-1) 2 TRUE (0.5)")
    #expect(
      try text("%@", .uuid([UInt8](repeating: 255, count: 16)))
        == "CAST('FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF', 'NSUUID')")
    #expect(try text("%@ %@", .data([1, 171]), .objects([])) == "CAST('01AB', 'NSData') {}")
    for (format, argument) in [
      ("%@ %@", 1), ("a", 1), ("%", 1), ("%l", 1), ("%s", "x"), ("%d", "1"), ("%K", 1), ("%K", "a b"), ("%K", ""),
      ("%K", "a..b"), ("%K", "@count"), ("%@", .uri("x:")), ("%@", .double(.nan)), ("%@", .variable(.manager)),
    ] as [(String, PolicyValue)] {
      #expect(throws: PolicyError.self, "\(format) \(argument)") { try text(format, argument) }
    }
  }

  @Test func mistakesOfAPolicyAreReportedWithTheObject() throws {
    func reason(_ create: @escaping (ManagedObject, EntityMapping, MigrationManager) throws -> Void) throws -> String {
      guard
        case .failed(let reason) = try run(books: 1, asking: Answers { _ in .refused("no such thing") }, create).reply
      else { return "" }
      return reason
    }
    #expect(
      try reason { source, _, _ in try source.setValue("x", forKey: "title") }.contains(
        "Book.title belongs to the source"))
    #expect(
      try reason { source, _, _ in _ = try source.value(forKey: "titel") }
        == "Book 1: Book has no property titel in the source model")
    #expect(
      try reason { _, _, manager in _ = try manager.insertNewObject(forEntityName: "Book").value(forKey: "author.name")
      }
      .hasSuffix("in the destination model: ask object(forKey: \"author\") for \"name\""))
    #expect(
      try reason { _, _, manager in _ = try manager.insertNewObject(forEntityName: "Film") }.contains(
        "no entity Film"))
    #expect(try reason { _, _, manager in _ = try manager.fetch("Book") }.contains("no such thing"))
    #expect(
      try reason { _, _, manager in _ = try manager.fetch("Book", where: "a == %@", 1, 2) }.contains("more arguments")
    )
    #expect(
      try reason { source, _, manager in
        try manager.insertStandardInstance(for: source)
        try manager.insertStandardInstance(for: source)
      }.contains("only once"))
    #expect(
      try reason { source, _, manager in
        try manager.insertStandardInstance(for: source).setValue(source, forKey: "title")
      }
      .contains("takes no object"))
  }

  @Test func methodsAndNames() throws {
    let introduction = PolicyIntroduction(
      policy: "Other.Scripted", mapping: "M", mappingType: "custom", source: nil, destination: nil, userInfo: [:],
      expressions: [:],
      sourceVersion: "1", destinationVersion: "2", sourceEntities: [], destinationEntities: [])
    let conversation = try LocalPolicies(["Scripted": Scripted.self]).open(introduction)
    let reply = try conversation.call(.method(selector: "hex:", arguments: [[1], ["a"]]), keys: PolicyKeys(next: [:])) {
      _ in .done
    }
    #expect(reply == .results([["hex:", 1], ["hex:", "a"]]))
    #expect(throws: PolicyError.self) { try LocalPolicies([:]).open(introduction) }
  }
}
