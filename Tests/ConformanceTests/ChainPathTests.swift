// The same chain by every path: written whole, in chunks and stopped at every chunk, and altered. The stores must be
// the same row for row and value for value, with the same metadata and schema (except for the positions of columns in
// altered tables); if a migration fails, it fails for the same reason at the same place. HOPD_SEEDS sets how many
// worlds are tried, HOPD_FIRST_SEED the first; a failure names its seed.

import Diagnostics
import FoundationEssentials
import Glibc
import ManagedObjectModel
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

/// The whole content of a store, as lines that can be compared: schema, rows with the types of their values, metadata.
enum StoreContent {
  static func lines(_ location: StoreLocation) throws -> [String] {
    try StoreReader.withUnchangedStore(at: location) { reader in
      let objects = try reader.schemaObjects()
      var lines = objects.map { "\($0.type) \($0.name) \($0.table) \($0.sql ?? "")" }.sorted()
      for table in objects where table.type == "table" {
        let columns = try reader.columns(of: table.name).map(\.name)
        let values = columns.map { "typeof(\(quoted($0))) || ' ' || quote(\(quoted($0)))" }.joined(separator: ", ")
        let order = columns.map(quoted).joined(separator: ", ")
        lines += try reader.connection.rows(
          "SELECT \(values) FROM \(reader.qualified(table.name)) ORDER BY \(order)"
        ) { row in
          "\(table.name): "
            + zip(columns, 0..<row.columnCount).map { "\($0)=\(row.text(at: $1) ?? "")" }.joined(separator: "|")
        }
      }
      return lines
    }
  }

  private static func quoted(_ name: String) -> String { SQLiteIdentifier.quoted(name) }

  /// Returns the first lines that differ.
  static func difference(_ found: [String], _ wanted: [String]) -> String {
    let (left, right) = (Set(found), Set(wanted))
    let more = found.filter { !right.contains($0) }.prefix(3)
    let missing = wanted.filter { !left.contains($0) }.prefix(3)
    return "\(found.count) and \(wanted.count) lines; only here:\n\(more.joined(separator: "\n"))\nonly there:\n"
      + missing.joined(separator: "\n")
  }
}

@Suite struct ChainPathTests {
  private static let count = getenv("HOPD_SEEDS").flatMap { UInt64(String(cString: $0)) } ?? 14
  private static let first = getenv("HOPD_FIRST_SEED").flatMap { UInt64(String(cString: $0)) } ?? 1

  /// How many further chunks each run may commit: one if many worlds are tried.
  private static let patience = count > 50 ? 1 : 9

  private enum Way: CaseIterable {
    case written, inChunks, interrupted, altered, alteredInterrupted

    var alters: Bool { self == .altered || self == .alteredInterrupted }
    var interrupts: Bool { self == .interrupted || self == .alteredInterrupted }
  }

  /// The result of one kind of run.
  private enum Ending {
    /// `byColumn` has the rows without the schema, with columns in the order of their names.
    case store([String], byColumn: [String], MigrationReport)
    case failure(MigrationFailure)
  }

  private struct Tally {
    var worlds = 0
    var altered = 0
    var failed = 0
    var rows = 0
  }

  @Test func everyPathGivesTheSameStore() throws {
    var tally = Tally()
    for seed in Self.first..<(Self.first + Self.count) {
      guard let world = ChainWorld(seed: seed) else { continue }
      try tryWorld(world, &tally)
    }
    print(
      "\(Self.count) seeds: \(tally.worlds) worlds, \(tally.altered) hops alter a file,"
        + " \(tally.failed) worlds cannot be migrated, \(tally.rows) lines compared")
    #expect(tally.worlds * 2 > Int(Self.count))
    #expect(tally.altered > tally.worlds / 2)
    #expect(tally.failed * 3 < tally.worlds * 2)
  }

  private func tryWorld(_ given: ChainWorld, _ tally: inout Tally) throws {
    var world = given
    let environment = try Workshop()
    let original = StoreLocation(database: environment.folder.appending("original.sqlite"))
    let schema = StoreSchema(model: world.versions[0], frameworkVersion: world.framework)
    let files = original.externalDataDirectory
    try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: world.seed)).make(
      at: original.database, rows: 60, seed: world.seed,
      external: ExternalSamples { name, content in
        try FileManager.default.createDirectory(atPath: files.string, withIntermediateDirectories: true)
        try Data(content).write(to: URL(filePath: files.appending(name.text).string))
      })
    // Half of the worlds have only values that an app would write; objects refuse other values that columns hold.
    if world.seed % 2 == 0 { try world.spoil(Connection.ofApp(original.database)) }
    var catalog = ModelCatalog(bundles: [
      ModelBundle(
        name: "World", path: "/World.xcdatamodeld", versions: world.versions,
        currentVersionName: world.versions.last?.name)
    ])
    var texts: [FilePath] = []
    for (index, text) in world.mappings {
      texts.append(environment.folder.appending("V\(index + 1) to V\(index + 2).hopmap.toml"))
      try Data(text.utf8).write(to: URL(filePath: texts[texts.count - 1].string))
    }
    try catalog.loadMappings(texts, beside: [])
    tally.worlds += 1
    var endings: [(way: Way, ending: Ending)] = []
    for way in Way.allCases {
      let request = try request(way, world: world, environment: environment, original: original, catalog: catalog)
      if way == .altered { count(request, original, &tally) }
      endings.append((way, try ending(of: request, interrupts: way.interrupts, seed: world.seed)))
    }
    guard let written = endings.first?.ending else { return }
    for (way, ending) in endings.dropFirst() {
      compare(ending, written, byColumn: way.alters, title: "seed \(world.seed), \(way)", tally: &tally)
    }
    if case .failure = written { tally.failed += 1 }
  }

  private func request(
    _ way: Way, world: ChainWorld, environment: Workshop, original: StoreLocation, catalog: ModelCatalog
  ) throws -> MigrationRequest {
    let copy = StoreLocation(database: environment.folder.appending("\(way)").appending("store.sqlite"))
    try FileManager.default.createDirectory(atPath: copy.directory.string, withIntermediateDirectories: true)
    try FileManager.default.copyItem(atPath: original.database.string, toPath: copy.database.string)
    if FileManager.default.fileExists(atPath: original.supportDirectory.string) {
      try FileManager.default.copyItem(
        atPath: original.supportDirectory.string, toPath: copy.supportDirectory.string)
    }
    var request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: copy.database), catalog: catalog, naming: world.naming,
      settings: MigrationSettings(verification: .full),
      stateDirectory: environment.folder.appending("state"), job: "0\(world.seed)")
    request.engine.altering = way.alters ? .wherePossible : .never
    if way == .inChunks || way.interrupts { request.engine.chunkRowsMax = 17 }
    return request
  }

  /// Counts which hops alter a file.
  private func count(_ request: MigrationRequest, _ original: StoreLocation, _ tally: inout Tally) {
    let execution = try? StoreReader.withUnchangedStore(at: original) { reader in
      let found = try StoreIdentifier.identify(
        reader: reader, location: original, catalog: request.catalog, target: request.target)
      let plan = try MigrationPlanner.plan(
        store: try #require(found.identified), catalog: request.catalog, target: request.target, rules: request.rules,
        reader: reader)
      return try ChainExecution(of: plan, options: request.engine)
    }
    guard let execution else { return }
    tally.altered += execution.hops.count { $0.program != nil }
  }

  /// Runs to the end; stopped again and again if `interrupts` is true.
  private func ending(of request: MigrationRequest, interrupts: Bool, seed: UInt64) throws -> Ending {
    // An error of the rows in a resumed run makes hopd start over once: without further stops it ends in that error.
    var beginsAgain = false
    for _ in 0..<600 {
      let stop = StopSignal()
      let report: MigrationReport
      var events = 0
      do {
        report = try MigrationPipeline().run(request, stop: stop) { event in
          if case .recovered = event { beginsAgain = true }
          guard interrupts, !beginsAgain, case .progress = event else { return }
          events += 1
          if events == Self.patience { stop.stop() }
        }
      } catch {
        if interrupts, error.error.code == .interrupted { continue }
        return .failure(error)
      }
      let store = request.location.store
      return .store(try StoreContent.lines(store), byColumn: try store.content(), report)
    }
    throw HopdError(.internalError, "seed \(seed) never ends")
  }

  private func compare(
    _ found: Ending, _ wanted: Ending, byColumn: Bool, title: String, tally: inout Tally
  ) {
    switch (found, wanted) {
    case (.store(let whole, let columns, let report), .store(let expectedWhole, let expectedColumns, let other)):
      let (lines, expected) = byColumn ? (columns, expectedColumns) : (whole, expectedWhole)
      if lines != expected { Issue.record("\(title): \(StoreContent.difference(lines, expected))") }
      #expect(report.rows == other.rows, "\(title)")
      tally.rows += lines.count
      // A resumed run reports only the hops that it made itself.
      guard !report.wasResumed else { return }
      #expect(report.hops.map(\.destination) == other.hops.map(\.destination), "\(title)")
      #expect(report.hops.map(\.tallies) == other.hops.map(\.tallies), "\(title)")
      #expect(report.dropped == other.dropped, "\(title)")
      let (reported, expectedReported) = (report.warnings.map(reason), other.warnings.map(reason))
      if reported != expectedReported {
        Issue.record("\(title): \(StoreContent.difference(reported, expectedReported))")
      }
    case (.failure(let failure), .failure(let other)):
      #expect(reason(failure.error) == reason(other.error), "\(title)")
      #expect(failure.stage == other.stage, "\(title): \(failure.error)")
      #expect(failure.error.code != .internalError, "\(title): \(failure.error)")
    case (.store, .failure(let failure)):
      Issue.record("\(title): a store, where written hops give: \(failure.error)")
    case (.failure(let failure), .store):
      Issue.record("\(title): \(failure.error), where written hops give a store")
    }
  }

  /// Returns an error without the names of files.
  private func reason(_ error: HopdError) -> String {
    let place = [error.place.hop, error.place.entity, error.place.property, error.place.row.map { String($0) }]
    // Each kind of run has its own folder.
    let message = Way.allCases.reduce(error.message) { text, way in
      var text = text
      while let range = text.firstRange(of: "/\(way)/") { text.replaceSubrange(range, with: "/-/") }
      return text
    }
    return "\(error.code): \(message) at \(place.map { $0 ?? "-" })"
      + error.reasons.map { " / " + reason($0) }.joined()
  }
}
