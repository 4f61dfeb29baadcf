// Migrates real stores along inferred chains with the whole pipeline, and compares the result with Apple's own if there
// is one, otherwise with the requirements of the models.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

/// A chain of the fixtures, copied into its own folder.
private final class Chain {
  let folder: FilePath
  let fixtures: FilePath
  let catalog: ModelCatalog
  private(set) var location: StoreLocation

  init(_ name: String, store: String? = nil) throws {
    fixtures = try #require(Fixtures.root).appending("chains/\(name)")
    let source = try store.map { try #require(Fixtures.root).appending("stores/\($0)") } ?? fixtures.appending("source")
    folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-chain-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
    catalog = try ModelCatalog.load([fixtures.appending("models")])
    var database: FilePath?
    for name in Fixtures.names(in: source) where !["model", "facts.json", "ORIGIN"].contains(name) {
      try FileManager.default.copyItem(atPath: source.appending(name).string, toPath: folder.appending(name).string)
      if !name.hasPrefix("."), !StoreLocation.isAuxiliaryFile(fileName: name) { database = folder.appending(name) }
    }
    location = StoreLocation(database: try #require(database))
  }

  deinit { try? FileManager.default.removeItem(atPath: folder.string) }

  func request(_ target: TargetVersion, naming: [String] = [], chunkRows: Int64 = 50_000) -> MigrationRequest {
    var request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog, target: target,
      naming: JoinTableNaming(Set(naming)),
      settings: MigrationSettings(verification: .full), stateDirectory: folder.appending("state"), job: "ab12")
    request.engine.chunkRowsMax = chunkRows
    return request
  }

  @discardableResult
  func migrate(_ target: TargetVersion, naming: [String] = [], chunkRows: Int64 = 50_000) throws -> MigrationReport {
    try MigrationPipeline().run(
      request(target, naming: naming, chunkRows: chunkRows), stop: StopSignal(), observer: { _ in })
  }

  func golden(_ name: String) -> StoreLocation {
    StoreLocation(database: fixtures.appending("golden").appending(name))
  }
}

/// Returns the rows of a query as text, one per line: a difference that a person can read.
private func lines(_ location: StoreLocation, _ sql: String) throws -> [String] {
  try StoreReader.withUnchangedStore(at: location) { reader in
    try reader.connection.rows(sql) { row in
      (0..<row.columnCount).map { column in
        switch row.value(at: column) {
        case .null: "·"
        case .integer(let value): String(value)
        case .real(let value): String(value)
        case .text(let value): value
        case .blob(let value): value.map { String($0, radix: 16) }.joined()
        }
      }.joined(separator: "|")
    }
  }
}

private func metadata(_ location: StoreLocation) throws -> StoreMetadata {
  try StoreReader.withUnchangedStore(at: location) { try $0.metadata() }
}

private func schemaTexts(_ location: StoreLocation) throws -> Set<String> {
  try StoreReader.withUnchangedStore(at: location) { Set(try $0.schemaObjects().compactMap(\.sql)) }
}

@Suite(.enabled(if: Fixtures.isAvailable, Fixtures.absence))
struct ChainTests {
  /// Returns every column of a table in name order, so that stores with another column order can be compared.
  private func content(_ location: StoreLocation, _ table: String) throws -> [String] {
    let columns = try StoreReader.withUnchangedStore(at: location) { try $0.columns(of: table).map(\.name).sorted() }
    return try lines(location, "SELECT \(columns.joined(separator: ", ")) FROM \(table) ORDER BY Z_PK")
  }

  /// A hop that Apple did in place: rows, values, numbers, metadata and schema texts are the same.
  @Test(arguments: [
    ("coredataplus-samplemodel", "SampleModel2", "SampleModel_V2.sqlite", ["ZCAR", "ZPERSON"]),
    ("wibosco-revised", "CoreDataMigration_Example 2", "CoreDataMigration_Example_2.sqlite", ["ZPOST"]),
  ])
  func equalsWhatApplesInPlaceMigrationLeft(
    _ name: String, _ version: String, _ golden: String, _ tables: [String]
  ) throws {
    let chain = try Chain(name)
    let report = try chain.migrate(.named(version))
    #expect(report.result == .migrated)
    let expected = chain.golden(golden)
    for table in tables {
      #expect(try content(chain.location, table) == content(expected, table))
    }
    #expect(try metadata(chain.location) == metadata(expected))
    #expect(try schemaTexts(chain.location) == schemaTexts(expected))
    let query = "SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM Z_PRIMARYKEY ORDER BY Z_ENT"
    // Apple left the old name of a renamed entity in Z_PRIMARYKEY although its hashes have the new one; hopd writes the
    // new one (docs/formats/store-layout.md, "Apple's migration in place"). Nothing else differs.
    let ours = try lines(chain.location, query)
    let theirs = try lines(expected, query).map {
      $0.split(separator: "ExpensiveSportCar").joined(separator: "LuxuryCar")
    }
    #expect(ours == theirs)
  }

  /// NSMigrationManager migrated Moody 1 → 2: it permuted the keys, which hopd keeps, so rows are matched by content.
  @Test func equalsWhatApplesMigrationManagerLeftForMoody() throws {
    let chain = try Chain("moody")
    try chain.migrate(.named("Moody 2"))
    let expected = chain.golden("Moody 2.moody")
    let moods = """
      SELECT m.ZREMOTEID, m.ZRATING, m.ZDATE, m.ZLATITUDE, m.ZLONGITUDE, m.ZCREATORID, m.ZMARKEDFORDELETIONDATE,
      m.ZMARKEDFORREMOTEDELETION, m.ZCOLORS, r.ZNUMERICISO3166CODE FROM ZMOOD m
      LEFT JOIN ZGEOGRAPHICREGION r ON r.Z_PK = m.ZCOUNTRY ORDER BY 1
      """
    #expect(try lines(chain.location, moods) == lines(expected, moods))
    let regions = """
      SELECT r.Z_ENT, r.ZNUMERICISO3166CODE, r.ZNUMBEROFMOODS, r.ZNUMBEROFCOUNTRIES, r.ZUPDATEDAT, r.ZUNIQUENESSDUMMY,
      c.ZNUMERICISO3166CODE FROM ZGEOGRAPHICREGION r LEFT JOIN ZGEOGRAPHICREGION c ON c.Z_PK = r.ZCONTINENT ORDER BY 2
      """
    #expect(try lines(chain.location, regions) == lines(expected, regions))
    #expect(try schemaTexts(chain.location) == schemaTexts(expected))
    let (ours, theirs) = (try metadata(chain.location), try metadata(expected))
    #expect(ours == theirs)
    // Here the mark never falls; Apple's heavy migration starts it over (docs/formats/store-layout.md, "Apple's
    // migration with a mapping model").
    #expect(
      try lines(chain.location, "SELECT Z_NAME, Z_MAX FROM Z_PRIMARYKEY WHERE Z_SUPER = 0") == [
        "GeographicRegion|36", "Mood|116",
      ])
  }

  @Test func testModelGetsItsPublisher() throws {
    let chain = try Chain("bnr")
    let before = try metadata(chain.location)
    try chain.migrate(.named("TestModel 2"))
    #expect(
      try lines(chain.location, "SELECT * FROM Z_PRIMARYKEY") == ["1|Author|0|0", "2|Book|0|0", "3|Publisher|0|0"])
    let texts = try schemaTexts(chain.location)
    #expect(
      texts.contains(
        "CREATE TABLE Z_1BOOKS ( Z_1AUTHORS INTEGER, Z_2BOOKS INTEGER, PRIMARY KEY (Z_1AUTHORS, Z_2BOOKS) )"))
    #expect(texts.contains("CREATE INDEX ZBOOK_ZPUBLISHER_INDEX ON ZBOOK (ZPUBLISHER)"))
    #expect(try metadata(chain.location).uuid == before.uuid)
  }

  @Test(arguments: [Int64(1), 3, 50_000])
  func bookmarksHopFiveTimes(_ chunkRows: Int64) throws {
    let chain = try Chain("bookmarks")
    let before = try lines(
      chain.location,
      "SELECT ZUUID, ZTITLE, ZURL, Z_PK, Z_OPT, ZPARENT, Z_FOK_PARENT FROM ZBOOKMARKENTITY ORDER BY Z_PK")
    let report = try chain.migrate(
      .named("BookmarksModel 6"), chunkRows: chunkRows)
    #expect(report.hops.count == 5)
    let after = try lines(
      chain.location,
      "SELECT ZUUID, ZTITLE, ZURL, Z_PK, Z_OPT, ZPARENT, Z_FOK_PARENT FROM ZBOOKMARKENTITY ORDER BY Z_PK")
    #expect(after == before)
    let favourites = """
      SELECT b.ZUUID FROM Z_1FAVORITES j JOIN ZBOOKMARKENTITY b ON b.Z_PK = j.Z_1FAVORITES
      JOIN ZBOOKMARKENTITY f ON f.Z_PK = j.Z_1FAVORITEFOLDERS WHERE f.ZUUID = 'favorites_root'
      ORDER BY j.Z_FOK_1FAVORITES
      """
    #expect(try lines(chain.location, favourites) == ["5", "4", "33", "32", "2"])
    #expect(try lines(chain.location, "SELECT count(*) FROM Z_1FAVORITES") == ["5"])
    let children = """
      SELECT c.ZUUID FROM ZBOOKMARKENTITY c JOIN ZBOOKMARKENTITY p ON p.Z_PK = c.ZPARENT WHERE p.ZUUID = ?1
      ORDER BY c.Z_FOK_PARENT
      """
    #expect(
      try lines(chain.location, children.split(separator: "?1").joined(separator: "'bookmarks_root'")) == [
        "1", "2", "3", "4", "5",
      ])
    #expect(try lines(chain.location, children.split(separator: "?1").joined(separator: "'3'")) == ["31", "32", "33"])
    #expect(
      try lines(
        chain.location,
        "SELECT DISTINCT ZISPENDINGDELETION, ZMODIFIEDAT, ZLASTCHILDRENPAYLOADRECEIVEDFROMSYNC, ZISSTUB "
          + "FROM ZBOOKMARKENTITY"
      )
        == ["0|·|·|·"])
    // The migrated store has the schema of a native store of version 5.
    #expect(try lines(chain.location, "SELECT Z_MAX FROM Z_PRIMARYKEY") == ["10"])
  }

  /// Native stores of later versions are further sources, and written stores must have the native schema.
  @Test func migratedBookmarksHaveTheNativeSchema() throws {
    for (version, native) in [("BookmarksModel 5", "fw1251-bookmarks-5"), ("BookmarksModel 3", "fw1251-bookmarks-3")] {
      let chain = try Chain("bookmarks")
      var request = chain.request(.named(version))
      request.engine.altering = .never
      _ = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
      let other = try Chain("bookmarks", store: native)
      #expect(try schemaTexts(chain.location) == schemaTexts(other.location), "\(version)")
    }
  }

  @Test(arguments: ["fw1251-bookmarks-3", "fw1333-bookmarks-4", "fw1251-bookmarks-5"])
  func nativeBookmarksReachTheLastVersion(_ store: String) throws {
    let chain = try Chain("bookmarks", store: store)
    let (uuid, rows) = (
      try metadata(chain.location).uuid, try lines(chain.location, "SELECT ZUUID FROM ZBOOKMARKENTITY ORDER BY Z_PK")
    )
    try chain.migrate(.named("BookmarksModel 6"))
    #expect(try metadata(chain.location).uuid == uuid)
    #expect(try lines(chain.location, "SELECT ZUUID FROM ZBOOKMARKENTITY ORDER BY Z_PK") == rows)
    let after = try metadata(chain.location)
    let model = try #require(chain.catalog.versions.first { $0.model.name == "BookmarksModel 6" })
    #expect(after.versionHashes == model.versionHashes)
    // The checksum stays if the framework writes one, and only then.
    #expect((after.entries[StoreMetadata.Key.versionChecksum] != nil) == (after.frameworkVersion >= 1333))
  }

  @Test(arguments: [
    (
      "wibosco-revised", "fw0866-wibosco-revised-3", "CoreDataMigration_Example 4",
      "SELECT count(*), sum(ZSOFTDELETED) FROM ZPOST"
    ),
    ("wibosco-example", "fw0847-wibosco-3", "CoreDataMigration_Example 4", "SELECT count(*), sum(ZHIDE) FROM ZPOST"),
  ])
  func theLastHopOfAMixedChainIsInferred(_ name: String, _ store: String, _ target: String, _ query: String) throws {
    let chain = try Chain(name, store: store)
    let rows = try lines(chain.location, "SELECT count(*), 0 FROM ZPOST")
    try chain.migrate(.named(target))
    #expect(try lines(chain.location, query) == rows)
  }

  /// Each text equals the one that Core Data's own migration in place left of the same store, by rows and on a copy.
  @Test(
    arguments: [
      ("coredataplus-samplemodel", "SampleModel2", "SampleModel_V2.sqlite"),
      ("wibosco-revised", "CoreDataMigration_Example 2", "CoreDataMigration_Example_2.sqlite"),
    ], [AlterRule.never, .wherePossible])
  func theTextsAreThoseOfApplesMigration(
    _ chain: (name: String, target: String, golden: String), _ altering: AlterRule
  ) throws {
    let found = try Chain(chain.name)
    var request = found.request(.named(chain.target))
    request.engine.altering = altering
    let report = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
    #expect(report.result == .migrated)
    let texts = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite%' ORDER BY 1, 2"
    #expect(try lines(found.location, texts) == lines(found.golden(chain.golden), texts))
  }

  /// The old store is kept complete and can be read in its old version.
  @Test func theBackupIsTheOldStore() throws {
    let chain = try Chain("bookmarks")
    let before = try lines(chain.location, "SELECT * FROM ZBOOKMARKENTITY ORDER BY Z_PK")
    let report = try chain.migrate(.named("BookmarksModel 2"))
    let backup = StoreLocation(database: try #require(report.backup))
    #expect(try lines(backup, "SELECT * FROM ZBOOKMARKENTITY ORDER BY Z_PK") == before)
    let again = try chain.migrate(.named("BookmarksModel 2"))
    #expect(again.result == .current)
  }

  /// Hops that alter a file and hops that write all rows give the same store, in every row and value.
  @Test(arguments: [nil, "fw1251-bookmarks-3", "fw1333-bookmarks-4", "fw1251-bookmarks-5"])
  func everyPathGivesTheSameStore(_ store: String?) throws {
    var results: [[String]] = []
    for altering in [AlterRule.never, .wherePossible] {
      let chain = try Chain("bookmarks", store: store)
      var request = chain.request(.named("BookmarksModel 6"), chunkRows: 3)
      request.engine.altering = altering
      let report = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
      #expect(report.result == .migrated)
      // Altered tables have their columns in another order.
      var content = try lines(chain.location, "SELECT type, name FROM sqlite_master ORDER BY 1, 2")
      let tables = try lines(
        chain.location, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY 1")
      for table in tables {
        let columns = try StoreReader.withUnchangedStore(at: chain.location) {
          try $0.columns(of: table).map(\.name).sorted()
        }
        let values = columns.map { "typeof(\"\($0)\"), quote(\"\($0)\")" }.joined(separator: ", ")
        let order = columns.map { "\"\($0)\"" }.joined(separator: ", ")
        content += try lines(chain.location, "SELECT '\(table)', \(values) FROM \"\(table)\" ORDER BY \(order)")
      }
      results.append(content)
    }
    #expect(results[0] == results[1])
    #expect(results[0].count > 20)
  }

  /// Stopped after any chunk, continued, stopped again …: the result is the same store.
  @Test func interruptedAfterEveryChunkTheResultIsTheSame() throws {
    let whole = try Chain("bookmarks")
    try whole.migrate(.named("BookmarksModel 6"))
    let chain = try Chain("bookmarks")
    let request = chain.request(.named("BookmarksModel 6"), chunkRows: 1)
    var runs = 0
    var resumed = 0
    while true {
      runs += 1
      try #require(runs < 200)
      let stop = StopSignal()
      do {
        // Each run may commit one chunk more than it found.
        _ = try MigrationPipeline().run(request, stop: stop) { event in
          if case .progress = event { stop.stop() }
          if case .resumed = event { resumed += 1 }
        }
        break
      } catch {
        guard error.error.code == .interrupted else { throw error }
      }
    }
    #expect(runs > 10)
    #expect(resumed > 5)
    for table in ["ZBOOKMARKENTITY", "Z_1FAVORITES", "Z_PRIMARYKEY", "sqlite_master"] {
      let columns = table == "sqlite_master" ? "type, name, sql" : "*"
      #expect(
        try lines(chain.location, "SELECT \(columns) FROM \(table) ORDER BY 1, 2")
          == lines(whole.location, "SELECT \(columns) FROM \(table) ORDER BY 1, 2"))
    }
  }

  /// A power cut may leave a staged store in any state; under the same boot id it looks as if it could be resumed.
  @Test(arguments: ["zeros", "text", "cut", "empty"])
  func aSpoiledStagedStoreIsBuiltAgain(_ kind: String) throws {
    let whole = try Chain("bookmarks")
    try whole.migrate(.named("BookmarksModel 6"))
    let chain = try Chain("bookmarks")
    let request = chain.request(.named("BookmarksModel 6"), chunkRows: 4)
    let stop = StopSignal()
    #expect(throws: MigrationFailure.self) {
      try MigrationPipeline().run(request, stop: stop) { event in
        // In the middle of the third hop, or of the pass that contains it.
        if case .progress(let progress) = event, progress.hop >= 2 { stop.stop() }
      }
    }
    let staged = Fixtures.names(in: chain.folder).filter { $0.contains(".hop-") && $0.hasSuffix(".tmp") }
    #expect(!staged.isEmpty)
    for name in staged {
      let path = chain.folder.appending(name)
      let size = try Fixtures.bytes(of: path).count
      let bytes: [UInt8] =
        switch kind {
        case "zeros": Array(repeating: 0, count: size)
        case "text": Array(repeating: UInt8(ascii: "x"), count: size)
        case "cut": Array(try Fixtures.bytes(of: path).prefix(size / 2))
        default: []
        }
      try Data(bytes).write(to: URL(filePath: path.string))
    }
    #expect(try MigrationPipeline().run(request, stop: StopSignal()) { _ in }.result == .migrated)
    let query = "SELECT * FROM ZBOOKMARKENTITY ORDER BY Z_PK"
    #expect(try lines(chain.location, query) == lines(whole.location, query))
  }

  @Test func withOutputTheSourceIsOnlyRead() throws {
    let chain = try Chain("bookmarks")
    let before = try Fixtures.names(in: chain.folder).filter { !Fixtures.isFolder(chain.folder.appending($0)) }
      .map { "\($0) \(try Fixtures.bytes(of: chain.folder.appending($0)).hashValue)" }
    var request = chain.request(.named("BookmarksModel 3"))
    let output = chain.folder.appending("state/out.sqlite")
    request.output = output
    let report = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
    #expect(report.result == .migrated)
    let after = try Fixtures.names(in: chain.folder).filter { !Fixtures.isFolder(chain.folder.appending($0)) }
      .map { "\($0) \(try Fixtures.bytes(of: chain.folder.appending($0)).hashValue)" }
    #expect(after == before)
    let copy = StoreLocation(database: output)
    #expect(try StoreIdentifier.identify(copy, catalog: chain.catalog).version?.model.name == "BookmarksModel 3")
    // Once more from the copy, which is current for that target: hopd still makes a copy.
    var second = request
    second.location = CanonicalStoreLocation(unresolved: output)
    second.output = chain.folder.appending("state/out2.sqlite")
    #expect(try MigrationPipeline().run(second, stop: StopSignal()) { _ in }.result == .current)
    #expect(
      try lines(
        StoreLocation(database: chain.folder.appending("state/out2.sqlite")), "SELECT count(*) FROM ZBOOKMARKENTITY")
        == ["10"])
  }
}
