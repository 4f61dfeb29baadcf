// `check --write-stages`, and the example app whose migration plan has a custom stage.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

@Suite(
  .blocking, .enabled(if: Program.isBuilt, Program.absence),
  .enabled(if: access(SwiftDataRoom.reader.string, X_OK) == 0, "the reader of Swift source is not built"))
struct StagesSkeletonTests {
  private func room(_ hooks: String) throws -> Room {
    let room = try Room()
    let versions = (1...2).map { number in
      """
      enum SchemaV\(number): VersionedSchema {
        static let versionIdentifier = Schema.Version(\(number), 0, 0)
        static var models: [any PersistentModel.Type] { [Item.self] }
        @Model class Item { var name: String; var p\(number): Int? }
      }
      """
    }
    try room.file(
      "App/Models.swift",
      """
      \(versions.joined(separator: "\n"))
      enum Plan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [SchemaV1.self, SchemaV2.self] }
        static var stages: [MigrationStage] { [.\(hooks)] }
      }
      """)
    return room
  }

  private func custom(_ will: String, _ did: String) -> String {
    "custom(fromVersion: SchemaV1.self, toVersion: SchemaV2.self, willMigrate: \(will), didMigrate: \(did))"
  }

  @Test(
    "A skeleton has the hooks of the plan, and the next check takes its stages",
    arguments: [("{ _ in }", "{ _ in }", 2), ("nil", "{ _ in }", 1), ("nil", "nil", 0)])
  func skeleton(_ will: String, _ did: String, _ hooks: Int) throws {
    let room = try room(custom(will, did))
    let (app, file) = (room.path("App"), room.path("App/App.hopstages.toml"))
    let first = try room.run("check", app, "--write-stages", file)
    #expect(first.status == 0 && first.output.contains("stage-needs-program"), "\(first.output)\(first.errors)")
    let text = String(decoding: try Data(contentsOf: URL(filePath: file)), as: UTF8.self)
    #expect(text.contains("/App/Models.swift:"), "\(text)")
    #expect(text.contains("[[stage]]\nfrom = \"SchemaV1\"\nto = \"SchemaV2\"\n"), "\(text)")
    #expect(text.contains("will_migrate = \"WillMigrateToSchemaV2\"") == (hooks == 2), "\(text)")
    #expect(text.contains("did_migrate = \"DidMigrateToSchemaV2\"") == (hooks > 0), "\(text)")
    #expect(first.output.contains("--policy 'WillMigrateToSchemaV2=PROGRAM'") == (hooks == 2), "\(first.output)")
    let second = try room.run("check", app, "--allow-unbound-policies")
    #expect(second.status == 0 && !second.output.contains("stage-needs-program"), "\(second.output)\(second.errors)")
    let again = try room.run("check", app, "--write-stages", file)
    #expect(again.status == 64 && again.errors.contains("file already exists"), "\(again.errors)")
    #expect(String(decoding: try Data(contentsOf: URL(filePath: file)), as: UTF8.self) == text)
  }

  @Test("Nothing is written without a stage that needs a program, or under another name")
  func nothingToWrite() throws {
    let room = try room("lightweight(fromVersion: SchemaV1.self, toVersion: SchemaV2.self)")
    let file = room.path("App/App.hopstages.toml")
    let outcome = try room.run("check", room.path("App"), "--write-stages", file)
    #expect(outcome.status == 0 && outcome.output.contains("nothing was written"), "\(outcome.output)")
    #expect(access(file, F_OK) != 0)
    #expect(try room.run("check", room.path("App"), "--write-stages", room.path("stages.toml")).status == 64)
  }

  @Test("The example makes the same commits in every run")
  func exampleIsReproducible() throws {
    let room = try Room()
    let script = SwiftDataRoom.root.appending("Examples/SwiftData/make-bundle")
    let heads = try (1...2).map { number in
      let bundle = room.path("\(number).bundle")
      let made = try room.wait(room.start(program: script, [bundle]))
      try #require(made.status == 0, "\(made.errors)")
      return try room.wait(room.start(program: "/usr/bin/git", ["ls-remote", bundle])).output
    }
    #expect(heads[0] == heads[1])
    #expect(["main", "v1.0", "v1.1", "v1.2"].allSatisfy { heads[0].contains("/\($0)\n") }, "\(heads[0])")

    let clone = room.path("garden")
    let cloned = try room.wait(room.start(program: "/usr/bin/git", ["clone", "-q", room.path("1.bundle"), clone]))
    try #require(cloned.status == 0, "\(cloned.errors)")
    let check = try room.run("check", "\(clone)/Garden", "--tags", "v*")
    #expect(check.status == 65)
    #expect(check.output.contains("after v1.0 had shipped it: Plant.name was title; Plant.room was added ("))
    #expect(check.output.contains("after v1.1 had shipped it: Plant.name was title. "), "\(check.output)")
  }
}
