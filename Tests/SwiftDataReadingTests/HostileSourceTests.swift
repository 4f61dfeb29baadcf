// Source that is made to harm: it ends within the limits, with an error or without.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import SwiftDataReading
import SwiftDataSource
import SystemPackage
import Testing

@Suite(.serialized, .enabled(if: TestReader.program != nil, TestReader.absence)) struct HostileSourceTests {
  private static let sources: [(name: String, text: String)] = [
    ("nested types", String(repeating: "struct S { ", count: 5_000)),
    ("nested calls", "let x = " + String(repeating: "f(", count: 100_000)),
    ("chain of members", "let x = a" + String(repeating: ".b", count: 200_000)),
    ("chain of calls", "let x = a" + String(repeating: ".b()", count: 100_000)),
    ("nested generics", "@Model class A { var x: " + String(repeating: "G<", count: 20_000) + "Int }"),
    ("nested arrays", "@Model class A { var x: " + String(repeating: "[", count: 20_000) + "Int }"),
    ("optionals", "@Model class A { var x: Int" + String(repeating: "?", count: 50_000) + " }"),
    ("properties", "@Model class A { " + (0..<60_000).map { "var p\($0): Int; " }.joined() + "}"),
    ("macros", "@Model class A { var x: Int; " + String(repeating: "#Unique<A>([\\.x]); ", count: 20_000) + "}"),
    (
      "structs that contain themselves",
      "struct S: Codable { var t: T }; struct T: Codable { var s: S }\n"
        + "@Model class A { var s: S? }"
    ),
    ("aliases in a circle", "typealias S = T; typealias T = S\n@Model class A { var s: S }"),
    (
      "structs that double",
      (0..<40).map { "struct S\($0): Codable { var a: S\($0 + 1); var b: S\($0 + 1) }\n" }.joined()
        + "struct S40: Codable { var x: Int }\n@Model class A { var s: S0 }"
    ),
    ("conditions", String(repeating: "#if X\n", count: 20_000) + "@Model class A { var x: Int }"),
    ("no text", String(decoding: (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 7919) }, as: UTF8.self)),
  ]

  @Test(arguments: sources.map(\.name)) func itEndsWithinLimits(_ name: String) throws {
    let program = try #require(TestReader.program)
    var limits = SourceLimits()
    limits.time = .seconds(60)
    limits.memory = 1 << 30
    let text = try #require(Self.sources.first { $0.name == name }).text
    do throws(HopdError) {
      let facts = try SourceReaderProgram(program.path, limits: limits).facts(of: [("A.swift", Array(text.utf8))])
      let target = SourceTarget(files: [("A.swift", facts[0])])
      let models = try SourceModels(target, schema: "A")
      // A model, or a refusal with its place.
      for version in models.versions where version.derived.model == nil {
        #expect(version.derived.refusals.contains { $0.place.file != nil })
      }
    } catch {
      #expect(error.place.file == "A.swift" || error.code == .usage, "\(name): \(error)")
    }
  }

  @Test func limitsEndTheReader() throws {
    let program = try #require(TestReader.program)
    let files = [
      ("A.swift", Array("class A {}\n".utf8)),
      ("B.swift", Array(String(repeating: "class B {}\n", count: 50_000).utf8)),
    ]
    func refusal(_ change: (inout SourceLimits) -> Void) -> HopdError? {
      var limits = SourceLimits()
      change(&limits)
      do throws(HopdError) {
        _ = try SourceReaderProgram(program.path, limits: limits).facts(of: files)
        return nil
      } catch {
        return error
      }
    }
    #expect(refusal { _ in } == nil)
    #expect(refusal { $0.fileBytes = 1000 }?.code == .sourceTooLarge)
    #expect(refusal { $0.allBytes = 100 }?.code == .sourceTooLarge)
    let output = refusal { $0.outputBytes = 1000 }
    #expect(output?.code == .sourceUnreadable)
    #expect(refusal { $0.memory = 24 << 20 }?.code == .sourceUnreadable)
    #expect(refusal { $0.time = .zero }?.code == .sourceUnreadable)
  }

  @Test func linksAndHiddenFoldersAreNotFollowed() throws {
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-source-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let source = Data("@Model class A { var x: Int }\nlet s = Schema([A.self])\n".utf8)
    for name in ["App", "App/.hidden", "AppTests", "Other"] {
      try FileManager.default.createDirectory(
        atPath: folder.appending(FilePath(name).components).string, withIntermediateDirectories: true)
      try source.write(to: URL(filePath: folder.appending(FilePath(name).components).appending("A.swift").string))
    }
    try FileManager.default.createSymbolicLink(
      atPath: folder.appending("App").appending("link").string, withDestinationPath: folder.string)
    try FileManager.default.createSymbolicLink(
      atPath: folder.appending("App").appending("B.swift").string, withDestinationPath: "/dev/zero")
    let bundle = try SwiftDataSourceReader().bundle(at: folder.appending("App"), declaredOrder: [])
    #expect(bundle.versions.map(\.name) == ["1.0.0"] && bundle.name == "App")
    let target = try SwiftDataSourceReader().target(at: folder.appending("App"))
    #expect(target.files == [folder.appending("App").appending("A.swift").string])
  }
}
