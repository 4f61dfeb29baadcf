// Rows that break a rule of their destination version, in a hop without a mapping model: the operator's rule applies to
// them as in every other hop.

import Diagnostics
import FoundationEssentials
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

@Suite struct InvalidRowsOfInferredHopsTests {
  /// V1 → V2 makes `code` required or unique; V2 → V3 adds an attribute. Of five objects one has no code, and if codes
  /// must be unique two have the same.
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
    let second = isUnique ? "'a'" : "'b'"
    return try migrate(
      rule, through: used,
      "INSERT INTO ZPART (Z_PK, Z_ENT, Z_OPT, ZCODE, ZNEXT, ZPREVIOUS) VALUES (1, 1, 1, 'a', 2, NULL),"
        + " (2, 1, 1, NULL, 3, 1), (3, 1, 1, \(second), NULL, 2), (4, 1, 1, 'c', 5, NULL), (5, 1, 1, 'd', NULL, 4)")
  }

  /// Returns the objects of a store with five parts in the last version; `mapping` is a text mapping of the first hop.
  private func migrate(
    _ rule: InvalidRowsRule, through used: [ManagedObjectModel], _ rows: String, mapping: String? = nil,
    _ reported: (MigrationReport) -> Void = { _ in }
  ) throws -> Result<[DumpedObject], MigrationFailure> {
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-invalid-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let location = StoreLocation(database: folder.appending("store.sqlite"))
    try FreshStore(
      schema: StoreSchema(model: used[0], frameworkVersion: 1344), uuid: FreshStore.uuid(seed: 7)
    ).make(at: location.database)
    try Connection.ofApp(location.database).execute("\(rows); UPDATE Z_PRIMARYKEY SET Z_MAX = 5")
    var catalog = ModelCatalog(bundles: [
      ModelBundle(name: "World", path: "/World.xcdatamodeld", versions: used, currentVersionName: used.last?.name ?? "")
    ])
    if let mapping {
      let file = folder.appending("V1 to V2.hopmap.toml")
      try Data(mapping.utf8).write(to: URL(filePath: file.string))
      try catalog.loadMappings([file], beside: [])
    }
    let engine = EngineOptions(invalidRows: InvalidRowsRules(standard: rule))
    let request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
      settings: MigrationSettings(verification: .full, engine: engine),
      stateDirectory: folder.appending("state"), job: "01")
    do {
      let report = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
      #expect(report.result == .migrated)
      reported(report)
      return .success(try dump(location, model: try #require(used.last)))
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
    // Of equal values the first is kept.
    let doubled = try migrate(.quarantine, isUnique: true).get()
    #expect(keys(doubled) == ["Part/p1", "Part/p2", "Part/p4", "Part/p5"])
  }

  /// A subentity makes an inherited attribute unique, and the equal rows are beside it in the same table.
  @Test func equalRowsBesideTheEntityWithTheConstraint() throws {
    let used = (1...2).map { version in
      ManagedObjectModel(
        name: "V\(version)",
        entities: [
          Entity(
            name: "Base", isAbstract: true, attributes: [Attribute(name: "code", type: .string, isOptional: true)]),
          Entity(name: "Part", parentName: "Base", uniquenessConstraints: version == 1 ? [] : [["code"]]),
          Entity(name: "Piece", parentName: "Base"),
        ])
    }
    let rows =
      "INSERT INTO ZBASE (Z_PK, Z_ENT, Z_OPT, ZCODE) VALUES (1, 2, 1, 'a'), (2, 3, 1, 'a'), (3, 3, 1, 'b'),"
      + " (4, 2, 1, 'b'), (5, 3, 1, NULL)"
    for rule in [InvalidRowsRule.skip, .quarantine] {
      #expect(Set(keys(try migrate(rule, through: used, rows).get())) == ["Part/p1", "Piece/p3", "Piece/p5"])
    }
    let mapping = """
      [mapping]
      source = "V1"
      destination = "V2"

      [[entity]]
      source = "Part"
      destination = "Part"

      [[entity]]
      source = "Piece"
      destination = "Piece"
      """
    // The plan finds them before anything is written; behind a mapping model, the index cannot be built.
    for (text, code) in [(nil, "uniqueness-violation"), (mapping, "invalid-rows")] as [(String?, String)] {
      guard case .failure(let failure) = try migrate(.fail, through: used, rows, mapping: text) else {
        Issue.record("equal values were taken along")
        continue
      }
      let reasons = failure.error.reasons
      #expect(reasons.allSatisfy { "\($0.code)" == code && $0.place.property == "code" }, "\(failure.error)")
      #expect(reasons.map(\.place.entity) == ["Part", "Piece"])
      #expect(reasons.map(\.place.row) == [4, 2])
    }
  }

  /// A to-one becomes required, and texts get a length: Core Data refuses the first and does not check the second.
  @Test func requiredToOnesAndBounds() throws {
    func version(_ name: String, isRequired: Bool, maximum: String?) -> ManagedObjectModel {
      var attributes = [Attribute(name: "code", type: .string, isOptional: true, maximum: maximum)]
      if name == "V2" { attributes.append(Attribute(name: "more", type: .integer16, isOptional: true)) }
      return ManagedObjectModel(
        name: name,
        entities: [
          Entity(
            name: "Part", attributes: attributes,
            relationships: [
              Relationship(
                name: "next", destinationEntityName: "Part", inverseName: "previous", isOptional: !isRequired),
              Relationship(name: "previous", destinationEntityName: "Part", inverseName: "next"),
            ])
        ])
    }
    // The first three point in a circle; 4 → 5, and 5 points to nothing. The code of 2 is too long.
    let rows =
      "INSERT INTO ZPART (Z_PK, Z_ENT, Z_OPT, ZCODE, ZNEXT, ZPREVIOUS) VALUES (1, 1, 1, 'a', 2, 3),"
      + " (2, 1, 1, 'abc', 3, 1), (3, 1, 1, 'b', 1, 2), (4, 1, 1, 'c', 5, NULL), (5, 1, 1, 'd', NULL, 4)"
    let first = version("V1", isRequired: false, maximum: nil)
    let required = [first, version("V2", isRequired: true, maximum: nil)]
    guard case .failure(let failure) = try migrate(.fail, through: required, rows) else {
      Issue.record("a required to-one stayed empty")
      return
    }
    #expect(failure.error.code == .missingRequiredValue && failure.error.place.row == 5)
    // Without 5, 4 has nothing to point to.
    #expect(keys(try migrate(.skip, through: required, rows).get()) == ["Part/p1", "Part/p2", "Part/p3"])

    let bounded = [first, version("V2", isRequired: false, maximum: "2")]
    let all = keys(try migrate(.fail, through: bounded, rows).get())
    #expect(all == ["Part/p1", "Part/p2", "Part/p3", "Part/p4", "Part/p5"])
    let kept = try migrate(.quarantine, through: bounded, rows).get()
    #expect(keys(kept) == ["Part/p1", "Part/p3", "Part/p4", "Part/p5"])
    #expect(kept[0].relationships["next"] == .null && kept[1].relationships["previous"] == .null)
  }

  /// The same behind a hop with a mapping model: there the rows exist only when the hop begins.
  @Test func requiredToOnesAndBoundsBehindAMappingModel() throws {
    func version(_ name: String, isRequired: Bool, maximum: String?) -> ManagedObjectModel {
      let text = Attribute(name: name == "V1" ? "code" : "mark", type: .string, isOptional: true, maximum: maximum)
      // A bound alone makes no other version.
      let more = Attribute(name: "more", type: .integer16, isOptional: true)
      return ManagedObjectModel(
        name: name,
        entities: [
          Entity(
            name: "Part", attributes: name == "V3" ? [text, more] : [text],
            relationships: [
              Relationship(
                name: "next", destinationEntityName: "Part", inverseName: "previous", isOptional: !isRequired),
              Relationship(name: "previous", destinationEntityName: "Part", inverseName: "next"),
            ])
        ])
    }
    let rows =
      "INSERT INTO ZPART (Z_PK, Z_ENT, Z_OPT, ZCODE, ZNEXT, ZPREVIOUS) VALUES (1, 1, 1, 'a', 2, 3),"
      + " (2, 1, 1, 'abc', 3, 1), (3, 1, 1, 'b', 1, 2), (4, 1, 1, 'c', 5, NULL), (5, 1, 1, 'd', NULL, 4)"
    let mapping = """
      [mapping]
      source = "V1"
      destination = "V2"

      [[entity]]
      source = "Part"
      destination = "Part"
      attributes.mark = "$source.code"
      """
    let (first, second) = (
      version("V1", isRequired: false, maximum: nil), version("V2", isRequired: false, maximum: nil)
    )
    let required = [first, second, version("V3", isRequired: true, maximum: nil)]
    guard case .failure(let failure) = try migrate(.fail, through: required, rows, mapping: mapping) else {
      Issue.record("a required to-one stayed empty")
      return
    }
    #expect(failure.error.code == .missingRequiredValue)
    #expect(failure.error.place.hop == "V2 → V3" && failure.error.place.property == "next")
    let bounded = [first, second, version("V3", isRequired: false, maximum: "2")]
    for rule in [InvalidRowsRule.fail, .skip] {
      var warnings: [HopdError] = []
      let all = keys(try migrate(rule, through: bounded, rows, mapping: mapping) { warnings = $0.warnings }.get())
      #expect(all == ["Part/p1", "Part/p2", "Part/p3", "Part/p4", "Part/p5"])
      #expect(warnings.map(\.code).contains(.valuesOutOfBounds))
    }
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
    // No default corrects a duplicate value.
    guard case .failure(let failure) = try migrate(.default, isUnique: true, value: .string("a")) else {
      Issue.record("a default cannot make values unique")
      return
    }
    #expect(failure.error.code == .invalidRows || failure.error.reasons.contains { $0.code == .invalidRows })
  }
}
