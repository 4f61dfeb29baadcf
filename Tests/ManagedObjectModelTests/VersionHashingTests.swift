// Known answers: the worked examples of the version hash. The entity hashes were written by Apple's software.

import Diagnostics
import ManagedObjectModel
import Testing

private let books = """
  <entity name="User">
    <attribute name="userId" optional="YES" attributeType="Integer 32"/>
    <relationship name="books" optional="YES" toMany="YES" deletionRule="Nullify" destinationEntity="Book"
      inverseName="user" inverseEntity="Book"/>
  </entity>
  <entity name="Book">
    <attribute name="authorName" optional="YES" attributeType="String"/>
    <attribute name="fileURL" optional="YES" attributeType="Transformable"/>
    <attribute name="title" optional="YES" attributeType="String"/>
    <relationship name="user" optional="YES" minCount="1" maxCount="1" deletionRule="Nullify" destinationEntity="User"
      inverseName="books" inverseEntity="User"/>
  </entity>
  """

@Suite struct VersionHashingTests {
  @Test func twoEntitiesWithARelationship() throws {
    let model = try read(books)
    #expect(
      model.versionHashes.mapValues(\.description) == [
        "User": "fa27e5eecb39eedc8d201c781a9a8b93bfe60d98bbd02957d4227cdef0881e6a",
        "Book": "4008f8b64ae3c0741519d88ad3011ea82e02de942bbc88510b03db099224edf5",
      ])
    #expect(
      model.versionHashesDigest
        == "1HK4YdBZrhMPxEZyFhWZTtUrCg6vQaY3NQ0BAyMOG6QHacMhTvuQboMOvMoU2o6TD5nZBxt1fyVl27volli8dg==")
    #expect(model.versionChecksum == "GdXB5gNbU0mAzERYRRzxFjbvSpQEE+fE34qGmtBTHsw=")
    #expect(model.uncertainHashes.isEmpty)
  }

  @Test func parentAndUniquenessConstraint() throws {
    let model = try read(
      """
      <entity name="AbstractEntity" isAbstract="YES"/>
      <entity name="NewEntity" parentEntity="AbstractEntity">
        <attribute name="identifier" optional="YES" attributeType="UUID"/>
        <uniquenessConstraints><uniquenessConstraint><constraint value="identifier"/></uniquenessConstraint>
        </uniquenessConstraints>
      </entity>
      """)
    #expect(
      model.versionHashes.mapValues(\.description) == [
        "AbstractEntity": "dbc201c1a26b2e8f6b8130b6ed8f7083e88229db4c1d1b73d8bccaab48402d12",
        "NewEntity": "a1d2c1d335618c265d2ffbd01c2bafe655aa0e0a82bc9f1ceba0c8b5b1d73264",
      ])
  }

  @Test func digestAndChecksumWrittenByXcode() throws {
    let hashes = try [
      "XDDevAttributeMapping": "d2995c5d744ded71ca97909c17e7f0ae216652938ddd9b5c23f01f2bbe3c6967",
      "XDDevEntityMapping": "a9e375626dd39163751ba754f517d7e8a77671c12f7035561e97772e92e06e82",
      "XDDevMappingModel": "12ab4ccef4675595a45f0047bb855e546cbc532a0e7be6e2ebb282efd9298654",
      "XDDevPropertyMapping": "5cddf7578e134c66382444e5328381e72c932b107ebb8b25bc32229efd2bb460",
      "XDDevRelationshipMapping": "6a4618f4b85e85503f9826f80132d6b88f5718b723a66d78c162f5a0406d21cb",
    ].mapValues { try #require(hash($0)) }
    #expect(VersionHash.checksum(of: hashes) == "bMpud663vz0bXQE24C6Rh4MvJ5jVnzsD2sI3njZkKbc=")
    #expect(
      VersionHash.digest(of: hashes)
        == "+Hmc2uYZK6og+Pvx5GUJ7oW75UG4V/ksQanTjfTKUnxyGWJRMtB5tIRgVwGsrd7lz/QR57++wbvWsr6nxwyS0A==")
  }

  /// Changes that must not change any hash, and changes that must change that of A.
  @Test func whatCountsAndWhatDoesNot() throws {
    func hash(_ attribute: String, entity: String = "", more: String = "") throws -> VersionHash? {
      try read(
        "<entity name='A' \(entity)><attribute name='x' \(attribute)/><attribute name='y' "
          + "attributeType='String'/>\(more)</entity>"
      ).versionHashes["A"]
    }
    let plain = try hash("attributeType='Integer 32'")
    for same in [
      "defaultValueString='5'", "minValueString='1' maxValueString='9'", "usesScalarValueType='YES'", "indexed='YES'",
      "elementID='z'", "syncable='YES'", "spotlightIndexingEnabled='YES'", "versionHashModifier=''", "optional='NO'",
    ] {
      #expect(try hash("attributeType='Integer 32' \(same)") == plain, "\(same)")
    }
    for same in ["elementID='B'", "representedClassName='.A'", "codeGenerationType='class'", "isAbstract='NO'"] {
      #expect(try hash("attributeType='Integer 32'", entity: same) == plain, "\(same)")
    }
    for same in [
      "<fetchIndex name='i'><fetchIndexElement property='x' type='Binary' order='ascending'/></fetchIndex>",
      "<userInfo><entry key='k' value='v'/></userInfo>", "<fetchedProperty name='f'/>",
      "<attribute name='t' attributeType='String' transient='YES'/>",
      "<compoundIndexes><compoundIndex><index value='x,y'/></compoundIndex></compoundIndexes>",
    ] {
      #expect(try hash("attributeType='Integer 32'", more: same) == plain, "\(same)")
    }
    var different = Set([plain])
    for other in [
      "attributeType='Integer 64'", "attributeType='Integer 32' optional='YES'", "",
      "attributeType='Integer 32' versionHashModifier='2'", "attributeType='Integer 32' transient='YES'",
      "attributeType='Integer 32' allowsExternalBinaryDataStorage='YES'",
    ] {
      #expect(different.insert(try hash(other)).inserted, "\(other)")
    }
    for other in ["isAbstract='YES'", "versionHashModifier='2'"] {
      #expect(different.insert(try hash("attributeType='Integer 32'", entity: other)).inserted, "\(other)")
    }
  }

  @Test func derivedAttributesCountByTheirPrintedText() throws {
    func hash(_ expression: String, name: String = "d") throws -> VersionHash? {
      try read(
        """
        <entity name="A"><attribute name="\(name)" optional="YES" attributeType="Integer 64" derived="YES"
          derivationExpression="\(expression)"/><attribute name="z" attributeType="String"/></entity>
        """
      ).versionHashes["A"]
    }
    #expect(try hash("pages.@count") == hash("count:(pages)"))
    #expect(try hash("a.b.@sum.c") == hash("sum:(a.b.c)"))
    #expect(try hash("a.@sum.c") == hash("sum:(a.c)"))
    #expect(try hash("now()") != hash("pages.@count"))
    // Neither the name nor the type of a derived attribute is part of the hash.
    #expect(try hash("now()", name: "e") == hash("now()"))
  }

  @Test func ownInverseAddsNoName() throws {
    func hash(_ inverse: String) throws -> VersionHash? {
      try read(
        """
        <entity name="A"><relationship name="friends" optional="YES" toMany="YES" deletionRule="Nullify"
          destinationEntity="A" \(inverse)/></entity>
        """
      ).versionHashes["A"]
    }
    #expect(try hash("inverseName='friends' inverseEntity='A'") == hash(""))
  }

  @Test func countsAreCutTo32Bits() throws {
    func hash(_ count: String) throws -> VersionHash? {
      try read(
        """
        <entity name="A"><relationship name="r" toMany="YES" maxCount="\(count)" deletionRule="Nullify"
          destinationEntity="A"/></entity>
        """
      ).versionHashes["A"]
    }
    #expect(try hash("9223372036854775807") == hash("4294967295"))
    #expect(try hash("4294967296") == hash("0"))
    #expect(try hash("1") != hash("0"))
  }

  @Test func aConfigurationHasOnlyItsEntities() throws {
    let model = try read(
      """
      <entity name="A"/><entity name="B"/>
      <configuration name="Cloud"><memberEntity name="B"/></configuration>
      """)
    let hashes = try #require(model.versionHashes(ofConfiguration: "Cloud"))
    #expect(hashes == model.versionHashes.filter { $0.key == "B" })
    #expect(hashes.count == 1)
    #expect(model.versionHashes(ofConfiguration: "None") == nil)
  }

  @Test func parentsInACircleEnd() {
    // No reader makes such a model; a bug in hopd must not cause an endless loop.
    let model = ManagedObjectModel(
      name: "Circle", entities: [Entity(name: "A", parentName: "B"), Entity(name: "B", parentName: "A")])
    #expect(model.versionHashes.count == 2)
  }

  @Test func unprovenCornersAreNamed() throws {
    let model = try read(
      """
      <entity name="M" versionHashModifier="1"><attribute name="s" attributeType="String"/></entity>
      <entity name="A" versionHashModifier="1">
        <uniquenessConstraints><uniquenessConstraint><constraint value="s"/></uniquenessConstraint>
        </uniquenessConstraints>
        <attribute name="c" attributeType="Composite" composite="Place"/>
        <attribute name="d1" attributeType="Integer 64" derived="YES" derivationExpression="bs.@sum.n"/>
        <attribute name="d2" attributeType="Integer 64" derived="YES" derivationExpression="friends.@count"/>
        <attribute name="d3" attributeType="Date" derived="YES" derivationExpression="now()"/>
        <attribute name="d4" attributeType="String" derived="YES" derivationExpression="canonical:(s)"/>
        <attribute name="s" attributeType="String"/>
        <attribute name="t" transient="YES"/>
        <attribute name="u"/>
        <relationship name="friends" toMany="YES" deletionRule="Nullify" destinationEntity="A" inverseName="friends"
          inverseEntity="A"/>
      </entity>
      <composite name="Place"><attribute name="city" attributeType="Composite" composite="City"/></composite>
      <composite name="City"><attribute name="name" attributeType="String"/></composite>
      """)
    let found = model.uncertainHashes
    #expect(found.map(\.corner) == [.composite, .derivation, .untyped])
    #expect(found.map(\.property) == ["c", "d1", "u"])
    #expect(found.allSatisfy { $0.entity == "A" })
  }

  @Test func compositesCountByTheirElements() throws {
    func hash(_ composites: String) throws -> VersionHash? {
      try read("<entity name='A'><attribute name='c' attributeType='Composite' composite='P'/></entity>\(composites)")
        .versionHashes["A"]
    }
    let flat = try hash(
      "<composite name='P'><attribute name='a' attributeType='String'/><attribute name='b' attributeType='Date'/>"
        + "</composite>")
    let nested = try hash(
      "<composite name='P'><attribute name='q' attributeType='Composite' composite='Q'/>"
        + "<attribute name='a' attributeType='String'/></composite>"
        + "<composite name='Q'><attribute name='b' attributeType='Date'/></composite>")
    #expect(flat == nested)
    #expect(try hash("<composite name='P'><attribute name='a' attributeType='String'/></composite>") != flat)
  }

  private func hash(_ text: String) -> VersionHash? {
    let digits = Array(text).compactMap(\.hexDigitValue)
    return VersionHash(
      bytes: stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) })
  }
}
