// Real chains whose mapping models name policies: those projects' classes, written again, run through the whole
// pipeline over the projects' own stores. The expected result is in each chain's fixture.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import MigrationPolicy
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

/// The rows of a query, values as text.
private typealias Query = (String) throws -> [[String]]
/// A policy as a function of a call and a hand.
private typealias Policy = @Sendable (PolicyCall, PolicyHand) throws -> Void

/// The objects that a policy can use during a call.
private final class PolicyHand {
  let introduction: PolicyIntroduction
  private var keys: [String: Int64]
  private let answering: (PolicyRequest) throws -> PolicyAnswer
  var operations: [PolicyOperation] = []

  init(
    _ introduction: PolicyIntroduction, _ keys: PolicyKeys,
    _ answering: @escaping (PolicyRequest) throws -> PolicyAnswer
  ) {
    self.introduction = introduction
    self.keys = keys.next
    self.answering = answering
  }

  func ask(_ request: PolicyRequest) throws -> PolicyAnswer {
    if !operations.isEmpty { _ = try answering(.apply(operations)) }
    operations = []
    return try answering(request)
  }

  func insert(_ entity: String, _ values: [String: PolicyValue] = [:]) throws -> PolicyObjectID {
    let root = try #require(introduction.destinationEntities.first { $0.name == entity }?.root)
    let key = try #require(keys[root])
    keys[root] = key + 1
    let id = PolicyObjectID(side: .destination, entity: entity, key: key)
    operations.append(.insert(PolicyObject(id: id, values: values)))
    return id
  }

  func standard(_ instance: PolicySourceInstance) -> PolicyObjectID {
    operations += [
      .insert(instance.standard), .associate(source: instance.source.id, destination: instance.standard.id),
    ]
    return instance.standard.id
  }

  func set(_ id: PolicyObjectID, _ name: String, _ value: PolicyValue) {
    operations.append(.set(PolicyObject(id: id, values: [name: value])))
  }

  /// Returns the object that is remembered for a value, or a new one.
  func object(_ entity: String, _ property: String, _ value: PolicyValue) throws -> PolicyObjectID {
    if case .value(.object(let id)) = try ask(.lookup(table: entity, key: value)) { return id }
    let made = try insert(entity, [property: value])
    _ = try ask(.remember(table: entity, key: value, .object(made)))
    return made
  }

  func objects(_ request: PolicyRequest) throws -> [PolicyObject] {
    guard case .objects(let objects) = try ask(request) else { return [] }
    return objects
  }
}

private final class Policies: PolicyProvider {
  let policies: [String: Policy]
  init(_ policies: [String: Policy]) { self.policies = policies }

  func isBound(_ policy: String) -> Bool { policies[policy] != nil }

  func open(_ introduction: PolicyIntroduction) throws -> any PolicyConversation {
    Conversation(introduction, try #require(policies[introduction.policy]))
  }

  private final class Conversation: PolicyConversation {
    private let introduction: PolicyIntroduction
    private let policy: Policy

    init(_ introduction: PolicyIntroduction, _ policy: @escaping Policy) {
      self.introduction = introduction
      self.policy = policy
    }

    func call(
      _ call: PolicyCall, keys: PolicyKeys, answering: (PolicyRequest) throws -> PolicyAnswer
    ) throws -> PolicyReply {
      try withoutActuallyEscaping(answering) { answering in
        let hand = PolicyHand(introduction, keys, answering)
        try policy(call, hand)
        return .done(hand.operations)
      }
    }

    func close() {}
  }
}

@Suite(.enabled(if: Fixtures.isAvailable, Fixtures.absence))
struct PolicyChainTests {
  private struct Case: Decodable {
    let store: String
    let models: String
    let to: String
  }

  /// Calls `body` for each source object of a chunk.
  private static func each(
    _ call: PolicyCall, _ body: (PolicySourceInstance) throws -> Void
  ) throws {
    guard case .createDestinationInstances(let instances) = call else { return }
    for instance in instances { try body(instance) }
  }

  private static let policies: [String: Policy] = [
    "Migrations.Country5ToCountry6Policy": { call, hand in
      try each(call) { instance in
        let country = hand.standard(instance)
        guard let code = instance.source.values["isoContinent"], code != .null else { return }
        hand.set(country, "continent", .object(try hand.object("Continent", "numericISO3166Code", code)))
      }
    },
    "REPLACE_AT_RUNTIME.V2to3MakerPolicy": { call, hand in
      try each(call) { instance in
        let car = hand.standard(instance)
        guard let name = instance.source.values["maker"], name != .null else { return }
        hand.operations.append(.add(try hand.object("Maker", "name", name), relationship: "cars", [car]))
      }
    },
    "MHWBookToBookPolicy": { call, hand in
      guard case .string(let version)? = hand.introduction.userInfo["modelVersion"] else { return }
      let known = try #require(hand.introduction.destinationEntities.first { $0.name == "Book" }).properties
      try each(call) { instance in
        let source = instance.source.values
        let book = try hand.insert(
          "Book", source.filter { $0.value != .null && known[$0.key] != nil && known[$0.key]?.destination == nil })
        if version == "2" {
          let author = try hand.object("Author", "name", source["authorName"] ?? .null)
          hand.operations.append(.add(book, relationship: "authors", [author]))
        } else {
          let users = try hand.objects(.values([instance.source.id], properties: ["users"])).first?.values["users"]
          guard case .objects(let ids)? = users else { return }
          for user in try hand.objects(.values(ids, properties: ["userId"])) {
            guard case .integer(let number)? = user.values["userId"] else { continue }
            let found = try hand.objects(
              .fetch(side: .destination, entity: "User", predicate: "userId == \(number)", limit: nil))
            _ = try hand.insert(
              "File",
              [
                "fileURL": source["fileURL"] ?? .null, "book": .object(book),
                "user": .object(try #require(found.last).id),
              ])
          }
        }
        hand.operations.append(.associate(source: instance.source.id, destination: book))
      }
    },
  ]

  /// Two projects have a policy of the same name; their objects differ.
  private static func postPolicy(_ call: PolicyCall, _ hand: PolicyHand) throws {
    try each(call) { instance in
      let post = hand.standard(instance)
      if hand.introduction.destinationEntities.contains(where: { $0.name == "Section" }) {
        let content = instance.source.values["content"] ?? .null
        var title = PolicyValue.null
        if case .string(let text) = content { title = .string(text.prefix(4) + "...") }
        let section = try hand.insert(
          "Section", ["body": content, "title": title, "index": .integer(0), "post": .object(post)])
        hand.set(post, "sections", .objects([section]))
      } else {
        let color = try hand.insert(
          "Color", ["colorID": .string(UUID().uuidString), "hex": instance.source.values["hexColor"] ?? .null])
        hand.set(post, "color", .object(color))
      }
    }
  }

  /// Migrates a chain in its own folder and reads the result.
  private func migrate(
    _ name: String, to target: String? = nil, _ body: (Query) throws -> Void
  ) throws {
    let fixture = try #require(Fixtures.root).appending("chains").appending(name)
    let facts = try Fixtures.json(Case.self, at: fixture.appending("case.json"))
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-policies-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
    let source = fixture.appending(facts.store)
    for file in Fixtures.names(in: source.removingLastComponent()) where file != "ORIGIN" {
      try FileManager.default.copyItem(
        atPath: source.removingLastComponent().appending(file).string, toPath: folder.appending(file).string)
    }
    let location = StoreLocation(database: folder.appending(try #require(source.lastComponent)))
    var catalog = try ModelCatalog.load([fixture.appending(facts.models)])
    try catalog.loadMappings([fixture.appending("mappings")], beside: [])
    var request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
      target: .named(target ?? facts.to),
      settings: MigrationSettings(verification: .full),
      stateDirectory: folder.appending("state"), job: "ab12")
    request.engine.chunkRowsMax = 3
    var policies = Self.policies
    policies["CoreDataMigration_Example.Post2ToPost3MigrationPolicy"] = Self.postPolicy
    let provider = Policies(policies)
    request.policies = { _, _ in provider }
    _ = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
    try StoreReader.withUnchangedStore(at: location) { reader in
      try body { sql in
        try reader.connection.rows(sql) { row in
          (0..<row.columnCount).map { row.isNull(at: $0) ? "–" : row.text(at: $0) ?? "" }
        }
      }
    }
  }

  @Test func booksAuthorsAndFiles() throws {
    try migrate("bookmigration") { (rows: Query) throws in
      #expect(
        try rows(
          "SELECT (SELECT count(*) FROM ZBOOK), (SELECT count(*) FROM ZUSER), (SELECT count(*) FROM ZAUTHOR),"
            + " (SELECT count(*) FROM ZFILE), (SELECT count(DISTINCT ZUSER) FROM ZFILE)") == [
            ["4", "3", "3", "4", "1"]
          ])
      let join = try #require(
        try rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'Z_[0-9]*'").first?.first)
      #expect(try rows("SELECT count(*) FROM \(join)") == [["4"]])
      #expect(try rows("SELECT count(*) FROM ZAUTHOR WHERE ZNAME = 'Franz Kafka'") == [["1"]])
      #expect(
        try rows("SELECT count(*) FROM ZFILE f JOIN ZBOOK b ON b.Z_PK = f.ZBOOK WHERE length(f.ZFILEURL) > 10") == [
          ["4"]
        ])
    }
  }

  @Test func moodsUpToTheContinentsOfThePolicy() throws {
    let fixture = try #require(Fixtures.root).appending("chains/moody")
    let last = try #require(try ModelCatalog.load([fixture.appending("models")]).bundles.first?.versions.last?.name)
    try migrate("moody", to: last) { (rows: Query) throws in
      #expect(
        try rows(
          "SELECT n.ZNUMERICISO3166CODE, c.ZNUMERICISO3166CODE FROM ZCOUNTRY c"
            + " JOIN ZCONTINENT n ON n.Z_PK = c.ZCONTINENT ORDER BY 1, 2") == [
            ["10004", "231"], ["10004", "710"], ["10005", "704"],
          ])
      #expect(try rows("SELECT (SELECT count(*) FROM ZCONTINENT), (SELECT count(*) FROM ZMOOD)") == [["2", "4"]])
    }
  }

  @Test func carsAndTheirMakers() throws {
    try migrate("coredataplus-samplemodel") { (rows: Query) throws in
      #expect(try rows("SELECT count(*) FROM ZCAR GROUP BY Z_ENT ORDER BY 1 DESC") == [["115"], ["5"], ["5"]])
      #expect(
        try rows("SELECT count(*) FROM ZCAR c JOIN ZMAKER m ON m.Z_PK = c.ZCREATEDBY GROUP BY m.ZNAME ORDER BY 1 DESC")
          == [["103"], ["4"], ["3"], ["3"], ["2"], ["2"], ["2"], ["2"], ["2"], ["2"]])
      #expect(try rows("SELECT count(ZOWNER), count(ZCREATEDBY) FROM ZCAR") == [["118", "125"]])
      let join = try #require(
        try rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'Z_[0-9]*'").first?.first)
      #expect(try rows("SELECT count(*) FROM \(join)") == [["118"]])
    }
  }

  @Test func aColourForEachPost() throws {
    try migrate("wibosco-example") { (rows: Query) throws in
      #expect(
        try rows(
          "SELECT count(*), count(DISTINCT c.Z_PK), count(DISTINCT c.ZCOLORID), sum(c.ZPOST = p.Z_PK), count(c.ZHEX)"
            + " FROM ZPOST p JOIN ZCOLOR c ON c.Z_PK = p.ZCOLOR") == [["1001", "1001", "1001", "1001", "1001"]])
    }
  }

  @Test func aSectionForEachPost() throws {
    try migrate("wibosco-revised") { (rows: Query) throws in
      #expect(
        try rows(
          "SELECT count(*), count(DISTINCT p.Z_PK), sum(s.ZINDEX), count(s.ZBODY), sum(s.ZTITLE LIKE '____...')"
            + " FROM ZSECTION s JOIN ZPOST p ON p.Z_PK = s.ZPOST") == [["10", "10", "0", "10", "10"]])
    }
  }
}
