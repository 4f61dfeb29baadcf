// What only the source shows: mistakes that every compiled version hides, each with what to do about it.

import Diagnostics
import ManagedObjectModel

extension SourceModels {
  /// The findings of all versions.
  package var findings: [HopdError] {
    liveTypes + alike + stageFindings + (versions.last?.derived.remarks.filter { $0.code != .frozenDefault } ?? [])
      + frozenDefaults
  }

  /// Versions of the past that have classes which the current version has too: a change of the class changes both, and
  /// the stores that were shipped are of no version any more.
  private var liveTypes: [HopdError] {
    guard let current = versions.last?.derived else { return [] }
    let live = Set(current.classes.values)
    return versions.dropLast().compactMap { version, derived in
      guard let schema = version.schema else { return nil }
      let shared = derived.classes.filter { live.contains($0.value) && !$0.value.starts(with: schema.path) }
      guard !shared.isEmpty else { return nil }
      let names = shared.keys.sorted()
      let listed = names.prefix(8).joined(separator: ", ") + (names.count > 8 ? " and \(names.count - 8) more" : "")
      return HopdError(
        .liveType,
        "\(version.name) is a version of the past, but \(names.count) of its \(derived.classes.count) models are the "
          + "classes that the app still changes: \(listed)", at: version.place,
        hint: "add copies of the classes as shipped: hopctl model freeze \(words) --tag TAG "
          + "--name \(version.name)")
    }
  }

  /// Versions with the same hashes, which SwiftData cannot distinguish, and identifiers of several shapes.
  private var alike: [HopdError] {
    var found: [HopdError] = []
    for (index, (version, derived)) in versions.enumerated() {
      guard let model = derived.model else { continue }
      for (earlier, other) in versions[..<index] {
        guard let before = other.model else { continue }
        let isSame = before.versionHashes == model.versionHashes
        if isSame {
          found.append(
            HopdError(
              .versionsAlike,
              "\(earlier.name) and \(version.name) have the same version hashes: a migration between them fails with "
                + "“current model reference and next model reference cannot be equal”\(difference(before, model))",
              at: version.place,
              hint: "remove one of them from the plan; defaults, delete rules, new names, indexes and cases of enums "
                + "with raw values do not change the hash"))
        } else if earlier.identifier == version.identifier {
          found.append(
            HopdError(
              .versionsAlike,
              "\(earlier.name) and \(version.name) have one identifier, \(version.identifier), and different models",
              at: version.place, hint: "declare a different versionIdentifier in each VersionedSchema"))
        }
      }
    }
    return found
  }

  /// What differs although the hashes are the same.
  private func difference(_ before: ManagedObjectModel, _ after: ManagedObjectModel) -> String {
    let names = after.entities.filter { before.entity(named: $0.name) != $0 }.map(\.name)
    return names.isEmpty ? "" : " (what differs in \(names.prefix(6).joined(separator: ", ")) is in no hash)"
  }

  /// The defaults of the current version that are another value in each process, as one finding: a migration needs them
  /// only for properties that are new, and says so itself.
  private var frozenDefaults: [HopdError] {
    let found = versions.last?.derived.remarks.filter { $0.code == .frozenDefault } ?? []
    guard let first = found.first else { return [] }
    let names = found.map { "\($0.place.entity ?? "").\($0.place.property ?? "")" }
    guard names.count > 1 else { return [first] }
    return [
      HopdError(
        .frozenDefault,
        "\(names.count) properties have a default that is not a constant, such as UUID() or .now: "
          + names.prefix(6).joined(separator: ", ") + (names.count > 6 ? " …" : "")
          + ". SwiftData gives one value to all rows of older versions, and hopd gives none", at: first.place,
        hint: "make a new property optional, or set a constant and fill it in a stage")
    ]
  }

  private var stageFindings: [HopdError] {
    guard isPlanned, areStagesKnown else { return [] }
    var found: [HopdError] = []
    for (before, after) in zip(versions, versions.dropFirst()) {
      let (from, to) = (before.version.name, after.version.name)
      guard !stages.contains(where: { $0.from == from && $0.to == to }) else { continue }
      found.append(
        HopdError(
          .stageMissing, "the migration plan has no stage from \(from) to \(to)", at: after.version.place,
          hint: "add .lightweight(fromVersion: \(from).self, toVersion: \(to).self) to its stages"))
    }
    return found
  }

  /// The stages that run code of the app, each with the versions of the plan before and after it.
  package var appStages: [AppStage] {
    stages.filter(\.isCustom).compactMap { stage in
      guard let first = versions.firstIndex(where: { $0.version.name == stage.from }),
        let last = versions.firstIndex(where: { $0.version.name == stage.to })
      else { return nil }
      func hashes(_ part: Range<Int>) -> Set<[String: VersionHash]> {
        Set(versions[part].compactMap { $0.derived.model?.versionHashes })
      }
      return AppStage(
        from: stage.from, to: stage.to, at: stage.place, hasWillMigrate: stage.hasWillMigrate,
        hasDidMigrate: stage.hasDidMigrate, earlier: hashes(0..<first + 1),
        later: hashes(last..<versions.count))
    }
  }
}
