// The check of one model: which of its versions are tried, what the models alone show about each hop, and the merged
// findings of all versions.

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationPipeline
import MigrationPlanning
import MigrationPolicy
import SystemPackage

/// The check of one model.
struct LineCheck: Sendable {
  let bundle: ModelBundle
  private let request: CheckRequest
  private let versions: [CatalogedVersion]
  private let target: CatalogedVersion?
  private let problem: HopdError?
  private let hops: [HopCheck]

  init(_ bundle: ModelBundle, request: CheckRequest) {
    self.bundle = bundle
    self.request = request
    let line = VersionLine(of: bundle, in: request.catalog)
    versions = line.versions
    var (target, problem): (CatalogedVersion?, HopdError?) = (nil, nil)
    if let any = line.versions.last {
      do throws(HopdError) { target = try line.target(request.target, for: any) } catch { problem = error }
    } else if let omitted = bundle.omitted.first {
      problem = line.unusable(omitted, "the model has no other")
    }
    self.target = target
    self.problem = problem
    hops = HopTable(versions: line.versions, catalog: request.catalog, settings: request.settings).hops
  }

  /// Names of all versions.
  var names: [String] { versions.map(\.model.name) + bundle.omitted.map(\.name) }

  /// The versions whose stores are tried.
  var toCheck: [CatalogedVersion] { versions.filter { isWanted($0.model.name, $0.position) && verdict(of: $0) == nil } }

  private func version(named name: String) -> CatalogedVersion? { versions.first { $0.model.name == name } }

  private func isWanted(_ name: String, _ position: Int) -> Bool {
    if let first = request.since.flatMap(version(named:)), position < first.position { return false }
    return request.only.isEmpty || request.only.contains(name)
  }

  /// Returns the verdict that needs no trial; nil if the version must be tried.
  private func verdict(of version: CatalogedVersion) -> CheckVerdict? {
    guard let target else { return .skipped }
    if version.position == target.position { return .current }
    if version.versionHashes == target.versionHashes { return .same }
    return version.position > target.position && !leadsBack(from: version, to: target) ? .later : nil
  }

  /// Whether mapping models lead back from a later version.
  private func leadsBack(from version: CatalogedVersion, to target: CatalogedVersion) -> Bool {
    guard !request.catalog.mappings.isEmpty else { return false }
    let graph = MigrationGraph(versions: versions, infer: false, mappings: request.catalog.mappings)
    return (try? graph.route(from: version, to: target)) != nil
  }

  // MARK: One version

  /// Tries a version.
  func check(_ version: CatalogedVersion, _ trial: StoreTrial) throws(HopdError) -> VersionCheck {
    guard let target else {
      throw HopdError(.internalError, "a version without a target was to be checked")
    }
    let start = ContinuousClock.now
    let way = way(from: version, to: target)
    let steps = way.map { edges in edges.map { HopStep($0) } }
    var check = try trial.check(version, to: target, way: steps)
    if case .success(let edges) = way {
      check.drops = dropped.drops(
        of: edges, from: version, frameworkVersion: request.frameworkVersion,
        counted: check.verdict == .passed ? check.drops : nil)
    }
    check.seconds = ModelChecker.seconds(since: start)
    return check
  }

  /// Returns the chain from a version according to the models alone.
  private func way(
    from version: CatalogedVersion, to target: CatalogedVersion
  ) -> Result<[MigrationGraph.Edge], HopdError> {
    let settings = request.settings
    let rules = RouteRules(
      infer: settings.infer, renames: settings.renames, route: settings.route, allowsOlder: request.catalog.allowsOlder)
    let graph = MigrationGraph(
      versions: versions, rules: rules, mappings: request.catalog.mappings, cache: request.catalog.cache)
    return Result { () throws(HopdError) in try graph.route(from: version, to: target) }
  }

  private var dropped: DroppedData { DroppedData(bundle: bundle, hops: hops, lock: request.shipped.lock) }

  // MARK: All versions

  /// Returns the model with the results of the trials.
  func result(with tried: [VersionCheck]) -> ModelCheck {
    var checks = versions.map { version -> VersionCheck in
      if let check = tried.first(where: { $0.position == version.position }) { return check }
      let name = version.model.name
      let known = verdict(of: version)
      if known == .current || isWanted(name, version.position) {
        return VersionCheck(name, at: version.position, known ?? .skipped, note: note(known))
      }
      return VersionCheck(name, at: version.position, .skipped, note: "excluded by --only or --since")
    }
    checks += bundle.omitted.map(omitted)
    var model = ModelCheck(
      name: bundle.name, path: bundle.path, target: target?.model.name, order: bundle.order, versions: checks,
      hops: hops, problems: [])
    let changes = changes()
    model.origin = bundle.origin
    for index in model.versions.indices {
      model.versions[index].tags = bundle.origin?.tags[model.versions[index].name] ?? []
    }
    model.problems = ([problem].compactMap(\.self) + changes.errors + setBack()).map { CheckFinding($0) }
    model.findings = Self.merged(checks.filter { $0.verdict.isRed || $0.verdict == .policy }, \.findings)
    model.extremes = Self.merged(checks.filter { !$0.verdict.isRed }, \.extremes)
    let broken = Set(checks.filter(\.verdict.isRed).flatMap { $0.findings.compactMap(\.error.place.hop) })
    for index in model.hops.indices where broken.contains(model.hops[index].title) {
      model.hops[index].isBroken = true
    }
    model.findings = withoutInherited(model.findings).map(withRemedies)
    model.extremes = model.extremes.map(withRemedies)
    let renames = SuspectedRenames(
      hops: hops.filter { isOnTheWay($0.step) }, findings: model.findings, words: request.words(for: bundle),
      isSource: bundle.origin != nil)
    let drops = dropped.findings(checks)
    if request.failsOnDrop { model.problems += drops } else { model.drops = drops }
    model.warnings = renames.warnings(versions.map(\.model)) + changes.warnings.map { CheckFinding($0) }
    model.warnings +=
      SourceWarnings(
        bundle: bundle, words: request.words(for: bundle), declared: request.catalog.mappings.stages
      ).findings
    return model
  }

  /// Whether stores of the checked versions use a hop.
  private func isOnTheWay(_ step: HopStep) -> Bool {
    guard let target, let source = version(named: step.source), let destination = version(named: step.destination)
    else { return false }
    let oldest = versions.first { isWanted($0.model.name, $0.position) }?.position ?? .max
    return source.position >= oldest && destination.position <= target.position
  }

  /// Names of all given models.
  private var models: [String] { request.catalog.bundles.map(\.name) }

  /// Returns the changes of shipped versions.
  private func changes() -> ShippedFindings {
    request.shipped.findings(of: bundle, besides: models, frameworkVersion: request.frameworkVersion)
  }

  /// Returns the errors for shipped versions after the one that the model marks as current: the app cannot open their
  /// stores.
  private func setBack() -> [HopdError] {
    guard case .current = request.target, let target,
      let shipped = request.shipped.shipped(of: bundle, besides: models, frameworkVersion: request.frameworkVersion)
    else { return [] }
    let names = ShippedModel(bundle, frameworkVersion: request.frameworkVersion).newNames(of: shipped)
    let known = Set(shipped.versions.map { names[$0.name] ?? $0.name }).subtracting(request.shipped.replaced)
    return versions.filter { known.contains($0.model.name) && verdict(of: $0) == .later }.map { version in
      HopdError(
        .shippedVersionLater,
        "the version \(version.model.name) has shipped and comes after \(target.model.name), which is the current one "
          + "now: an app with this model cannot open its stores", at: Place(file: bundle.path),
        hint:
          "mark \(version.model.name), or a later version, as the current one again; if it is older, declare the "
          + "order with --order")
    }
  }

  private func note(_ verdict: CheckVerdict?) -> String? {
    switch verdict {
    case .same: "the same hashes as \(target?.model.name ?? "the current version"): no migration"
    case .later:
      "it comes after \(target?.model.name ?? "the current version"), and stores are not migrated backward"
        + (bundle.isOrderDeclared ? "" : "; if it is older, declare the order with --order")
    case .skipped: "the model does not state which version is current"
    default: nil
    }
  }

  private func omitted(_ version: OmittedVersion) -> VersionCheck {
    let position = versions.count
    if version.reason.isEmptyModel {
      return VersionCheck(version.name, at: position, .empty, note: "no entities, so its stores are empty")
    }
    guard isWanted(version.name, .max) else {
      return VersionCheck(version.name, at: position, .skipped, note: "excluded by --only or --since")
    }
    var check = VersionCheck(version.name, at: position, .failed, note: "unreadable")
    // Each part of a source that cannot be derived is a finding with a place of its own.
    let reasons = bundle.origin == nil || version.reason.reasons.isEmpty ? [version.reason] : version.reason.reasons
    check.findings = reasons.map { CheckFinding($0.located(Place(file: bundle.path(ofVersion: version.name)))) }
    return check
  }

  /// Returns the findings of all versions without duplicates, each with the versions that it stops.
  private static func merged(_ checks: [VersionCheck], _ findings: (VersionCheck) -> [CheckFinding]) -> [CheckFinding] {
    struct Key: Hashable { let code: HopdError.Code, hop, entity, property: String?, text: String }
    var order: [Key] = []
    var found: [Key: CheckFinding] = [:]
    // The message of the nearest version is kept; it counts the rows of that version.
    for check in checks.reversed() {
      for finding in findings(check) {
        let place = finding.error.place
        let key = Key(
          code: finding.error.code, hop: place.hop, entity: place.entity, property: place.property,
          text: place.property == nil ? finding.error.message.filter { !$0.isNumber } : "")
        if found[key] == nil { order.append(key) }
        found[key, default: finding].isOfRows = (found[key]?.isOfRows ?? true) && finding.isOfRows
        if found[key]?.stopped.last != check.name { found[key]?.stopped.append(check.name) }
      }
    }
    return order.reversed().compactMap { key in
      found[key].map {
        var finding = $0
        finding.stopped.reverse()
        return finding
      }
    }
  }

  /// Leaves out findings about a property that a subentity inherits, if the same is reported for the entity that
  /// declares it. Equal rows are left: the rule for them is one per entity.
  private func withoutInherited(_ findings: [CheckFinding]) -> [CheckFinding] {
    findings.filter { finding in
      let place = finding.error.place
      guard finding.error.code != .uniquenessViolation, let entity = place.entity, let property = place.property,
        let hop = hops.first(where: { $0.title == place.hop }),
        let model = version(named: hop.step.destination)?.model,
        let value = model.entity(named: entity),
        let owner = model.declaringEntity(of: property, in: value), owner.name != entity
      else { return true }
      return !findings.contains {
        $0.error.code == finding.error.code && $0.error.place.hop == place.hop && $0.error.place.property == property
          && $0.error.place.entity == owner.name
      }
    }
  }

  /// Returns the finding with its remedies.
  func withRemedies(_ finding: CheckFinding) -> CheckFinding {
    var finding = finding
    let hop = hops.first { $0.title == finding.error.place.hop }
    if let hop, let source = version(named: hop.step.source)?.model,
      let destination = version(named: hop.step.destination)?.model
    {
      finding.remedies =
        Remedies(
          source: source, destination: destination, difference: hop.difference, model: bundle.path,
          isSource: bundle.origin != nil, words: request.words(for: bundle)
        ).remedies(of: finding.error)
    }
    return finding
  }
}

extension HopdError {
  /// Whether a version was left out because it has no entities.
  fileprivate var isEmptyModel: Bool {
    ([self] + reasons).contains { $0.code == .invalidModel && $0.message == "the model has no entities" }
  }
}

extension HopStep {
  /// A step of a chain.
  init(_ edge: MigrationGraph.Edge) {
    let own = edge.mapped?.mappings.filter { !$0.path.isEmpty } ?? []
    self.init(
      source: edge.source.model.name, destination: edge.destination.model.name,
      kind: own.isEmpty ? .inferred : edge.mapped?.policies.isEmpty == false ? .policy : .mapping,
      mappings: own.map(\.name))
  }
}
