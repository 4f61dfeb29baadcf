// Hostile models end in an error quickly; every damaged copy of a valid one is read or refused.

import Diagnostics
import ManagedObjectModel
import Testing

@Suite struct HostileModelTests {
  @Test func deepElementsAreRefused() throws {
    let error = try #require(failure(String(repeating: "<entity>", count: 100_000)))
    #expect(error.code.exit == .dataError)
  }

  @Test func deepInheritanceIsRefused() throws {
    let chain = (0..<4_000).map { "<entity name='E\($0)' parentEntity='E\($0 + 1)'/>" }.joined()
    let error = try #require(failure(chain + "<entity name='E4000'/>"))
    #expect(error.description.contains("entities above it"))
    let circle = try #require(failure(chain + "<entity name='E4000' parentEntity='E0'/>"))
    #expect(circle.description.contains("circle"))
  }

  @Test func bombsOfEntitiesPropertiesAndDetailsAreRefused() throws {
    let entities = (0...ModelLimits.entities).map { "<entity name='E\($0)'/>" }.joined()
    #expect(try #require(failure(entities)).code == .modelTooLarge)
    let properties = (0...ModelLimits.properties).map { "<attribute name='a\($0)'/>" }.joined()
    #expect(try #require(failure("<entity name='A'>\(properties)</entity>")).code == .modelTooLarge)
    let details = String(repeating: "<entry key='k' value='v'/>", count: ModelLimits.details + 1)
    #expect(try #require(failure("<entity name='A'><userInfo>\(details)</userInfo></entity>")).code == .modelTooLarge)
  }

  @Test func inheritedPropertiesAreBounded() throws {
    let wide = (0..<1_000).map { "<attribute name='a\($0)' attributeType='String'/>" }.joined()
    let heirs = (0..<1_000).map { "<entity name='E\($0)' parentEntity='P'/>" }.joined()
    let error = try #require(failure("<entity name='P'>\(wide)</entity>\(heirs)"))
    #expect(error.description.contains("inherited ones counted"))
  }

  @Test func compositeBombsAreRefused() throws {
    // Eight levels of ten references each: 10^8 elements when opened.
    var body = "<entity name='A'><attribute name='c' attributeType='Composite' composite='C0'/></entity>"
    for level in 0..<8 {
      let inner = (0..<10).map { "<attribute name='a\($0)' attributeType='Composite' composite='C\(level + 1)'/>" }
      body += "<composite name='C\(level)'>\(inner.joined())</composite>"
    }
    body += "<composite name='C8'><attribute name='x' attributeType='String'/></composite>"
    #expect(try #require(failure(body)).description.contains("elements"))
    // A chain of thousands, in both orders.
    let chain = (0..<5_000).map {
      "<composite name='C\($0)'><attribute name='a' attributeType='Composite' composite='C\($0 + 1)'/></composite>"
    }
    let end = "<composite name='C5000'><attribute name='x' attributeType='String'/></composite>"
    for order in [chain, chain.reversed()] {
      #expect(try #require(failure("<entity name='A'/>" + end + order.joined())).description.contains("nested deeper"))
    }
  }

  @Test func entityDeclarationsAreRefused() {
    let text = "<!DOCTYPE model [<!ENTITY a \"b\">]><model><entity name=\"&a;\"/></model>"
    let error = #expect(throws: HopdError.self) { try ModelReader.read(contents: Array(text.utf8), name: "Test") }
    #expect(error?.message.contains("entities of its own") == true)
  }

  @Test func everyDamagedByteReadsOrThrows() throws {
    let good = Array(
      """
      <model><entity name="A" parentEntity="P"><attribute name="x" optional="YES" attributeType="Integer 16" \
      defaultValueString="5"/><relationship name="r" toMany="YES" maxCount="9" destinationEntity="P" \
      deletionRule="Deny"/></entity><entity name="P"><attribute name="d" attributeType="Date" \
      defaultDateTimeInterval="1"/></entity></model>
      """.utf8)
    #expect(try ModelReader.read(contents: good, name: "Test").model.entities.count == 2)
    var thrown = 0
    for index in good.indices {
      for bit in 0..<8 {
        var bytes = good
        bytes[index] ^= 1 << UInt8(bit)
        do {
          _ = try ModelReader.read(contents: bytes, name: "Test").model.versionHashes
        } catch {
          thrown += 1
        }
      }
      #expect(throws: HopdError.self) { try ModelReader.read(contents: Array(good[..<index]), name: "Test") }
    }
    #expect(thrown > 0)
  }

  /// Found by fuzzing: each of these occupied the reader or the hashing for seconds to minutes.
  @Test func floodsOfTextAreRefused() throws {
    let long = String(repeating: "n", count: 10_000)
    #expect(try read("<entity name='\(long)'/>").entities.first?.name == long)
    let longer = String(repeating: "n", count: ModelLimits.nameBytes + 1)
    for body in [
      "<entity name='\(longer)'/>", "<entity name='A'><attribute name='a' attributeType='\(longer)'/></entity>",
    ] {
      #expect(try #require(failure(body)).code == .modelTooLarge)
    }
    let text = "<entity name='A'><attribute name='a' attributeType='String' defaultValueString='\(longer)'/></entity>"
    #expect(try read(text).entities.count == 1)
    let names = (0..<250).map { "<entity name='\(long)\($0)'/>" }.joined()
    #expect(try #require(failure(names)).description.contains("names in the model"))
    let heirs = (0..<1_000).map { "<entity name='E\($0)' parentEntity='P'/>" }.joined()
    let property = "<attribute name='\(long)' attributeType='String'/>"
    let inherited = try #require(failure("<entity name='P'>\(property)</entity>\(heirs)"))
    #expect(inherited.description.contains("inherited ones counted"))
  }

  /// Found by fuzzing: a value of nothing but commas made a million names, and every use of a composite type was
  /// hashed.
  @Test func whatUnfoldsIsCounted() throws {
    let commas = String(repeating: "a,", count: 8_000)
    let index =
      "<compoundIndexes>"
      + String(repeating: "<compoundIndex><index value='\(commas)'/></compoundIndex>", count: 20) + "</compoundIndexes>"
    #expect(try #require(failure("<entity name='A'>\(index)</entity>")).code == .modelTooLarge)
    let elements = (0..<900).map { "<attribute name='e\($0)' attributeType='String'/>" }.joined()
    let uses = (0..<400).map { "<attribute name='a\($0)' attributeType='Composite' composite='C'/>" }.joined()
    let body = "<composite name='C'>\(elements)</composite><entity name='A'>\(uses)</entity>"
    #expect(try #require(failure(body)).description.contains("inherited ones counted"))
  }
}
