import ArgumentParser
import ConfigurationInspection
import Diagnostics
import Glibc
import HopdConfiguration
import ManagedObjectModel
import MigrationChecking
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreReplacement
import SystemPackage

/// `hopctl explain STORE|MODEL`.
struct ExplainCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain", abstract: "Explain why a store or model cannot be migrated",
    discussion: """
      For a store that matches no version, shows the closest versions and how each entity differs, property by \
      property if the store contains its own model. For a store without a migration path, shows the missing hops and \
      why. For a model, shows every hop that cannot be inferred, or draws all of them. Read-only.
      """)

  @Argument(help: "A store or a model", completion: .file())
  var path: String

  @OptionGroup(title: "Model options") var source: ModelOptions

  @Option(help: "Target version (default: the model's current version)")
  var to: String?

  @Option(
    help: ArgumentHelp(
      "Draw the versions of a model and their hops, as svg or mermaid",
      discussion: "No store is tested: the drawing shows only the models and mapping models.", valueName: "format"))
  var graph: GraphFormat?

  @Option(
    help: ArgumentHelp(
      "Mark the versions of these stores: a store or a directory; repeatable",
      valueName: "dir"), completion: .file())
  var stores: [String] = []

  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    if graph == nil, !stores.isEmpty { throw ValidationError("--stores requires --graph.") }
  }

  func execute() throws {
    if let graph { return try draw(graph) }
    let isModel = ["xcdatamodeld", "xcdatamodel", "momd", "mom"].contains(FilePath(path).extension ?? "")
    // A file that is no model is a store, or should be one: then it is explained why it is none.
    let isFile = FilePath(path).linkStatus().map { $0.st_mode & S_IFMT == S_IFREG } ?? false
    let explanation =
      isModel || (source.models.isEmpty && source.config == nil && !isFile) ? try explainModel() : try explainStore()
    try output.lines(explanation.lines)
    try output.object(explanation.json)
    guard explanation.isRefusal else { return }
    if output.quiet, let error = explanation.error { ErrorReport.report(error) }
    throw Finished(status: .dataError)
  }

  func subject(_ paths: [String]) throws -> (checker: ModelChecker, catalog: ModelCatalog) {
    var subject = CheckSubject()
    subject.models = paths
    subject.mappings = source.mappings
    subject.order = source.order
    subject.source = source.source
    subject.to = to
    let loaded = try subject.load()
    try loaded.catalog.requireVersion(to)
    output.warn(loaded.warnings)
    var request = CheckRequest(catalog: loaded.catalog)
    request.target = subject.target
    return (ModelChecker(request), loaded.catalog)
  }

  // MARK: Models

  private func explainModel() throws -> Explanation {
    guard source.config == nil else {
      throw HopdError(
        .usage, "--config requires a store, and \(FilePath(path).printable) is a model", hint: "remove --config")
    }
    let report = try subject([path]).checker.inspect()
    var explanation = Explanation(path: path, state: "model")
    for model in report.models {
      explanation.hops += model.hops.filter { $0.step.kind == .missing }
      explanation.findings += model.problems + model.findings
      explanation.findings += model.warnings.filter { $0.error.code == .stageNeedsProgram }
    }
    explanation.next = (["hopctl", "check", path] + source.source.words).map(\.quotedForShell).joined(separator: " ")
    return explanation
  }

  // MARK: Stores

  private func explainStore() throws -> Explanation {
    let place = try StoreArgument.location(of: path)
    let location = place.store
    let (request, target, words) = try request(for: location)
    let (checker, catalog) = (ModelChecker(request), request.catalog)
    let found = try StoreIdentifier.identify(location, catalog: catalog, target: target, countsRows: false)
    var explanation = Explanation(
      path: path, state: found.state.rawValue, version: found.version?.model.name, target: found.target?.model.name,
      error: found.explanation)
    let command = "\(path.quotedForShell) \(words)"
    switch found.state {
    case .current:
      explanation.next = "nothing to do: the store is at \(found.target?.model.name ?? "the version to reach")"
      // A pin that cannot be read is no obstacle to a store at its target.
      try? explainPin(place, found, request, &explanation)
    case .behind:
      if found.version?.isFromStoreItself == true {
        explanation.isFromStoreItself = true
        explanation.nearest = nearest(to: found, at: location, in: catalog)
      }
      try explainWay(location, found, checker, request, command, &explanation)
      try explainPin(place, found, request, &explanation)
    case .unknown:
      explanation.nearest = nearest(to: found, at: location, in: catalog)
      explanation.hint = found.explanation?.hint
      explanation.next = withOtherModels
    case .newer:
      explanation.hint = found.explanation?.hint
      explanation.next = withOtherModels
    case .damaged:
      explanation.next = "hopctl backups \(path.quotedForShell), then hopctl restore \(path.quotedForShell)"
    case .xmlStore:
      explanation.next = "hopctl migrate \(command) --output NEW.sqlite"
    case .notAStore, .encrypted, .binaryStore:
      explanation.hint = found.explanation?.hint
      explanation.next = "hopctl fleet scan \(location.directory.quotedForShell) \(words)"
    }
    return explanation
  }

  /// The command to repeat once there is a model that fits.
  private var withOtherModels: String {
    (["hopctl", "explain", path, "--models", "MODEL"] + source.source.words).map(\.quotedForShell)
      .joined(separator: " ")
  }

  /// The models to compare the store with: those on the command line, those of its watch with the watch's rules, or
  /// those that lie beside it.
  private func request(for location: StoreLocation) throws -> (
    request: CheckRequest, target: TargetVersion, words: String
  ) {
    guard source.models.isEmpty else {
      var request = CheckRequest(catalog: try subject(source.models).catalog)
      request.target = to.map { .named($0) } ?? .current
      return (request, request.target, source.words)
    }
    let isStore = StoreModels.isStore(location.database)
    let loaded = try source.load(for: location, withMappings: true, search: isStore ? .aroundStore : .everywhere)
    output.tell(loaded.found)
    try loaded.catalog.requireVersion(to)
    output.warn(loaded.warnings)
    if let mistake = loaded.mistake { throw mistake }
    var request = CheckRequest(catalog: loaded.catalog)
    request.target = (to ?? loaded.watch?.target).map { .named($0) } ?? .current
    if let watch = loaded.watch {
      request.settings = MigrationSettings(watch, memoryLimit: loaded.memoryLimit ?? EngineOptions().memoryLimit)
    }
    return (request, request.target, loaded.found?.words ?? source.words)
  }

  /// Explains the pin of a store, if it has one.
  private func explainPin(
    _ location: CanonicalStoreLocation, _ found: StoreAssessment, _ request: CheckRequest,
    _ explanation: inout Explanation
  ) throws {
    guard let pin = try MigrationPipeline().pinInEffect(location, found, rule: request.settings.pinRule) else { return }
    explanation.hint = "unpin the store, which was \(pin.account)"
    explanation.next = "hopctl resume \(path.quotedForShell)"
  }

  /// Explains the chain of a store that is behind, or why there is none.
  private func explainWay(
    _ location: StoreLocation, _ found: StoreAssessment, _ checker: ModelChecker, _ request: CheckRequest,
    _ command: String, _ explanation: inout Explanation
  ) throws {
    guard let store = found.identified else { return }
    do {
      let plan = try StoreReader.withUnchangedStore(at: location) { reader in
        try MigrationPlanner.plan(
          store: store, catalog: request.catalog, target: request.target, rules: rules(request, location),
          reader: reader)
      }
      explanation.way = plan.hops.map(\.title)
      explanation.findings = plan.warnings.filter { $0.code == .stageNeedsProgram }.map { CheckFinding($0) }
      explanation.next = "hopctl \(explanation.findings.isEmpty ? "migrate" : "plan") \(command)"
    } catch let error as HopdError where error.code == .storeDamaged {
      throw error.located(Place(store: location.database))
    } catch let error as HopdError {
      explanation.error = error
      explanation.findings = checker.findings(of: error)
      explanation.hint = explanation.findings.isEmpty ? error.hint : "apply one of the remedies above first"
      explanation.next = "hopctl plan \(command)"
    }
  }

  /// The rules that a migration would follow.
  private func rules(_ request: CheckRequest, _ location: StoreLocation) -> PlanningRules {
    MigrationRequest(
      location: CanonicalStoreLocation(unresolved: location.database), catalog: request.catalog, target: request.target,
      settings: request.settings,
      stateDirectory: location.directory, job: ""
    ).rules
  }

  /// The nearest versions for a store that matches none, at most three.
  private func nearest(
    to found: StoreAssessment, at location: StoreLocation, in catalog: ModelCatalog
  ) -> [Explanation.Near] {
    guard let hashes = found.metadata?.versionHashes, !hashes.isEmpty else { return [] }
    let own = try? StoreModels.bundle(ofStoreAt: location.database).versions.first
    let ranked = catalog.versions.map { ($0, VersionComparison.differences(hashes, $0.versionHashes)) }
      .sorted { left, right in
        left.1.count != right.1.count ? left.1.count < right.1.count : left.0.position > right.0.position
      }
    // Of a store that has nothing in common with any version, three lists of all entities say no more than one.
    let isForeign = !ranked.contains { version, _ in hashes.contains { version.versionHashes[$0.key] == $0.value } }
    return ranked.prefix(isForeign ? 1 : 3).map { version, differences in
      Explanation.Near(
        model: version.modelName, version: version.model.name,
        alike: hashes.count { version.versionHashes[$0.key] == $0.value }, entities: hashes.count,
        differing: differences, difference: own.map { ModelDifference(ofVersion: version.model, edited: $0) })
    }
  }
}
