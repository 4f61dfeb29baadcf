// One small model per fault. Each is reported with its line, entity and property, and all faults of a model together.

import Diagnostics
import ManagedObjectModel
import Testing

@Suite struct ModelValidationTests {
  @Test(
    arguments: [
      ("", "no entities", nil, nil),
      ("<entity name='A'/>\n<entity name='A'/>", "duplicate entity", "A", 4),
      ("<entity/>", "no name", nil, 3),
      ("<entity name='A'>\n<attribute attributeType='String'/></entity>", "no name", "A", 4),
      (
        """
        <entity name='A'><attribute name='x' attributeType='Date'/>
        <relationship name='x' destinationEntity='A'/></entity>
        """,
        "second property", "A.x", 4
      ),
      ("<entity name='A' parentEntity='Z'/>", "parent entity “Z”", "A", 3),
      ("<entity name='A' parentEntity='B'/><entity name='B' parentEntity='A'/>", "circle: A → B → A", "A", 3),
      ("<entity name='A' parentEntity='A'/>", "circle: A → A", "A", 3),
      ("<entity name='A'><relationship name='r' destinationEntity='Z'/></entity>", "“Z” is not in the model", "A.r", 3),
      ("<entity name='A'><relationship name='r'/></entity>", "no destination entity", "A.r", 3),
      (
        "<entity name='A'><relationship name='r' destinationEntity='A' inverseName='q'/></entity>",
        "“q” is not a relationship of “A”", "A.r", 3
      ),
      (
        "<entity name='A'><relationship name='r' toMany='YES' destinationEntity='A' inverseName='q'/>"
          + "<relationship name='q' destinationEntity='A'/></entity>",
        "names another inverse: none", "A.r", 3
      ),
      (
        "<entity name='A'><relationship name='r' destinationEntity='B' inverseName='q'/></entity><entity name='B'>"
          + "<relationship name='q' destinationEntity='B' inverseName='r'/>"
          + "<relationship name='r' destinationEntity='B' inverseName='q'/></entity>",
        "leads to “B”, not back", "A.r", 3
      ),
      (
        "<entity name='A'><uniquenessConstraints><uniquenessConstraint><constraint value='z'/></uniquenessConstraint>"
          + "</uniquenessConstraints></entity>", "constraint names “z”", "A", 3
      ),
      (
        "<entity name='A'><attribute name='x' attributeType='Integer 128'/></entity>", "“Integer 128” is unknown",
        "A.x", 3
      ),
      (
        "<entity name='A'><attribute name='x' attributeType='Date' derived='YES'/></entity>",
        "no derivation expression",
        "A.x", 3
      ),
      (
        "<entity name='A'><relationship name='r' destinationEntity='A' maxCount='many'/></entity>",
        "maxCount is “many”",
        "A.r", 3
      ),
      (
        "<entity name='A'><relationship name='r' destinationEntity='A' minCount='-1'/></entity>", "minCount is “-1”",
        "A.r", 3
      ),
      ("<entity name='A'/>\n<configuration name='C'><memberEntity name='Z'/></configuration>", "entity “Z”", nil, 4),
      (
        "<entity name='A'><attribute name='x' attributeType='Composite' composite='Z'/></entity>", "composite type “Z”",
        "A.x", 3
      ),
      (
        """
        <entity name='A'/><composite name='C'><attribute name='x' attributeType='Composite' composite='C'/>\
        </composite>
        """,
        "contains itself", nil, 3
      ),
    ] as [(String, String, String?, Int?)])
  func everyFaultIsReported(body: String, message: String, subject: String?, line: Int?) throws {
    let error = try #require(failure(body))
    #expect(error.code == .invalidModel)
    let reason = try #require(error.reasons.first)
    #expect(reason.message.contains(message), "\(error)")
    #expect(reason.place.line == line || body.isEmpty)
    let reported = reason.place.entity.map { entity in reason.place.property.map { "\(entity).\($0)" } ?? entity }
    #expect(reported == subject)
  }

  @Test func allFaultsAreReportedTogether() throws {
    let error = try #require(
      failure(
        """
        <entity name="A" parentEntity="Z"><attribute name="x" attributeType="Nonsense"/></entity>
        <entity name="B"><relationship name="r" destinationEntity="Y" deletionRule="Nullify"/></entity>
        <entity name="B"/>
        """))
    #expect(error.reasons.count == 4)
    for word in ["“Z”", "Nonsense", "“Y”", "duplicate entity"] { #expect(error.description.contains(word)) }
  }

  @Test func manyFaultsAreCounted() throws {
    let entities = (0..<500).map { "<entity name='E\($0)' parentEntity='Z'/>" }.joined()
    let error = try #require(failure(entities))
    #expect(error.message.contains("500 faults"))
    #expect(error.reasons.count == ModelLimits.findings + 1)
    #expect(error.reasons.last?.message == "and 400 more")
  }

  @Test func whatRealModelsContainIsNoFault() throws {
    _ = try read(
      """
      <entity name="P"><attribute name="x" attributeType="String"/>
        <relationship name="alone" optional="YES" destinationEntity="Q" deletionRule="Nullify"/>
        <relationship name="q" optional="YES" destinationEntity="Q" deletionRule="Nullify" inverseName="ps"
          inverseEntity="Q"/></entity>
      <entity name="C" parentEntity="P"><attribute name="x" attributeType="Date"/>
        <uniquenessConstraints><uniquenessConstraint><constraint value="x"/></uniquenessConstraint>
        </uniquenessConstraints></entity>
      <entity name="Q"><relationship name="ps" toMany="YES" destinationEntity="C" deletionRule="Nullify"
        inverseName="q" inverseEntity="P"/></entity>
      """)
  }

  /// Apple's own models index the object and its entity; an index is never a reason against a model.
  @Test(arguments: [
    "<compoundIndexes><compoundIndex><index value='x,self,entity'/></compoundIndex></compoundIndexes>",
    "<compoundIndexes><compoundIndex><index value='z'/></compoundIndex></compoundIndexes>",
    "<fetchIndex name='i'><fetchIndexElement property='z'/></fetchIndex>",
    "<fetchIndex name='i'><fetchIndexElement property='x' type='Fractal'/></fetchIndex>",
    "<fetchIndex name='i'><fetchIndexElement type='Binary'/></fetchIndex><fetchIndex name='i'/>",
  ])
  func indexesThatCannotBeUnderstoodAreNoFault(index: String) throws {
    _ = try read("<entity name='A'><attribute name='x' attributeType='String'/>\(index)</entity>")
  }

  @Test func notAModel() {
    for text in ["<plist/>", "<model", "", "<model/>"] {
      #expect(throws: HopdError.self) { try ModelReader.read(contents: Array(text.utf8), name: "Test") }
    }
  }
}
