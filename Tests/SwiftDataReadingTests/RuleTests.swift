// The rules of the derivation, each with the source that has the form.

import Diagnostics
import ManagedObjectModel
import SwiftDataReading
import SwiftDataSource
import SystemPackage
import Testing

@Suite(.enabled(if: TestReader.program != nil, TestReader.absence)) struct RuleTests {
  /// Derives the model of some classes.
  private func derive(
    _ source: String, schema: String = "A", definitions: [String: Bool] = [:], calibrated: [String: String] = [:]
  ) throws -> DerivedModel {
    let target = try TestReader.target(["Models.swift": source], definitions: definitions)
    let models = try SourceModels(target, schema: schema, calibrated: CalibratedForms(calibrated))
    return try #require(models.versions.first).derived
  }

  private func model(_ source: String, schema: String = "A") throws -> ManagedObjectModel {
    let derived = try derive(source, schema: schema)
    return try #require(derived.model, "\(derived.refusals)")
  }

  private func refusals(_ source: String) throws -> [String] {
    try derive(source).refusals.map { "\($0.code) \($0.place.line ?? 0):\($0.place.column ?? 0) \($0.message)" }
  }

  @Test func typesBecomeAttributeTypes() throws {
    let entity = try #require(
      model(
        """
        @Model final class A {
          var text: String = "x"; var whole: Int; var small: Int16?; var byte: UInt8; var word: UInt32
          var ratio: CGFloat; var span: TimeInterval; var price: Decimal = 1.50; var flag = false
          var name = "n", count = 3, half = 0.5
          var when: Foundation.Date; let key: UUID; var blob: Data!; var list: [String]; var more: Array<Int>?
        }
        """
      ).entity(named: "A"))
    let types = Dictionary(uniqueKeysWithValues: entity.attributes.map { ($0.name, $0.type) })
    #expect(
      types == [
        "text": .string, "whole": .integer64, "small": .integer16, "byte": .integer16, "word": .integer32,
        "ratio": .float, "span": .double, "price": .decimal, "flag": .boolean, "name": .string, "count": .integer64,
        "half": .double, "when": .date, "key": .uuid, "blob": .binary, "list": .transformable, "more": .transformable,
      ])
    #expect(entity.attributes.filter(\.isOptional).map(\.name) == ["blob", "more", "small"])
    let defaults = Dictionary(uniqueKeysWithValues: entity.attributes.map { ($0.name, $0.defaultValue) })
    #expect(
      defaults["text"] == .string("x") && defaults["price"] == .decimal("1.50") && defaults["half"] == .double(0.5))
    #expect(defaults["whole"] == .some(nil))
  }

  @Test func whatIsNotStoredIsLeftOut() throws {
    let entity = try #require(
      model(
        """
        @Model class A {
          static var shared = 1
          lazy var later = 2
          @Transient var passing: Any? = nil
          var computed: Int { 3 }
          var both: Int { get { 1 } set { } }
          private var _kept: Int = 4
          var watched: Int = 5 { didSet { print("x") } }
          func f() { var inner = 6 }
        }
        extension A { static let other = 7; var more: Int { 8 } }
        """
      ).entity(named: "A"))
    #expect(entity.attributes.map(\.name) == ["_kept", "watched"])
  }

  @Test func optionsAndMacrosCount() throws {
    let entity = try #require(
      model(
        """
        @Model class A {
          #Unique<A>([\\.b, \\.a], [\\.c])
          #Index<A>([\\.a], [\\.a, \\.b])
          @Attribute(.unique, originalName: "old") var a: String
          @Attribute(.externalStorage) var b: Data
          @Attribute(.ephemeral) var c: Int
          @Attribute(.transformable(by: ColorTransformer.self)) var d: NSColor?
        }
        """
      ).entity(named: "A"))
    #expect(entity.uniquenessConstraints == [["a"], ["b", "a"], ["c"]])
    #expect(entity.fetchIndexes.map(\.name) == ["SwiftDataIndexOnBinarya", "SwiftDataIndexOnBinaryab"])
    let byName = Dictionary(uniqueKeysWithValues: entity.attributes.map { ($0.name, $0) })
    #expect(byName["a"]?.renamingIdentifier == "old" && byName["a"]?.isIndexed == false)
    #expect(byName["b"]?.allowsExternalStorage == true && byName["c"]?.isTransient == true)
    #expect(byName["d"]?.type == .transformable && byName["d"]?.valueTransformerName == "ColorTransformer")
  }

  @Test func structsAndEnumsAreComposites() throws {
    let entity = try #require(
      model(
        """
        enum Kind: String, Codable { case one, two }
        enum Plain: Codable { case first, second }
        struct Inner: Codable { var x: Double; var tags: [String]; var kinds: [Kind]? }
        struct Outer: Codable { let title: String; var inner: Inner?; static let zero = 0; var sum: Int { 1 } }
        @Model class A { var kind: Kind; var plain: Plain?; var outer: Outer; var color: Color.Resolved }
        """
      ).entity(named: "A"))
    let elements = Dictionary(uniqueKeysWithValues: entity.composites.map { ($0.name, $0.elements) })
    #expect(elements["kind"]?.map(\.name) == ["kind"] && elements["kind"]?.first?.isOptional == true)
    #expect(elements["plain"]?.map(\.name) == ["first", "second"])
    #expect(elements["color"]?.map(\.type) == [.float, .float, .float, .float])
    // Nested composites stay closed.
    let outer = try #require(entity.attributes.first { $0.name == "outer" })
    #expect(outer.elements.map(\.name) == ["title", "inner"] && outer.elements.map(\.isOptional) == [false, true])
    let inner = outer.elements[1].elements
    #expect(inner.map(\.type) == [.double, .transformable, .binary] && inner.allSatisfy(\.isOptional))
  }

  @Test func inversesAreThoseOfSwiftData() throws {
    func inverses(_ source: String) throws -> [String: String?] {
      let entities = try model(source).entities
      return Dictionary(
        uniqueKeysWithValues: entities.flatMap { entity in
          entity.relationships.map { ("\(entity.name).\($0.name)", $0.inverseName) }
        })
    }
    // Named at one end.
    #expect(
      try inverses(
        """
        @Model class A { @Relationship(deleteRule: .cascade, inverse: \\B.owner) var all: [B] = []; var x: Int }
        @Model class B { var owner: A?; var x: Int }
        """) == ["A.all": "owner", "B.owner": "all"])
    // Implied, and not implied with the macro, a required end, or two candidates.
    #expect(
      try inverses("@Model class A { var all: [B] }; @Model class B { var owner: A? }")
        == ["A.all": "owner", "B.owner": "all"])
    #expect(
      try inverses("@Model class A { @Relationship var all: [B] }; @Model class B { var owner: A? }")
        == ["A.all": nil, "B.owner": nil])
    #expect(
      try inverses("@Model class A { var all: [B] }; @Model class B { var owner: A }")
        == ["A.all": nil, "B.owner": nil])
    #expect(
      try inverses("@Model class A { var all: [B] }; @Model class B { var owner: A?; var maker: A? }")
        == ["A.all": nil, "B.owner": nil, "B.maker": nil])
    let derived = try derive("@Model class A { @Relationship var all: [B] }; @Model class B { var owner: A? }")
    #expect(derived.remarks.map(\.code) == [.lostInverse, .lostInverse])
    let hints = derived.remarks.compactMap(\.hint)
    let isTold = hints.contains { $0.contains("inverse: \\B.owner)") && $0.contains("pass --rename A.all= to keep") }
    #expect(isTold, "\(hints)")
  }

  @Test func whatIsNotProvenIsRefusedByNameAndPlace() throws {
    #expect(
      try refusals("@Model class A {\n  var site: URL?\n}") == [
        "source-unproven 2:7 URL?: the model that SwiftData makes of this is not proven (URL)"
      ])
    for (source, form) in [
      ("struct S: Codable { var x: Int }\n@Model class A { var all: [S] }", "array of a struct"),
      ("enum E: String, Codable { case a }\n@Model class A { var all: [E] }", "array of an enum with raw values"),
      ("enum E: Codable { case a(Int) }\n@Model class A { var one: E }", "enum with payload"),
      ("@Model class A { var all: Set<String> }", "set"), ("@Model class A { var all: [Double] }", "array of Double"),
      ("@Model class A { var all: [String: Int] }", "dictionary of Int"), ("@Model class A { var n: UInt }", "UInt"),
      ("@Model class A { @Attribute(hashModifier: \"2\") var n: Int }", "hashModifier"),
      ("@Model class A { @Attribute(.preserveValueOnDeletion) var n: Int }", "preserveValueOnDeletion"),
      ("@Model class B { var n: Int }\n@Model class A: B { var m: Int }", "inheritance"),
      ("@Model class A { var all: [B] }\n@Model class B { var all: [A] }", "many-to-many without @Relationship"),
      ("@Model class A { @Relationship(maximumModelCount: 3) var all: [A] }", "model counts"),
      (
        "enum E: String, Codable { case a }\nstruct S: Codable { var e: E }\n@Model class A { var s: S }",
        "enum in a required struct"
      ),
    ] {
      let derived = try derive(source)
      #expect(derived.forms.keys.map(\.name) == [form], "\(source): \(derived.refusals)")
      #expect(derived.model == nil && derived.refusals.allSatisfy { $0.place.line != nil && $0.place.file != nil })
    }
  }

  @Test func whatTheSourceDoesNotTellIsRefused() throws {
    for (source, part) in [
      ("@Model class A { var x: Missing }", "its source is not here"),
      ("class B {}\n@Model class A { var x: B }", "a class without @Model"),
      ("@Model class A { var x = make() }", "its type is not written"),
      // These are optional, or may be: the value of the initializer, a constant of the app.
      ("@Model class A { var x = Int(\"5\") }", "its type is not written"),
      ("@Model class A { var x = UUID(uuidString: \"5\") }", "its type is not written"),
      ("enum E: Int, Codable { case a }\n@Model class A { var x = E(rawValue: 0) }", "its type is not written"),
      (
        "extension Date { static let unset: Date? = nil }\n@Model class A { var x = Date.unset }",
        "its type is not written"
      ),
      ("class B {}\ntypealias C = B\n@Model class A: C { var x: Int }", "inherits from C"),
      ("@Model class A { var x: (Int, Int) }", "cannot be stored"),
      ("@Model class A {\n#if BETA\nvar x: Int\n#endif\nvar y: Int }", "it is compiled only if BETA"),
      (
        "@Model class A { var x: Int; @Relationship(inverse: \\B.y) var b: B? }\n@Model class B { var y: Int }",
        "is not a relationship"
      ),
    ] {
      let messages = try derive(source).refusals.map(\.message)
      #expect(messages.contains { $0.contains(part) }, "\(source): \(messages)")
    }
    let source = "@Model class A {\n#if BETA\nvar x: Int\n#endif\nvar y: Int }"
    #expect(try derive(source, definitions: ["BETA": true]).model?.entities.first?.attributes.count == 2)
    #expect(try derive(source, definitions: ["BETA": false]).model?.entities.first?.attributes.count == 1)
  }

  @Test func aCastTellsTheType() throws {
    let entity = try #require(
      model("@Model class A { var short = 5 as Int16; var maybe = nil as String?; var list = [] as [String] }")
        .entity(named: "A"))
    let byName = Dictionary(uniqueKeysWithValues: entity.attributes.map { ($0.name, $0) })
    #expect(byName["short"]?.type == .integer16 && byName["short"]?.defaultValue == .integer(5))
    #expect(byName["maybe"]?.type == .string && byName["maybe"]?.isOptional == true)
    #expect(byName["list"]?.type == .transformable && byName["list"]?.isOptional == false)
  }

  @Test func aConditionalListOfModelsIsNotTaken() throws {
    let text = """
      @Model class A { var x: Int }
      @Model class B { var x: Int }
      enum SchemaV1: VersionedSchema {
        static let versionIdentifier = Schema.Version(1, 0, 0)
        #if BETA
        static var models: [any PersistentModel.Type] { [A.self, B.self] }
        #else
        static var models: [any PersistentModel.Type] { [A.self] }
        #endif
      }
      """
    let unknown = try SourceModels(TestReader.target(["A.swift": text]))
    #expect(unknown.versions.first?.derived.refusals.first?.message.contains("no list `models`") == true)
    let beta = try SourceModels(TestReader.target(["A.swift": text], definitions: ["BETA": false]))
    #expect(beta.versions.first?.derived.model?.entities.map(\.name) == ["A"])
  }

  @Test func calibrationSettlesAForm() throws {
    let source = "@Model class A { var site: URL? }"
    let derived = try derive(source, calibrated: ["URL": "uri"])
    #expect(derived.model?.entities.first?.attributes.first?.type == .uri && derived.forms.count == 1)
    #expect(try derive(source, calibrated: ["URL": "boolean"]).model == nil)
  }

  @Test func namesResolveFromTheInsideOut() throws {
    let source = """
      typealias Note = SchemaV2.Note
      enum SchemaV1: VersionedSchema {
        static var versionIdentifier: Schema.Version { .init(1, 0, 0) }
        static var models: [any PersistentModel.Type] { [Note.self] }
        @Model class Note { var text: String }
      }
      enum SchemaV2: VersionedSchema {
        static let versionIdentifier = Schema.Version(1, 1, 0)
        static var models: [any PersistentModel.Type] { SchemaV1.models.isEmpty ? [] : [] }
      }
      extension SchemaV2 { @Model final class Note { var text: String; var mark: Mark } }
      extension SchemaV2.Note { enum Mark: Int, Codable { case a } }
      enum SchemaV3: VersionedSchema {
        static var versionIdentifier = Schema.Version(2, 0, 0)
        static var models: [any PersistentModel.Type] { return [Note.self] + Extra.all }
      }
      enum Extra { static let all: [any PersistentModel.Type] = [Tag.self] }
      @Model class Tag { var name: String }
      enum Plan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [SchemaV1.self, SchemaV2.self, SchemaV3.self] }
        static var stages: [MigrationStage] {
          [one, .lightweight(fromVersion: SchemaV2.self, toVersion: SchemaV3.self)]
        }
        static let one = MigrationStage.custom(
          fromVersion: SchemaV1.self, toVersion: SchemaV2.self, willMigrate: nil, didMigrate: { _ in })
      }
      """
    let target = try TestReader.target(["Models.swift": source])
    let models = try SourceModels(target)
    #expect(models.versions.map(\.version.name) == ["SchemaV1", "SchemaV2", "SchemaV3"])
    #expect(models.versions.map(\.version.identifier) == ["1.0.0", "1.1.0", "2.0.0"])
    #expect(models.versions[0].derived.model?.entities.map(\.name) == ["Note"])
    // A computed list is refused, with its line.
    #expect(models.versions[1].derived.refusals.first?.place.line == 9)
    #expect(models.versions[2].derived.model?.entities.map(\.name) == ["Note", "Tag"])
    #expect(models.versions[2].derived.model?.entity(named: "Note")?.composites.map(\.name) == ["mark"])
    #expect(models.stages.map(\.isCustom) == [true, false] && models.stages.map(\.to) == ["SchemaV2", "SchemaV3"])
    let bundle = try models.bundle(name: "App", path: "App")
    #expect(bundle.versions.map(\.name) == ["SchemaV1", "SchemaV3"] && bundle.currentVersionName == "SchemaV3")
    #expect(bundle.omitted.map(\.name) == ["SchemaV2"])
  }

  @Test func theSchemaOfTheContainerIsFound() throws {
    let models = "@Model class A { var b: B? }\n@Model class B { var n: Int }\n@Model class C { var n: Int }\n"
    func entities(_ source: String, schema: String? = nil) throws -> [String] {
      let target = try TestReader.target(["App.swift": models + source])
      return try SourceModels(target, schema: schema).versions.first?.derived.model?.entities.map(\.name) ?? []
    }
    #expect(try entities("let c = try ModelContainer(for: A.self, configurations: x)") == ["A", "B"])
    #expect(try entities("let c = try ModelContainer(for: A.self, C.self)") == ["A", "B", "C"])
    #expect(
      try entities("struct S { var body: some Scene { W { V() }.modelContainer(for: [A.self, C.self]) } }")
        == ["A", "B", "C"])
    #expect(
      try entities(
        "let s = Schema([A.self, C.self], version: .init(1, 0, 0))\n#Preview { V().modelContainer(for: B.self) }")
        == ["A", "B", "C"])
    // Of several the one with all models; otherwise the user says which.
    #expect(try entities("let a = Schema([A.self])\nlet b = Schema([B.self])") == ["A", "B"])
    #expect(throws: HopdError.self) { try entities("let a = Schema([A.self])\nlet b = Schema([C.self])") }
    #expect(try entities("let a = Schema([A.self])\nlet b = Schema([C.self])", schema: "App.swift:5") == ["C"])
    #expect(try entities("", schema: "A,C") == ["A", "B", "C"])
  }

  @Test func aPrivateTypeIsThatOfItsFile() throws {
    let target = try TestReader.target([
      "A.swift": "private struct P: Codable { var x: Int }\n@Model class A { var p: P?; var b: B? }",
      "B.swift": "private struct P: Codable { var y: String }\n@Model class B { var p: P? }",
    ])
    let model = try #require(SourceModels(target, schema: "A").versions.first?.derived.model)
    #expect(model.entities.map { $0.composites.first?.elements.map(\.name) } == [["x"], ["y"]])
    let twice = try TestReader.target([
      "A.swift": "struct P: Codable { var x: Int }\n@Model class A { var p: P? }",
      "B.swift": "struct P: Codable { var y: String }",
    ])
    let refusals = try #require(SourceModels(twice, schema: "A").versions.first?.derived.refusals)
    #expect(refusals.contains { $0.message.contains("several declarations have this name: A.swift:1, B.swift:1") })
  }
}
