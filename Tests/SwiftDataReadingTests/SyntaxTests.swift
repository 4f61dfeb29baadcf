// Source with syntax errors: the parser goes on after one with whatever it takes the text for, so no model is derived
// from a file that may declare one, or that declares a type of one.

import Diagnostics
import ManagedObjectModel
import SwiftDataReading
import SwiftDataSource
import SystemPackage
import Testing

@Suite(.enabled(if: TestReader.program != nil, TestReader.absence)) struct SyntaxTests {
  /// The error of a target; nil if all of its versions have a model.
  private func refusal(_ files: [String: String], definitions: [String: Bool] = [:]) throws -> HopdError? {
    let target = try TestReader.target(files, definitions: definitions)
    do throws(HopdError) {
      let models = try SourceModels(target)
      return models.versions.first { $0.derived.model == nil }.map { models.refusal($0) }
    } catch {
      return error
    }
  }

  @Test(
    "A syntax error in a file with a model is refused at its place",
    arguments: [
      ("  var nights: Int = = 1", 23), ("  var nights Int = 1", 13), ("  va end: Date?", 3),
      ("  var nights: Int = 1 2", 22),
      ("  var list: [Int", 17), ("  @Attribute(.unique var key: Int", 22), ("  var z: Int? =", 17), ("  var : Int", 7),
      ("  func f( { }", 11), ("  func f() { let x = }", 22), ("  var name: Strng<", 20), ("  }}", 4),
      ("  @Relationship(inverse: \\B.) var a: A?", 29), ("  #Unique<A>([\\.n", 17), ("  let 1: Int", 7),
    ])
  func aSyntaxErrorIsRefused(_ line: String, _ column: Int) throws {
    let text = "import SwiftData\n@Model class A {\n  var n: Int\n\(line)\n  init() {}\n}\nlet s = Schema([A.self])\n"
    let error = try #require(try refusal(["A.swift": text]), "\(line)")
    #expect(error.code == .sourceUnclear && error.message.contains("syntax error"), "\(line): \(error)")
    #expect(error.place.file == "A.swift" && (4...6).contains(error.place.line ?? 0), "\(line): \(error.place)")
    if error.place.line == 4 { #expect(abs((error.place.column ?? 0) - column) < 4, "\(line): \(error.place)") }
    #expect(error.hint != nil)
  }

  @Test func anErrorAroundAVersionOrAPlanIsRefused() throws {
    let model = "@Model class A { var n: Int }\n"
    let version = """
      enum SchemaV1: VersionedSchema {
        static let versionIdentifier = Schema.Version(1, 0, 0)
        static var models: [any PersistentModel.Type] { [A.self, ] ] }
      }
      """
    #expect(try refusal(["A.swift": model, "V.swift": version])?.place.file == "V.swift")
    let plan = "enum Plan: SchemaMigrationPlan { static var schemas: [any VersionedSchema.Type] { [ } }"
    #expect(try refusal(["A.swift": model, "P.swift": plan])?.place.file == "P.swift")
    // The word is enough: the error may have hidden the declaration.
    #expect(try refusal(["A.swift": model, "B.swift": "@Model clas B { var n: Int }"])?.place.file == "B.swift")
  }

  @Test func aTypeOfAModelIsNotTakenFromABrokenFile() throws {
    let model = "@Model class A { var kind: Kind; var size: Size? }\nlet s = Schema([A.self])\n"
    let types = "enum Kind: String, Codable { case a }\nstruct Size: Codable { var width: Double }\n"
    #expect(try refusal(["A.swift": model, "T.swift": types]) == nil)
    let error = try #require(try refusal(["A.swift": model, "T.swift": types + "func f( { }\n"]))
    #expect(
      error.reasons.contains { $0.message.contains("T.swift:3:") && $0.message.contains("syntax error") }, "\(error)")
    // An extension says what a type conforms to.
    let more = "extension Kind: RawRepresentable { var x Int }\n"
    #expect(try refusal(["A.swift": model, "E.swift": more, "T.swift": types]) != nil)
    // So does a list of models.
    let use = "let all: [any PersistentModel.Type] = [A.self, B.self\nlet s = Schema(all)\n"
    let error2 = try refusal(["A.swift": "@Model class A { var n: Int }", "S.swift": use])
    #expect(error2?.place.file == "S.swift", "\(String(describing: error2))")
  }

  @Test func aFileWithoutModelsIsLeftAloneWithARemark() throws {
    let files = [
      "A.swift": "@Model class A { var n: Int }\nlet s = Schema([A.self])\n", "View.swift": "struct V { var x Int }\n",
    ]
    let models = try SourceModels(TestReader.target(files))
    #expect(models.versions.first?.derived.model != nil)
    #expect(
      models.remarks.contains { $0.place.file == "View.swift" && $0.place.line == 1 && $0.message.contains("1 file") })
  }

  @Test func whatOnlyNewerSwiftRefusesIsTaken() throws {
    let text = "@Model class A { @Attribute (.unique) var n: Int }\nlet s = Schema([A.self])\n"
    let model = try SourceModels(TestReader.target(["A.swift": text])).versions.first?.derived.model
    #expect(model?.entity(named: "A")?.uniquenessConstraints == [["n"]])
  }

  @Test func aClauseForAnotherCompilerIsNotParsed() throws {
    let text = """
      @Model class A { var n: Int }
      #if compiler(>=9)
      func f() { let = newer syntax }
      #endif
      let s = Schema([A.self])
      """
    #expect(try refusal(["A.swift": text]) == nil)
  }
}
