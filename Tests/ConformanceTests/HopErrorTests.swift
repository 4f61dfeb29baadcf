// An error in a hop of a chain stops the migration with the same error for the same hop, entity and property, whether
// hops alter files or write all rows. A stopped run that continues under the other rule starts over.

import Diagnostics
import Expressions
import FoundationEssentials
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import OtherPrograms
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

/// A chain of four versions of books, whose middle hop has a mapping model.
private struct BookChain {
  /// Expressions for `title` and `pages` of the middle hop.
  var title = "$source.title"
  var pages = "$source.pages"
  /// The version from which on the title is required, the third or the last.
  var requiresTitle: Int?
  /// The version from which on codes are unique, the third or the last.
  var uniqueCode: Int?
  /// The maximum of pages in the third version.
  var mostPages: Int64?
  var mapped = true
  /// The last version of the chain.
  var last = 4

  func model(_ number: Int) -> ManagedObjectModel {
    var book = Entity(
      name: "Book",
      attributes: [
        Attribute(name: "title", type: .string, isOptional: requiresTitle.map { number < $0 } ?? true),
        Attribute(name: "pages", type: .integer16, isOptional: true),
        Attribute(name: "code", type: .integer32, isOptional: true),
      ])
    if let mostPages, number >= 3 { book.attributes[1].maximum = "\(mostPages)" }
    if let uniqueCode, number >= uniqueCode { book.uniquenessConstraints = [["code"]] }
    for added in 2..<(number + 1) where number > 1 {
      book.attributes.append(Attribute(name: "added\(added)", type: .integer32, isOptional: true))
    }
    book.relationships = [
      Relationship(name: "sequel", destinationEntityName: "Book", inverseName: "prequel"),
      Relationship(name: "prequel", destinationEntityName: "Book", inverseName: "sequel"),
    ]
    return ManagedObjectModel(name: "V\(number)", entities: [book])
  }

  var mapping: String {
    """
    [mapping]
    source = "V2"
    destination = "V3"

    [[entity]]
    source = "Book"
    destination = "Book"
    attributes.title = "\(title)"
    attributes.pages = "\(pages)"
    """
  }

  /// Returns the request for a store in its own folder.
  func request(_ environment: Workshop, _ name: String, rows: String, alters: Bool) throws -> MigrationRequest {
    let folder = environment.folder.appending(name)
    try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    let location = StoreLocation(database: folder.appending("books.sqlite"))
    let schema = StoreSchema(model: model(1), frameworkVersion: 1344)
    try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 3)).make(at: location.database, rows: 60, seed: 3)
    try Connection.ofApp(location.database).execute(
      "UPDATE ZBOOK SET ZTITLE = 't' || Z_PK, ZPAGES = Z_PK, ZCODE = Z_PK; " + rows)
    var catalog = ModelCatalog(bundles: [
      ModelBundle(
        name: "Books", path: "/Books.xcdatamodeld", versions: (1...last).map(model), currentVersionName: "V\(last)")
    ])
    if mapped {
      let file = folder.appending("V2 to V3.hopmap.toml")
      try Data(mapping.utf8).write(to: URL(filePath: file.string))
      try catalog.loadMappings([file], beside: [])
    }
    var request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
      settings: MigrationSettings(verification: .full),
      stateDirectory: environment.folder.appending("state"),
      job: "01")
    request.engine.chunkRowsMax = 7
    request.engine.altering = alters ? .wherePossible : .never
    return request
  }
}

@Suite struct HopErrorTests {
  /// A service limits values by its memory: one store must not end the service. A hop that alters reads no such value.
  @Test(arguments: [true, false], ["ZTITLE = hex(zeroblob(1000000))", "ZTITLE = CAST(zeroblob(2000000) AS TEXT)"])
  func aValueBeyondTheMemoryIsRefusedBeforeItIsRead(_ mapped: Bool, _ value: String) throws {
    let environment = try Workshop()
    var request = try BookChain(mapped: mapped).request(
      environment, "large", rows: "UPDATE ZBOOK SET \(value) WHERE Z_PK = 5", alters: false)
    request.engine.valueMax = 1 << 20
    let before = try Data(contentsOf: URL(filePath: request.location.database.string))
    let failure = #expect(throws: MigrationFailure.self) {
      try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
    }
    #expect(failure?.error.code == .valueTooLarge, "\(failure as Any)")
    #expect(try Data(contentsOf: URL(filePath: request.location.database.string)) == before)
    let names = try FileManager.default.contentsOfDirectory(atPath: request.location.directory.string)
    #expect(!names.contains { $0.hasPrefix(".") }, "nothing is left: \(names)")
    // With enough memory the same store is migrated.
    request.engine.valueMax = 64 << 20
    #expect(try MigrationPipeline().run(request, stop: StopSignal()) { _ in }.result == .migrated)
  }

  private static let broken: [(BookChain, String, hop: String)] = [
    (BookChain(requiresTitle: 3), "UPDATE ZBOOK SET ZTITLE = NULL WHERE Z_PK = 5", "V2 → V3"),
    (BookChain(title: "TERNARY($source.pages == 9, nil, $source.title)", requiresTitle: 3), "", "V2 → V3"),
    (BookChain(title: "TERNARY($source.pages == 9, nil, $source.title)", requiresTitle: 4), "", "V3 → V4"),
    (BookChain(mostPages: 50), "", "V2 → V3"),
    (BookChain(pages: "$source.pages * 1000"), "", "V2 → V3"),
    (BookChain(pages: "CAST($source.title, 'Integer 16')"), "", "V2 → V3"),
    (BookChain(uniqueCode: 3), "UPDATE ZBOOK SET ZCODE = 4 WHERE Z_PK IN (6, 8)", "V2 → V3"),
    (BookChain(uniqueCode: 4), "UPDATE ZBOOK SET ZCODE = 4 WHERE Z_PK IN (6, 8)", "V3 → V4"),
    (BookChain(requiresTitle: 3, mapped: false), "UPDATE ZBOOK SET ZTITLE = NULL WHERE Z_PK = 5", "V2 → V3"),
    (BookChain(uniqueCode: 3, mapped: false), "UPDATE ZBOOK SET ZCODE = 4 WHERE Z_PK IN (6, 8)", "V2 → V3"),
  ]

  @Test(arguments: broken.indices) func anErrorNamesTheHopThatItIsOf(_ index: Int) throws {
    let (chain, rows, hop) = Self.broken[index]
    let environment = try Workshop()
    var reported: [HopdError] = []
    for alters in [false, true] {
      let request = try chain.request(environment, "alters \(alters)", rows: rows, alters: alters)
      let before = try StoreContent.lines(request.location.store)
      let failure = #expect(throws: MigrationFailure.self) {
        try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
      }
      reported.append(try #require(failure).error)
      #expect(try StoreContent.lines(request.location.store) == before)
      #expect(try names(request).allSatisfy { !$0.contains(".hop-") })
    }
    let error = reported[0].reasons.first ?? reported[0]
    #expect(error.code != .internalError, "\(error)")
    if let place = error.place.hop { #expect(place == hop, "\(error)") }
    for (left, right) in zip([reported[0]] + reported[0].reasons, [reported[1]] + reported[1].reasons) {
      #expect(left.code == right.code && left.message == right.message, "\(left)\n\(right)")
      #expect(left.place.hop == right.place.hop, "\(left)\n\(right)")
      #expect(left.place.entity == right.place.entity && left.place.property == right.place.property)
      #expect(left.place.row == right.place.row)
    }
    #expect(reported[0].reasons.count == reported[1].reasons.count)
  }

  /// The last hop leaves the check to the index, which does not name objects: the error names them as in other hops.
  @Test(arguments: [true, false]) func aConstraintThatTheIndexFindsBrokenIsToldOfItsObjects(_ alters: Bool) throws {
    let environment = try Workshop()
    let chain = BookChain(uniqueCode: 3, last: 3)
    let rows = "UPDATE ZBOOK SET ZCODE = 4 WHERE Z_PK IN (6, 8); UPDATE ZBOOK SET ZCODE = NULL WHERE Z_PK > 50"
    var request = try chain.request(environment, "broken", rows: rows, alters: alters)
    let before = try StoreContent.lines(request.location.store)
    let failure = #expect(throws: MigrationFailure.self) {
      try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
    }
    let error = try #require(failure).error
    #expect(error.code == .invalidRows && error.place.hop == "V2 → V3")
    #expect(error.reasons.map(\.place.property) == ["code"])
    #expect(error.reasons.first?.message.contains("2 objects repeat a value") == true, "\(error.reasons)")
    #expect(error.reasons.first?.message.contains("Z_PK 6, 8") == true, "\(error.reasons)")
    #expect(try StoreContent.lines(request.location.store) == before)
    // Rows that a rule leaves out are gone before the index is made.
    request.engine.invalidRows = InvalidRowsRules(standard: .skip)
    _ = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
    let reader = try Connection.ofApp(request.location.database, .readOnly)
    #expect(try reader.integer("SELECT count(*) FROM ZBOOK WHERE ZCODE = 4") == 1)
    #expect(try reader.integer("SELECT count(*) FROM ZBOOK") == 58)
  }

  /// A caller's claim that the store is behind may be outdated: under the lock this is noticed.
  @Test func aStoreThatIsNoLongerBehindIsLeftAlone() throws {
    let environment = try Workshop()
    var request = try BookChain().request(environment, "current", rows: "", alters: true)
    let first = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
    #expect(first.result == .migrated)
    let before = try Data(contentsOf: URL(filePath: request.location.database.string))
    request.isKnownBehind = true
    let second = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
    #expect(second.result == .current)
    #expect(try Data(contentsOf: URL(filePath: request.location.database.string)) == before)
    #expect(try names(request).allSatisfy { !$0.contains(".hop-") })
  }

  /// Stopped while hops write and continued while they alter, and the reverse: only the store remains.
  @Test(arguments: [true, false]) func anotherSettingStartsOver(_ mapped: Bool) throws {
    var chain = BookChain(title: "uppercase:($source.title)")
    chain.mapped = mapped
    let environment = try Workshop()
    let whole = try chain.request(environment, "whole", rows: "", alters: false)
    var events = 0
    _ = try MigrationPipeline().run(whole, stop: StopSignal()) { event in
      if case .progress = event { events += 1 }
    }
    let wanted = try whole.location.store.content()
    #expect(events > 10)
    for place in stride(from: 1, to: events, by: max(1, events / 3)) {
      for altersFirst in [false, true] {
        var request = try chain.request(environment, "\(place) \(altersFirst)", rows: "", alters: altersFirst)
        let stop = StopSignal()
        var seen = 0
        do {
          _ = try MigrationPipeline().run(request, stop: stop) { event in
            guard case .progress = event else { return }
            seen += 1
            if seen == place { stop.stop() }
          }
          // Altering has fewer chunks.
          guard altersFirst else {
            Issue.record("not stopped at \(place)")
            continue
          }
        } catch {
          #expect(error.error.code == .interrupted, "\(error.error)")
          #expect(try names(request).contains { $0.contains(".hop-") })
        }
        request.engine.altering = altersFirst ? .never : .wherePossible
        _ = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
        let found = try request.location.store.content()
        #expect(found == wanted, "stopped at \(place): \(StoreContent.difference(found, wanted))")
        #expect(try names(request).allSatisfy { !$0.contains(".hop-") }, "stopped at \(place)")
      }
    }
  }

  private func names(_ request: MigrationRequest) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: request.location.directory.string)
  }
}
