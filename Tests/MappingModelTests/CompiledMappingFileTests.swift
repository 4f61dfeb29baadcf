// Compiled mapping models: their content, the versions that they fit by their hashes, and the only fetch that is
// followed.

import Diagnostics
import ManagedObjectModel
import MappingModel
import PropertyLists
import SystemPackage
import Testing

private let first = model("V1", [entity("Dog", [attribute("name")]), entity("Cat", [attribute("lives", .integer16)])])
private let second = model(
  "V2", [entity("Dog", [attribute("title")]), entity("Cat", [attribute("lives", .integer16)])])
private let third = model("V3", [entity("Dog", [attribute("title")]), entity("Cat", [attribute("lives", .integer32)])])

private func version(_ model: ManagedObjectModel) -> MappableVersion {
  MappableVersion(modelName: "Pets", model: model)
}

private func isExact(_ fit: MappingFit) -> Bool { if case .exact = fit { true } else { false } }

@Suite struct CompiledMappingFileTests {
  @Test func everythingIsReadAsItStands() throws {
    let file = try compiledFile([
      .mapping("Second", type: 5, from: ("Cat", first), to: ("Cat", second), attributes: [.property("lives")]),
      .mapping(
        "DogToDog", type: 1, from: ("Dog", first), to: ("Dog", second), fetch: .fetch("Dog", "name != nil"),
        policy: "App.DogPolicy",
        attributes: [
          .property("title", .path(.variable("source"), "name")), .property("age", .constant("x")),
        ]),
      .mapping("Fresh", type: 2, from: nil, to: ("Cat", second)),
    ])
    let mapping = try file.load(source: first, destination: second).mapping
    #expect(mapping.sourceVersion == "V1" && mapping.destinationVersion == "V2" && mapping.name == "Test")
    #expect(mapping.entityMappings.map(\.name) == ["Second", "DogToDog", "Fresh"])
    #expect(mapping.entityMappings.map(\.type) == [.transform, .custom, .add])
    let dog = mapping.entityMappings[1]
    #expect(dog.policy == "App.DogPolicy" && dog.filter?.text == "name != nil")
    #expect(dog.attributes.map(\.name) == ["age", "title"])
    #expect(dog.attributes.map { $0.value?.description } == ["\"x\"", "$source.name"])
    #expect(mapping.entityMappings[0].attributes.first?.value == nil)
  }

  @Test func hashesSelectTheVersions() throws {
    let file = try compiledFile([
      .mapping("DogToDog", from: ("Dog", first), to: ("Dog", second)),
      .mapping("CatToCat", from: ("Cat", first), to: ("Cat", second)),
    ])
    #expect([first, second, third].map { isExact(file.fit(source: version($0))) } == [true, false, false])
    #expect([first, second, third].map { isExact(file.fit(destination: version($0))) } == [false, true, false])
    guard case .stale(let reasons, _) = file.fit(destination: version(third)) else {
      Issue.record("a mapping model with one hash of two is stale")
      return
    }
    let (was, has) = (try #require(second.versionHashes["Cat"]), try #require(third.versionHashes["Cat"]))
    #expect(reasons.map(\.place.entity) == ["Cat"])
    #expect(reasons[0].message.contains("\(was)") && reasons[0].message.contains("\(has)"))
  }

  @Test func modelsOfOtherEntitiesAreUnrelated() throws {
    let file = try compiledFile([.mapping("DogToDog", from: ("Dog", first), to: ("Dog", second))])
    let other = model("V1", [entity("Invoice", [attribute("sum", .double)])])
    guard case .unrelated = file.fit(source: version(other)) else {
      Issue.record("it has nothing to do with invoices")
      return
    }
  }

  @Test(arguments: 0..<6) func fetchesAreKnownInSeveralSpellings(spelling: Int) throws {
    let manager = Archived.variable("manager")
    let request = Archived.call(
      manager, "fetchRequestForSourceEntityNamed:predicateString:", [.constant("Dog"), .constant("name != nil")])
    let fetch: Archived =
      switch spelling {
      case 0: .fetch(request)
      case 1: .fetch(request, context: .call(manager, "sourceContext", []))
      case 2: .fetch(request, context: .call(manager, "valueForKey:", [.constant("sourceContext")]))
      case 3: .fetch(request, counts: .bare(.integer(0)))
      case 4:
        .fetch(
          request,
          counts: .object(["NSConstantValueExpression", "NSExpression"], [("NSConstantValue", .bare(.boolean(false)))]))
      default: .fetch(.call(manager, "fetchRequestForSourceEntityNamed:", [.constant("Dog")]))
      }
    let file = try compiledFile([.mapping("D", from: ("Dog", first), to: ("Dog", second), fetch: fetch)])
    let filter = try file.load(source: first, destination: second).mapping.entityMappings[0].filter
    #expect(filter?.text == (spelling == 5 ? nil : "name != nil"))
  }

  @Test func everyOtherSourceExpressionIsRefusedByName() throws {
    let manager = Archived.variable("manager")
    let request = Archived.call(
      manager, "fetchRequestForSourceEntityNamed:predicateString:", [.constant("Dog"), .constant("TRUEPREDICATE")])
    let cases: [(Archived, String)] = [
      (.constant("Dog"), "NSConstantValueExpression"), (.fetch(request, counts: .bare(.boolean(true))), "counts"),
      (.fetch(request, context: .path(manager, "destinationContext")), "sourceContext"),
      (.fetch(.call(.variable("entityPolicy"), "dogs", [])), "not made by $manager"),
      (.fetch(.call(manager, "allDogs", [])), "allDogs"),
      (.fetch("Cat"), "Cat"), (.fetch("Dog", "name ==="), "name"), (.null, "no source expression"),
    ]
    for (fetch, word) in cases {
      let file = try compiledFile([.mapping("D", from: ("Dog", first), to: ("Dog", second), fetch: fetch)])
      let error = #expect(throws: HopdError.self) { try file.load(source: first, destination: second) }
      #expect(error?.description.contains(word) == true, "\(word): \(error?.description ?? "")")
      #expect(error?.place.entity == "Dog")
    }
  }

  @Test func whatIsNoMappingModelIsRefused() throws {
    #expect(throws: HopdError.self) { try CompiledMappingFile(contents: [], path: "/a.cdm") }
    #expect(throws: HopdError.self) {
      try CompiledMappingFile(contents: Archived.constant("a").bytes, path: "/a.cdm")
    }
    // Type 9, and hashes of no bytes.
    #expect(throws: HopdError.self) {
      try compiledFile([.mapping("D", type: 9, from: ("Dog", first), to: ("Dog", second))])
    }
    #expect(throws: HopdError.self) { try compiledFile([.mapping("D", from: ("Horse", first), to: nil)]) }
  }
}
