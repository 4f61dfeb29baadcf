// Releases out of git: objects are read, nothing is checked out, and releases with one model are one version.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import PolicyHost
import SwiftDataReading
import SwiftDataSource
import SystemPackage
import Testing

@Suite(.serialized, .enabled(if: TestReader.program != nil, TestReader.absence)) struct TagTests {
  /// A repository with some releases.
  private final class Repository {
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-tags-\(UUID().uuidString)")

    init() throws {
      try FileManager.default.createDirectory(atPath: folder.appending("App").string, withIntermediateDirectories: true)
      try git("init", "-q")
    }

    deinit { try? FileManager.default.removeItem(atPath: folder.string) }

    func git(_ words: String...) throws {
      let environment = [
        "PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "HOME": "/",
        "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b", "GIT_CONFIG_NOSYSTEM": "1",
      ]
      let answer = ProgramOutput.of(["git", "-C", folder.string] + words, environment: environment)
      #expect(answer?.status == 0, "\(words): \(answer?.errors ?? "")")
    }

    func write(_ text: String) throws {
      try Data(text.utf8).write(to: URL(filePath: folder.appending("App").appending("Models.swift").string))
    }

    func release(_ tag: String, _ text: String) throws {
      try write(text)
      try git("add", ".")
      try git("commit", "-q", "--allow-empty", "-m", tag)
      try git("tag", tag)
    }

    var app: FilePath { folder.appending("App") }
  }

  private func source(_ body: String, identifier: String = "1, 0, 0") -> String {
    """
    enum SchemaV1: VersionedSchema {
      static let versionIdentifier = Schema.Version(\(identifier))
      static var models: [any PersistentModel.Type] { [Item.self] }
    }
    @Model final class Item { \(body) }
    """
  }

  @Test func everyShapeIsAVersionWithItsTags() throws {
    let repository = try Repository()
    try repository.release("v0.9", "struct Item {}")
    try repository.release("v1.0", source("var name: String"))
    try repository.release("v1.1", source("var name: String\n  func f() {}"))
    try repository.release("v1.2", source("var name: String; var count: Int?"))
    try repository.release("v1.3", source("var name: String; var site: URL?"))
    try repository.release("v1.4", source("var name: String; var site: URL?\n"))
    try repository.release("other", source("var x: Int"))
    try repository.write(source("var name: String; var count: Int? = 3; var more: String?"))
    let bundle = try TaggedModels.bundle(of: repository.app, tags: "v*", choice: SourceChoice())
    #expect(bundle.name == "App")
    #expect(bundle.versions.map(\.name) == ["v1.0", "v1.2", "SchemaV1"] && bundle.currentVersionName == "SchemaV1")
    #expect(bundle.origin?.tags == ["v1.0": ["v1.0", "v1.1"], "v1.2": ["v1.2"]])
    #expect(bundle.omitted.map(\.name) == ["v1.3"])
    #expect(bundle.omitted.first?.reason.reasons.first?.place.file == "App/Models.swift")
    #expect(bundle.origin?.shipped.map(\.tags) == [["v1.0", "v1.1"], ["v1.2"]])
    #expect(bundle.origin?.shipped.map(\.now?.name) == ["SchemaV1", "SchemaV1"])
    #expect(bundle.warnings.contains { $0.message.contains("1 tags have no SwiftData models: v0.9") })
    // What was released already is current under its own name, with the defaults of the source.
    try repository.write(source("var name: String; var count: Int? = 3"))
    let again = try TaggedModels.bundle(of: repository.app, tags: "v1.[012]", choice: SourceChoice())
    #expect(again.versions.map(\.name) == ["v1.0", "v1.2"] && again.currentVersionName == "v1.2")
    #expect(
      again.currentVersion?.entity(named: "Item")?.attributes.first { $0.name == "count" }?.defaultValue == .integer(3))
    // The working tree is as it was.
    #expect(try Data(contentsOf: URL(filePath: repository.app.appending("Models.swift").string)).isEmpty == false)
    #expect(throws: HopdError.self) { try TaggedModels.bundle(of: repository.app, tags: "x*", choice: SourceChoice()) }
  }

  @Test("A shipped schema that was edited is found although the current version is unchanged")
  func everyShippedSchemaIsComparedWithTheSource() throws {
    func source(_ one: String, _ two: String, name: String = "SchemaV1", identifier: String = "1, 0, 0") -> String {
      """
      enum \(name): VersionedSchema {
        static let versionIdentifier = Schema.Version(\(identifier))
        static var models: [any PersistentModel.Type] { [Item.self] }
        @Model final class Item { \(one) }
      }
      enum SchemaV2: VersionedSchema {
        static let versionIdentifier = Schema.Version(2, 0, 0)
        static var models: [any PersistentModel.Type] { [Item.self] }
        @Model final class Item { \(two) }
      }
      """
    }
    let repository = try Repository()
    let (one, two) = ("var name: String", "var name: String; var count: Int?")
    try repository.release("v1", source(one, two))
    try repository.release("v2", source(one, two))
    func shipped() throws -> [ShippedSchema] {
      try TaggedModels.bundle(of: repository.app, tags: "v*", choice: SourceChoice()).origin?.shipped ?? []
    }
    #expect(try shipped().isEmpty)
    try repository.write(source("var name: String?", two))
    let changed = try #require(try shipped().first)
    #expect(changed.name == "SchemaV1" && changed.tags == ["v1", "v2"] && changed.now?.name == "SchemaV1")
    #expect(changed.place.line == 1)
    // Under another name it is found by its identifier, and one with the same hashes is no other version.
    try repository.write(source("var name: String?", two, name: "First"))
    #expect(try shipped().map(\.now?.name) == ["First"])
    try repository.write(source(one, two, name: "First", identifier: "0, 9, 0"))
    #expect(try shipped().isEmpty)
    // A version that stores were made with is missed; one that no release had as its current one is not.
    try repository.write(source(one, two + "; var x: Int?", name: "First", identifier: "0, 9, 0"))
    #expect(try shipped().map(\.name) == ["SchemaV2"])
  }

  @Test func theSourceOfTheFolderIsNotCalledLikeATag() throws {
    let repository = try Repository()
    func models(_ body: String) -> String { "@Model class A { \(body) }\nlet s = Schema([A.self])\n" }
    try repository.release("1.0.0", models("var n: Int"))
    try repository.write(models("var n: Int; var m: Int?"))
    let bundle = try TaggedModels.bundle(of: repository.app, tags: "*", choice: SourceChoice())
    #expect(bundle.versions.map(\.name) == ["1.0.0", "working-tree"] && bundle.currentVersionName == "working-tree")
    try repository.write(models("var n: Int"))
    let same = try TaggedModels.bundle(of: repository.app, tags: "*", choice: SourceChoice())
    #expect(same.currentVersionName == "1.0.0")
    #expect(same.warnings.contains { $0.message.contains("has the model of 1.0.0") })
  }

  @Test func anUnknownTagIsAnsweredWithThoseThatAreThere() throws {
    let repository = try Repository()
    try repository.release("v1.0.1", "@Model class A { var n: Int }\nlet s = Schema([A.self])\n")
    let source = try GitSource(folder: repository.app)
    let unknown = #expect(throws: HopdError.self) { try source.target(ofCommit: "v1.0.2", choice: SourceChoice()) }
    #expect(unknown?.hint == "use 'v1.0.1'" && unknown?.message.contains("v1.0.2") == true)
    let pattern = #expect(throws: HopdError.self) {
      try TaggedModels.bundle(of: repository.app, tags: "release/*", choice: SourceChoice())
    }
    #expect(pattern?.hint?.contains("v1.0.1") == true)
  }

  @Test func aReleaseIsFrozenFromItsTag() throws {
    let repository = try Repository()
    try repository.release("v1", source("var name: String; var look: Look?") + "\nenum Look: Codable { case a, b }")
    try repository.write(source("var other: Int"))
    let target = try GitSource(folder: repository.app).target(ofCommit: "v1", choice: SourceChoice())
    let (version, derived) = try #require(SourceModels(target).versions.first)
    let text = try FrozenSchema(version, derived, of: target).text(name: "Frozen", origin: "v1")
    #expect(text.contains("case a\n") && text.contains("var look: Look?"))
    let again = try SourceModels(TestReader.target(["A.swift": text])).versions.first?.derived.model
    #expect(again?.versionHashes == derived.model?.versionHashes)
  }
}
