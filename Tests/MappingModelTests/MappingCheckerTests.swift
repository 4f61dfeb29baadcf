// Mistakes that must be found before any row is migrated: unknown names, and values that no store can hold.

import Diagnostics
import Expressions
import ManagedObjectModel
import SystemPackage
import Testing

@testable import MappingModel

private let old = model(
  "V1",
  [
    entity("Dog", [attribute("name"), attribute("age", .integer16)], [toOne("owner", "Person", inverse: "dogs")]),
    entity("Person", [attribute("name")], [toMany("dogs", "Dog", inverse: "owner")]),
  ])
private let new = model(
  "V2",
  [
    entity("Animal", abstract: true),
    entity(
      "Dog", parent: "Animal",
      [attribute("name"), attribute("weight", .integer16), attribute("seen", transient: true)],
      [toOne("owner", "Person", inverse: "dogs")]),
    entity("Person", [attribute("name")], [toMany("dogs", "Dog", inverse: "owner")]),
  ])

private func property(_ name: String, _ text: String?) throws -> ExplicitPropertyMapping {
  ExplicitPropertyMapping(
    name: name, value: try text.map { .expression(try ExpressionParser.expression($0, at: Place())) })
}

private func objects(_ mapping: String, _ path: String) -> String {
  "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", \"\(mapping)\", \(path))"
}

private func mapping(
  _ name: String = "DogToDog", from source: String? = "Dog", to destination: String? = "Dog", filter: String? = nil,
  policy: String? = nil, attributes: [ExplicitPropertyMapping] = [], relationships: [ExplicitPropertyMapping] = []
) throws -> ExplicitEntityMapping {
  ExplicitEntityMapping(
    name: name, type: .transform, source: source, destination: destination, policy: policy,
    filter: try filter.map { SourceFilter(text: $0, predicate: try ExpressionParser.predicate($0, at: Place())) },
    attributes: attributes, relationships: relationships)
}

private func file(_ mappings: [ExplicitEntityMapping]) -> ExplicitMapping {
  ExplicitMapping(
    name: "Test", path: "/Test.cdm", sourceVersion: "V1", destinationVersion: "V2", entityMappings: mappings)
}

private func findings(_ mappings: ExplicitEntityMapping...) -> [HopdError] {
  MappingChecker.findings(in: [file(mappings)], source: old, destination: new)
}

private let person = try? mapping("PersonToPerson", from: "Person", to: "Person")

@Suite struct MappingCheckerTests {
  @Test func whatFitsHasNoFindings() throws {
    let person = try #require(person)
    let dog = try mapping(
      filter: "age > 1", attributes: [property("name", "$source.owner.name")],
      relationships: [property("owner", objects("PersonToPerson", "$source.owner"))])
    #expect(findings(dog, person).isEmpty)
  }

  @Test func namesThatLeadNowhereAreStale() throws {
    let cases: [(ExplicitEntityMapping, String, String?)] = [
      (try mapping(from: "Wolf"), "“Wolf”", nil), (try mapping(to: "Wolf"), "“Wolf”", nil),
      (try mapping(attributes: [property("size", "$source.age")]), "no such attribute", "size"),
      (try mapping(relationships: [property("boss", nil)]), "no such relationship", "boss"),
      (try mapping(attributes: [property("name", "$source.title")]), "“title”", "name"),
      (
        try mapping(relationships: [property("owner", objects("Gone", "$source.owner"))]), "“Gone”", "owner"
      ),
      (
        try mapping(relationships: [property("owner", objects("DogToDog", "$source.master"))]), "“master”", "owner"
      ),
    ]
    for (mapping, word, name) in cases {
      let found = findings(mapping)
      #expect(found.first?.code == .staleMapping, "\(word)")
      #expect(found.first?.message.contains(word) == true, "\(found)")
      #expect(found.first?.place.property == name)
      #expect(found.first?.place.file == "/Test.cdm" && found.first?.place.entity != nil)
      let error = #expect(throws: HopdError.self) {
        try MappingChecker.checked([file([mapping])], source: old, destination: new)
      }
      #expect(error?.code == .staleMapping)
      #expect(error?.place.hop == "V1 → V2")
    }
  }

  /// A key alone belongs to the source object; the mapping model serves, with a remark on how it is read.
  @Test func bareKeysAreTheSourcesWithARemark() throws {
    let person = try #require(person)
    let bare = try mapping(
      attributes: [property("name", "uppercase:(owner.name)"), property("weight", "age + $source.age")],
      relationships: [property("owner", objects("PersonToPerson", "owner"))])
    let (mappings, warnings) = try MappingChecker.checked([file([bare, person])], source: old, destination: new)
    let values = mappings.first?.entityMappings.first.map { ($0.attributes + $0.relationships).map(\.value) }
    #expect(
      values?.map { $0?.description ?? "" } == [
        "uppercase:($source.owner.name)", "$source.age + $source.age", objects("PersonToPerson", "$source.owner"),
      ])
    #expect(warnings.map(\.place.property) == ["name", "weight", "owner"])
    #expect(warnings.allSatisfy { $0.code == .mappingRemark && $0.place.file == "/Test.cdm" })
    #expect(warnings.first?.message.contains("“owner.name” is read as “$source.owner.name”") == true)
    // In a filter both mean the source object, and no remark is needed.
    let filtered = try mapping(filter: "$source.age > 1 AND owner == $source.owner")
    #expect(try MappingChecker.checked([file([filtered])], source: old, destination: new).warnings.isEmpty)
  }

  @Test func whatIsNotSupportedIsInvalid() throws {
    let person = try #require(person)
    let cases: [(ExplicitEntityMapping, String)] = [
      // A bare key that the source does not have.
      (try mapping(attributes: [property("name", "nome")]), "nome"),
      (try mapping(filter: "height > 1"), "height"),
      (try mapping(attributes: [property("name", "FUNCTION($entityPolicy, 'nameOf:', $source)")]), "nameOf:"),
      (try mapping(to: "Animal"), "abstract"),
      (try mapping(attributes: [property("weight", "2.5")]), "fraction"),
    ]
    for (mapping, word) in cases {
      let error = #expect(throws: HopdError.self) {
        try MappingChecker.checked([file([mapping, person])], source: old, destination: new)
      }
      #expect(error?.code == .invalidMapping, "\(word)")
      #expect(error?.reasons.first?.description.contains(word) == true, "\(word): \(error?.description ?? "")")
    }
    // An expression may call the policy's own methods.
    let hooked = try mapping(
      policy: "DogPolicy", attributes: [property("name", "FUNCTION($entityPolicy, 'nameOf:', $source)")])
    #expect(findings(hooked).isEmpty)
  }

  /// Core Data refuses objects, not expressions: the possible results of a look-up are reported, and the rows decide.
  @Test func lookupsThatFindNothingThatFitsAreReported() throws {
    let cat = try mapping("CatToDog", from: nil, to: "Dog")
    let gone = ExplicitEntityMapping.init(
      name: "Gone", type: .undefined, source: nil, destination: nil)
    let cases: [(String, String, String?)] = [
      ("PersonToPerson", "$source.owner", nil), ("DogToDog", "$source", "destination of the relationship is Person"),
      ("DogToDog", "$source.owner", "asks for objects of Person"),
      ("PersonToPerson", "$source", "asks for objects of Dog"), ("CatToDog", "$source.owner", "has no source"),
      ("Gone", "$source.owner", "has no source"),
      ("PersonToPerson", "$source.owner.dogs.owner", nil), ("DogToDog", "$source.owner.dogs", "of the relationship is"),
    ]
    for (name, path, words) in cases {
      let dog = try mapping(relationships: [property("owner", objects(name, path))])
      let checked = try MappingChecker.checked(
        [file([dog, try #require(person), cat, gone])], source: old, destination: new)
      let reported = checked.warnings.filter { $0.place.property == "owner" }.map(\.message)
      #expect(reported.count == (words == nil ? 0 : 1), "\(name) \(path): \(reported)")
      if let words { #expect(reported.first?.contains(words) == true, "\(reported)") }
    }
  }

  /// Apps write policies to convert values, and leave the expression that Xcode has generated.
  @Test func aPolicyMayTakeAnAttributeOfAnotherType() throws {
    let value = try property("name", "$source.age")
    #expect(findings(try mapping(policy: "DogPolicy", attributes: [value])).isEmpty)
    #expect(findings(try mapping(attributes: [value])).count == 1)
    // An expression that an author wrote must still fit.
    #expect(findings(try mapping(policy: "DogPolicy", attributes: [property("name", "$source.age + 1")])).count == 1)
    #expect(findings(try mapping(policy: "DogPolicy", attributes: [property("name", "$source.owner")])).count == 1)
  }

  /// Xcode writes mappings between abstract entities too; they make nothing.
  @Test func mappingsOfAbstractEntitiesAreLeftAway() throws {
    let abstract = model("V1", [entity("Animal", abstract: true)] + old.entities)
    let person = try #require(person)
    let animal = try mapping("AnimalToAnimal", from: "Animal", to: "Animal")
    func checked(_ mappings: [ExplicitEntityMapping]) throws -> (mappings: [ExplicitMapping], warnings: [HopdError]) {
      try MappingChecker.checked([file(mappings)], source: abstract, destination: new)
    }
    let (mappings, warnings) = try checked([animal, mapping(), person])
    #expect(mappings.flatMap(\.entityMappings).map(\.name) == ["DogToDog", "PersonToPerson"])
    #expect(warnings.map(\.code) == [.mappingRemark])
    // A relationship looks up its objects by name: then it must make some.
    let dog = try mapping(relationships: [property("owner", objects("AnimalToAnimal", "$source.owner"))])
    #expect(throws: HopdError.self) { try checked([animal, dog, person]) }
  }

  @Test func everythingIsReportedAtOnce() throws {
    let found = findings(
      try mapping(attributes: [property("a", nil), property("b", nil)]), try mapping("X", from: "Wolf"))
    #expect(found.count == 3)
  }

  @Test func partsMayLookForObjectsOfEachOther() throws {
    let person = try #require(person)
    let dog = try mapping(relationships: [property("owner", objects("PersonToPerson", "$source.owner"))])
    #expect(
      MappingChecker.findings(in: [file([dog]), file([person])], source: old, destination: new).isEmpty)
  }

  @Test func equalNamesAreDistinguishedUnlessOneIsLookedFor() throws {
    let person = try #require(person)
    let (checked, warnings) = try MappingChecker.checked(
      [file([try mapping(filter: "age > 1"), try mapping(filter: "age <= 1")])], source: old, destination: new)
    #expect(checked[0].entityMappings.map(\.name) == ["DogToDog", "DogToDog (2)"])
    #expect(warnings.count == 1)
    let looking = try mapping(
      "P", from: "Person", to: "Person", relationships: [property("dogs", objects("DogToDog", "$source.dogs"))])
    let found = findings(try mapping(), try mapping(), looking, person)
    #expect(found.map(\.place.property) == ["dogs"])
  }

  @Test func transientPropertiesAreLeftToTheApp() throws {
    let (checked, _) = try MappingChecker.checked(
      [file([try mapping(attributes: [property("name", "$source.name"), property("seen", "$source.name")])])],
      source: old, destination: new)
    #expect(checked[0].entityMappings[0].attributes.map(\.name) == ["name"])
  }

  /// It is left out with a remark, so that the plan counts its pairs among the drops.
  @Test func aToManyWhoseInverseIsTransientIsLeftOut() throws {
    var owner = toOne("owner", "Person", inverse: "dogs")
    owner.isTransient = true
    let later = model(
      "V2",
      [
        entity("Dog", [attribute("name")], [owner]),
        entity("Person", [attribute("name")], [toMany("dogs", "Dog", inverse: "owner")]),
      ])
    let people = try mapping(
      "P", from: "Person", to: "Person", relationships: [property("dogs", objects("DogToDog", "$source.dogs"))])
    let (checked, warnings) = try MappingChecker.checked(
      [file([try mapping(), people])], source: old, destination: later)
    #expect(checked[0].entityMappings[1].relationships.isEmpty)
    let remark = warnings.first { $0.place.property == "dogs" }
    #expect(remark?.place.entity == "Person" && remark?.hint != nil)
    #expect(remark?.message.contains("its inverse is transient") == true)
  }
}
