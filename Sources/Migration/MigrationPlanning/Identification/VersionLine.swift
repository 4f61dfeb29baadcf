// The versions among which one store can be migrated. For most stores they are those of one model; for a store of a
// named configuration each is restricted to it; for a store of merged models each is one version of every model. The
// steps after identification (the graph, the plan) see only the line and do not depend on how it was made.

import Diagnostics
import ManagedObjectModel
import SystemPackage

/// Versions that a store can have, oldest first.
package struct VersionLine: Sendable {
  /// A version of the model that stores of this line cannot have.
  struct Gap: Sendable {
    let position: Int
    let version: String
    let isCurrent: Bool
    let reason: HopdError
  }

  /// Name of the model, or of the models with " + ".
  package let modelName: String
  /// The paths from which the models were read.
  package let paths: [FilePath]
  /// The versions, by position.
  package let versions: [CatalogedVersion]
  /// Whether the order was declared.
  private(set) var isOrderDeclared = true
  /// Versions that are missing from the line, with reasons.
  private(set) var gaps: [Gap] = []
  /// Versions of the model that were left out because they cannot be read or used.
  private(set) var omitted: [OmittedVersion] = []
  /// The target, if making the line already decided it.
  private(set) var decidedTarget: CatalogedVersion?
}

extension VersionLine {
  /// The versions of one model, unchanged.
  package init(of bundle: ModelBundle, in catalog: ModelCatalog) {
    self.init(
      modelName: bundle.name, paths: [bundle.path], versions: catalog.versions.filter { $0.path == bundle.path },
      isOrderDeclared: bundle.isOrderDeclared, omitted: bundle.omitted)
  }

  /// Returns the line with each version restricted to the entities of a named configuration.
  func restricted(toConfiguration configuration: String) -> VersionLine {
    var kept: [CatalogedVersion] = []
    var gaps: [Gap] = []
    for version in versions {
      do {
        let part = try version.model.restricted(toConfiguration: configuration)
        kept.append(
          CatalogedVersion(
            modelName: version.modelName, path: version.path, model: part, versionHashes: part.versionHashes,
            position: version.position, isCurrent: version.isCurrent, configuration: configuration))
      } catch {
        gaps.append(
          Gap(
            position: version.position, version: version.model.name, isCurrent: version.isCurrent,
            reason: error.located(Place(file: version.path))))
      }
    }
    return VersionLine(
      modelName: modelName, paths: paths, versions: kept, isOrderDeclared: isOrderDeclared, gaps: gaps,
      omitted: omitted)
  }

  /// Returns the target version for a store of `version`.
  package func target(_ target: TargetVersion, for version: CatalogedVersion) throws(HopdError) -> CatalogedVersion {
    if case .own = target { return version }
    if let decidedTarget { return decidedTarget }
    let all = (versions.map { ($0.position, $0.model.name) } + gaps.map { ($0.position, $0.version) })
      .sorted { $0.0 < $1.0 }
    let names = all.map(\.1).joined(separator: ", ")
    let place = Place(file: paths.first)
    switch target {
    case .own: return version
    case .named(let name):
      if let found = versions.first(where: { $0.model.name == name }) { return found }
      if let gap = gaps.first(where: { $0.version == name }) { throw gap.reason }
      if let version = omitted.first(where: { $0.name == name }) { throw unusable(version, "it is the one to reach") }
      throw HopdError(
        .noSuchVersion, "the model \(modelName) has no version \"\(name)\"", at: place,
        hint: "use one of: \(names)")
    case .current:
      if let found = versions.first(where: \.isCurrent) { return found }
      if let gap = gaps.first(where: \.isCurrent) { throw gap.reason }
      if let version = omitted.first(where: \.isCurrent) { throw unusable(version, "it is the current one") }
      if isOrderDeclared || (all.count == 1 && omitted.isEmpty), let last = all.last {
        if let found = versions.last, found.position == last.0 { return found }
        if let gap = gaps.last { throw gap.reason }
      }
      throw HopdError(
        .noCurrentVersion, "the model \(modelName) does not state which of its versions is current", at: place,
        hint: "pass the version to reach (--to VERSION, or `target` in the configuration): \(names)")
    }
  }

  /// The error for a version that was left out but is needed.
  package func unusable(_ version: OmittedVersion, _ why: String) -> HopdError {
    HopdError(
      .versionUnusable,
      "the version “\(version.name)” of the model \(modelName) cannot be used, and \(why)",
      at: Place(file: paths.first),
      hint: version.reason.hint
        ?? "pass the compiled model of the app (.momd) next to its source, or repair the version",
      reasons: [version.reason])
  }

  /// Throws if a version between the two is missing from this line: no version is skipped.
  func requireNoGap(from start: CatalogedVersion, to target: CatalogedVersion) throws(HopdError) {
    let missing = gaps.filter { $0.position > start.position && $0.position < target.position }
    guard let first = missing.first else { return }
    if missing.count == 1 { throw first.reason }
    throw HopdError(
      first.reason.code,
      "\(missing.count) versions between \(start.model.name) and \(target.model.name) are not a version "
        + "of this store", at: Place(file: paths.first), hint: first.reason.hint, reasons: missing.map(\.reason))
  }
}
