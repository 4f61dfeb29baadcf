// Numbers that a source writes as text and an archive as values come to one form.

import ManagedObjectModel
import Testing

@Suite struct ModelNumbersTests {
  private func model(_ attributes: String) throws -> Entity? {
    try ModelReader.read(
      contents: Array("<model><entity name='E'>\(attributes)</entity></model>".utf8), name: "M"
    ).model.entity(named: "E")
  }

  @Test(arguments: [
    ("0.0", "0.0"), ("00.50", "0.50"), ("-3", "-3"), ("+1.25", "1.25"), ("1E3", "1000"), ("12e-3", "0.012"),
    ("-0", "0"),
    (".5", "0.5"), ("abc", "0"), ("1e9999", "0"), ("1e-9223372036854775808", "0"),
    ("99999999999999999999999999999999999999", "99999999999999999999999999999999999999"),
  ])
  func decimals(text: String, expected: String) throws {
    let entity = try model("<attribute name='a' attributeType='Decimal' defaultValueString='\(text)'/>")
    #expect(entity?.attributes.first?.defaultValue == .decimal(expected))
  }

  @Test(arguments: [
    ("Integer 32", "3", "3"), ("Integer 32", "2.0", "2"), ("Double", "0", "0"), ("Double", "0.50", "0.5"),
    ("Float", "0.1", "0.1"), ("Decimal", "1.50", "1.50"), ("String", "5", "5"), ("Double", "x", nil),
    ("Boolean", "1", nil),
    ("Double", "1e300", "1e+300"),
  ])
  func bounds(type: String, text: String, expected: String?) throws {
    let entity = try model("<attribute name='a' attributeType='\(type)' minValueString='\(text)'/>")
    #expect(entity?.attributes.first?.minimum == expected)
  }

  @Test func aFetchIndexSetsTheOldFlagAsTheCompilerDoes() throws {
    let entity = try model(
      """
      <attribute name='one' attributeType='String'/><attribute name='down' attributeType='String'/>
      <attribute name='pair' attributeType='String'/><attribute name='part' attributeType='String'/>
      <fetchIndex name='a'><fetchIndexElement property='one' type='Binary' order='ascending'/></fetchIndex>
      <fetchIndex name='b'><fetchIndexElement property='down' type='Binary' order='descending'/></fetchIndex>
      <fetchIndex name='c'><fetchIndexElement property='pair' type='Binary' order='ascending'/>
      <fetchIndexElement property='down' type='Binary' order='ascending'/></fetchIndex>
      <fetchIndex name='d' partialIndexPredicate='part != nil'><fetchIndexElement property='part' type='Binary'
      order='ascending'/></fetchIndex>
      """)
    #expect(entity?.attributes.filter(\.isIndexed).map(\.name) == ["one", "part"])
  }
}
