// Rows that break a rule of the version they come to, in a hop that no mapping model describes: the rule of the
// operator applies to them as in every other hop.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import OtherPrograms
import PersistentStore
import SQLite
import StoreVerification
import SystemPackage
import Testing

@Suite struct InvalidRowsOfInferredHopsTests {
  /// V1 → V2 makes `code` required or unique; V2 → V3 adds an attribute. Of five objects one has no code, and where
  /// codes must be unique two share one.
  private func migrate(
    _ rule: InvalidRowsRule, isUnique: Bool, value: AttributeDefault? = nil
  ) throws -> Result<[DumpedObject], MigrationFailure> {
    // Unique values may be missing, required ones may repeat: each world breaks one rule.
    let more = Attribute(name: "more", type: .integer16, isOptional: true)
    let next = Relationship(name: "next", destinationEntityName: "Part", inverseName: "previous")
    let previous = Relationship(name: "previous", destinationEntityName: "Part", inverseName: "next")
    let used = (1...3).map { version in
      let code = Attribute(
        name: "code", type: .string, isOptional: version == 1 || isUnique, defaultValue: version == 1 ? nil : value)
      return ManagedObjectModel(
        name: "V\(version)",
        entities: [
          Entity(
            name: "Part", attributes: [code] + (version == 3 ? [more] : []), relationships: [next, previous],
            uniquenessConstraints: version > 1 && isUnique ? [["code"]] : [])
        ])
    }
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-invalid-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let location = StoreLocation(database: folder.appending("store.sqlite"))
    try FreshStore(
      schema: StoreSchema(model: used[0], frameworkVersion: 1344), uuid: FreshStore.uuid(seed: 7)
    ).make(at: location.database)
    let second = isUnique ? "'a'" : "'b'"
    try Connection.ofApp(location.database).execute(
      "INSERT INTO ZPART (Z_PK, Z_ENT, Z_OPT, ZCODE, ZNEXT, ZPREVIOUS) VALUES (1, 1, 1, 'a', 2, NULL),"
        + " (2, 1, 1, NULL, 3, 1), (3, 1, 1, \(second), NULL, 2), (4, 1, 1, 'c', 5, NULL), (5, 1, 1, 'd', NULL, 4);"
        + " UPDATE Z_PRIMARYKEY SET Z_MAX = 5")
    let catalog = ModelCatalog(bundles: [
      ModelBundle(name: "World", path: "/World.xcdatamodeld", versions: used, currentVersionName: "V3")
    ])
    let engine = EngineOptions(invalidRows: InvalidRowsRules(standard: rule))
    let request = MigrationRequest(
      location: location, catalog: catalog, settings: MigrationSettings(verification: .full, engine: engine),
      stateDirectory: folder.appending("state"), job: "01")
    do {
      let report = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
      #expect(report.result == .migrated)
      return .success(try dump(location, model: used[2]))
    } catch let failure as MigrationFailure {
      return .failure(failure)
    }
  }

  private func keys(_ objects: [DumpedObject]) -> [String] { objects.map(\.id) }

  @Test func skippedRowsAreLeftOutAndReferencesToThemCleared() throws {
    let missing = try migrate(.skip, isUnique: false).get()
    #expect(keys(missing) == ["Part/p1", "Part/p3", "Part/p4", "Part/p5"])
    #expect(missing[0].relationships["next"] == .null && missing[1].relationships["previous"] == .null)
    #expect(missing[2].relationships["next"] == .string("Part/p5"))
    // Of equal values the first stays.
    let doubled = try migrate(.quarantine, isUnique: true).get()
    #expect(keys(doubled) == ["Part/p1", "Part/p2", "Part/p4", "Part/p5"])
  }

  @Test func failIsTheDefault() throws {
    for isUnique in [true, false] {
      guard case .failure(let failure) = try migrate(.fail, isUnique: isUnique) else {
        Issue.record("a store with invalid rows was migrated")
        continue
      }
      let errors = failure.error.reasons.isEmpty ? [failure.error] : failure.error.reasons
      #expect(
        errors.map { "\($0.code)" }.allSatisfy { ["missing-required-value", "uniqueness-violation"].contains($0) })
    }
  }

  @Test func aRuleThatSettlesNotEverythingFails() throws {
    // No default mends a value that is there twice.
    guard case .failure(let failure) = try migrate(.default, isUnique: true, value: .string("a")) else {
      Issue.record("a default cannot make values unique")
      return
    }
    #expect(failure.error.code == .invalidRows || failure.error.reasons.contains { $0.code == .invalidRows })
  }
}
