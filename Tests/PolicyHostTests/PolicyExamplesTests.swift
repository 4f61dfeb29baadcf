import BlockingTests
import Diagnostics
import Glibc
import MigrationPolicy
import SystemPackage
import Testing

@testable import PolicyHost

/// Programs that the tests start.
enum Programs {
  /// The package's folder.
  static let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
  /// The interpreter; a shim of some version manager would want an environment that policies do not get.
  static let python: String? = ["/usr/bin/python3", "/usr/local/bin/python3"].first { access($0, X_OK) == 0 }

  /// An example written in Python.
  static func example(_ name: String) throws -> [String] {
    [try #require(python), root.appending("Examples/Policies/python").appending(name).string]
  }

  /// The example written in Swift, which is among the tests.
  static func swiftExample() throws -> [String] {
    var buffer = [CChar](repeating: 0, count: 4096)
    try #require(readlink("/proc/self/exe", &buffer, buffer.count - 1) > 0)
    let own = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let folders = ([own] + CommandLine.arguments).map { FilePath($0).removingLastComponent() }
    let path = folders.map { $0.appending("BookToBookPolicy") }.first { access($0.string, X_OK) == 0 }
    return [try #require(path?.string, "BookToBookPolicy is not built beside the tests")]
  }
}

/// The example policies at work, in programs of their own.
@Suite(.blocking) struct PolicyExamplesTests {
  private static func id(_ entity: String, _ key: Int64, _ side: PolicyObjectID.Side = .destination) -> PolicyObjectID {
    PolicyObjectID(side: side, entity: entity, key: key)
  }

  private func hop(_ command: [String], version: String, books: Int64) throws -> FakeEngine {
    let engine = FakeEngine()
    engine.keys = PolicyKeys(next: ["Book": 1, "Author": 1, "File": 1])
    for key in Int64(1)...3 {
      engine.source[Self.id("User", key, .source)] = ["userId": 1]
      engine.insert(Self.id("User", key), ["userId": 1])
    }
    let names: [PolicyValue] = ["Franz Kafka", "Witold Gombrowicz", "Franz Kafka", "Thomas \"B\" Bernhard\n", .null]
    for key in 1...books {
      engine.source[Self.id("Book", key, .source)] = [
        "title": .string("Book \(key)"), "authorName": names[Int(key - 1) % names.count],
        "fileURL": key % 7 == 6 ? .null : .transformable([UInt8(truncatingIfNeeded: key), 0, 255]),
        "users": .objects(key % 4 == 3 ? [] : [Self.id("User", 3, .source)]),
      ]
    }
    let programs = PolicyPrograms(["MHWBookToBookPolicy": PolicyBinding(command: command)])
    let conversation = try programs.open(
      .books(policy: "Library.MHWBookToBookPolicy", userInfo: ["modelVersion": .string(version)]))
    defer { conversation.close() }
    try engine.run(conversation, .begin)
    let sources = engine.source.filter { $0.key.entity == "Book" }.sorted { $0.key.key < $1.key.key }
    for start in stride(from: 0, to: sources.count, by: 50) {
      let instances = sources[start..<min(start + 50, sources.count)].map { id, values in
        // To-manys are sent only on request.
        PolicySourceInstance(
          source: PolicyObject(id: id, values: values.filter { $0.key != "users" }),
          standard: PolicyObject(id: Self.id("Book", 10_000 + id.key), values: ["title": values["title"] ?? .null]))
      }
      try engine.run(conversation, .createDestinationInstances(instances))
    }
    for call in [
      PolicyCall.endInstanceCreation, .createRelationships([Self.id("Book", 10_001)]), .endRelationshipCreation,
      .performCustomValidation, .end,
    ] {
      try engine.run(conversation, call)
    }
    return engine
  }

  @Test(.disabled(if: Sanitizer.isOn, Sanitizer.reason), arguments: ["swift", "python"])
  func booksFindTheirAuthors(_ language: String) throws {
    let command = language == "swift" ? try Programs.swiftExample() : try Programs.example("book_to_book_policy.py")
    let engine = try hop(command, version: "2", books: 120)
    let authors = engine.destination.filter { $0.key.entity == "Author" }
    #expect(Set(authors.values.map { $0["name"] }) == ["Franz Kafka", "Witold Gombrowicz", "Thomas \"B\" Bernhard\n"])
    #expect(authors.count == 3)
    let kafka = try #require(authors.first { $0.value["name"] == "Franz Kafka" }?.key)
    #expect(engine.members[kafka]?["books"]?.count == 48)
    #expect(engine.destination.filter { $0.key.entity == "Book" }.count == 120)
    #expect(engine.destination[Self.id("Book", 10_006)] == ["title": "Book 6"], "nil is not copied")
    #expect(
      engine.destination[Self.id("Book", 10_005)] == ["title": "Book 5", "fileURL": .transformable([5, 0, 255])])
    #expect(
      engine.associations.count == 120
        && engine.associations[Self.id("Book", 9, .source)]
          == [Self.id("Book", 10_009)]
    )
  }

  @Test(.disabled(if: Sanitizer.isOn, Sanitizer.reason), arguments: ["swift", "python"])
  func booksGetFilesOfAUser(_ language: String) throws {
    let command = language == "swift" ? try Programs.swiftExample() : try Programs.example("book_to_book_policy.py")
    let engine = try hop(command, version: "3", books: 120)
    let files = engine.destination.filter { $0.key.entity == "File" }
    #expect(files.count == 90)
    #expect(files.values.allSatisfy { $0["user"] == .object(Self.id("User", 3)) })
    #expect(files[Self.id("File", 1)]?["book"] == .object(Self.id("Book", 10_001)))
  }

  /// Written in two languages, the policy makes the same.
  @Test(.disabled(if: Sanitizer.isOn, Sanitizer.reason), arguments: ["2", "3", "4"])
  func swiftAndPythonAgree(_ version: String) throws {
    let swift = try hop(Programs.swiftExample(), version: version, books: 60)
    let python = try hop(Programs.example("book_to_book_policy.py"), version: version, books: 60)
    #expect(swift.destination == python.destination)
    #expect(swift.members == python.members)
    #expect(swift.associations == python.associations)
    #expect(swift.tables == python.tables)
    if version == "4" { #expect(swift.requests == 0 && python.requests == 0, "default creation asks nothing") }
  }

  /// Every example starts and has its classes.
  @Test(arguments: [
    ("country5_to_country6_policy.py", "Migrations.Country5ToCountry6Policy"),
    ("v2_to_3_maker_policy.py", "REPLACE_AT_RUNTIME.V2to3MakerPolicy"),
    ("post2_to_post3_sections_policy.py", "A.Post2ToPost3MigrationPolicy"),
    ("post2_to_post3_colors_policy.py", "A.Post2ToPost3MigrationPolicy"),
    ("loopkit_policies.py", "LoopKit.DeletedCarbObjectv3EntityMigrationPolicy"),
  ])
  func examplesStart(_ file: String, _ policy: String) throws {
    let command = try Programs.example(file) + (file.hasPrefix("loopkit") ? ["--provenance", "com.example.Loop"] : [])
    let conversation = try PolicyPrograms([PolicyClassName.bare(policy): PolicyBinding(command: command)]).open(
      .books(policy: policy))
    defer { conversation.close() }
    #expect(try conversation.call(.begin, keys: PolicyKeys(next: [:])) { _ in .done } == .done([]))
  }
}
