// Swift source as the model, from outside: releases out of git, stages that run code of the app, hints that can be
// pasted.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

/// The reader of Swift source, where a checkout has it.
private enum SwiftReader {
  static var isBuilt: Bool {
    let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
    return access(root.appending(".build-reader/release/hopctl-swiftdata-reader").string, X_OK) == 0
  }
}

@Suite(
  .blocking, .enabled(if: Program.isBuilt, Program.absence),
  .enabled(if: SwiftReader.isBuilt, "the reader of Swift source is not built: make swiftdata"),
  .enabled(if: access("/usr/bin/git", X_OK) == 0, "git is not there"),
  .enabled(if: access("/usr/bin/sqlite3", X_OK) == 0, "sqlite3 is not there"))
struct SwiftSourceTests {
  /// A repository with the source of an app.
  private struct Repository {
    let room: Room
    var app: String { room.path("repository/App") }

    init() throws {
      room = try Room()
      try FileManager.default.createDirectory(atPath: room.path("repository"), withIntermediateDirectories: true)
      try git("init", "-q")
    }

    func git(_ words: String...) throws {
      let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
      let outcome = try room.wait(
        room.start(program: "/usr/bin/git", ["-C", room.path("repository")] + identity + words))
      #expect(outcome.status == 0, "\(words): \(outcome.errors)")
    }

    func write(_ text: String, _ name: String = "App/Models.swift") throws { try room.file("repository/\(name)", text) }

    func release(_ tag: String, _ text: String) throws {
      try write(text)
      try git("add", ".")
      try git("commit", "-q", "-m", tag)
      try git("tag", tag)
    }

    func run(_ words: String...) throws -> Outcome { try room.run(words: words) }
  }

  private static func versions(_ bodies: [String], stages: String) -> String {
    let versions = bodies.enumerated().map { index, body in
      """
      enum SchemaV\(index + 1): VersionedSchema {
        static let versionIdentifier = Schema.Version(\(index + 1), 0, 0)
        static var models: [any PersistentModel.Type] { [Item.self] }
        @Model final class Item {
          \(body)
        }
      }
      """
    }
    let list = bodies.indices.map { "SchemaV\($0 + 1).self" }.joined(separator: ", ")
    let plan = """
      enum Plan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [\(list)] }
        static var stages: [MigrationStage] { [\(stages)] }
      }
      """
    return (["import SwiftData"] + versions + [plan]).joined(separator: "\n")
  }

  private static let lightweight = ".lightweight(fromVersion: SchemaV1.self, toVersion: SchemaV2.self)"
  private static let custom =
    ".custom(fromVersion: SchemaV1.self, toVersion: SchemaV2.self, willMigrate: { _ in }, didMigrate: nil)"

  @Test("An edited shipped schema is named with its entity and property")
  func anEditedShippedSchemaIsFound() throws {
    let repository = try Repository()
    let (one, two) = ("var name: String = \"\"", "var name: String = \"\"; var count: Int = 0")
    try repository.release("v1.0", Self.versions([one], stages: ""))
    try repository.release("v2.0", Self.versions([one, two], stages: Self.lightweight))
    let clean = try repository.run("check", repository.app, "--tags", "v*", "--json")
    #expect(clean.status == 0 && !clean.output.contains("shipped-schema-changed"), "\(clean.output)")
    try repository.write(Self.versions([one + "; var note: String?", two], stages: Self.lightweight))
    let check = try repository.run("check", repository.app, "--tags", "v*", "--json")
    let warnings = try check.json().models?.list.first?.warnings?.list ?? []
    let finding = try #require(warnings.first { $0.code?.text == "shipped-schema-changed" }, "\(check.output)")
    #expect(finding.entity?.text == "Item" && finding.property?.text == "note" && finding.line?.int == 2)
    #expect(
      finding.message?.text?.contains("SchemaV1 was changed after v1.0, v2.0 had shipped it: Item.note was added")
        == true)
    // What the hint prints is the shipped version.
    let hint = try #require(finding.hint?.text)
    #expect(hint.contains("hopctl model freeze \(repository.app) --tag v1.0 --name SchemaV1"), "\(hint)")
    let frozen = try repository.run("model", "freeze", repository.app, "--tag", "v1.0", "--name", "SchemaV1")
    #expect(frozen.status == 0 && frozen.output.contains("Schema.Version(1, 0, 0)"), "\(frozen.errors)")
  }

  @Test("A stage that runs code of the app stops a migration until a stages file answers")
  func aCustomStageIsNotPassedInSilence() throws {
    let repository = try Repository()
    try repository.write(
      Self.versions(["var name: String = \"\"", "var name: String = \"\"; var count: Int = 0"], stages: Self.custom))
    let (store, app) = (repository.room.path("a.store"), repository.app)
    let made = try repository.run(
      "create", store, "--models", app, "--model-version", "SchemaV1", "--rows", "10")
    #expect(made.status == 0, "\(made.errors)")
    let before = try Data(contentsOf: URL(filePath: store))

    let check = try repository.run("check", app)
    #expect(check.status == 0 && check.output.contains("stage-needs-program"), "\(check.output)")
    #expect(
      check.output.contains("[[stage]]\n       from = \"SchemaV1\"\n       to = \"SchemaV2\"\n"), "\(check.output)")
    let plan = try repository.run("plan", store, "--models", app)
    #expect(plan.status == 0 && plan.output.contains("runs code of the app"), "\(plan.output)")
    let explain = try repository.run("explain", store, "--models", app)
    #expect(explain.output.contains("runs code of the app") && explain.output.contains("next: hopctl plan "))
    #expect(try repository.run("explain", app).output.contains("runs code of the app"))
    for words in [["migrate"], ["rehearse"], ["migrate", "--dry-run"]] {
      let refused = try repository.room.run(words: words + [store, "--models", app, "--json"])
      #expect(refused.status == 78, "\(words): \(refused.output) \(refused.errors)")
      #expect((refused.output + refused.errors).contains("stage-without-program"), "\(words): \(refused.output)")
    }
    #expect(try Data(contentsOf: URL(filePath: store)) == before)
    let manifest = repository.room.path("fleet.ndjson")
    let scan = try repository.run("fleet", "scan", store, "--models", app, "--output", manifest)
    #expect(scan.status == 0 && !scan.output.contains("next: hopctl fleet run"), "\(scan.output) \(scan.errors)")
    let lines = try String(contentsOfFile: manifest, encoding: .utf8)
    #expect(lines.contains("\"stage-without-program\"") && !lines.contains("\"hops\""), "\(lines)")
    let dry = try repository.run("fleet", "run", "--manifest", manifest, "--models", app, "--dry-run")
    #expect(dry.status == 65 && dry.output.contains("cannot be migrated"), "\(dry.output) \(dry.errors)")
    #expect(dry.output.contains("runs code of the app"), "\(dry.output)")
    let fleet = try repository.run("fleet", "run", "--manifest", manifest, "--models", app, "--yes")
    #expect(fleet.status == 65 && fleet.output.contains("1 failed"), "\(fleet.output) \(fleet.errors)")
    #expect((fleet.output + fleet.errors).contains("runs code of the app"), "\(fleet.output) \(fleet.errors)")
    #expect(try Data(contentsOf: URL(filePath: store)) == before)

    // A stage without programs says that the code is not needed.
    try repository.write("[[stage]]\nfrom = \"SchemaV1\"\nto = \"SchemaV2\"\n", "App/App.hopstages.toml")
    let migrated = try repository.run("migrate", store, "--models", app)
    #expect(migrated.status == 0, "\(migrated.errors)")
    #expect(try repository.run("identify", store, "--models", app).output.contains("SchemaV2"))
  }

  @Test func sampleRowsHaveTheRawValuesOfEnums() throws {
    let repository = try Repository()
    try repository.write(
      """
      enum Colour: String, Codable { case red = "r", green }
      enum Level: Int, Codable { case low = 3, high }
      struct Look: Codable { var colour: Colour? }
      @Model final class Item { var colour: Colour; var level: Level?; var look: Look? }
      let s = Schema([Item.self])
      """)
    let store = repository.room.path("a.store")
    let made = try repository.run("create", store, "--models", repository.app, "--rows", "40")
    #expect(made.status == 0, "\(made.errors)")
    func values(_ column: String) throws -> String {
      try repository.room.sql(
        store, "SELECT group_concat(v) FROM (SELECT DISTINCT ifnull(\(column), 'nil') AS v FROM ZITEM ORDER BY 1)")
    }
    let columns = try repository.room.sql(store, "SELECT group_concat(name) FROM pragma_table_info('ZITEM')")
    #expect(columns.contains("ZLEVEL"))
    #expect(try values("ZLEVEL").trimmed == "3,4,nil")
    for column in columns.trimmed.split(separator: ",") where column.hasPrefix("ZCOLOUR") {
      #expect(["green,r", "green,nil,r"].contains(try values(String(column)).trimmed), "\(column)")
    }
  }

  @Test("A check tries the raw values of an enum, not other numbers")
  func checkUsesRawValues() throws {
    let repository = try Repository()
    try repository.write(
      "enum Old: Int, Codable { case low = 3, high }\nenum New: Int16, Codable { case low = 3, high }\n"
        + Self.versions(["var level: Old = Old.low", "var level: New = New.low"], stages: Self.lightweight))
    let check = try repository.run("check", repository.app)
    #expect(check.status == 0 && !check.output.contains("number-does-not-fit"), "\(check.output)\(check.errors)")
    // A number that is no raw value would not fit.
    try repository.write(
      Self.versions(["var level: Int = 3", "var level: Int16 = 3"], stages: Self.lightweight))
    #expect(try repository.run("check", repository.app).output.contains("number-does-not-fit"))
  }

  @Test("Commands to type next have the options that chose the source")
  func hintsKeepTheOptions() throws {
    let repository = try Repository()
    func source(_ body: String) -> String { "@Model final class Item { \(body) }\nlet s = Schema([Item.self])\n" }
    try repository.release("v1", source("var name: String = \"\""))
    try repository.release("v2", source("@Attribute(originalName: \"name\") var title: String = \"\""))
    try repository.write(source("@Attribute(originalName: \"title\") var heading: String = \"\""))
    let explain = try repository.run("explain", repository.app, "--tags", "v*", "--define", "DEBUG=0")
    let next = "next: hopctl check \(repository.app) --tags 'v*' --define 'DEBUG=0'"
    #expect(explain.output.contains(next), "\(explain.output)")
    // A second rename keeps the identifier of the first name.
    let check = try repository.run("check", repository.app, "--tags", "v*")
    #expect(check.output.contains("→ working-tree"), "\(check.output)")
    #expect(
      check.output.contains("@Attribute(originalName: \"name\") var heading")
        && check.output.contains("title was renamed before"), "\(check.output)")
    try repository.write(source("@Attribute(originalName: \"name\") var heading: String = \"\""))
    let repaired = try repository.run("check", repository.app, "--tags", "v*")
    #expect(repaired.status == 0 && !repaired.output.contains("rename-suspected") && !repaired.output.contains("drops"))
  }

  @Test func aFolderWithoutModelsIsAnsweredWithWhatWasLookedAt() throws {
    let repository = try Repository()
    try repository.release("v1", "@Model final class Item { var n: Int }\nlet s = Schema([Item.self])\n")
    try repository.write("struct View {}\n", "Views/View.swift")
    let refused = try repository.run("check", repository.room.path("repository/Views"))
    #expect(refused.status != 0 && refused.errors.contains("none of 1 Swift files has a class with @Model"))
    #expect(refused.errors.contains("repository/App has @Model classes"), "\(refused.errors)")
  }

  @Test func theDifferenceHasEveryRelationshipThatGoes() throws {
    let repository = try Repository()
    func write(_ name: String, _ one: String, _ two: String) throws {
      try repository.write(
        "@Model class A { var n: Int; \(one) }\n@Model class B { var n: Int; \(two) }\n"
          + "let s = Schema([A.self, B.self])\n", "\(name).swift")
    }
    func difference() throws -> String {
      let names = ["a", "b"].map { repository.room.path("repository/\($0).swift") }
      return try repository.run("model", "diff", names[0], names[1]).output
    }
    let (bs, a) = ("@Relationship(inverse: \\B.a) var bs: [B]", "var a: A?")
    try write("a", bs, a)
    try write("b", "", a)
    var text = try difference()
    #expect(text.contains("- bs  (to-many to B)  B.a preserves the references"), "\(text)")
    #expect(text.contains("~ a  (inverse bs → none)"), "\(text)")
    try write("b", "var bs: [B]", "")
    text = try difference()
    #expect(text.contains("- a  (to-one to A, optional)") && text.contains("~ bs  (inverse a → none)"), "\(text)")
    try write("b", "@Relationship var bs: [B]", a)
    text = try difference()
    #expect(text.contains("~ bs  (inverse a → none)") && text.contains("~ a  (inverse bs → none)"), "\(text)")
  }

  @Test("A pull request is compared with the source of its base")
  func theBaseIsReadFromGit() throws {
    let repository = try Repository()
    let (one, two) = ("var name: String = \"\"", "var name: String = \"\"; var count: Int = 0")
    try repository.release("v1", Self.versions([one], stages: ""))
    try repository.write(Self.versions([one, two], stages: Self.lightweight))
    let good = try repository.run("check", repository.app, "--base", "v1")
    #expect(good.status == 0, "\(good.output) \(good.errors)")
    try repository.write(Self.versions(["var name: String?", two], stages: Self.lightweight))
    let bad = try repository.run("check", repository.app, "--base", "v1")
    #expect(bad.status == 65 && bad.output.contains("shipped-version-changed"), "\(bad.output)")
    // Releases are compared one by one, so a base adds only its lock.
    let tagged = try repository.run("check", repository.app, "--base", "v1", "--tags", "v*")
    #expect(tagged.output.contains("shipped-schema-changed") && !tagged.output.contains("shipped-version-changed"))
    // A folder that is new at this commit has nothing to be compared with.
    try repository.write("@Model class N { var n: Int }\nlet s = Schema([N.self])\n", "New/N.swift")
    let new = try repository.run("check", repository.room.path("repository/New"), "--base", "v1")
    #expect(new.status == 0, "\(new.output) \(new.errors)")
  }
}

extension String {
  fileprivate var trimmed: String { String(split(whereSeparator: \.isNewline).joined(separator: "\n")) }
}
