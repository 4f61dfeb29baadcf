// What `check --json` prints. Keys are a contract: they are added to, never renamed.

import Diagnostics
import ManagedObjectModel
import MigrationChecking
import SystemPackage

/// `check`.
struct ModelCheckShape: Encodable {
  /// "green", "red", or "policy" where nothing is red and a policy has no program.
  let result: String
  let models: [Model]
  let stores: [Store]
  let warnings: [ErrorShape]
  let seconds: Double
  let peakMemory: Int64

  struct Model: Encodable {
    let name: String
    let path: String
    /// The version that all others must reach; null where the model does not say it.
    @OrNull var target: String?
    let order: String
    let versions: [Version]
    let hops: [Hop]
    /// Everything that is wrong, each once.
    let findings: [Finding]
    /// What stops nobody and is perhaps not meant.
    let warnings: [Finding]
    /// What stops only rare rows: at the limits of their types, or alike where they must differ.
    let notes: [Finding]
  }

  struct Version: Encodable {
    let name: String
    /// "current", "same", "passed", "failed", "untried", "policy", "later", "empty" or "skipped".
    let verdict: String
    @OrNull var note: String?
    let way: [Step]
    let objects: Int64
    let bytes: Int64
    let seconds: Double
    let dropped: [Drop]
    /// Is there one direct hop? null where that was not tried.
    @OrNull var directHop: Bool?
    /// Where it gives other rows than the way through the versions.
    let directDifferences: [Difference]
    let findings: [Finding]
    let warnings: [ErrorShape]
  }

  struct Step: Encodable {
    let source: String
    let destination: String
    /// "inferred", "mapping", "policy" or "missing".
    let kind: String
    let mappings: [String]
  }

  struct Hop: Encodable {
    let source: String
    let destination: String
    let kind: String
    let mappings: [String]
    /// Do the two versions follow each other?
    let consecutive: Bool
    /// Did a store fail on it?
    let broken: Bool
    let reasons: [ErrorShape]
    let difference: ModelDiffShape
  }

  struct Finding: Encodable {
    let code: String
    let message: String
    @OrNull var hint: String?
    @OrNull var hop: String?
    @OrNull var entity: String?
    @OrNull var property: String?
    /// Are only stores stopped that have such rows?
    let rowsDecide: Bool
    /// Versions whose stores are stopped.
    let stops: [String]
    let waysOut: [WayOut]
  }

  struct WayOut: Encodable {
    let kind: String
    let title: String
    let text: String
  }

  struct Drop: Encodable {
    let hop: String
    let entity: String
    @OrNull var property: String?
    let count: Int64
  }

  struct Difference: Encodable {
    let entity: String
    @OrNull var property: String?
    let count: Int64
  }

  struct Store: Encodable {
    let path: String
    @OrNull var version: String?
    let verdict: String
    let objects: Int64
    let bytes: Int64
    let seconds: Double
    let dropped: [Drop]
    let findings: [Finding]
  }
}

extension ModelCheckShape {
  init(_ report: CheckReport) {
    result = report.isRed ? "red" : report.needsPolicies ? "policy" : "green"
    models = report.models.map(Model.init)
    stores = report.stores.map(Store.init)
    warnings = report.warnings.map(ErrorShape.init)
    seconds = report.seconds
    peakMemory = report.peakMemory
  }
}

extension ModelCheckShape.Model {
  init(_ model: ModelCheck) {
    self.init(
      name: model.name, path: model.path.string, target: OrNull(wrappedValue: model.target),
      order: model.order.rawValue, versions: model.versions.map(ModelCheckShape.Version.init),
      hops: model.hops.map(ModelCheckShape.Hop.init),
      findings: (model.problems + model.findings).map(ModelCheckShape.Finding.init),
      warnings: model.warnings.map(ModelCheckShape.Finding.init),
      notes: model.extremes.map(ModelCheckShape.Finding.init))
  }
}

extension ModelCheckShape.Version {
  init(_ version: VersionCheck) {
    self.init(
      name: version.name, verdict: version.verdict.rawValue, note: OrNull(wrappedValue: version.note),
      way: version.steps.map(ModelCheckShape.Step.init), objects: version.objects, bytes: version.bytes,
      seconds: version.seconds, dropped: version.drops.map(ModelCheckShape.Drop.init),
      directHop: OrNull(wrappedValue: version.hasDirectHop),
      directDifferences: version.directDifferences.map {
        ModelCheckShape.Difference(entity: $0.entity, property: OrNull(wrappedValue: $0.property), count: $0.count)
      }, findings: version.findings.map(ModelCheckShape.Finding.init), warnings: version.warnings.map(ErrorShape.init))
  }
}

extension ModelCheckShape.Step {
  init(_ step: HopStep) {
    self.init(
      source: step.source, destination: step.destination, kind: step.kind.rawValue, mappings: step.mappings)
  }
}

extension ModelCheckShape.Hop {
  init(_ hop: HopCheck) {
    self.init(
      source: hop.step.source, destination: hop.step.destination, kind: hop.step.kind.rawValue,
      mappings: hop.step.mappings, consecutive: hop.isConsecutive, broken: hop.isBroken,
      reasons: hop.reasons.map(ErrorShape.init), difference: ModelDiffShape(hop.difference))
  }
}

extension ModelCheckShape.Finding {
  init(_ finding: CheckFinding) {
    let error = finding.error
    self.init(
      code: error.code.name, message: error.message, hint: OrNull(wrappedValue: error.hint),
      hop: OrNull(wrappedValue: error.place.hop), entity: OrNull(wrappedValue: error.place.entity),
      property: OrNull(wrappedValue: error.place.property), rowsDecide: finding.isOfRows, stops: finding.stopped,
      waysOut: finding.remedies.map {
        ModelCheckShape.WayOut(kind: $0.kind.rawValue, title: $0.title, text: $0.text)
      })
  }
}

extension ModelCheckShape.Drop {
  init(_ drop: CheckDrop) {
    self.init(
      hop: drop.hop, entity: drop.entity, property: OrNull(wrappedValue: drop.property), count: drop.count)
  }
}

extension ModelCheckShape.Store {
  init(_ store: StoreCheck) {
    self.init(
      path: store.path.string, version: OrNull(wrappedValue: store.version), verdict: store.verdict.rawValue,
      objects: store.objects, bytes: store.bytes, seconds: store.seconds,
      dropped: store.drops.map(ModelCheckShape.Drop.init), findings: store.findings.map(ModelCheckShape.Finding.init))
  }
}
