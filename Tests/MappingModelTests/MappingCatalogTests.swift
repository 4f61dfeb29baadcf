// Which mapping models serve a hop: one, several parts in order, none, or an ambiguous choice.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import MappingModel
import SystemPackage
import Testing

private func zoo(_ name: String, _ legs: AttributeType, _ size: AttributeType) -> ManagedObjectModel {
  model(name, [entity("Dog", [attribute("legs", legs)]), entity("Cat", [attribute("size", size)])])
}

private let versions = [
  zoo("V1", .integer16, .float), zoo("V2", .integer32, .float), zoo("V3", .integer32, .double),
  zoo("V4", .integer64, .double),
].map { MappableVersion(modelName: "Zoo", model: $0) }

/// A source file that maps entities to themselves.
private func source(
  _ path: FilePath, _ entities: [String], from: String = "V1", to: String = "V2", policy: String = "",
  bundle: String = "Zoo"
) throws -> XcodeMappingFile {
  try sourceFile(
    xml(
      entities.enumerated().map {
        entityMapping("e\($0.offset)", $0.offset, $0.element, $0.element, [("migrationpolicyclassname", policy)])
      }.joined(), list: entities.indices.map { "e\($0)" }.joined(separator: " "),
      from: "Old/\(bundle).xcdatamodeld/\(from).xcdatamodel", to: "Old/\(bundle).xcdatamodeld/\(to).xcdatamodel"),
    path: path)
}

private func compiled(_ path: FilePath, _ entities: [String], from: Int, to: Int) throws -> CompiledMappingFile {
  try compiledFile(
    entities.map { .mapping("\($0)To\($0)", from: ($0, versions[from].model), to: ($0, versions[to].model)) },
    path: path)
}

private func pair(_ source: Int, _ destination: Int) -> MappingHops.Pair {
  MappingHops.Pair(source: source, destination: destination)
}

@Suite struct MappingCatalogTests {
  @Test func sourcesFitTheVersionsThatTheyName() throws {
    let hops = MappingCatalog(files: [
      try source("/a.xcmappingmodel", ["Dog", "Cat"], from: "V1", to: "V2"),
      try source("/b.xcmappingmodel", ["Dog", "Cat"], from: "V4", to: "V2"),
    ]).hops(among: versions)
    #expect(hops.pairs == [pair(0, 1), pair(3, 1)])
    #expect(try hops.hop(pair(0, 1))?.hop.mappings.map(\.name) == ["a"])
    #expect(try hops.hop(pair(0, 1))?.warnings.isEmpty == true)
    #expect(try hops.hop(pair(1, 2)) == nil)
    #expect(hops.stale.isEmpty)
  }

  @Test func aBundleMayHaveBeenRenamed() throws {
    let hops = MappingCatalog(files: [try source("/a.xcmappingmodel", ["Dog"], bundle: "OldZoo")]).hops(among: versions)
    #expect(hops.pairs == [pair(0, 1)])
    let served = try #require(try hops.hop(pair(0, 1)))
    #expect(served.warnings.contains { $0.message.contains("OldZoo.xcdatamodeld/V1") })
    // The version lacks an entity: another app's model has a version of that name.
    let other = MappingCatalog(files: [try source("/a.xcmappingmodel", ["Horse"], bundle: "Stable")])
    #expect(other.hops(among: versions).pairs.isEmpty)
  }

  @Test func compiledOnesFitByTheirHashes() throws {
    let hops = MappingCatalog(files: [try compiled("/a.cdm", ["Dog", "Cat"], from: 0, to: 2)]).hops(among: versions)
    #expect(hops.pairs == [pair(0, 2)])
  }

  @Test func aPartServesTheHopThatItCompletes() throws {
    // Cat is the same in V1 and V2: alone, its part fits V1 → V3, V1 → V4 and V2 → V3, V2 → V4.
    let part = try compiled("/Cat.cdm", ["Cat"], from: 1, to: 2)
    #expect(
      MappingCatalog(files: [part]).hops(among: versions).pairs == [pair(0, 2), pair(0, 3), pair(1, 2), pair(1, 3)])
    let both = MappingCatalog(files: [part, try source("/Dog.xcmappingmodel", ["Dog"], from: "V2", to: "V3")])
    #expect(both.hops(among: versions).pairs == [pair(1, 2)])
  }

  @Test func twoThatMapTheSameAreAmbiguous() throws {
    let hops = MappingCatalog(files: [
      try source("/a.xcmappingmodel", ["Dog", "Cat"]), try source("/b.xcmappingmodel", ["Dog"]),
    ]).hops(among: versions)
    let error = #expect(throws: HopdError.self) { try hops.hop(pair(0, 1)) }
    #expect(error?.code == .ambiguousMapping)
    #expect(error?.message.contains("/a.xcmappingmodel, /b.xcmappingmodel") == true)
    #expect(error?.reasons.first?.message.contains("source Dog") == true)
    #expect(error?.place.hop == "V1 → V2")
  }

  /// V3 and V3b differ in a default, which is not in the hash: mapping models for either fit both.
  @Test func ofVersionsWithEqualHashesTheOneThatIsNamedCounts() throws {
    let twin = MappableVersion(modelName: "Zoo", model: zoo("V3b", .integer32, .double))
    let all = versions + [twin]
    let first = try source("/a.xcmappingmodel", ["Dog", "Cat"], from: "V2", to: "V3")
    let second = try source("/b.xcmappingmodel", ["Dog"], from: "V2", to: "V3b", policy: "P")
    for files in [[first, second], [second, first]] {
      let hops = MappingCatalog(files: files).hops(among: all)
      for (destination, wanted, other) in [(2, "/a.xcmappingmodel", "/b"), (4, "/b.xcmappingmodel", "/a")] {
        let served = try #require(try hops.hop(pair(1, destination)))
        #expect(served.hop.mappings.map(\.path.string) == [wanted])
        #expect(served.warnings.count == 1 && served.warnings.first?.place.file?.string.hasPrefix(other) == true)
      }
    }
    // Two for exactly the same versions stay ambiguous.
    let third = try source("/c.xcmappingmodel", ["Cat"], from: "V2", to: "V3")
    #expect(throws: HopdError.self) {
      try MappingCatalog(files: [first, second, third]).hops(among: all).hop(pair(1, 2))
    }
  }

  @Test func aSourceAndItsCompiledFormAreOne() throws {
    let files: [any MappingFile] = [
      try source("/a.xcmappingmodel", ["Dog", "Cat"]), try compiled("/a.cdm", ["Dog", "Cat"], from: 0, to: 1),
    ]
    for order in [files, files.reversed()] {
      let served = try #require(try MappingCatalog(files: order).hops(among: versions).hop(pair(0, 1)))
      #expect(served.hop.mappings.map(\.path) == ["/a.cdm"])
    }
    // A file that was compiled from another state of the source is not the same.
    let other = try compiledFile(
      [
        .mapping(
          "DogToDog", from: ("Dog", versions[0].model), to: ("Dog", versions[1].model),
          attributes: [.property("legs")]),
        .mapping("CatToCat", from: ("Cat", versions[0].model), to: ("Cat", versions[1].model)),
      ], path: "/a.cdm")
    let hops = MappingCatalog(files: [files[0], other]).hops(among: versions)
    let error = #expect(throws: HopdError.self) { try hops.hop(pair(0, 1)) }
    #expect(error?.reasons.first?.message.contains("not in the same way") == true)
  }

  private func text(_ path: FilePath, _ entities: String) throws -> TextMapping {
    try TextMapping(text: "[mapping]\nsource = \"V1\"\ndestination = \"V2\"\n" + entities, file: path)
  }

  @Test func textPartsLookForWhatTheOthersMake() throws {
    let before = [
      entity("Cat", [attribute("owner")], [toOne("friend", "Dog", inverse: "friends")]),
      entity("Dog", [attribute("owner")], [toMany("friends", "Cat", inverse: "friend")]),
    ]
    let after = [
      entity("Cat", [], [toOne("friend", "Dog", inverse: "friends"), toOne("owner", "Person", inverse: "cats")]),
      entity("Dog", [], [toMany("friends", "Cat", inverse: "friend")]),
      entity("Person", [attribute("name")], [toMany("cats", "Cat", inverse: "owner")]),
    ]
    let versions = [model("V1", before), model("V2", after)].map { MappableVersion(modelName: "Zoo", model: $0) }
    let cats = try text(
      "/Cats.hopmap.toml",
      """
      [[entity]]
      source = "Cat"
      destination = "Cat"
      relationships.friend = { mapping = "Hounds", objects = "$source.friend" }
      relationships.owner = { mapping = "Owners", key = "$source.owner" }
      """)
    let dogs = try text(
      "/Dogs.hopmap.toml",
      """
      [[entity]]
      name = "Hounds"
      source = "Dog"
      destination = "Dog"
      [[entity]]
      name = "Owners"
      source = "Dog"
      destination = "Person"
      distinct_by = "$source.owner"
      attributes.name = "$source.owner"
      """)
    for files: [any MappingFile] in [[cats, dogs], [dogs, cats]] {
      let served = try #require(try MappingCatalog(files: files).hops(among: versions).hop(pair(0, 1)))
      #expect(served.hop.mappings.map(\.path) == files.map(\.path))
      let cat = try #require(served.hop.mappings.first { $0.path == cats.path })
      #expect(shown(cat, "CatToCat", "friend") == made("Hounds", "$source.friend"))
      #expect(shown(cat, "CatToCat", "owner") == "Owners[$source.owner]")
      // Properties that the file leaves out use them too.
      let dog = try #require(served.hop.mappings.first { $0.path == dogs.path })
      #expect(shown(dog, "Hounds", "friends") == made("CatToCat", "$source.friends"))
    }
    // Together with an Xcode mapping model as well.
    let xcode = try source("/Dogs.xcmappingmodel", ["Dog"])
    let mixed = try text(
      "/Cats.hopmap.toml",
      "[[entity]]\nsource = \"Cat\"\ndestination = \"Cat\"\nskip = [\"owner\"]\n"
        + "relationships.friend = \"$source.friend\""
    )
    let served = try #require(try MappingCatalog(files: [mixed, xcode]).hops(among: versions).hop(pair(0, 1)))
    #expect(shown(served.hop.mappings[0], "CatToCat", "friend") == made("DogToDog", "$source.friend"))
    // Alone, it reports what is missing.
    let error = #expect(throws: HopdError.self) {
      try MappingCatalog(files: [cats]).hops(among: versions).hop(pair(0, 1))
    }
    #expect(error?.reasons.contains { $0.message.contains("no entity mapping Hounds") } == true)
    // A copy of a part makes the hop ambiguous.
    let copy = try text("/Dogs copy.hopmap.toml", "[[entity]]\nsource = \"Dog\"\ndestination = \"Dog\"")
    let again = #expect(throws: HopdError.self) {
      try MappingCatalog(files: [cats, dogs, copy]).hops(among: versions).hop(pair(0, 1))
    }
    #expect(again?.code == .ambiguousMapping)
  }

  @Test func partsRunTogetherInTheOrderGiven() throws {
    let hops = MappingCatalog(files: [
      try source("/b.xcmappingmodel", ["Dog"]), try source("/a.xcmappingmodel", ["Cat"]),
    ])
    .hops(among: versions)
    let served = try #require(try hops.hop(pair(0, 1)))
    #expect(served.hop.entityMappings.map(\.name) == ["DogToDog", "CatToCat"])
  }

  @Test func partsOfAFolderRunPoliciesLastThenByName() throws {
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-mappings-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    func write(_ name: String, _ entity: String, _ policy: String = "") throws {
      let path = folder.appending(name)
      try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
      let bytes = xml(
        entityMapping("e", 1, entity, entity, [("migrationpolicyclassname", policy)]), list: "e")
      try Data(bytes).write(to: URL(filePath: path.appending("xcmapping.xml").string))
    }
    let three = ["Ant", "Bee", "Cow"]
    let models = [AttributeType.integer16, .integer32].enumerated().map { index, type in
      MappableVersion(
        modelName: "Zoo", model: model("V\(index + 1)", three.map { entity($0, [attribute("n", type)]) }))
    }
    try write("deep/Part 10.xcmappingmodel", "Ant")
    try write("deep/Part 9.xcmappingmodel", "Bee")
    try write("A.xcmappingmodel", "Cow", "CowPolicy")
    try write("Zoo.xcdatamodeld/Not.xcmappingmodel", "Cow")
    try write(".git/Not.xcmappingmodel", "Cow")
    let all = try MappingCatalog.load([folder])
    #expect(all.files.map(\.name).sorted() == ["A", "Part 10", "Part 9"])
    let hop = try #require(try all.hops(among: models).hop(pair(0, 1))).hop
    #expect(hop.mappings.map(\.name) == ["Part 9", "Part 10", "A"])
    // Named one by one, they keep the user's order, and a file that was already named is not taken again.
    let named = try MappingCatalog.load([folder.appending("A.xcmappingmodel"), folder.appending("deep"), folder])
    #expect(try named.hops(among: models).hop(pair(0, 1))?.hop.mappings.map(\.name) == ["A", "Part 9", "Part 10"])
    // An unreadable one is an error if named, and a report if it is in a folder.
    try write("Broken.xcmappingmodel", "Ant")
    try Data("<x/>".utf8).write(to: URL(filePath: folder.appending("Broken.xcmappingmodel/xcmapping.xml").string))
    #expect(try MappingCatalog.load([folder]).unreadable.count == 1)
    #expect(throws: HopdError.self) { try MappingCatalog.load([folder.appending("Broken.xcmappingmodel")]) }
    #expect(throws: HopdError.self) { try MappingCatalog.load([folder.appending("nowhere")]) }
  }

  @Test func oneOfAnotherStateIsStaleWithBothHashes() throws {
    let shipped = zoo("V2", .integer32, .decimal)
    let file = try compiledFile(
      [
        .mapping("DogToDog", from: ("Dog", shipped), to: ("Dog", shipped)),
        .mapping("CatToCat", from: ("Cat", versions[0].model), to: ("Cat", shipped)),
      ], path: "/a.cdm")
    let hops = MappingCatalog(files: [file]).hops(among: versions)
    #expect(hops.pairs.isEmpty)
    #expect(hops.misfits.map(\.pair) == [pair(1, 2)])
    let error = try #require(hops.stale.first)
    #expect(error.code == .staleMapping && error.place.file == "/a.cdm")
    #expect(error.reasons.map(\.place.entity) == ["Cat"])
    #expect(error.reasons[0].message.contains("\(try #require(shipped.versionHashes["Cat"]))"))
    #expect(error.reasons[0].message.contains("\(try #require(versions[2].hashes["Cat"]))"))
    let source = try source("/b.xcmappingmodel", ["Dog"], from: "V1", to: "V9")
    let gone = MappingCatalog(files: [source]).hops(among: versions)
    #expect(gone.stale.first?.reasons.first?.message.contains("Zoo.xcdatamodeld/V9") == true)
  }

  @Test func aRenamedVersionIsFoundByElimination() throws {
    let before = model("Old", [entity("Dog", [attribute("legs")])])
    let after = model("Renamed", [entity("Dog", [attribute("legs"), attribute("tail")])])
    let versions = [before, after].map { MappableVersion(modelName: "Zoo", model: $0) }
    func file(_ attribute: String) throws -> XcodeMappingFile {
      try sourceFile(
        xml(
          entityMapping("e0", 1, "Dog", "Dog", [], attributes: "a0")
            + object("ATTRIBUTEMAPPING", "a0", [("name", attribute)]), list: "e0",
          from: "Old/Zoo.xcdatamodeld/Old.xcdatamodel", to: "Old/Zoo.xcdatamodeld/New.xcdatamodel"),
        path: "/a.xcmappingmodel")
    }
    let hops = MappingCatalog(files: [try file("tail")]).hops(among: versions)
    #expect(hops.pairs == [pair(0, 1)])
    #expect(hops.remarks(on: pair(0, 1)).map(\.code) == [.mappingGuess])
    // It lists a property that the version has not.
    #expect(MappingCatalog(files: [try file("wings")]).hops(among: versions).pairs.isEmpty)
    // Two versions have everything.
    let third = MappableVersion(
      modelName: "Zoo",
      model: model("Third", [entity("Dog", [attribute("legs"), attribute("tail"), attribute("fur")])]))
    #expect(MappingCatalog(files: [try file("tail")]).hops(among: versions + [third]).pairs.isEmpty)
  }

  @Test func theCopiesOfBothModelsDecideBeforeThePaths() throws {
    func file(_ copies: (Int, Int), from: String, to: String) throws -> XcodeMappingFile {
      try sourceFile(
        xml(
          entityMapping("e0", 1, "Dog", "Dog") + entityMapping("e1", 2, "Cat", "Cat"), list: "e0 e1",
          from: "Zoo.xcdatamodeld/\(from).xcdatamodel", to: "Zoo.xcdatamodeld/\(to).xcdatamodel",
          copies: (copy(of: versions[copies.0].model), copy(of: versions[copies.1].model))), path: "/a.xcmappingmodel")
    }
    let renamed = MappingCatalog(files: [try file((1, 2), from: "Old", to: "New")]).hops(among: versions)
    #expect(renamed.pairs == [pair(1, 2)])
    #expect(renamed.remarks(on: pair(1, 2)).map(\.code) == [.mappingRemark, .mappingRemark])
    let named = MappingCatalog(files: [try file((0, 1), from: "V1", to: "V2")]).hops(among: versions)
    #expect(named.pairs == [pair(0, 1)] && named.remarks(on: pair(0, 1)).isEmpty)
    // Only a constraint distinguishes the version that it was made for.
    let unique = Entity(name: "Dog", attributes: [attribute("legs", .integer16)], uniquenessConstraints: [["legs"]])
    let constrained = [
      model("V1", [entity("Dog", [attribute("legs", .integer32)])]),
      model("V2", [entity("Dog", [attribute("legs", .integer16)])]), model("V2 b", [unique]),
    ]
    let chosen = try sourceFile(
      xml(
        entityMapping("e0", 1, "Dog", "Dog"), list: "e0",
        copies: (copy(of: constrained[0]), copy(of: constrained[2]))), path: "/b.xcmappingmodel")
    let line = constrained.map { MappableVersion(modelName: "Zoo", model: $0) }
    #expect(MappingCatalog(files: [chosen]).hops(among: line).pairs == [pair(0, 2)])
    // The copy was made before the new version was edited.
    let early = MappingCatalog(files: [try file((0, 0), from: "V1", to: "V3")]).hops(among: versions)
    #expect(early.pairs == [pair(0, 2)])
  }

  @Test func equalVersionsHaveNoHopButCanBeShown() throws {
    let twins = ["V1", "V2"].map { MappableVersion(modelName: "Zoo", model: zoo($0, .integer16, .float)) }
    let hops = MappingCatalog(files: [try source("/a.xcmappingmodel", ["Dog"])]).hops(among: twins)
    #expect(hops.pairs.isEmpty && hops.idle.map(\.pair) == [pair(0, 1)])
  }

  /// Core Data compares the hashes of an entity mapping's two entities, not those of the models.
  @Test func entityMappingsWhoseHashesFitAreFollowed() throws {
    let shipped = zoo("V2", .integer32, .decimal)
    let file = try compiledFile(
      [
        .mapping("DogToDog", from: ("Dog", versions[0].model), to: ("Dog", versions[1].model)),
        .mapping("CatToCat", from: ("Cat", versions[0].model), to: ("Cat", shipped), policy: "CatPolicy"),
      ], path: "/a.cdm")
    let hops = MappingCatalog(files: [file]).hops(among: versions)
    #expect(hops.pairs.first == pair(0, 1) && hops.stale.isEmpty)
    let served = try #require(try hops.hop(pair(0, 1)))
    #expect(served.hop.entityMappings.map(\.name) == ["DogToDog", "CatToCat"])
    #expect(served.hop.entityMappings.map { $0.deadness == nil } == [true, false])
    #expect(served.hop.policies.isEmpty)
    let reported = try #require(served.warnings.first { $0.code == .deadMapping })
    let hash = try #require(shipped.versionHashes["Cat"])
    #expect(reported.message.contains("“CatToCat”") && reported.message.contains("\(hash)"))
    // A file that fits as a whole takes precedence, and one without a change serves nothing.
    let whole = try compiled("/b.cdm", ["Dog", "Cat"], from: 0, to: 1)
    #expect(
      try MappingCatalog(files: [file, whole]).hops(among: versions).hop(pair(0, 1))?.hop.mappings.map(\.name) == ["b"])
    let idle = try compiledFile(
      [
        .mapping("DogToDog", from: ("Dog", versions[1].model), to: ("Dog", versions[1].model)),
        .mapping("CatToCat", from: ("Cat", versions[0].model), to: ("Cat", shipped)),
      ], path: "/c.cdm")
    #expect(MappingCatalog(files: [idle]).hops(among: versions).pairs.isEmpty)
  }

  @Test func entityMappingsOfEntitiesThatAreGoneAreDead() throws {
    let hops = MappingCatalog(files: [try source("/a.xcmappingmodel", ["Dog", "Cat", "Emu"])]).hops(among: versions)
    let served = try #require(try hops.hop(pair(0, 1)))
    #expect(served.hop.entityMappings.map(\.deadness?.reason) == [nil, nil, "the version “V1” has no entity “Emu”"])
    #expect(served.warnings.filter { $0.code == .deadMapping }.count == 1)
    // A file whose entity mappings are all dead is refused.
    let gone = MappingCatalog(files: [try source("/a.xcmappingmodel", ["Emu"])]).hops(among: versions)
    #expect(throws: HopdError.self) { try gone.hop(pair(0, 1)) }
  }

  @Test func partsByFiltersAreOneHop() throws {
    func part(_ path: FilePath, _ filter: String, _ more: String = "") throws -> TextMapping {
      try text(path, "[[entity]]\nsource = \"Dog\"\ndestination = \"Dog\"\n\(filter)\n\(more)")
    }
    let (low, high) = (
      try part("/a.hopmap.toml", "filter = \"legs < 4\""), try part("/b.hopmap.toml", "filter = \"legs >= 4\"")
    )
    let served = try #require(try MappingCatalog(files: [low, high]).hops(among: versions).hop(pair(0, 1)))
    #expect(served.hop.entityMappings.map(\.name) == ["DogToDog", "DogToDog (2)"])
    #expect(served.hop.partsToDistinguish.map { [$0.first, $0.second] } == [[0, 1]])
    #expect(served.hop.parts(beside: "DogToDog (2)").map(\.name) == ["DogToDog"])
    // A file without a filter takes all objects and leaves none for another.
    for whole in [[low, try part("/c.hopmap.toml", "")], [try part("/c.hopmap.toml", ""), low]] {
      let error = #expect(throws: HopdError.self) {
        try MappingCatalog(files: whole).hops(among: versions).hop(pair(0, 1))
      }
      #expect(error?.code == .ambiguousMapping)
      #expect(error?.hint?.contains("filter") == true)
    }
  }

  @Test func versionsOfEqualHashesAreOne() throws {
    let twin = MappableVersion(modelName: "Zoo", model: zoo("V2 again", .integer32, .float))
    let hops = MappingCatalog(files: [try source("/a.xcmappingmodel", ["Dog", "Cat"], from: "V2", to: "V3")])
      .hops(among: versions + [twin])
    #expect(hops.pairs == [pair(1, 2), pair(4, 2)])
  }
}
