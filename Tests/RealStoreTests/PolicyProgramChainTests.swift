// Real chains with their policies in separate programs, as an operator runs them: the examples of Examples/Policies
// and, for one chain, text mappings without any program. The expected result is in each chain's fixture, or is the one
// that Apple's migration manager made.

import Diagnostics
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import SystemPackage
import Testing

@Suite(
  .enabled(if: Fixtures.isAvailable, Fixtures.absence),
  .enabled(if: ChainPrograms.interpreter != nil, "no python3 below /usr"))
struct PolicyProgramChainTests {
  // MARK: Books, authors, files

  private static let books = "MHWBookToBookPolicy"

  /// Returns the chain with the policy in Python, in Swift (except in a sanitizer's build), and without one.
  private func bookChains() throws -> [(name: String, chain: ProgramChain)] {
    var chains = [
      (
        "Python",
        try ProgramChain(
          "bookmigration", policies: [Self.books: try ChainPrograms.python("book_to_book_policy.py")])
      ),
      ("text", try ProgramChain("bookmigration", mappings: [ChainPrograms.textMappings("bookmigration")])),
    ]
    if ChainPrograms.runsSwift {
      chains.append(
        ("Swift", try ProgramChain("bookmigration", policies: [Self.books: try ChainPrograms.swift()])))
    } else {
      print("➜ the policy in Swift is skipped: a sanitizer's memory does not fit into a policy's")
    }
    return chains
  }

  @Test func threeWaysToOneDumpOfBooks() throws {
    for version in ["Model2", "Model3"] {
      let dumps = try bookChains().map { (name: $0.name, dump: try $0.chain.migrated(to: version)) }
      for (name, dump) in dumps {
        #expect(dump.text == dumps.first?.dump.text, "\(version) by \(name)")
        #expect(
          dump["Book"].count == 4 && dump["User"].count == 3 && dump["Author"].count == 3, "\(version) by \(name)")
        // Every store begins with the keys of the old one: an app's stored reference to a book still means that book.
        #expect(dump["Book"].map(\.id) == ["Book/p9", "Book/p10", "Book/p11", "Book/p12"], "\(version) by \(name)")
        let kafka = dump["Author"].filter { $0.text("name") == "Franz Kafka" }
        #expect(kafka.count == 1)
        let titles = dump["Book"].filter { kafka.first?.ids("books").contains($0.id) == true }.map { $0.text("title") }
        #expect(Set(titles) == ["The Trial", "Metamorphosis"])
        for book in dump["Book"] { #expect(book.ids("authors").count == 1, "\(book.id) in \(version) by \(name)") }
        #expect(dump["User"].allSatisfy { $0.text("userId") == "1" })
      }
      if version == "Model2" {
        for (_, dump) in dumps {
          #expect(Set(dump["Book"].map { $0.ids("users") }) == [["User/p3"]])
          #expect(dump["Book"].allSatisfy { $0.attributes["fileURL"] != .null })
        }
      }
    }
  }

  /// The assertions of the project's own tests.
  @Test func whatTheBooksProjectAsserts() throws {
    for (name, chain) in try bookChains() {
      let before = try chain.migrated(to: "Model2")
      let dump = try chain.migrated()
      #expect(!dump["User"].isEmpty && !dump["Book"].isEmpty)
      #expect(!dump["Book"].contains { $0.ids("authors").isEmpty }, "no book is without authors")
      #expect(dump["Author"].filter { $0.text("name") == "Franz Kafka" }.count == 1)
      let users = dump["User"].filter { $0.text("userId") == "1" }
      #expect(users.map { $0.ids("files").count }.sorted() == [0, 0, 4], "\(name): one user has all files")
      #expect(users.last?.ids("files").count == 4, "\(name): it is the last one that is found")
      #expect(dump["File"].count == 4)
      for file in dump["File"] {
        let book = try #require(dump["Book"].first { [$0.id] == file.ids("book") }, "\(name): every file has a book")
        let old = try #require(before["Book"].first { $0.text("title") == book.text("title") })
        #expect(file.attributes["fileURL"] == old.attributes["fileURL"], "\(name): the file of the book")
      }
    }
  }

  // MARK: Moods, cars, carbohydrates, posts

  /// Every golden store of the chain: equal objects, whatever their keys.
  @Test(arguments: ["Moody 2", "Moody 3", "Moody 4", "Moody 5"])
  func moodsAreApplesAtEveryHop(_ version: String) throws {
    let chain = try ProgramChain("moody")
    let golden = try #require(Fixtures.root).appending("chains/moody/golden").appending("\(version).moody")
    let names = ["remoteID", "remoteIdentifier", "numericISO3166Code"]
    let ours = try chain.migrated(to: version)
    let apples = try Dump(StoreLocation(database: golden), catalog: chain.catalog)
    #expect(ours.counts == apples.counts)
    #expect(ours.things.count >= 7)
    let (left, right) = (try ours.content(namedBy: names), try apples.content(namedBy: names))
    for line in left.symmetricDifference(right).sorted() {
      Issue.record("only in \(left.contains(line) ? "ours" : "Apple's"): \(line)")
    }
  }

  @Test func continentsComeBackByThePolicy() throws {
    let chain = try ProgramChain(
      "moody", policies: ["Country5ToCountry6Policy": try ChainPrograms.python("country5_to_country6_policy.py")])
    let dump = try chain.migrated(to: "Moody 6")
    #expect(dump.counts == ["Continent": 2, "Country": 3, "Mood": 4])
    var countries: [String: Set<String>] = [:]
    for country in dump["Country"] {
      let continent = try #require(dump["Continent"].first { country.ids("continent") == [$0.id] })
      countries[continent.text("numericISO3166Code") ?? "", default: []].insert(
        country.text("numericISO3166Code") ?? "")
    }
    #expect(countries == ["10005": ["704"], "10004": ["710", "231"]])
  }

  /// The mapping model as source and as compiled by Apple gives the same dump.
  @Test func carsByBothFormsOfTheirMappingModel() throws {
    let folder = try #require(Fixtures.root).appending("chains/coredataplus-samplemodel/mappings")
    let policies = ["V2to3MakerPolicy": try ChainPrograms.python("v2_to_3_maker_policy.py")]
    let dumps = try ["V2toV3.xcmappingmodel", "V2toV3.cdm"].map {
      try ProgramChain("coredataplus-samplemodel", mappings: [folder.appending($0)], policies: policies).migrated()
    }
    #expect(dumps.first?.text == dumps.last?.text)
    let dump = try #require(dumps.first)
    #expect(dump.counts == ["Car": 115, "SportCar": 5, "LuxuryCar": 5, "Person": 20, "Maker": 10])
    let cars = ["Car", "SportCar", "LuxuryCar"].flatMap { dump[$0] }
    let makers = Dictionary(uniqueKeysWithValues: dump["Maker"].map { ($0.text("name") ?? "", $0.ids("cars").count) })
    #expect(
      makers == [
        "FIAT": 103, "Kia": 4, "Renault": 3, "Alfa Romeo": 3, "Volkswagen": 2, "Mercedes-Benz": 2, "McLaren": 2,
        "Maserati": 2, "Lamborghini": 2, "BMW": 2,
      ])
    #expect(cars.allSatisfy { $0.ids("createdBy").count == 1 && $0.ids("previousOwners") == $0.ids("owner") })
    #expect(cars.filter { !$0.ids("owner").isEmpty }.count == 118)
  }

  @Test func carbohydratesGetTheIdentifierOfTheApp() throws {
    let command = try ChainPrograms.python("loopkit_policies.py", "--provenance", "com.example.Loop")
    let chain = try ProgramChain(
      "loopkit",
      policies: [
        "CachedCarbObjectv3EntityMigrationPolicy": command, "DeletedCarbObjectv3EntityMigrationPolicy": command,
      ])
    let dump = try chain.migrated()
    #expect(
      dump.counts == ["CachedCarbObject": 1, "CachedInsulinDeliveryObject": 1, "PumpEvent": 4, "Reservoir": 1])
    let carbs = try #require(dump["CachedCarbObject"].first)
    #expect(carbs.attributes["createdByCurrentApp"] == .boolean(true))
    #expect(carbs.text("operation") == "0")
    #expect(carbs.text("provenanceIdentifier") == "com.example.Loop")
    #expect(dump["PumpEvent"].allSatisfy { $0.attributes["raw"] != .null })
  }

  @Test(arguments: [
    ("wibosco-example", "post2_to_post3_colors_policy.py", "Color", "color"),
    ("wibosco-revised", "post2_to_post3_sections_policy.py", "Section", "sections"),
  ])
  func postsGetAnObjectOfTheirOwn(_ name: String, _ program: String, _ entity: String, _ relationship: String) throws {
    let chain = try ProgramChain(
      name, policies: ["Post2ToPost3MigrationPolicy": try ChainPrograms.python(program)])
    let dump = try chain.migrated()
    #expect(dump["Post"].count >= 10)
    #expect(dump["Post"].count == dump[entity].count)
    #expect(Set(dump["Post"].flatMap { $0.ids(relationship) }) == Set(dump[entity].map(\.id)))
    #expect(dump[entity].allSatisfy { $0.ids("post").count == 1 })
  }
}
