// The example mappings for new readers: those in Examples/Mappings, Examples/Policies and docs/MAPPINGS.md fit their
// models and agree with the document.

import Diagnostics
import Expressions
import Glibc
import ManagedObjectModel
import SystemPackage
import Testing

@testable import MappingModel

@Suite struct ExampleMappingTests {
  private static let root: FilePath = {
    var path = FilePath(#filePath)
    for _ in 0..<3 { path.removeLastComponent() }
    return path
  }()

  private static func names(in folder: FilePath) -> [String] {
    guard let stream = opendir(folder.string) else { return [] }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if !name.hasPrefix(".") { names.append(name) }
    }
    return names.sorted()
  }

  private static func text(_ path: String) throws -> String {
    let descriptor = try FileDescriptor.open(root.appending(path), .readOnly)
    return try descriptor.closeAfter {
      var bytes: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 65536)
      while case let count = try buffer.withUnsafeMutableBytes({ try descriptor.read(into: $0) }), count > 0 {
        bytes += buffer.prefix(count)
      }
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  private static let examples = ["Mappings", "Policies"].flatMap { kind in
    names(in: root.appending("Examples").appending(kind)).map { "\(kind)/\($0)" }
  }.filter { names(in: root.appending("Examples").appending($0)).contains("source.sql") }

  @Test(arguments: examples) func fitsItsModels(_ example: String) throws {
    let folder = Self.root.appending("Examples").appending(example)
    let bundle = try ModelReader.read(
      at: folder.appending(try #require(Self.names(in: folder).first { $0.hasSuffix(".xcdatamodeld") })))
    let files = Self.names(in: folder).filter { $0.hasSuffix(TextMapping.fileNameEnd) }
    // Each hop of the model has a mapping.
    #expect(files.count == bundle.versions.count - 1)
    for file in files {
      let mapping = try TextMapping.read(at: folder.appending(file))
      let source = try #require(bundle.versions.first { $0.name == mapping.sourceVersion })
      let destination = try #require(bundle.versions.first { $0.name == mapping.destinationVersion })
      let resolved = try mapping.resolved(source: source, destination: destination)
      let again = try TextMapping(
        text: try resolved.text(source: source, destination: destination), file: folder.appending(file)
      ).resolved(source: source, destination: destination)
      #expect(Self.said(again) == Self.said(resolved))
    }
  }

  /// Returns the entity mappings without the marks of copies: a line that says what is copied anyway is not written.
  private static func said(_ mapping: ExplicitMapping) -> [ExplicitEntityMapping] {
    mapping.entityMappings.map { entity in
      ExplicitEntityMapping(
        name: entity.name, type: entity.type, source: entity.source, destination: entity.destination,
        policy: entity.policy, userInfo: entity.userInfo, filter: entity.filter, attributes: entity.attributes,
        relationships: entity.relationships.map { ExplicitPropertyMapping(name: $0.name, value: $0.value) },
        grouping: entity.grouping)
    }
  }

  @Test func thereAreExamples() { #expect(Self.examples.count >= 11) }

  /// Blocks of the document that are whole files equal the files.
  @Test func theDocumentShowsTheFiles() throws {
    let document = try Self.text("docs/MAPPINGS.md")
    let parts = document.split(separator: "<!-- example: ", omittingEmptySubsequences: false).dropFirst()
    #expect(!parts.isEmpty)
    for part in parts {
      let path = String(part.split(separator: " -->").first ?? "")
      let block = try #require(part.split(separator: "```toml\n").dropFirst().first?.split(separator: "```").first)
      #expect(String(block) == (try Self.text(path)), "\(path)")
    }
  }

  /// Every attribute in the document's list of examples is valid in a text mapping.
  @Test func theExpressionsOfTheDocumentAreExpressions() throws {
    let document = try Self.text("docs/MAPPINGS.md")
    let lines = (document.split(separator: "### Attributes").last ?? "").split(separator: "\n").filter {
      $0.hasPrefix("attributes.")
    }
    #expect(lines.count >= 9)
    let text =
      "[mapping]\nsource = \"A\"\ndestination = \"B\"\n[[entity]]\nsource = \"Item\"\ndestination = \"Item\"\n"
      + lines.joined(separator: "\n")
    let source = model(
      "A",
      [
        entity(
          "Item",
          [
            attribute("name"), attribute("width", .integer32), attribute("height", .integer32),
            attribute("done", .boolean), attribute("sizeText"),
          ], [toOne("studio", "Studio"), toMany("chapters", "Chapter")]),
        entity("Studio", [attribute("name")]), entity("Chapter", [attribute("pages", .integer32)]),
      ])
    let destination = model(
      "B",
      [
        entity(
          "Item",
          [
            attribute("title"), attribute("studio"), attribute("kind"), attribute("rank", .integer16),
            attribute("stamp", .date), attribute("area", .integer64), attribute("state"), attribute("size", .integer32),
            attribute("pages", .integer64),
          ])
      ])
    let mapping = try TextMapping(text: text, file: "/document.hopmap.toml")
      .resolved(source: source, destination: destination)
    #expect(mapping.entityMappings[0].attributes.allSatisfy { $0.value != nil })
  }

  /// Every key of the reader is in the document's tables.
  @Test func theDocumentNamesEveryKey() throws {
    let document = try Self.text("docs/MAPPING-GRAMMAR.md")
    for key in TextMappingReader.Keys.entity + TextMappingReader.Keys.mapping where key != "attributes" {
      let isShown = ["| `\(key)`", ", `\(key)`", "| `\(key).NAME`"].contains { document.contains($0) }
      #expect(isShown, "\(key)")
    }
  }
}
