import ArgumentParser
import Diagnostics
import ManagedObjectModel
import MigrationChecking
import MigrationPlanning
import PersistentStore
import SystemPackage

/// `hopctl explain STORE|MODEL`.
struct ExplainCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain", abstract: "Says why a store or a model is stuck, part by part, and what to type next.",
    discussion: """
      Of a store that fits no version: the nearest ones, entity by entity and property by property, as far as the store holds its own \
      model. Of a store without a way: the hops that are missing, and why. Of a model: every hop that cannot be inferred. Nothing is changed.
      """)

  @Argument(help: "A store, or a model.", completion: .file())
  var path: String

  @Option(help: "A model of the store; may be repeated.", completion: .file())
  var models: [String] = []

  @Option(help: "A mapping model, or a folder of them; may be repeated.", completion: .file())
  var mappings: [String] = []

  @Option(name: .customLong("order"), parsing: .upToNextOption, help: "All versions of the model, oldest first.")
  var order: [String] = []

  @Option(help: "The version to reach; else the model's current one.")
  var to: String?

  @OptionGroup var output: OutputOptions

  func execute() throws {
    let isModel = ["xcdatamodeld", "xcdatamodel", "momd", "mom"].contains(FilePath(path).extension ?? "")
    let shape =
      isModel || (models.isEmpty && !StoreModels.isStore(FilePath(path)))
      ? try explainModel() : try explainStore()
    for line in ExplainText(shape).lines { try output.line(line) }
    try output.object(shape)
  }

  private func subject(_ paths: [String]) throws -> (checker: ModelChecker, catalog: ModelCatalog) {
    var subject = CheckSubject()
    subject.models = paths
    subject.mappings = mappings
    subject.order = order
    subject.to = to
    let loaded = try subject.load()
    output.warn(loaded.warnings)
    var request = CheckRequest(catalog: loaded.catalog)
    request.target = subject.target
    return (ModelChecker(request), loaded.catalog)
  }

  // MARK: Models

  private func explainModel() throws -> ExplainShape {
    let report = try subject([path]).checker.look()
    var shape = ExplainShape(path: path, state: "model")
    for model in report.models {
      shape.hops += model.hops.filter { $0.step.kind == .missing }.map(ModelCheckShape.Hop.init)
      shape.findings += (model.problems + model.findings).map(ModelCheckShape.Finding.init)
    }
    shape.next = "hopctl check \(path.quotedForShell)"
    return shape
  }

  // MARK: Stores

  private func explainStore() throws -> ExplainShape {
    let location = try StoreArgument.location(of: path)
    guard !models.isEmpty else {
      throw HopdError(
        .usage, "the store is compared with models, and none was given", at: Place(store: location.database),
        hint: "name the app's model: hopctl explain \(path.quotedForShell) --models MODEL")
    }
    let (checker, catalog) = try subject(models)
    let target: TargetVersion = to.map { .named($0) } ?? .current
    let found = try StoreIdentifier.identify(location, catalog: catalog, target: target, countsRows: false)
    var shape = ExplainShape(path: path, state: found.state.rawValue)
    shape.version = found.version?.model.name
    shape.target = found.target?.model.name
    shape.error = found.explanation.map(ErrorShape.init)
    let model = models.map { "--models \($0.quotedForShell)" }.joined(separator: " ")
    let command = "\(path.quotedForShell) \(model)"
    switch found.state {
    case .current: shape.next = "nothing: the store is at \(found.target?.model.name ?? "the version to reach")"
    case .behind: try explainWay(location, found, checker, catalog, target, command, &shape)
    case .unknown:
      shape.nearest = nearest(to: found, at: location, in: catalog)
      shape.next = found.explanation?.hint ?? "add the model that the store was made with: --models PATH"
    case .newer: shape.next = found.explanation?.hint ?? "give a newer model"
    case .damaged: shape.next = "hopctl backups \(path.quotedForShell), then hopctl restore \(path.quotedForShell)"
    case .notAStore, .encrypted: shape.next = found.explanation?.hint ?? "name another file"
    }
    return shape
  }

  /// The way of a store that is behind, or what is missing of it.
  private func explainWay(
    _ location: StoreLocation, _ found: StoreAssessment, _ checker: ModelChecker, _ catalog: ModelCatalog,
    _ target: TargetVersion, _ command: String, _ shape: inout ExplainShape
  ) throws {
    guard let store = found.identified else { return }
    do {
      let plan = try StoreReader.withUnchangedStore(at: location) { reader in
        try MigrationPlanner.plan(store: store, catalog: catalog, target: target, reader: reader)
      }
      shape.way = plan.hops.map(\.title)
      shape.next = "hopctl migrate \(command)"
    } catch let error as HopdError {
      shape.error = ErrorShape(error)
      shape.findings = checker.findings(of: error).map(ModelCheckShape.Finding.init)
      shape.next =
        shape.findings.isEmpty
        ? error.hint ?? "hopctl plan \(command)" : "one of the ways out above, then hopctl plan \(command)"
    }
  }

  /// The nearest versions of a store that fits none, at most three.
  private func nearest(
    to found: StoreAssessment, at location: StoreLocation, in catalog: ModelCatalog
  ) -> [ExplainShape.Near] {
    guard let hashes = found.metadata?.versionHashes, !hashes.isEmpty else { return [] }
    let own = try? StoreModels.bundle(ofStoreAt: location.database).versions.first
    let ranked = catalog.versions.map { ($0, VersionComparison.differences(hashes, $0.versionHashes)) }
      .sorted { left, right in
        left.1.count != right.1.count ? left.1.count < right.1.count : left.0.position > right.0.position
      }
    return ranked.prefix(3).map { version, differences in
      ExplainShape.Near(
        model: version.modelName, version: version.model.name,
        alike: hashes.count { version.versionHashes[$0.key] == $0.value }, entities: hashes.count,
        differing: differences.map(ExplainShape.Differing.init),
        difference: OrNull(
          wrappedValue: own.map { ModelDiffShape(ModelDifference(ofVersion: version.model, edited: $0)) }))
    }
  }
}
