// A store that no given model explains, but that holds a copy of its own model: SwiftData ships no model files, so an
// old version may exist nowhere else. Such a store shows its version, but not whether it is older or newer than the
// given models; hopd treats it as older only if a mistake could lose nothing (docs/decisions/0016).

import Diagnostics
import ManagedObjectModel
import MappingModel
import SystemPackage

extension HopdError.Code {
  /// The store's version is known only from the model that the store itself holds.
  package static let ownModelUsed = HopdError.Code("own-model-used", severity: .note)
  /// The model that the store itself holds cannot be used for a migration.
  package static let ownModelUnused = HopdError.Code("own-model-unused", exit: .dataError)
}

/// Places a store's own model before the target version.
struct OwnModelMatching {
  let matching: StoreMatching
  /// The model that the store itself holds; its hashes are the store's.
  let model: ManagedObjectModel

  /// The result of the matching.
  enum Answer {
    case match(StoreMatch)
    /// The model cannot be used, for this reason.
    case refused(HopdError)
  }

  func answer() -> Answer {
    if case .own = matching.target { return own() }
    var best: [(bundle: ModelBundle, target: CatalogedVersion)] = []
    var most = 0
    var failures: [HopdError] = []
    let names = Set(model.entities.map(\.name))
    for bundle in matching.catalog.bundles {
      let line = VersionLine(of: bundle, in: matching.catalog)
      guard let any = line.versions.first else { continue }
      do {
        let target = try line.target(matching.target, for: any)
        let common = names.intersection(target.versionHashes.keys).count
        if common > most { (best, most) = ([], common) }
        if common > 0, common == most { best.append((bundle, target)) }
      } catch {
        failures.append(error)
      }
    }
    guard let (bundle, target) = best.first else {
      return .refused(unused("none of the models has an entity in common with it", hint: nil, reasons: failures))
    }
    guard best.count == 1 else {
      return .refused(
        unused(
          "it has as many entities in common with each of \(best.map(\.bundle.name).joined(separator: ", "))",
          hint: "pass one of these models with --models", reasons: []))
    }
    let version = version(before: target, of: bundle)
    do {
      let mapping = try MappingInference.infer(from: version.model, to: target.model)
      let losses = OwnModelMatching.losses(mapping, from: version.model, to: target.model)
      guard losses.isEmpty else {
        return .refused(
          unused(
            "a hop from it to \(target.model.name) would drop these, so the store may be newer than the "
              + "models",
            hint:
              "pass the versions individually, oldest first, if it is older: --models STORE --models NEXT …, each a "
              + "store, a .mom or an .xcdatamodel", reasons: losses))
      }
    } catch {
      return .refused(
        unused(
          "no hop from it to \(target.model.name)",
          hint: "add the versions in between, or the model of the store's version", reasons: [error]))
    }
    let line = VersionLine(
      modelName: bundle.name, paths: [bundle.path], versions: [version, target], decidedTarget: target)
    return .match(StoreMatch(version: version, target: target, line: line))
  }

  /// For inspections that migrate nothing, any model that describes the store is sufficient.
  private func own() -> Answer {
    let path = matching.place.store ?? ""
    let version = CatalogedVersion(
      modelName: model.name, path: path, model: model, versionHashes: model.versionHashes, position: 0, isCurrent: true,
      isFromStoreItself: true)
    let line = VersionLine(modelName: model.name, paths: [path], versions: [version], decidedTarget: version)
    return .match(StoreMatch(version: version, target: version, line: line))
  }

  private func version(before target: CatalogedVersion, of bundle: ModelBundle) -> CatalogedVersion {
    // A version of the model may have the same name: the model was edited without a new version, or uses the same
    // identifier.
    let isTaken = bundle.version(named: model.name) != nil
    let own = isTaken ? model.renamed(model.name + " (of the store)") : model
    return CatalogedVersion(
      modelName: bundle.name, path: bundle.path, model: own, versionHashes: own.versionHashes,
      position: target.position - 1, isCurrent: false, isFromStoreItself: true)
  }

  /// Returns what a hop would lose, by dropping it or by continuing without it: order, and values that are computed
  /// again.
  private static func losses(
    _ mapping: InferredMapping, from old: ManagedObjectModel, to new: ManagedObjectModel
  ) -> [HopdError] {
    mapping.entityMappings.flatMap { entity -> [HopdError] in
      guard let source = entity.sourceEntity else { return [] }
      guard let destination = entity.destinationEntity else {
        return [HopdError(.ownModelUnused, "would be dropped", at: Place(entity: source))]
      }
      func loss(_ property: String, _ what: String) -> HopdError {
        HopdError(.ownModelUnused, what, at: Place(entity: source, property: property))
      }
      let before = old.entity(named: source)
      let after = new.entity(named: destination)
      let attributes = before.map(old.allAttributes) ?? [:]
      let derived = (after.map(new.allAttributes) ?? [:]).filter(\.value.isDerived)
      let computed = entity.attributes.compactMap { pair -> HopdError? in
        guard let name = pair.source, derived[pair.destination] != nil, attributes[name]?.isDerived == false else {
          return nil
        }
        return loss(name, "its values would be computed again")
      }
      let relationships = before.map(old.allRelationships) ?? [:]
      let kept = after.map(new.allRelationships) ?? [:]
      let unordered = entity.relationships.compactMap { pair -> HopdError? in
        guard let pairs = pair.source, !pairs.isInverted, relationships[pairs.relationship]?.isOrdered == true,
          kept[pair.destination]?.isOrdered == false
        else { return nil }
        return loss(pairs.relationship, "its order would be dropped")
      }
      return (entity.droppedAttributes + entity.droppedRelationships).map { loss($0, "would be dropped") }
        + computed + unordered
    }
  }

  /// Whether a refusal lists what a hop would lose.
  static func hasLosses(_ refusal: HopdError) -> Bool { refusal.reasons.contains { $0.code == .ownModelUnused } }

  private func unused(_ why: String, hint: String?, reasons: [HopdError]) -> HopdError {
    HopdError(
      .ownModelUnused, "the store contains a model of its own version, which is not used: \(why)", hint: hint,
      reasons: reasons)
  }
}
