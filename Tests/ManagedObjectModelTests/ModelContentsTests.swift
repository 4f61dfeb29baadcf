// The content of `contents` files and the resulting models.

import Diagnostics
import ManagedObjectModel
import Testing

@Suite struct ModelContentsTests {
  @Test func everyAttributeTypeIsRead() throws {
    for type in AttributeType.allCases where type != .composite {
      let written = type == .undefined ? "" : "attributeType='\(type.name)'"
      let model = try read("<entity name='A'><attribute name='x' \(written)/></entity>")
      #expect(model.entity(named: "A")?.attributes.first?.type == type)
    }
  }

  @Test(
    arguments: [
      ("Integer 16", "-7", AttributeDefault.integer(-7)), ("Integer 32", "YES", .integer(0)),
      ("Integer 64", "9223372036854775808", .integer(.max)), ("Integer 64", "12 apples", .integer(12)),
      ("Integer 16", "", nil), ("Boolean", "YES", .boolean(true)), ("Boolean", "NO", .boolean(false)),
      ("Boolean", "0", .boolean(false)), ("Boolean", "1", .boolean(true)), ("Boolean", "", nil),
      ("Double", "0", .double(0)), ("Double", "-1.5e2", .double(-150)), ("Double", "x", .double(0)),
      ("Float", "0.5", .double(0.5)), ("Float", "inf", .double(0)), ("Decimal", "0.0", .decimal("0.0")),
      ("Decimal", "x", .decimal("0")), ("Decimal", "", nil), ("String", "", .string("")),
      ("String", "&quot;&quot;", .string("\"\"")), ("String", " a ", .string(" a ")), ("URI", "x:y", .string("x:y")),
      ("URI", "", nil), ("Date", "today", nil), ("Binary", "x", nil), ("Transformable", "x", nil),
      (
        "UUID", "00010203-0405-0607-0809-0a0B0c0d0e0f",
        .uuid([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])
      ), ("UUID", "0001", nil), ("UUID", "+0010203-0405-0607-0809-0a0B0c0d0e0f", nil),
    ] as [(String, String, AttributeDefault?)])
  func defaults(type: String, text: String, expected: AttributeDefault?) throws {
    let model = try read(
      "<entity name='A'><attribute name='x' attributeType='\(type)' defaultValueString=\"\(text)\"/></entity>")
    #expect(model.entity(named: "A")?.attributes.first?.defaultValue == expected)
  }

  @Test func noDefaultTextIsNoDefault() throws {
    for type in AttributeType.allCases { #expect(AttributeDefault(text: nil, interval: nil, type: type) == nil) }
    #expect(AttributeDefault(text: "old text", interval: "-60", type: .date) == .date(-60))
  }

  @Test func attributesOfAttributes() throws {
    let model = try read(
      """
      <entity name="A">
        <attribute name="when" optional="YES" attributeType="Date" defaultDateTimeInterval="631152000"
          minDateTimeInterval="-5" minValueString="some day" maxValueString="another day"/>
        <attribute name="n" attributeType="Integer 16" minValueString="1" maxValueString="9" indexed="YES"
          elementID="old" versionHashModifier="m" preserveAfterDeletion="YES">
          <userInfo><entry key="k" value="v"/></userInfo>
        </attribute>
        <attribute name="b" attributeType="Binary" allowsExternalBinaryDataStorage="YES" transient="YES"/>
        <attribute name="t" attributeType="Transformable" valueTransformerName="" customClassName="C"/>
        <attribute name="s" attributeType="String" regularExpressionString="[a-z]+" derivationExpression="ignored"/>
      </entity>
      """)
    let all = try #require(model.entity(named: "A")).attributes
    #expect(all.map(\.name) == ["b", "n", "s", "t", "when"])
    let attributes = ["when", "n", "b", "t", "s"].compactMap { name in all.first { $0.name == name } }
    #expect(attributes.map(\.isOptional) == [true, false, false, false, false])
    #expect(attributes[0].defaultValue == .date(631_152_000))
    #expect(attributes[0].minimum == "-5")
    #expect(attributes[0].maximum == nil)
    #expect(attributes[1].minimum == "1")
    #expect(attributes[1].maximum == "9")
    #expect(attributes[1].isIndexed && attributes[1].preservesAfterDeletion)
    #expect(attributes[1].renamingIdentifier == "old")
    #expect(attributes[0].renamingIdentifier == "when")
    #expect(attributes[1].versionHashModifier == "m")
    #expect(attributes[1].userInfo == ["k": "v"])
    #expect(attributes[2].allowsExternalStorage && attributes[2].isTransient)
    #expect(attributes[3].valueTransformerName == nil)
    #expect(attributes[3].customClassName == "C")
    #expect(attributes[4].regularExpression == "[a-z]+")
    #expect(!attributes[4].isDerived)
  }

  @Test func relationshipsAndFetchedProperties() throws {
    let model = try read(
      """
      <entity name="A">
        <relationship name="one" optional="YES" deletionRule="Cascade" destinationEntity="B" inverseName="many"
          inverseEntity="B"/>
        <relationship name="bounded" toMany="YES" minCount="2" maxCount="9" ordered="YES" deletionRule="Deny"
          destinationEntity="B"/>
        <relationship name="oddly" toMany="YES" maxCount="1" deletionRule="No Action" destinationEntity="B"/>
        <fetchedProperty name="f" optional="YES"><fetchRequest name="r" entity="B" predicateString="n > 1"/>
        </fetchedProperty>
      </entity>
      <entity name="B"><relationship name="many" toMany="YES" deletionRule="Nullify" destinationEntity="A"
        inverseName="one" inverseEntity="A"/></entity>
      """)
    let entity = try #require(model.entity(named: "A"))
    let relationships = ["one", "bounded", "oddly"].compactMap { name in
      entity.relationships.first { $0.name == name }
    }
    #expect(relationships.map(\.isToMany) == [false, true, true])
    #expect(relationships.map(\.maxCount) == [1, 9, 1])
    #expect(relationships.map(\.minCount) == [0, 2, 0])
    #expect(relationships.map(\.deleteRule) == [.cascade, .deny, .noAction])
    #expect(relationships.map(\.isOptional) == [true, false, false])
    #expect(relationships.map(\.isOrdered) == [false, true, false])
    #expect(entity.fetchedProperties.first?.fetchEntityName == "B")
    #expect(entity.fetchedProperties.first?.predicate == "n > 1")
    #expect(model.inverse(of: relationships[0])?.relationship.name == "many")
    #expect(model.entity(named: "B")?.relationships.first?.maxCount == 0)
  }

  @Test func indexesConstraintsAndTheRest() throws {
    let (model, warnings) = try readWithWarnings(
      """
      <entity name="P" isAbstract="YES" elementID="OldP" representedClassName=".P" syncable="YES">
        <attribute name="a" attributeType="String"/><attribute name="b" attributeType="Double"/>
        <fetchIndex name="i" partialIndexPredicate="b > 2">
          <fetchIndexElement property="a" type="Binary" order="descending"/>
          <fetchIndexElement property="b" type="RTree" order="ascending"/>
          <fetchIndexElement expression="length(a)" expressionType="String" type="Binary" order="ascending"/>
        </fetchIndex>
        <uniquenessConstraints>
          <uniquenessConstraint><constraint value="b"/><constraint value="a"/></uniquenessConstraint>
          <uniquenessConstraint><constraint value="a"/></uniquenessConstraint>
        </uniquenessConstraints>
        <compoundIndexes><compoundIndex><index value="a, b"/></compoundIndex>
          <compoundIndex><index value="b"/><index value="a"/></compoundIndex></compoundIndexes>
        <userInfo><entry key="k" value="v"/></userInfo>
      </entity>
      <entity name="C" parentEntity="P"/>
      <fetchRequest name="q" entity="P" predicateString="TRUEPREDICATE"/>
      <configuration name="X"><memberEntity name="P"/><memberEntity name="C"/></configuration>
      <elements><element name="P" positionX="1" positionY="2" width="3" height="4"/></elements>
      """, attributes: "userDefinedModelVersionIdentifier='v7' documentVersion='1.0'")
    #expect(warnings.isEmpty)
    #expect(model.versionIdentifiers == ["v7"])
    let entity = try #require(model.entity(named: "P"))
    #expect(entity.isAbstract && entity.renamingIdentifier == "OldP" && entity.className == ".P")
    #expect(entity.fetchIndexes.first?.partialPredicate == "b > 2")
    #expect(entity.fetchIndexes.first?.elements.map(\.propertyName) == ["a", "b", nil])
    #expect(entity.fetchIndexes.first?.elements.map(\.kind) == [.binary, .rTree, .binary])
    #expect(entity.fetchIndexes.first?.elements.map(\.isAscending) == [false, true, true])
    #expect(entity.fetchIndexes.first?.elements.last?.expression == "length(a)")
    #expect(entity.uniquenessConstraints == [["b", "a"], ["a"]])
    #expect(entity.compoundIndexes == [["a", "b"], ["b", "a"]])
    #expect(entity.userInfo == ["k": "v"])
    #expect(model.configurations == ["X": ["C", "P"]])
    #expect(model.parent(of: try #require(model.entity(named: "C")))?.name == "P")
    #expect(model.subentities(of: entity).map(\.name) == ["C"])
  }

  @Test func unknownThingsAreReportedOnceAndIgnored() throws {
    let (model, warnings) = try readWithWarnings(
      """
      <entity name="A" future="1"><attribute name="x" attributeType="String" shiny="YES"/>
        <attribute name="y" attributeType="String" shiny="YES"/><gadget><attribute name="z"/></gadget><gadget/></entity>
      """)
    #expect(model.entity(named: "A")?.attributes.map(\.name) == ["x", "y"])
    #expect(warnings.count == 3)
    #expect(warnings.contains { $0.message.contains("“shiny”") && $0.place.line == 3 })
  }

  @Test func renamingIdentifierOfTheWrongNameIsNotHonoured() throws {
    let (model, warnings) = try readWithWarnings(
      "<entity name='A'><attribute name='x' attributeType='String' renamingIdentifier='old'/></entity>")
    #expect(model.entity(named: "A")?.attributes.first?.renamingIdentifier == "x")
    #expect(warnings.count == 1)
  }
}
