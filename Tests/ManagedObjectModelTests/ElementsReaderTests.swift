// Models in the form of an Xcode before 4.1, made by hand (tools/fuzz-seeds): every kind of fact is read.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import Testing

@Suite struct ElementsReaderTests {
  private func corpus(_ name: String) throws -> [UInt8] {
    let tests = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(2).joined(separator: "/")
    return Array(try #require(FileManager.default.contents(atPath: "\(tests)/FuzzCorpus/model-elements/\(name)")))
  }

  /// The same model as XML: all facts that both forms have are equal, hashes included.
  @Test func itIsTheModelThatTheSourceWouldBe() throws {
    let types = [
      ("Integer 16", "3"), ("Integer 32", "YES"), ("Integer 64", "0"), ("Decimal", "0.0"), ("Double", "0.5"),
      ("Float", "1.5"), ("String", "x"), ("Boolean", "YES"), ("Date", nil), ("Binary", nil), ("UUID", nil), ("URI", ""),
      ("Transformable", nil),
    ]
    let numbers = [100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1100, 1200, 1800]
    let attributes = zip(types, numbers).map { type, number in
      "<attribute name='a\(number)' optional='YES' attributeType='\(type.0)'"
        + (type.1.map { " defaultValueString='\($0)'" } ?? "") + "/>"
    }
    let source = try read(
      """
      <entity name='Item' isAbstract='YES' representedClassName='NSManagedObject'>\(attributes.joined())</entity>
      <entity name='Book' parentEntity='Item' elementID='Volume' representedClassName='NSManagedObject'>
      <attribute name='title' attributeType='String' defaultValueString='t' versionHashModifier='2' elementID='name'
        indexed='YES' minValueString='1' regularExpressionString='[a-z]+'/>
      <attribute name='cover' optional='YES' attributeType='Binary' allowsExternalBinaryDataStorage='YES'/>
      <attribute name='cache' optional='YES' transient='YES'/>
      <relationship name='shelf' optional='YES' maxCount='1' destinationEntity='Shelf' inverseName='books'/>
      <uniquenessConstraints><uniquenessConstraint><constraint value='title'/><constraint value='cover'/>
      </uniquenessConstraint></uniquenessConstraints>
      <compoundIndexes><compoundIndex><index value='title,cover'/></compoundIndex></compoundIndexes></entity>
      <entity name='Shelf' representedClassName='NSManagedObject'>
      <relationship name='books' optional='YES' toMany='YES' ordered='YES' deletionRule='Cascade' \
      destinationEntity='Book'
        inverseName='shelf'/>
      <relationship name='top' optional='YES' minCount='1' maxCount='1' deletionRule='Deny' destinationEntity='Item'/>
      <userInfo><entry key='k' value='v'/></userInfo></entity>
      """)
    let (old, warnings) = try ModelReader.read(elements: corpus("library"), name: "Test")
    #expect(warnings.isEmpty)
    // The default of a date is text in the language of the editor: it is recorded without a value.
    let day = old.entity(named: "Item")?.attributes.first { $0.name == "a900" }
    #expect(day?.defaultValue == .archived(className: "NSDate"))
    var entities = old.entities
    for entity in entities.indices {
      for index in entities[entity].attributes.indices where entities[entity].attributes[index].type == .date {
        entities[entity].attributes[index].defaultValue = nil
      }
    }
    for (left, right) in zip(entities, source.entities) { #expect(left == right) }
    #expect(entities.count == source.entities.count && old.versionHashes == source.versionHashes)
  }

  @Test func whatIsNotKnownIsReportedOrRefused() throws {
    let (_, warnings) = try ModelReader.read(elements: corpus("unknown-key"), name: "Test")
    #expect(warnings.count == 1 && warnings.first?.message.contains("XD_PSK_newKey") == true)
    let property = #expect(throws: HopdError.self) {
      try ModelReader.read(elements: corpus("unknown-property"), name: "Test")
    }
    #expect(property?.description.contains("XDPMMystery") == true && property?.place.property == "odd")
    let configurations = try ModelReader.read(elements: corpus("configurations"), name: "Test").model.configurations
    #expect(configurations == ["Reading": ["Book", "Shelf"]])
  }

  /// An inverse that names another inverse: a to-one keeps its column; the storage of the others is unknown.
  @Test func aBentInverseOfAToOneIsRead() throws {
    func model(_ passenger: String, _ plane: String) -> String {
      """
      <entity name='Plane'><relationship name='pilot' optional='YES' maxCount='1' destinationEntity='Person'
      inverseName='plane'/><relationship name='passenger' optional='YES' \(passenger) destinationEntity='Person'
      inverseName='plane'/></entity>
      <entity name='Person'><relationship name='plane' optional='YES' \(plane) destinationEntity='Plane'
      inverseName='pilot'/></entity>
      """
    }
    let bent = try read(model("maxCount='1'", "maxCount='1'"))
    let plane = try #require(bent.entity(named: "Plane"))
    for relationship in plane.relationships {
      #expect((bent.inverse(of: relationship) == nil) == (relationship.name == "passenger"))
      #expect(bent.namedInverse(of: relationship)?.relationship.name == "plane")
    }
    #expect(bent.uncertainHashes.map(\.description).count == 1)
    #expect(bent.uncertainHashes.first?.corner == .bentInverse)
    // The name of the inverse is part of the hash as written.
    let other = try read(
      model("maxCount='1'", "maxCount='1'").replacing("inverseName='plane'/></entity>", with: "/></entity>"))
    #expect(other.versionHashes["Plane"] != bent.versionHashes["Plane"])
    #expect(try read(model("maxCount='1'", "toMany='YES'")).entities.count == 2)
    for (passenger, plane) in [
      ("toMany='YES'", "maxCount='1'"), ("toMany='YES'", "toMany='YES'"),
      ("maxCount='1'", "toMany='YES' ordered='YES'"),
    ] {
      #expect(failure(model(passenger, plane))?.reasons.first?.message.contains("another inverse") == true)
    }
  }
}
