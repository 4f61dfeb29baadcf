// The known shipped versions, and which source decides if they differ: the lock of the base commit of a pull request
// takes precedence over the lock in the working tree, and a lock over the models of that commit. An edit of a shipped
// version stays an edit even if its line in the lock is changed with it.

import Diagnostics
import ManagedObjectModel
import SystemPackage

extension HopdError.Code {
  /// A line of the lock at the base commit is missing or different, while the model is unchanged.
  package static let lockChanged = HopdError.Code("lock-changed", exit: .dataError)
  /// A version of the base commit is in no lock.
  package static let versionNotLocked = HopdError.Code("version-not-locked", exit: .success)
  /// A shipped version comes after the current one.
  package static let shippedVersionLater = HopdError.Code("shipped-version-later", exit: .dataError)
  /// A model has another name than in the lock.
  package static let shippedModelRenamed = HopdError.Code("shipped-model-renamed", exit: .success)
  /// A version in the lock is replaced on request.
  package static let shippedVersionReplaced = HopdError.Code("shipped-version-replaced", exit: .success)
}

/// The shipped versions, from the lock and from git.
package struct ShippedRecord: Sendable {
  /// The lock in the working tree; nil if there is none.
  package var lock: LockFile?
  /// The base commit, tag or branch of the comparison.
  package var ref: String?
  /// The lock at that commit.
  package var lockAtBase: LockFile?
  /// The models at that commit.
  package var bases: [ModelBundle] = []
  /// Versions that may differ from their records, by the operator's decision.
  package var replaced: Set<String> = []
  /// Whether the lock in the working tree is about to be written.
  package var isFreezing = false

  /// Creates an empty record.
  package init() {}

  /// Returns the option to type if a recorded version was wrong.
  static func replacing(_ version: String) -> String { "add --freeze --replace \(version.quotedForShell)" }

  /// Names of all recorded versions.
  package var names: [String] {
    ((lock?.models ?? []) + (lockAtBase?.models ?? [])).flatMap { $0.versions.map(\.name) }
      + bases.flatMap { base in
        base.versions.map(\.name)
      }
  }

  // MARK: Models

  /// Returns a model's record in a lock: under its name, otherwise under a name that no given model has, with a common
  /// version.
  private func noted(_ now: ShippedModel, in lock: LockFile?, besides others: [String]) -> ShippedModel? {
    guard let lock else { return nil }
    // A model of which only drops are allowed has no shipped version noted.
    if let same = lock.model(named: now.name) { return same.versions.isEmpty ? nil : same }
    let hashes = Set(now.versions.map(\.hashes))
    return lock.models.first { model in
      !others.contains(model.name) && model.versions.contains { !$0.entities.isEmpty && hashes.contains($0.hashes) }
    }
  }

  /// Returns the shipped versions of a model from the source that takes precedence; `others` are names of all given
  /// models.
  package func shipped(of bundle: ModelBundle, besides others: [String], frameworkVersion: Int64) -> ShippedModel? {
    let now = ShippedModel(bundle, frameworkVersion: frameworkVersion)
    let here = noted(now, in: lock, besides: others)
    let models = base(of: bundle).map { ShippedModel($0, frameworkVersion: frameworkVersion) }
    if let before = noted(now, in: lockAtBase, besides: others) {
      return ShippedModel(name: before.name, versions: before.versions + added(here, to: before))
    }
    guard let here else { return models }
    // The lock is new in this pull request: git has the earlier state of its versions.
    return ShippedModel(name: here.name, versions: here.versions.map { models?.version(named: $0.name) ?? $0 })
  }

  /// Returns the versions of this lock that the lock at the base commit does not have under any name.
  private func added(_ here: ShippedModel?, to before: ShippedModel) -> [ShippedVersion] {
    guard let here else { return [] }
    let known = Set(before.versions.map(\.name)).union(here.newNames(of: before).values)
    return here.versions.filter { !known.contains($0.name) }
  }

  private func base(of bundle: ModelBundle) -> ModelBundle? { bases.first { $0.name == bundle.name } }

  // MARK: Findings

  /// Returns all differences from the shipped versions.
  func findings(of bundle: ModelBundle, besides others: [String], frameworkVersion: Int64) -> ShippedFindings {
    let now = ShippedModel(bundle, frameworkVersion: frameworkVersion)
    guard let shipped = shipped(of: bundle, besides: others, frameworkVersion: frameworkVersion) else {
      return ShippedFindings()
    }
    let kept = ShippedModel(name: shipped.name, versions: shipped.versions.filter { !replaced.contains($0.name) })
    let here = noted(now, in: lock, besides: others)
    let isNew = noted(now, in: lockAtBase, besides: others).map { before in Set(added(here, to: before).map(\.name)) }
    var findings = ShippedFindings()
    if shipped.name != bundle.name {
      findings.warnings.append(
        HopdError(
          .shippedModelRenamed,
          "the model \(shipped.name) has shipped and is called \(bundle.name) now: its versions are compared with "
            + "those that are noted under the old name", at: Place(file: bundle.path),
          hint: "run --freeze to record the new name"))
    }
    findings.add(
      LockComparison(
        shipped: kept, bundle: bundle, base: base(of: bundle), frameworkVersion: frameworkVersion,
        placeless: isNew ?? []
      ).findings())
    findings.warnings += replacements(in: shipped, bundle, frameworkVersion)
    if !isFreezing { findings.errors += lockEdits(now, bundle, others) }
    findings.warnings += unlocked(now, bundle, others, frameworkVersion)
    return findings
  }

  /// Returns the findings that `--replace` permits, as remarks.
  private func replacements(in shipped: ShippedModel, _ bundle: ModelBundle, _ frameworkVersion: Int64) -> [HopdError] {
    let chosen = ShippedModel(name: shipped.name, versions: shipped.versions.filter { replaced.contains($0.name) })
    guard !chosen.versions.isEmpty else { return [] }
    let found = LockComparison(
      shipped: chosen, bundle: bundle, base: base(of: bundle), frameworkVersion: frameworkVersion
    ).findings()
    return found.errors.map { error in
      HopdError(
        .shippedVersionReplaced, "replaced: \(error.message)", at: error.place,
        hint: "restore the replaced version if users have stores of it")
    }
  }

  /// Returns lines of the lock at the base commit that the lock in the working tree lacks or has changed, while the
  /// model itself is unchanged.
  private func lockEdits(_ now: ShippedModel, _ bundle: ModelBundle, _ others: [String]) -> [HopdError] {
    guard let ref, let before = noted(now, in: lockAtBase, besides: others) else { return [] }
    func edited(_ message: String, _ entity: String? = nil) -> HopdError {
      HopdError(
        .lockChanged, message, at: Place(file: bundle.path, entity: entity),
        hint: "restore the lock of \(ref) (git checkout \(ref.quotedForShell) -- hop.lock), then --freeze")
    }
    guard let here = noted(now, in: lock, besides: others) else {
      return [edited("the lock at \(ref) has the versions of \(before.name), and the lock here has none of them")]
    }
    let (names, newNames) = (here.newNames(of: before), now.newNames(of: before))
    return before.versions.filter { !replaced.contains($0.name) }.flatMap { old -> [HopdError] in
      guard let line = here.version(named: names[old.name] ?? old.name) else {
        return [edited("the version \(old.name) is in the lock at \(ref), and no more in the lock here")]
      }
      // If the model changed together with its line, the comparison with the model reports it.
      let model = now.version(named: newNames[old.name] ?? old.name)
      return old.entities.compactMap { entity -> HopdError? in
        let (other, built) = (line.entity(named: entity.name), model?.entity(named: entity.name))
        guard other?.hash != entity.hash || other?.layout != entity.layout, built?.hash == entity.hash else {
          return nil
        }
        return edited(
          "the line of \(entity.name) in \(old.name) is another one than in the lock at \(ref)", entity.name)
      }
    }
  }

  /// Returns versions of the base commit that no lock has: shipped and forgotten, or still in development.
  private func unlocked(
    _ now: ShippedModel, _ bundle: ModelBundle, _ others: [String], _ frameworkVersion: Int64
  ) -> [HopdError] {
    guard let ref, !isFreezing, let here = noted(now, in: lock, besides: others), let base = base(of: bundle) else {
      return []
    }
    let hashes = Set(here.versions.map(\.hashes))
    return ShippedModel(base, frameworkVersion: frameworkVersion).versions.filter { version in
      here.version(named: version.name) == nil && !hashes.contains(version.hashes)
    }.map { version in
      let isGone = now.version(named: version.name) == nil
      return HopdError(
        .versionNotLocked,
        "the version \(version.name) is at \(ref)\(isGone ? ", is gone now," : "") and was never noted in the lock",
        at: Place(file: isGone ? bundle.path : bundle.path(ofVersion: version.name)),
        hint: isGone
          ? "restore it and record it with --freeze if it has shipped" : "record it with --freeze if it has shipped")
    }
  }
}
