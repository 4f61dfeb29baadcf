// `hopctl mapping show`: a mapping model made readable.

import BlockingTests
import FoundationEssentials
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct MappingShowTests {
  private func write(
    _ room: Room, _ name: String, to version: String = "Zoo 2", attribute: String = "colour", path: String = "Zoo"
  ) throws -> String {
    try room.file(
      "\(name)/xcmapping.xml",
      """
      <?xml version="1.0"?><database>
      <object type="XDDEVENTITYMAPPING" id="z1"><attribute name="sourcename" type="string">Animal</attribute>
      <attribute name="destinationname" type="string">Animal</attribute>\
      <attribute name="mappingnumber" type="int16">1</attribute>
      <attribute name="sourcefilterpredicatestring" type="string">name \\u2100= nil</attribute>
      <relationship name="attributemappings" idrefs="z3"></relationship>
      <relationship name="relationshipmappings" idrefs="z4"></relationship></object>
      <object type="XDDEVATTRIBUTEMAPPING" id="z3"><attribute name="name" type="string">\(attribute)</attribute>\
      </object>
      <object type="XDDEVRELATIONSHIPMAPPING" id="z4"><attribute name="name" type="string">keeper</attribute></object>
      <object type="XDDEVMAPPINGMODEL" id="z2">
      <attribute name="sourcemodelpath" type="string">App/\(path).xcdatamodeld/Zoo.xcdatamodel</attribute>
      <attribute name="destinationmodelpath" type="string">App/\(path).xcdatamodeld/\(version).xcdatamodel</attribute>
      <relationship name="entitymappings" idrefs="z1"></relationship></object></database>
      """)
    return room.path(name)
  }

  @Test func everyKeyIsThere() throws {
    let room = try Room()
    let file = try write(room, "maps/First.xcmappingmodel")
    let outcome = try room.run("mapping", "show", file, "--models", room.model, "--json")
    #expect(outcome.status == 0, "\(outcome.errors)")
    let json = try outcome.json()
    #expect(json.keys == ["name", "sourceVersion", "destinationVersion", "entityMappings", "warnings"])
    #expect(json.name?.text == "First")
    #expect(json.sourceVersion?.text == "Zoo" && json.destinationVersion?.text == "Zoo 2")
    let mapping = try #require(json.entityMappings?.list.first)
    #expect(
      mapping.keys == [
        "name", "type", "source", "destination", "policy", "filter", "attributes", "relationships", "reason",
      ])
    #expect(mapping.name?.text == "AnimalToAnimal" && mapping.type?.text == "copy")
    #expect(mapping.policy == .null)
    #expect(mapping.filter?.text == "name != nil")
    #expect(mapping.attributes?.colour?.text == "$source.colour")
    #expect(mapping.relationships?.keeper?.text?.contains("\"keeper\", $source.keeper)") == true)
    let text = try room.run("mapping", "show", room.path("maps"), "--models", room.model)
    #expect(text.output.hasPrefix("First: Zoo → Zoo 2\n"))
    #expect(text.output.contains("AnimalToAnimal  copy  Animal → Animal"))
    #expect(text.output.contains("colour  $source.colour"))
  }

  @Test func whatCannotBeFollowedIsAWarning() throws {
    let room = try Room()
    let file = try write(room, "maps/First.xcmappingmodel", to: "Zoo 10", path: "OldZoo")
    let outcome = try room.run("mapping", "show", file, "--models", room.model, "--json")
    #expect(outcome.status == 0)
    let warnings = try outcome.json().warnings?.list ?? []
    // The model has another name, and Zoo 10 has no colour.
    #expect(warnings.contains { $0.code?.text == "mapping-remark" && $0.message?.text?.contains("OldZoo") == true })
    #expect(warnings.contains { $0.code?.text == "mapping-stale" && $0.property?.text == "colour" })
    #expect(outcome.errors.contains("colour"))
  }

  @Test func oneOfAVersionThatIsGoneIsTakenForTheOnlyOneThatFits() throws {
    let room = try Room()
    let stale = try write(room, "maps/First.xcmappingmodel", to: "Zoo 7")
    let gone = try room.run("mapping", "show", stale, "--models", room.model, "--json")
    #expect(gone.status == 0)
    #expect(try gone.json().entityMappings?.list.first?.name?.text == "AnimalToAnimal")
    #expect(try gone.json().warnings?.list.first { $0.code?.text == "mapping-guess" } != nil)
    #expect(gone.errors.contains("is taken for “Zoo 2”") && gone.errors.contains("Zoo 7"), "\(gone.errors)")
    // A plan follows it, and refuses what it would lose.
    let store = try room.store("a.sqlite")
    let plan = try room.run("plan", store, "--models", room.model, "--mappings", stale)
    #expect(plan.status == 65)
    #expect(plan.errors.contains("taken by no entity mapping of First"), "\(plan.errors)")
    // One of another app has nothing to do with these models.
    let other = try write(room, "maps/Other.xcmappingmodel", to: "Zoo 7", path: "Cinema")
    #expect(try room.run("mapping", "show", other, "--models", room.model).status == 65)
  }

  @Test func errorsSayWhatToType() throws {
    let room = try Room()
    let stale = try write(room, "maps/First.xcmappingmodel", to: "Zoo 7")
    _ = try write(room, "maps/Second.xcmappingmodel")
    let two = try room.run("mapping", "show", room.path("maps"), "--models", room.model)
    #expect(two.status == 64)
    #expect(two.errors.contains("Second.xcmappingmodel"))
    try room.file("bad/Bad.cdm", "x")
    #expect(try room.run("mapping", "show", room.path("bad/Bad.cdm"), "--models", room.model).status == 65)
    #expect(try room.run("mapping", "show", room.path("nowhere"), "--models", room.model).status == 66)
    #expect(try room.run("mapping", "show", stale).status == 6)
  }
}
