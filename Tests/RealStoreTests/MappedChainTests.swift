// Real chains with mapping models through the whole pipeline: which model serves which hop; stopped anywhere and
// continued; scanned and rehearsed without a trace.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

/// The content of a chain's `case.json`.
private struct ChainCase: Decodable {
  struct Hop: Decodable {
    let from: String
    let to: String
    let kind: String
    let mappings: [String]?
  }

  let store: String
  let models: String
  let to: String
  let needsPolicy: [String]
  let hops: [Hop]
}

/// A chain in its own folder.
private final class MappedChain {
  let facts: ChainCase
  let folder: FilePath
  let location: StoreLocation
  let catalog: ModelCatalog

  init(_ fixture: FilePath) throws {
    facts = try Fixtures.json(ChainCase.self, at: fixture.appending("case.json"))
    folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-mapped-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
    try FileManager.default.createDirectory(
      atPath: folder.appending("scratch").string, withIntermediateDirectories: true)
    let source = fixture.appending(facts.store)
    for name in Fixtures.names(in: source.removingLastComponent()) where name != "ORIGIN" {
      try FileManager.default.copyItem(
        atPath: source.removingLastComponent().appending(name).string, toPath: folder.appending(name).string)
    }
    location = StoreLocation(database: folder.appending(try #require(source.lastComponent)))
    var catalog = try ModelCatalog.load([fixture.appending(facts.models)])
    try catalog.loadMappings([fixture.appending("mappings")], beside: [])
    self.catalog = catalog
  }

  deinit { try? FileManager.default.removeItem(atPath: folder.string) }

  /// When hops alter a file.
  var altering = AlterRule.whereFaster

  func request() -> MigrationRequest {
    var request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog, target: .named(facts.to),
      settings: MigrationSettings(verification: .full),
      stateDirectory: folder.appending("state"), job: "ab12")
    request.engine.chunkRowsMax = 3
    request.engine.altering = altering
    return request
  }

  /// Runs until the event of that number, or to the end; returns the number of events.
  @discardableResult
  func migrate(stopAt last: Int? = nil, where isWanted: (MigrationEvent) -> Bool = { _ in true }) throws -> Int {
    let stop = StopSignal()
    var events = 0
    do {
      _ = try withoutActuallyEscaping(isWanted) { isWanted in
        try MigrationPipeline().run(request(), stop: stop) { event in
          guard isWanted(event) else { return }
          if events == last { stop.stop() }
          events += 1
        }
      }
    } catch let failure as MigrationFailure {
      guard failure.error.code == .interrupted, last != nil else { throw failure }
    }
    return events
  }

  /// Returns every row of every table of entities and pairs, as text.
  func rows() throws -> [String] {
    try StoreReader.withUnchangedStore(at: location) { reader in
      let tables = try reader.schemaObjects().filter { $0.type == "table" && $0.name.hasPrefix("Z") }.map(\.name)
      return try tables.filter { !["Z_METADATA", "Z_MODELCACHE"].contains($0) }.sorted().flatMap { table in
        // Altered tables have their columns in another order.
        let columns = try reader.columns(of: table).map { SQLiteIdentifier.quoted($0.name) }.sorted()
        return try reader.connection.rows(
          "SELECT \(columns.joined(separator: ", ")) FROM \(reader.qualified(table))"
        ) { row in table + (0..<row.columnCount).map { " \(row.value(at: $0))" }.joined() }
        .sorted()
      }
    }
  }

  var leftovers: [String] { Fixtures.names(in: folder).filter { $0.contains(".hop-") } }
}

@Suite(.enabled(if: Fixtures.isAvailable, Fixtures.absence))
struct MappedChainTests {
  private static let mapped = Fixtures.cases(in: "chains").filter { Fixtures.exists($0.appending("mappings")) }
  private static let withoutPolicies = mapped.filter {
    (try? Fixtures.json(ChainCase.self, at: $0.appending("case.json")))?.needsPolicy.isEmpty == true
  }

  @Test(arguments: mapped) func everyHopHasItsMappingModels(_ fixture: FilePath) throws {
    let chain = try MappedChain(fixture)
    let plan = try StoreReader.withUnchangedStore(at: chain.location) { reader in
      let found = try StoreIdentifier.identify(
        reader: reader, location: chain.location, catalog: chain.catalog, target: .named(chain.facts.to))
      return try MigrationPlanner.plan(
        store: try #require(found.identified), catalog: chain.catalog, target: .named(chain.facts.to), reader: reader)
    }
    let reached = chain.facts.hops.prefix { $0.from != chain.facts.to }
    #expect(plan.hops.map(\.source.name) == reached.map(\.from))
    #expect(plan.hops.map(\.isMapped) == reached.map { $0.kind == "mapping" })
    for (hop, fact) in zip(plan.hops, reached) {
      #expect(Set(hop.mapped?.mappings.map(\.name) ?? []) == Set(fact.mappings ?? []))
    }
    #expect(plan.isMixed)
  }

  @Test(arguments: mapped) func policiesWithoutProgramsAreAllNamed(_ fixture: FilePath) throws {
    let chain = try MappedChain(fixture)
    guard !chain.facts.needsPolicy.isEmpty else { return }
    let before = try chain.rows()
    let failure = #expect(throws: MigrationFailure.self) { try chain.migrate() }
    #expect(failure?.error.code == .policyNotBound)
    for policy in chain.facts.needsPolicy { #expect(failure?.error.description.contains(policy) == true) }
    #expect(try chain.rows() == before)
    #expect(chain.leftovers.isEmpty)
  }

  /// Hops that alter files and hops that write all rows give the same content.
  @Test(arguments: withoutPolicies) func everyPathGivesTheSameRows(_ fixture: FilePath) throws {
    let (altered, written) = (try MappedChain(fixture), try MappedChain(fixture))
    (altered.altering, written.altering) = (.wherePossible, .never)
    try altered.migrate()
    try written.migrate()
    #expect(try altered.rows() == written.rows())
    #expect(try altered.rows().count > 3)
  }

  /// Stopped at many places, at some of them twice, and continued: the same store as without a stop.
  @Test(arguments: withoutPolicies) func aStoppedChainGoesOn(_ fixture: FilePath) throws {
    let whole = try MappedChain(fixture)
    let events = try whole.migrate()
    let expected = try whole.rows()
    #expect(whole.leftovers.isEmpty)
    for place in stride(from: 1, to: events, by: max(1, events / 4)) {
      let chain = try MappedChain(fixture)
      try chain.migrate(stopAt: place)
      try chain.migrate(stopAt: place / 2)
      try chain.migrate()
      #expect(try chain.rows() == expected, "stopped at \(place) of \(events)")
      #expect(chain.leftovers.isEmpty, "stopped at \(place)")
    }
  }

  /// After the last hop, the verification counts in the store that the last hop read: with this store, and without it.
  @Test(arguments: withoutPolicies) func theLastStoreIsVerifiedAfterAStop(_ fixture: FilePath) throws {
    let whole = try MappedChain(fixture)
    try whole.migrate()
    let expected = try whole.rows()
    for losesInput in [false, true] {
      let chain = try MappedChain(fixture)
      try chain.migrate(stopAt: 0) { if case .verifying = $0 { true } else { false } }
      let hops = chain.facts.hops.prefix { $0.from != chain.facts.to }.count
      let input = ".\(chain.location.fileName).hop-ab12-\(hops - 2).tmp"
      // A single hop reads the original store.
      let hasInput = chain.leftovers.contains(input)
      #expect(hasInput || hops == 1)
      if losesInput, hasInput { try FileManager.default.removeItem(atPath: chain.folder.appending(input).string) }
      try chain.migrate()
      #expect(try chain.rows() == expected)
      #expect(chain.leftovers.isEmpty)
    }
  }

  @Test(arguments: mapped) func trialsAndRehearsalsLeaveNothing(_ fixture: FilePath) throws {
    let chain = try MappedChain(fixture)
    let before = try chain.rows()
    let names = Fixtures.names(in: chain.folder)
    let scratch = chain.folder.appending("scratch")
    var request = chain.request()
    request.stateDirectory = ""
    let found = try MigrationPipeline().scan(request, scratch: scratch, stop: StopSignal()) { _ in }
    let hops = chain.facts.hops.prefix { $0.from != chain.facts.to }
    if chain.facts.needsPolicy.isEmpty {
      #expect(found.hops.count == hops.count)
      let report = try MigrationPipeline().rehearse(request, scratch: scratch, stop: StopSignal()) { _ in }
      #expect(report.result == .migrated)
      #expect(report.store == chain.location.database)
      #expect(!report.checks.isEmpty && report.checks.allSatisfy(\.passed))
      #expect(report.hops.map(\.kind) == hops.map(\.kind))
      #expect(report.rows.values.reduce(0, +) > 0)
      // A rehearsal that is stopped leaves nothing either.
      let stop = StopSignal()
      stop.stop()
      #expect(throws: MigrationFailure.self) {
        try MigrationPipeline().rehearse(request, scratch: scratch, stop: stop) { _ in }
      }
    } else {
      #expect(found.hops.count < hops.count)
    }
    #expect(Fixtures.names(in: scratch).isEmpty)
    #expect(Fixtures.names(in: chain.folder) == names)
    #expect(try chain.rows() == before)
  }
}
