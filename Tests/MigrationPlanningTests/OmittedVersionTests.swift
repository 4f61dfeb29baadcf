// An unusable version blocks only the stores that have it and those that must reach it.

import BlockingTests
import Diagnostics
import PersistentStore
import SystemPackage
import Testing

@testable import ManagedObjectModel
@testable import MigrationPlanning

@Suite(.blocking) struct OmittedVersionTests {
  private let shapes = [[entity("E", [attribute("a")])], [entity("E", [attribute("a"), attribute("b")])]]
  private let lost = ManagedObjectModel(name: "Lost", entities: [entity("F")])

  private func catalog(hashes: Bool = false, isCurrent: Bool = false) -> ModelCatalog {
    let good = bundle(shapes, name: "M")
    let reason = HopdError(
      .invalidModel, "the model version “Lost” has a fault", at: Place(file: "/models/M.xcdatamodeld/Lost.xcdatamodel"),
      hint: "repair it", reasons: [HopdError(.invalidModel, "the model has no entities")])
    return ModelCatalog(bundles: [
      ModelBundle(
        name: good.name, path: good.path, versions: good.versions,
        currentVersionName: isCurrent ? nil : good.currentVersionName,
        omitted: [
          OmittedVersion(
            name: "Lost", reason: reason, hashes: hashes ? lost.versionHashes : nil, isCurrent: isCurrent)
        ])
    ])
  }

  @Test func theOthersGoOnAndThePlanSaysSo() throws {
    let catalog = catalog()
    let small = try SmallStore(
      catalog.bundles[0].versions[0], "INSERT INTO ZE (Z_PK, Z_ENT, Z_OPT, ZA) VALUES (1, 1, 1, 'x')")
    let plan = try small.plan(catalog)
    #expect(plan.hops.map(\.title) == ["V1 → V2"])
    let warning = try #require(plan.warnings.first { $0.code == .modelRemark })
    for word in ["“Lost” is ignored", "has no entities"] { #expect(warning.message.contains(word)) }
  }

  @Test func aStoreThatHasItIsRefusedByNameAndReason() throws {
    let small = try SmallStore(lost)
    // The app's compiled model has its hashes.
    let known = try small.identify(catalog(hashes: true))
    #expect(known.state == .unknown && known.explanation?.code == .versionUnusable)
    for word in ["“Lost”", "the store has it", "has no entities", "hint: repair it"] {
      #expect(known.explanation?.description.contains(word) == true, "\(word)")
    }
    // No model has its hashes: the store may have this version.
    let unknown = try small.identify(catalog())
    #expect(unknown.state == .unknown && unknown.explanation?.code == .unknownVersion)
    #expect(unknown.explanation?.description.contains("may have the version “Lost”") == true)
  }

  @Test func itMayHaveAnEntityThatNoOtherHas() {
    #expect(catalog().unknownEntity(among: ["E", "F"])?.name == nil)
    let whole = ModelCatalog(bundles: [bundle(shapes, name: "M")])
    #expect(whole.unknownEntity(among: ["E", "F"])?.name == "F" && whole.unknownEntity(among: ["E"])?.name == nil)
  }

  @Test func itCannotBeReached() throws {
    let small = try SmallStore(catalog().bundles[0].versions[0])
    for (catalog, target) in [(catalog(), TargetVersion.named("Lost")), (catalog(isCurrent: true), .current)] {
      let error = #expect(throws: HopdError.self) { try small.identify(catalog, target) }
      #expect(error?.code == .versionUnusable && error?.description.contains("has no entities") == true)
    }
    #expect(try small.identify(catalog(isCurrent: true), .named("V2")).state == .behind)
    #expect(catalog(isCurrent: true).refusal(ofTarget: nil)?.code == .versionUnusable)
    #expect(catalog(isCurrent: true).refusal(ofTarget: "V2") == nil && catalog().refusal(ofTarget: nil) == nil)
  }
}
