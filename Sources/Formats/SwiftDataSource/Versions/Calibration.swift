// Settles forms that are not proven: what each could be is tried until the hashes of the model are those that SwiftData
// wrote.

import Diagnostics
import ManagedObjectModel

/// What SwiftData wrote for a version of the app.
package enum KnownVersion: Sendable {
  /// The hashes in a store, by entity.
  case hashes([String: VersionHash])
  /// The checksum of a model.
  case checksum(String)

  func isOf(_ model: ManagedObjectModel) -> Bool {
    switch self {
    case .hashes(let hashes): model.versionHashes == hashes
    case .checksum(let text): model.versionChecksum == text
    }
  }
}

/// The search.
package struct Calibration: Sendable {
  /// The version that the known one is.
  package let version: String
  /// What was found, by the names of the forms.
  package let found: CalibratedForms

  /// The most models that are tried.
  private static let most = 20_000

  /// Finds the only way to read the unproven forms that gives the known version; `calibrated` is what is known already.
  package static func find(
    _ known: KnownVersion, in target: SourceTarget, schema: String?, calibrated: CalibratedForms
  ) throws(HopdError) -> Calibration {
    let versions = try VersionSearch(target, calibrated: calibrated).versions(schema: schema).versions
    var nearest: (version: String, equal: Int, all: Int)?
    for version in versions.reversed() {
      guard case .success(let roots) = version.models else { continue }
      func derive(_ forms: CalibratedForms) -> DerivedModel {
        ModelDerivation.derive(
          roots, of: target, name: version.name, identifiers: [version.identifier], calibrated: forms)
      }
      var fitting: [CalibratedForms] = []
      try tryAll(derive, calibrated) { forms, model in
        if known.isOf(model) { fitting.append(forms) }
        if case .hashes(let hashes) = known {
          let equal = model.versionHashes.filter { hashes[$0.key] == $0.value }.count
          if equal > nearest?.equal ?? -1 { nearest = (version.name, equal, hashes.count) }
        }
      }
      guard let first = fitting.first else { continue }
      // Forms on which the hashes do not decide stay unknown.
      let agreed = first.found.filter { name, value in fitting.allSatisfy { $0.found[name] == value } }
      return Calibration(version: version.name, found: CalibratedForms(agreed))
    }
    let near = nearest.map { "; the nearest is \($0.version) with \($0.equal) of \($0.all) entities" } ?? ""
    throw HopdError(
      .sourceUnclear, "no version in the source has these hashes, whatever its unproven forms are\(near)",
      hint: "give the source of the release that made the store: check it out, or name its folder")
  }

  /// Derives the model under every combination of the forms that it has.
  private static func tryAll(
    _ derive: (CalibratedForms) -> DerivedModel, _ start: CalibratedForms,
    _ use: (CalibratedForms, ManagedObjectModel) -> Void
  ) throws(HopdError) {
    var open = [start]
    var tried = 0
    while let forms = open.popLast() {
      tried += 1
      guard tried <= most else {
        throw HopdError(.sourceUnclear, "the source has too many unproven forms to try them all")
      }
      let derived = derive(forms)
      if let model = derived.model {
        use(forms, model)
        continue
      }
      let unsettled = derived.forms.keys.filter { forms.found[$0.name] == nil }
      // A form without alternatives, or another refusal, stays.
      guard let form = unsettled.filter({ !$0.alternatives.isEmpty }).min(by: { $0.name < $1.name }) else { continue }
      for alternative in form.alternatives.reversed() {
        var next = forms
        next.found[form.name] = alternative
        open.append(next)
      }
    }
  }
}
