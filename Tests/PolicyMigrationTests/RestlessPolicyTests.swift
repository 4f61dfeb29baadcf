// Every change that a policy makes in hooks or methods, in any order, is in the store or causes an error. A policy that
// acts at random records its changes: objects, values, both ends of relationships, associations and tables. The staged
// store must agree with the record; and if one of the changes was invalid, the hop must have failed.

import BlockingTests
import Diagnostics
import Expressions
import Glibc
import LocalPolicies
import ManagedObjectModel
import MappingModel
import MigrationPolicy
import PolicyHost
import SeededRandom
import SystemPackage
import Testing

@testable import MigrationEngine
@testable import PolicyMigration

@Suite(.blocking, .serialized) struct RestlessPolicyTests {
  /// Items with methods for an attribute and two relationships, and notes that only the policy creates.
  static func world() throws -> PolicyWorld {
    let model = [
      entity(
        "Item", [attribute("a"), attribute("n", .integer32)],
        [toOne("next", "Item"), toMany("notes", "Note", inverse: "item")]),
      entity(
        "Note", [attribute("tag"), attribute("text")],
        [
          toOne("item", "Item", inverse: "notes"), toMany("peers", "Note", inverse: "peersOf"),
          toMany("peersOf", "Note", inverse: "peers"),
        ]),
    ]
    let rows = (1...6).map { "(\($0), 1, 1, 'a\($0)', \($0))" }.joined(separator: ", ")
    let world = try PolicyWorld(
      from: model, to: model,
      [
        [
          mapping(
            "Items", "Item", "Item", policy: "P",
            [
              "a": .policyMethod(selector: "text:", [source("a")]),
              "n": .policyMethod(selector: "number:", [source("n")]),
            ], ["next": .policyMethod(selector: "next:", [.variable("source")])])
        ]
      ], "INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZA, ZN) VALUES \(rows)")
    return world
  }

  /// Returns the notes of the staged store in the form of the record: tag, text, item, tags of its peers.
  static func notes(_ world: PolicyWorld) throws -> [String] {
    let pairs = try world.pairs("Note", "peers")
    let rows = try world.rows(
      "SELECT n.ZTAG, n.ZTEXT, n.ZITEM, (SELECT group_concat(tag, '+') FROM (SELECT p.ZTAG AS tag "
        + "FROM \(pairs.table) AS j"
        + " JOIN ZNOTE AS p ON p.Z_PK = j.\(pairs.target) WHERE j.\(pairs.owner) = n.Z_PK ORDER BY p.ZTAG))"
        + " FROM ZNOTE AS n ORDER BY n.ZTAG")
    return rows.map { $0.joined(separator: "|") }
  }

  @Test("A policy in Swift at random, against its own book", arguments: UInt64(1)...20)
  func swift(seed: UInt64) throws {
    RestlessPolicy.start(seed)
    let world = try Self.world()
    // Calls of one or a few objects, so that there are many.
    world.options.chunkRowsMax = Int64(seed % 4 + 1)
    try world.run(LocalPolicies(["P": RestlessPolicy.self]))
    #expect(RestlessPolicy.count > 3)
    #expect(try Self.notes(world) == RestlessPolicy.lines, "seed \(seed)")
  }

  @Test("A policy in Swift that also changes what is gone fails the hop, though it lets every error pass")
  func sabotage() throws {
    var failed = 0
    for seed in UInt64(1)...12 {
      RestlessPolicy.start(seed)
      RestlessPolicy.sabotage = Int(seed % 12) + 2
      let world = try Self.world()
      world.options.chunkRowsMax = 2
      let error = policyError { try world.run(LocalPolicies(["P": RestlessPolicy.self])) }
      #expect(
        (error == nil) == (RestlessPolicy.sabotage != nil), "seed \(seed): \(error.map { "\($0)" } ?? "no error")")
      if error != nil { failed += 1 }
    }
    #expect(failed > 5)
  }

  private static let interpreter: String? = ["/usr/bin/python3", "/usr/local/bin/python3"].first { path in
    access(path, X_OK) == 0
  }

  @Test(
    "A policy in Python at random, against its own book",
    .enabled(if: RestlessPolicyTests.interpreter != nil, "python3 is not there"), arguments: 1...6)
  func python(seed: Int) throws {
    let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
    var template = Array("/tmp/hopd-restless.XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let folder = FilePath(platformString: template)
    let (program, book) = (folder.appending("policy.py").string, folder.appending("book").string)
    defer {
      for path in [program, book] { unlink(path) }
      rmdir(folder.string)
    }
    let file = try #require(fopen(program, "w"))
    fputs("import sys\nsys.path.insert(0, '\(root.appending("python").string)')\n\(RestlessPython.program)", file)
    fclose(file)
    let world = try Self.world()
    world.options.chunkRowsMax = Int64(seed % 3 + 1)
    let command = [try #require(Self.interpreter), "-B", program, "\(seed)", book]
    try world.run(PolicyPrograms(["P": PolicyBinding(command: command)]))
    let written = try #require(fopen(book, "r"))
    defer { fclose(written) }
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    let text = String(decoding: buffer[..<fread(&buffer, 1, buffer.count, written)], as: UTF8.self)
    #expect(try Self.notes(world) == text.split(separator: "\n").map(String.init), "seed \(seed)")
  }
}

/// Makes random changes in every hook and method, and records the expected result.
private final class RestlessPolicy: EntityMigrationPolicy {
  struct Entry {
    var text = "new"
    var item: Int64?
    var peers: Set<String> = []
    let note: ManagedObject
  }

  // One test runs at a time, on one thread.
  nonisolated(unsafe) static var random = Dice(seed: 0)
  nonisolated(unsafe) static var book: [String: Entry] = [:]
  nonisolated(unsafe) static var items: [ManagedObject] = []
  nonisolated(unsafe) static var associated: [Int64: Set<PolicyObjectID>] = [:]
  /// Keys of a table: some that look alike, and one that does not equal itself.
  static let keys: [PolicyValue] = [1, 1.0, "1", true, .double(.nan), "e\u{301}", "\u{e9}"]
  /// The value of each key.
  nonisolated(unsafe) static var table: [Int: PolicyValue] = [:]
  nonisolated(unsafe) static var gone: [ManagedObject] = []
  nonisolated(unsafe) static var count = 0
  /// The number of changes after which a deleted object is changed; nil after that.
  nonisolated(unsafe) static var sabotage: Int?

  static func start(_ seed: UInt64) {
    random = Dice(seed: seed)
    (book, items, associated, table, gone) = ([:], [], [:], [:], [])
    (count, sabotage) = (0, nil)
  }

  static var lines: [String] {
    book.sorted { $0.key < $1.key }.map { tag, entry in
      [
        tag, entry.text, entry.item.map { "\($0)" } ?? "–",
        entry.peers.isEmpty ? "–" : entry.peers.sorted().joined(separator: "+"),
      ].joined(separator: "|")
    }
  }

  private static func any(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

  /// Returns the object that was kept, or one by its id.
  private func note(_ tag: String, _ manager: MigrationPolicy.MigrationManager) throws -> ManagedObject? {
    guard let kept = Self.book[tag]?.note else { return nil }
    return Self.any(2) == 0 ? kept : try manager.object(with: kept.objectID)
  }

  private func act(_ manager: MigrationPolicy.MigrationManager, _ source: ManagedObject? = nil) throws {
    for _ in 0..<Self.any(5) {
      if let rest = Self.sabotage {
        Self.sabotage = max(0, rest - 1)
        if rest <= 1, let gone = Self.gone.last {
          Self.sabotage = nil
          try? gone.setValue("back", forKey: "text")
          _ = try? manager.fetch("Note", where: "no sense")
        }
      }
      let tags = Self.book.keys.sorted()
      guard let tag = tags.randomElement(using: &Self.random), let note = try note(tag, manager), Self.any(4) > 0 else {
        try insert(manager)
        continue
      }
      let other = tags[Self.any(tags.count)]
      let item = Self.items.isEmpty ? nil : Self.items[Self.any(Self.items.count)]
      switch (Self.any(12), item) {
      case (0, _), (1, _):
        let text = "\(Self.any(100))"
        try note.setValue(.string(text), forKey: "text")
        Self.book[tag]?.text = text
      case (2, _): try delete(tag, note, manager)
      case (3, _):
        // The value read is the value written, and a request sends all changes.
        #expect(try note.string(forKey: "text") == Self.book[tag]?.text)
        let found = try manager.fetch("Note", where: "%K == %@", "tag", .string(tag))
        #expect(try found.map { try $0.string(forKey: "text") } == [Self.book[tag]?.text])
      case (4, _): _ = try? manager.fetch("Note", where: "no sense ===")
      case (5, let item?):
        try note.setValue(item, forKey: "item")
        Self.book[tag]?.item = item.objectID.key
      case (6, let item?):
        try item.add([note], to: "notes")
        Self.book[tag]?.item = item.objectID.key
      case (7, let item?):
        try item.remove([note], from: "notes")
        if Self.book[tag]?.item == item.objectID.key { Self.book[tag]?.item = nil }
      case (8, _):
        guard let peer = try self.note(other, manager) else { continue }
        try note.add([peer], to: "peers")
        Self.book[tag]?.peers.insert(other)
      case (9, _):
        guard let peer = try self.note(other, manager) else { continue }
        // From the other end: the objects that have it as a peer are replaced.
        try peer.setValue([note], forKey: "peersOf")
        for name in tags { Self.book[name]?.peers.remove(other) }
        Self.book[tag]?.peers.insert(other)
      case (10, _):
        let place = Self.any(Self.keys.count)
        let value = PolicyValue.integer(Int64(Self.any(100)))
        try manager.table("t").setValue(value, for: Self.keys[place])
        Self.table[place] = value
      default:
        guard let source, let id = Self.book[tag]?.note.objectID else { continue }
        try manager.associate(sourceInstance: source, withDestinationInstance: note, for: manager.mapping)
        Self.associated[source.objectID.key, default: []].insert(id)
      }
    }
  }

  private func insert(_ manager: MigrationPolicy.MigrationManager) throws {
    let note = try manager.insertNewObject(forEntityName: "Note")
    Self.count += 1
    let tag = String(1000 + Self.count)
    try note.setValue(.string(tag), forKey: "tag")
    try note.setValue("new", forKey: "text")
    Self.book[tag] = Entry(note: note)
  }

  private func delete(_ tag: String, _ note: ManagedObject, _ manager: MigrationPolicy.MigrationManager) throws {
    try manager.delete(note)
    guard let entry = Self.book.removeValue(forKey: tag) else { return }
    Self.gone.append(entry.note)
    for name in Self.book.keys { Self.book[name]?.peers.remove(tag) }
    for key in Self.associated.keys { Self.associated[key]?.remove(entry.note.objectID) }
  }

  override func begin(_ mapping: MigrationPolicy.EntityMapping, with manager: MigrationPolicy.MigrationManager) throws {
    try act(manager)
  }

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: MigrationPolicy.EntityMapping,
    manager: MigrationPolicy.MigrationManager
  ) throws {
    try act(manager, source)
    let item = try manager.insertStandardInstance(for: source)
    Self.items.append(item)
    Self.associated[source.objectID.key, default: []].insert(item.objectID)
    try act(manager, source)
  }

  override func endInstanceCreation(
    forMapping mapping: MigrationPolicy.EntityMapping, manager: MigrationPolicy.MigrationManager
  ) throws { try act(manager) }

  override func createRelationships(
    forDestination destination: ManagedObject, in mapping: MigrationPolicy.EntityMapping,
    manager: MigrationPolicy.MigrationManager
  ) throws { try act(manager) }

  override func endRelationshipCreation(
    forMapping mapping: MigrationPolicy.EntityMapping, manager: MigrationPolicy.MigrationManager
  ) throws { try act(manager) }

  override func performCustomValidation(
    forMapping mapping: MigrationPolicy.EntityMapping, manager: MigrationPolicy.MigrationManager
  ) throws { try act(manager) }

  /// Associations and tables end with the hop, so they are checked here.
  override func end(_ mapping: MigrationPolicy.EntityMapping, manager: MigrationPolicy.MigrationManager) throws {
    for source in try manager.fetch("Item", in: .source) {
      let made = try manager.destinationInstances(forEntityMappingNamed: "Items", sourceInstances: [source])
      #expect(Set(made.map(\.objectID)) == Self.associated[source.objectID.key] ?? [])
    }
    for (place, key) in Self.keys.enumerated() {
      #expect(try manager.table("t").value(for: key) == Self.table[place] ?? .null)
    }
    try act(manager)
  }

  override func method(_ selector: String, arguments: [PolicyValue], manager: MigrationPolicy.MigrationManager) throws
    -> PolicyValue
  {
    try act(manager)
    return selector == "next:" ? [] : arguments.first ?? .null
  }
}
