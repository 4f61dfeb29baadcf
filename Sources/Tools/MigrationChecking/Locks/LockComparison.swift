// Compares a model with what has shipped of it: every version, entity and property that has changed. If git has the
// earlier model itself, the text comes from there; otherwise from the short form in the lock.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SystemPackage

extension HopdError.Code {
  /// A shipped version has another hash now: the app would no longer recognize its stores.
  package static let shippedVersionChanged = HopdError.Code("shipped-version-changed", exit: .dataError)
  /// A shipped version has the same hashes but another layout now.
  package static let shippedLayoutChanged = HopdError.Code("shipped-layout-changed", exit: .dataError)
  /// A shipped version no longer exists.
  package static let shippedVersionMissing = HopdError.Code("shipped-version-missing", exit: .dataError)
  /// A shipped version has another name now, with the same hashes.
  package static let shippedVersionRenamed = HopdError.Code("shipped-version-renamed", exit: .success)
  /// The shipped versions are in another order now.
  package static let shippedOrderChanged = HopdError.Code("shipped-order-changed", exit: .dataError)
}

/// The findings of a comparison with what has shipped.
struct ShippedFindings {
  /// Findings that make a check fail.
  var errors: [HopdError] = []
  /// Findings that are only reported.
  var warnings: [HopdError] = []

  /// Adds the findings of another comparison, without duplicates.
  mutating func add(_ other: ShippedFindings) {
    func isNew(_ error: HopdError, _ known: [HopdError]) -> Bool {
      !known.contains { $0.code == error.code && $0.place == error.place && $0.message == error.message }
    }
    for error in other.errors where isNew(error, errors) { errors.append(error) }
    for warning in other.warnings where isNew(warning, warnings) { warnings.append(warning) }
  }
}

/// Compares a model with what has shipped of it.
struct LockComparison {
  let shipped: ShippedModel
  let bundle: ModelBundle
  /// The earlier state of the model; nil if only the lock is known.
  let base: ModelBundle?
  let frameworkVersion: Int64
  /// Versions whose position in the order is not known yet.
  var placeless: Set<String> = []

  /// Returns all changes.
  func findings() -> ShippedFindings {
    let now = ShippedModel(bundle, frameworkVersion: frameworkVersion)
    let versions = Dictionary(now.versions.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    let names = now.newNames(of: shipped)
    var findings = ShippedFindings()
    for old in shipped.versions {
      if let version = versions[old.name] {
        findings.errors += changes(from: old, to: version)
      } else if let name = names[old.name], let version = versions[name] {
        findings.warnings.append(renamed(old, to: name))
        findings.errors += changes(from: old, to: version)
      } else {
        findings.errors.append(missing(old))
      }
    }
    findings.errors += order(now, names)
    return findings
  }

  private func renamed(_ version: ShippedVersion, to name: String) -> HopdError {
    HopdError(
      .shippedVersionRenamed,
      "the version \(version.name) has shipped and is called \(name) now: a rename and no new version, since all "
        + "hashes are the same, by which stores are known",
      at: Place(file: bundle.path(ofVersion: name)),
      hint: "run --freeze to record the new name, and change mapping models and --order that use \(version.name)")
  }

  private func missing(_ version: ShippedVersion) -> HopdError {
    let omitted = bundle.omitted.first { $0.name == version.name }
    return HopdError(
      .shippedVersionMissing,
      omitted == nil
        ? "the shipped version \(version.name) is missing"
        : "the version \(version.name) has shipped and cannot be read",
      at: Place(file: bundle.path),
      hint: "restore it; stores of \(version.name) are recognized by it. If no user has one any more: "
        + ShippedRecord.replacing(version.name), reasons: omitted.map { [$0.reason] } ?? [])
  }

  private func order(_ now: ShippedModel, _ newNames: [String: String]) -> [HopdError] {
    // A model from git has no project file with it, so its order may be a guess while the current order is not.
    if let base, base.order != bundle.order, shipped == ShippedModel(base, frameworkVersion: frameworkVersion) {
      return []
    }
    let names = Set(now.versions.map(\.name))
    let before = shipped.versions.filter { !placeless.contains($0.name) }.map { newNames[$0.name] ?? $0.name }.filter(
      names.contains)
    let after = now.versions.map(\.name).filter(Set(before).contains)
    guard before != after else { return [] }
    return [
      HopdError(
        .shippedOrderChanged,
        "the order of the shipped versions was \(before.joined(separator: ", ")) and is "
          + "\(after.joined(separator: ", ")) now",
        at: Place(file: bundle.path),
        hint: "restore the order, in which stores pass the versions, or declare it with --order")
    ]
  }

  // MARK: One version

  private func changes(from old: ShippedVersion, to new: ShippedVersion) -> [HopdError] {
    let before = Dictionary(old.entities.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    let after = Dictionary(new.entities.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    let later = bundle.version(named: new.name)
    let difference = base?.version(named: old.name).flatMap { earlier in
      later.map { ModelDifference(ofVersion: earlier, edited: $0) }
    }
    var changes: [ShippedChange] = []
    for name in Set(before.keys).union(after.keys).sorted(by: Entity.caseInsensitiveOrder) {
      switch (before[name], after[name]) {
      case (nil, _): changes.append(ShippedChange(entity: name, property: nil, kind: .added))
      case (_, nil): changes.append(ShippedChange(entity: name, property: nil, kind: .removed))
      case (let first?, let second?):
        guard first.hash == second.hash else {
          changes += ShippedChange.between(first, second, difference)
          continue
        }
        changes += ShippedChange.lostIdentifiers(first, second)
        if first.layout != second.layout { changes.append(layout(name, difference)) }
      }
    }
    return withoutHeirs(changes, later).map { error($0, old.name, new.name) }
  }

  /// A change of an entity changes the hashes of all entities below it; those without a change of their own are left
  /// out.
  private func withoutHeirs(_ changes: [ShippedChange], _ model: ManagedObjectModel?) -> [ShippedChange] {
    let changed = Set(changes.map(\.entity))
    return changes.filter { change in
      guard change.kind == .inherited, let entity = model?.entity(named: change.entity),
        let lineage = model?.lineage(of: entity).dropLast()
      else { return true }
      return !lineage.contains { changed.contains($0.name) }
    }
  }

  private func layout(_ entity: String, _ difference: ModelDifference?) -> ShippedChange {
    let words = difference?.entities.first { $0.name == entity }?.changes.filter { !$0.isHashed }.map(\.words) ?? []
    return ShippedChange(
      entity: entity, property: nil, kind: .layout,
      words: words.isEmpty ? "the table or an index of this entity" : words.joined(separator: "; "))
  }

  private func error(_ change: ShippedChange, _ version: String, _ name: String) -> HopdError {
    let place = Place(file: bundle.path(ofVersion: name), entity: change.entity, property: change.property)
    let start = "the version \(version) has shipped, and "
    if change.kind == .layout {
      return HopdError(
        .shippedLayoutChanged,
        start + change.words + " is another one now, while its hash is the same: old and new stores of one version "
          + "differ", at: place, hint: "revert the edit and make it in a new version")
    }
    let hint =
      change.kind == .identifier
      ? "revert the edit: stores of earlier versions lose the values of the old name. If it was never right: "
      : "revert the edit and make it in a new version: users' stores have the hash of the shipped one, and no version "
        + "would match them. If \(version) has not shipped: "
    return HopdError(
      .shippedVersionChanged, start + change.sentence, at: place, hint: hint + ShippedRecord.replacing(version))
  }
}
