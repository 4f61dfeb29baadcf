// The expressions of real mapping models: every archive and every text can be read, prints as in expected.json, and is
// valid for its models.

import Diagnostics
import Expressions
import FoundationEssentials
import ManagedObjectModel
import PropertyLists
import SystemPackage
import Testing

/// The expressions of a mapping in the output of `hopctl mapping show --json`.
private struct ExpectedMapping: Decodable {
  struct EntityMapping: Decodable {
    let name: String
    let source: String?
    let destination: String?
    let policy: String?
    let filter: String?
    let attributes: [String: String?]
    let relationships: [String: String?]
  }

  let sourceVersion: String
  let destinationVersion: String
  let entityMappings: [EntityMapping]
}

/// Archived expressions and texts of a source file.
private final class MappingTexts: XMLEventHandler {
  /// With the names of their properties. Some have none, and some are left over from properties that the models no
  /// longer have: neither has a meaning.
  var archives: [(bytes: [UInt8], property: String)] = []
  var paths: [String] = []
  var filters: [String] = []
  private var field: String?
  private var value = ""
  private var archive: [UInt8]?
  private var property = ""

  func startElement(_ name: String, attributes: [XMLAttribute], at position: XMLPosition) throws(HopdError) {
    field = name == "attribute" ? attributes.first { $0.name == "name" }?.value : nil
    value = ""
  }

  func text(_ text: String, at position: XMLPosition) throws(HopdError) { value += text }

  func endElement(_ name: String, at position: XMLPosition) throws(HopdError) {
    if name == "object" {
      if let archive { archives.append((archive, property)) }
      (archive, property) = (nil, "")
    }
    guard !value.isEmpty else { return }
    switch field {
    case "valueexpressiondata":
      archive = Data(base64Encoded: value, options: .ignoreUnknownCharacters).map { Array($0) } ?? []
    case "name": property = value
    case "sourcekeypath": paths.append(value)
    // XML's special characters are written as \uXXYY with the bytes swapped.
    case "sourcefilterpredicatestring":
      filters.append(
        value.replacing("\\u3e00", with: ">").replacing("\\u3c00", with: "<").replacing("\\u2600", with: "&"))
    default: break
    }
    field = nil
  }
}

@Suite(.enabled(if: Fixtures.isAvailable, Fixtures.absence)) struct ExpressionRealTests {
  private static func expected(_ folder: FilePath) throws -> ExpectedMapping {
    try Fixtures.json(ExpectedMapping.self, at: folder.appending("expected.json"))
  }

  private static func texts(of mapping: ExpectedMapping) -> [String] {
    mapping.entityMappings.flatMap { entity in
      Array(entity.attributes.values) + Array(entity.relationships.values)
    }.compactMap { $0 }
  }

  /// Every text of every expected.json can be read, and is printed unchanged.
  @Test func everyTextReadsAndPrints() throws {
    var count = 0
    for folder in Fixtures.cases(in: "mappings") {
      let mapping = try Self.expected(folder)
      for text in Self.texts(of: mapping) {
        count += 1
        #expect(try ExpressionParser.expression(text).description == text, "\(folder.string)")
      }
      for filter in mapping.entityMappings.compactMap(\.filter) {
        count += 1
        let predicate = try ExpressionParser.predicate(filter)
        #expect(try ExpressionParser.predicate(predicate.description) == predicate, "\(filter)")
      }
    }
    #expect(count > 500)
  }

  /// Every archive of the sources and of the compiled ones prints as one of the expected texts of its mapping.
  @Test func everyArchiveReads() throws {
    var counts = (archives: 0, leftOver: 0, compiled: 0, paths: 0, filters: 0)
    for folder in Fixtures.cases(in: "mappings") {
      let mapping = try Self.expected(folder)
      let known = Set(Self.texts(of: mapping))
      let properties = Set(mapping.entityMappings.flatMap { Array($0.attributes.keys) + Array($0.relationships.keys) })
      for name in Fixtures.names(in: folder) {
        if name.hasSuffix(".xcmappingmodel") {
          let source = MappingTexts()
          try XMLReader.read(
            Fixtures.bytes(of: folder.appending(name).appending("xcmapping.xml")),
            limits: XMLLimits(
              maximumBytes: 16 << 20, maximumDepth: 32, maximumAttributes: 64, maximumTextBytes: 8 << 20),
            to: source)
          for archive in source.archives {
            counts.archives += 1
            let node = try ArchivedExpressionReader.expression(KeyedArchive.decode(archive.bytes).root())
            if !properties.contains(archive.property) {
              counts.leftOver += 1
              continue
            }
            #expect(known.contains(node.description), "\(folder.string): \(node)")
          }
          for path in source.paths {
            counts.paths += 1
            let node = try ExpressionParser.expression(path)
            #expect(known.contains { $0.contains(node.description) }, "\(folder.string): \(node)")
          }
          for filter in source.filters {
            counts.filters += 1
            _ = try ExpressionParser.predicate(filter)
          }
        } else if name.hasSuffix(".cdm") {
          let root = try KeyedArchive.decode(Fixtures.bytes(of: folder.appending(name))).root()
          for mapping in try root.elements("NSEntityMappings").compactMap(\.object) {
            for part in ["NSAttributeMappings", "NSRelationshipMappings"] {
              for property in try mapping.elements(part).compactMap(\.object) {
                guard let expression = try property.object("NSValueExpression") else { continue }
                counts.compiled += 1
                let node = try ArchivedExpressionReader.expression(expression)
                #expect(known.contains(node.description), "\(folder.string): \(node)")
              }
            }
          }
        }
      }
    }
    #expect(counts.archives > 20 && counts.leftOver < 5 && counts.compiled > 50, "\(counts)")
    #expect(counts.paths >= 4 && counts.filters >= 3, "\(counts)")
  }

  /// For their own models, all expressions are valid, except those that Core Data's own documentation leaves undefined.
  @Test func everyExpressionChecks() throws {
    var count = 0
    var refused: [String] = []
    for folder in Fixtures.cases(in: "mappings") {
      let mapping = try Self.expected(folder)
      let versions = try ModelReader.findBundles(in: folder.appending("models")).flatMap {
        try ModelReader.read(at: $0).versions
      }
      let source = try #require(versions.first { $0.name == mapping.sourceVersion })
      let destination = try #require(versions.first { $0.name == mapping.destinationVersion })
      let names = Set(mapping.entityMappings.map(\.name))
      for part in mapping.entityMappings {
        func checker(_ place: ExpressionScope.Place) -> ExpressionChecker {
          ExpressionChecker(
            ExpressionScope(
              model: source, sourceEntity: part.source, place: place, entityMappings: names,
              hasPolicy: part.policy != nil))
        }
        func attempt(_ name: String, _ body: () throws(HopdError) -> Void) {
          count += 1
          do throws(HopdError) { try body() } catch { refused.append("\(name): \(error.message)") }
        }
        if let filter = part.filter {
          attempt("\(part.name) filter") { () throws(HopdError) in
            try checker(.sourceFilter).check(ExpressionParser.predicate(filter))
          }
        }
        guard let entity = part.destination.flatMap({ destination.entity(named: $0) }) else { continue }
        let (attributes, relationships) =
          (destination.allAttributes(of: entity), destination.allRelationships(of: entity))
        for (name, text) in part.attributes {
          guard let text, let attribute = attributes[name] else { continue }
          attempt("\(part.name).\(name)") { () throws(HopdError) in
            try checker(.attribute).check(ExpressionParser.expression(text), for: attribute)
          }
        }
        for (name, text) in part.relationships {
          guard let text, let relationship = relationships[name] else { continue }
          attempt("\(part.name).\(name)") { () throws(HopdError) in
            try checker(.relationship).check(ExpressionParser.expression(text), forRelationship: relationship)
          }
        }
      }
    }
    #expect(count > 500)
    let unexplained = refused.filter { !$0.contains("“importDate” stands alone") }
    #expect(unexplained.isEmpty, "\(unexplained.joined(separator: "\n"))")
  }
}
