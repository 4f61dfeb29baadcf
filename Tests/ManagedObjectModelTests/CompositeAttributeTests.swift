// Composite attributes in every form of a model (docs/formats/store-layout.md, "Composite attributes").

import Diagnostics
import PropertyLists
import Testing

@testable import ManagedObjectModel

@Suite struct CompositeAttributeTests {
  private let source = """
    <entity name="Quote">
      <attribute name="author" optional="YES" attributeType="Composite" composite="Author" elementID="writer"/>
      <attribute name="id" attributeType="UUID"/>
    </entity>
    <composite name="Author">
      <attribute name="year" attributeType="Integer 64"/>
      <attribute name="id" optional="YES" attributeType="UUID" elementID="identifier"/>
    </composite>
    """

  @Test func elementsStandForTheirComposite() throws {
    let entity = try #require(try read(source).entity(named: "Quote"))
    #expect(entity.attributes.map(\.name) == ["author.year", "author.id", "id"])
    #expect(entity.attributes.map(\.renamingIdentifier) == ["writer.year", "writer.identifier", "id"])
    #expect(entity.attributes.map(\.ownName) == ["year", "id", "id"])
    // A composite may be nil, and then so are its elements.
    #expect(entity.attributes.map(\.isOptional) == [true, true, false])
    #expect(entity.composites.map(\.name) == ["author"])
    #expect(entity.composites.first?.elements.map(\.name) == ["year", "id"])
    #expect(entity.composites.first?.elements.map(\.isOptional) == [false, true])
    #expect(
      try read(source.replacing("optional=\"YES\" attributeType=\"Composite\"", "attributeType=\"Composite\""))
        .entity(named: "Quote")?.attributes.map(\.isOptional) == [false, true, false])
  }

  /// The elements' digests by name; neither the composite's name nor the order of declaration counts.
  @Test func theHashIsThatOfTheElements() throws {
    func sha(_ parts: [[UInt8]]) -> [UInt8] {
      var digest = MessageDigest(.sha256)
      for part in parts { digest.add(part) }
      return digest.finish()
    }
    func attribute(_ name: String, _ flags: UInt8, _ type: UInt32) -> [UInt8] {
      let number = withUnsafeBytes(of: type.littleEndian) { Array($0) }
      return sha([sha([Array(name.utf8), [flags, 0]]), number])
    }
    let author = sha([attribute("id", 1, 1100), attribute("year", 0, 300)])
    let expected = sha([Array("Quote".utf8), [0], author, attribute("id", 0, 1100)])
    let model = try read(source)
    #expect(model.versionHashes["Quote"]?.bytes == expected)
    #expect(model.uncertainHashes.isEmpty)
    let turned = try read(source.replacing("composite=\"Author\" elementID=\"writer\"", "composite=\"Author\""))
    #expect(turned.versionHashes == model.versionHashes)
  }

  @Test func theArchivedFormReadsAsTheSource() throws {
    let model = try read(source)
    let archived = try model.archived(frameworkVersion: 1344)
    let (again, warnings) = try ModelReader.read(compiled: archived, name: "Test")
    #expect(warnings.isEmpty)
    #expect(again.entities == model.entities)
    #expect(again.versionHashes == model.versionHashes)
    #expect(String(decoding: archived, as: UTF8.self).contains("NSCompositeAttributeDescription"))
  }

  @Test func theFormOfSwiftDataIsRead() throws {
    let b = ArchiveBuilder()
    func archive(_ elements: [PropertyListValue]) -> [UInt8] {
      let composite = b.property(
        "NSCompositeAttributeDescription", "kind",
        [
          "NSAttributeType": .integer(2100), "NSAttributeValueClassName": b.text("NSDictionary"),
          "NSIsOptional": .boolean(true), "NSCompositeElements": b.list(elements, "NSMutableArray"),
          "NSUserInfo": b.map([("EnumType", .boolean(true))]),
        ])
      return b.model([("Item", b.entity("Item", [("kind", composite), ("n", b.attribute("n", 300))]))])
    }
    let model = try ModelReader.read(
      compiled: archive([b.attribute("z", 700), b.attribute("a", 200)]), name: "Test"
    ).model
    let entity = try #require(model.entity(named: "Item"))
    #expect(entity.attributes.map(\.name) == ["kind.z", "kind.a", "n"])
    #expect(entity.attributes.map(\.type) == [.string, .integer32, .integer64])
    // An element that is not an attribute, and an empty list, are refused with their place.
    for elements in [[], [b.text("x")], [b.property("NSRelationshipDescription", "r", [:])]] {
      let error = #expect(throws: HopdError.self) { try ModelReader.read(compiled: archive(elements), name: "Test") }
      #expect(error?.place.property == "kind")
    }
  }

  @Test func nestedOnesStayClosed() throws {
    let model = try read(
      """
      <entity name="A"><attribute name="c" attributeType="Composite" composite="P"/></entity>
      <composite name="P"><attribute name="q" attributeType="Composite" composite="Q"/></composite>
      <composite name="Q"><attribute name="x" attributeType="String"/></composite>
      """)
    #expect(model.entity(named: "A")?.attributes.map(\.type) == [.composite])
    #expect(model.entity(named: "A")?.composites.isEmpty == true)
    #expect(model.uncertainHashes.map(\.corner) == [.composite])
    #expect(throws: HopdError.self) { try model.archived(frameworkVersion: 1344) }
  }

  /// If a default cannot be archived, at any depth, the copy of the model is left out.
  @Test func anElementThatCannotBeArchivedIsReported() throws {
    var composite = Attribute(name: "c", type: .composite)
    composite.elements = [Attribute(name: "e", type: .binary, defaultValue: .binary([1]))]
    let model = ManagedObjectModel(name: "Test", entities: [Entity(name: "A", attributes: [composite])])
    let error = #expect(throws: HopdError.self) { try model.archived(frameworkVersion: 1344) }
    #expect(error?.place.entity == "A" && error?.place.property == "c")
  }

  @Test func elementsOfOneNameAreRefused() {
    let twice = "<composite name='P'><attribute name='x' attributeType='String'/><attribute name='x'/></composite>"
    #expect(
      failure("<entity name='A'><attribute name='c' attributeType='Composite' composite='P'/></entity>\(twice)")?
        .description.contains("second element “x”") == true)
    let dotted =
      "<attribute name='c.x' attributeType='String'/><attribute name='c' attributeType='Composite' composite='P'/>"
    #expect(
      failure(
        "<entity name='A'>\(dotted)</entity><composite name='P'><attribute name='x' attributeType='Date'/>"
          + "</composite>")?
        .description.contains("name of the element “x”") == true)
  }
}

extension String {
  fileprivate func replacing(_ old: String, _ new: String) -> String {
    split(separator: old, omittingEmptySubsequences: false).joined(separator: new)
  }
}
