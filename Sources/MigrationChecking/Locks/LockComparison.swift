// A model against what has shipped of it: every version, entity and property that is another one now. Where the earlier
// model itself is at hand, as git keeps it, the words come from there; else from the short form in the lock.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SystemPackage

extension HopdError.Code {
  /// A version that has shipped has another hash now: stores of it would not be known any more.
  package static let shippedVersionChanged = HopdError.Code("shipped-version-changed", exit: .dataError)
  /// A version that has shipped has the same hashes and another layout now.
  package static let shippedLayoutChanged = HopdError.Code("shipped-layout-changed", exit: .dataError)
  /// A version that has shipped is gone.
  package static let shippedVersionMissing = HopdError.Code("shipped-version-missing", exit: .dataError)
  /// The versions that have shipped stand in another order now.
  package static let shippedOrderChanged = HopdError.Code("shipped-order-changed", exit: .dataError)
}

/// Compares a model with what has shipped of it.
struct LockComparison {
  let shipped: ShippedModel
  let bundle: ModelBundle
  /// The model as it was; nil where only the lock is known.
  let base: ModelBundle?
  let frameworkVersion: Int64

  /// Everything that changed.
  func findings() -> [HopdError] {
    let now = ShippedModel(bundle, frameworkVersion: frameworkVersion)
    let versions = Dictionary(now.versions.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    return shipped.versions.flatMap { old in
      versions[old.name].map { changes(from: old, to: $0) } ?? [missing(old)]
    } + order(now)
  }

  private func missing(_ version: ShippedVersion) -> HopdError {
    let omitted = bundle.omitted.first { $0.name == version.name }
    return HopdError(
      .shippedVersionMissing,
      omitted == nil
        ? "the version \(version.name) has shipped and is gone"
        : "the version \(version.name) has shipped and cannot be read",
      at: Place(file: bundle.path),
      hint: "bring it back: stores of \(version.name) are known by it. If no user has one any more, --freeze again",
      reasons: omitted.map { [$0.reason] } ?? [])
  }

  private func order(_ now: ShippedModel) -> [HopdError] {
    // What git shows has no project file beside it, so its order may be a guess where today's is not.
    if let base, base.order != bundle.order, shipped == ShippedModel(base, frameworkVersion: frameworkVersion) {
      return []
    }
    let names = Set(now.versions.map(\.name))
    let before = shipped.versions.map(\.name).filter(names.contains)
    let after = now.versions.map(\.name).filter(Set(before).contains)
    guard before != after else { return [] }
    return [
      HopdError(
        .shippedOrderChanged,
        "the order of the shipped versions was \(before.joined(separator: ", ")) and is "
          + "\(after.joined(separator: ", ")) now",
        at: Place(file: bundle.path),
        hint: "stores go through the versions in this order: bring it back, or declare it with --order")
    ]
  }

  // MARK: One version

  private func changes(from old: ShippedVersion, to new: ShippedVersion) -> [HopdError] {
    let before = Dictionary(old.entities.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    let after = Dictionary(new.entities.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    let earlier = base?.version(named: old.name)
    let later = bundle.version(named: old.name)
    let difference = earlier.flatMap { earlier in later.map { ModelDifference(ofVersion: earlier, edited: $0) } }
    var findings: [HopdError] = []
    for name in Set(before.keys).union(after.keys).sorted(by: Entity.caseInsensitiveOrder) {
      switch (before[name], after[name]) {
      case (nil, _): findings.append(changed(old.name, name, nil, "the entity is new"))
      case (_, nil): findings.append(changed(old.name, name, nil, "the entity is gone"))
      case (let first?, let second?):
        guard first.hash == second.hash else {
          findings += properties(old.name, first, second, difference)
          continue
        }
        guard first.layout == second.layout else {
          findings.append(layout(old.name, name, difference))
          continue
        }
      }
    }
    return withoutHeirs(findings, later)
  }

  /// The properties of an entity whose hash is another one.
  private func properties(
    _ version: String, _ first: ShippedEntity, _ second: ShippedEntity, _ difference: ModelDifference?
  ) -> [HopdError] {
    let byGit = difference?.entities.first { $0.name == first.name }
    var findings: [HopdError] = []
    if let byGit {
      let own = byGit.changes.filter(\.isHashed).map(\.words)
      if !own.isEmpty { findings.append(changed(version, first.name, nil, own.joined(separator: "; "))) }
      for property in byGit.properties where property.isHashed {
        let words = property.changes.filter(\.isHashed).map(\.words).joined(separator: "; ")
        findings.append(changed(version, first.name, property.name, Self.sentence(property.kind, words)))
      }
    } else {
      findings = byParts(version, first, second)
    }
    return findings.isEmpty
      ? [changed(version, first.name, nil, "its parent changed, which is part of its hash")] : findings
  }

  private static func sentence(_ kind: ChangeKind, _ words: String) -> String {
    switch kind {
    case .added: "it is new (\(words))"
    case .removed: "it is gone (\(words))"
    case .renamed, .changed: words
    }
  }

  /// What the short forms say.
  private func byParts(_ version: String, _ first: ShippedEntity, _ second: ShippedEntity) -> [HopdError] {
    let (before, after) = (Self.parts(first), Self.parts(second))
    return Set(before.keys).union(after.keys).sorted().compactMap { name -> HopdError? in
      guard before[name] != after[name] else { return nil }
      let (old, new) = (before[name] ?? [], after[name] ?? [])
      let entity = first.name
      switch name {
      case "(parent)":
        return changed(version, entity, nil, "parent \(old.first ?? "none") → \(new.first ?? "none")")
      case "(abstract)":
        return changed(version, entity, nil, new.isEmpty ? "abstract → concrete" : "concrete → abstract")
      case "(modifier)": return changed(version, entity, nil, "another version hash modifier")
      case "(unique)":
        let gone = old.filter { !new.contains($0) }.map { "uniqueness constraint (\(Self.list($0))) removed" }
        let added = new.filter { !old.contains($0) }.map { "uniqueness constraint (\(Self.list($0))) added" }
        return changed(version, entity, nil, (gone + added).joined(separator: "; "))
      default:
        let words =
          old.isEmpty
          ? "it is new (\(new.joined()))"
          : new.isEmpty ? "it is gone (\(old.joined()))" : Self.words(from: old.joined(), to: new.joined())
        return changed(version, entity, name, words)
      }
    }
  }

  private static func list(_ constraint: String) -> String {
    constraint.split(separator: " ").filter { $0 != "+" }.joined(separator: ", ")
  }

  /// The parts of a line by name; constraints may be several.
  private static func parts(_ entity: ShippedEntity) -> [String: [String]] {
    entity.parts.reduce(into: [:]) { parts, part in
      guard let colon = part.ranges(of: ": ").first else {
        parts[part, default: []].append("")
        return
      }
      parts[String(part[..<colon.lowerBound]), default: []].append(String(part[colon.upperBound...]))
    }
  }

  /// What changed between two short forms: the type first, then what came and went.
  private static func words(from old: String, to new: String) -> String {
    func split(_ text: String) -> [String] {
      var words: [String] = []
      for word in text.split(separator: ",") { words.append(word.trimmingPrefix(" ").description) }
      return words
    }
    var (before, after) = (split(old), split(new))
    var changes: [String] = []
    if let first = before.first, let second = after.first, first != second {
      changes.append((first.contains("to ") ? "" : "type ") + "\(first) → \(second)")
    }
    (before, after) = (Array(before.dropFirst()), Array(after.dropFirst()))
    if before.contains("optional") != after.contains("optional") {
      changes.append(after.contains("optional") ? "required → optional" : "optional → required")
    }
    changes += after.filter { $0 != "optional" && !before.contains($0) }.map { "now \($0)" }
    changes += before.filter { $0 != "optional" && !after.contains($0) }.map { "no more \($0)" }
    return changes.joined(separator: "; ")
  }

  /// A change of an entity changes the hashes of all below it; those that have none of their own are not told again.
  private func withoutHeirs(_ findings: [HopdError], _ model: ManagedObjectModel?) -> [HopdError] {
    let changed = Set(findings.compactMap(\.place.entity))
    return findings.filter { finding in
      guard finding.message.hasSuffix("which is part of its hash"), let name = finding.place.entity,
        let entity = model?.entity(named: name), let lineage = model?.lineage(of: entity).dropLast()
      else { return true }
      return !lineage.contains { changed.contains($0.name) }
    }
  }

  private func layout(_ version: String, _ entity: String, _ difference: ModelDifference?) -> HopdError {
    let words = difference?.entities.first { $0.name == entity }?.changes.filter { !$0.isHashed }.map(\.words) ?? []
    let part = words.isEmpty ? "the table or an index of this entity" : words.joined(separator: "; ")
    return HopdError(
      .shippedLayoutChanged,
      "the version \(version) has shipped, and \(part) "
        + "is another one now, while its hash is the same: old and new stores of one version differ",
      at: Place(file: bundle.path, entity: entity),
      hint: "undo the edit, and make it in a new version")
  }

  private func changed(_ version: String, _ entity: String, _ property: String?, _ words: String) -> HopdError {
    HopdError(
      .shippedVersionChanged, "the version \(version) has shipped, and this is another one now: \(words)",
      at: Place(file: bundle.path, entity: entity, property: property),
      hint:
        "undo the edit and make it in a new version: users' stores have the hash of the shipped one, and no version "
        + "would fit them. If \(version) has not shipped, --freeze again")
  }
}
