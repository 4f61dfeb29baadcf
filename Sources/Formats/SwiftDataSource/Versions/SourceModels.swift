// The versions of a target as a bundle of models.

import Diagnostics
import ManagedObjectModel
import SystemPackage

/// The models of one target, with what was refused and where everything is declared.
package struct SourceModels: Sendable {
  /// The versions with their models, oldest first.
  package let versions: [(version: SourceVersion, derived: DerivedModel)]
  package let stages: [SourceStage]
  package let remarks: [HopdError]
  let isPlanned: Bool
  /// Whether every stage of the migration plan could be read.
  let areStagesKnown: Bool
  /// The folder with the options that choose its source, for commands to type next.
  let words: String

  /// Derives all versions of a target; `words` are the folder and the options that choose its source, for hints.
  package init(
    _ target: SourceTarget, schema: String? = nil, calibrated: CalibratedForms = CalibratedForms(),
    words: String = "FOLDER"
  ) throws(HopdError) {
    self.words = words
    let found = try VersionSearch(target, calibrated: calibrated).versions(schema: schema)
    versions = found.versions.map { version in
      switch version.models {
      case .success(let roots):
        return (
          version,
          ModelDerivation.derive(
            roots, of: target, name: version.name, identifiers: [version.identifier], calibrated: calibrated)
        )
      case .failure(let error):
        return (
          version,
          DerivedModel(
            name: version.name, model: nil, refusals: [error], remarks: [], forms: [:], entityPlaces: [:],
            classes: [:], propertyPlaces: [:])
        )
      }
    }
    stages = found.stages
    isPlanned = found.isPlanned
    areStagesKnown = found.areStagesKnown
    remarks = found.remarks
  }

  /// Why a version has no model.
  package func refusal(_ entry: (version: SourceVersion, derived: DerivedModel)) -> HopdError {
    entry.derived.refusal(at: entry.version.place).naming(words)
  }

  /// The bundle of the models; a version that was refused is left out of it. Throws if all were.
  package func bundle(name: String, path: FilePath, declaredOrder: [String] = []) throws(HopdError) -> ModelBundle {
    let models = versions.compactMap { $0.derived.model }
    let omitted = versions.enumerated().compactMap { index, entry -> OmittedVersion? in
      guard entry.derived.model == nil else { return nil }
      return OmittedVersion(
        name: entry.version.name, reason: refusal(entry),
        isCurrent: index == versions.count - 1)
    }
    guard !models.isEmpty else {
      let reasons = omitted.map { $0.reason }
      throw reasons.count == 1
        ? reasons[0]
        : HopdError(
          .sourceUnclear, "no version of the model can be derived from its source", at: Place(file: path),
          reasons: reasons)
    }
    var ordered = models
    if !declaredOrder.isEmpty {
      let names = models.map(\.name)
      guard Set(declaredOrder) == Set(names), declaredOrder.count == names.count else {
        throw HopdError(
          .versionOrder, "the declared order of versions does not match the source", at: Place(file: path),
          hint: "declare every version once, oldest first: " + names.map { "\"\($0)\"" }.joined(separator: ", "))
      }
      ordered = declaredOrder.compactMap { name in models.first { $0.name == name } }
    }
    var origin = ModelOrigin()
    for (version, derived) in versions where derived.model != nil {
      origin.places[version.name] = derived.places
      origin.enumValues[version.name] = derived.enumValues
    }
    origin.findings = findings
    origin.stages = appStages
    let current = declaredOrder.isEmpty ? versions.last?.derived.model?.name : ordered.last?.name
    var bundle = ModelBundle(
      name: name, path: path, versions: ordered, order: isPlanned || !declaredOrder.isEmpty ? .declared : .names,
      currentVersionName: current, omitted: omitted,
      warnings: remarks.map { ModelWarning($0.message, at: $0.place) })
    bundle.origin = origin
    return bundle
  }
}

extension HopdError {
  /// Puts a folder and its options into the hints, which have a placeholder for them where a model is derived.
  fileprivate func naming(_ words: String) -> HopdError {
    let hint = hint?.split(separator: " ", omittingEmptySubsequences: false)
      .map { $0 == "FOLDER" ? Substring(words) : $0 }.joined(separator: " ")
    return HopdError(
      code, message, at: place, cause: cause, hint: hint, reasons: reasons.map { $0.naming(words) })
  }
}
