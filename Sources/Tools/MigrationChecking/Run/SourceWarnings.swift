// Warnings about models that were derived from an app's source: what the source shows, stages that run code of the app,
// and versions that a release had and the source has changed since.

import Diagnostics
import ManagedObjectModel
import MappingModel
import SystemPackage
import TOMLDocuments

extension HopdError.Code {
  /// A VersionedSchema has another shape than in an earlier release.
  package static let shippedSchemaChanged = HopdError.Code("shipped-schema-changed", severity: .warning)
}

/// Makes the warnings.
struct SourceWarnings {
  let bundle: ModelBundle
  let words: CheckWords
  /// The stages that a file declares.
  let declared: [DeclaredStage]

  private static let most = 12

  var findings: [CheckFinding] {
    guard let origin = bundle.origin else { return [] }
    return origin.shipped.map { CheckFinding(changed($0)) } + origin.findings.map { CheckFinding($0) }
      + origin.stages.filter { !isDeclared($0) }.map(stage)
  }

  // MARK: Versions of releases

  private func changed(_ shipped: ShippedSchema) -> HopdError {
    let (tags, first) = (shipped.tags, shipped.tags.first ?? "")
    let releases = tags.count > 3 ? "\(first) … \(tags.last ?? "")" : tags.joined(separator: ", ")
    var place = shipped.place
    let message: String
    if let now = shipped.now {
      let changes = ModelDifference(ofVersion: shipped.model, edited: now).entities.flatMap(Self.changes)
      if let only = changes.first, changes.count == 1 { (place.entity, place.property) = (only.entity, only.property) }
      let name = now.name == shipped.name ? "" : " (\(now.name) now)"
      message =
        "\(shipped.name)\(name) was changed after \(releases) had shipped it: "
        + changes.prefix(Self.most).map(\.words).joined(separator: "; ")
        + (changes.count > Self.most ? "; and \(changes.count - Self.most) more" : "")
    } else {
      message = "\(shipped.name), which \(releases) shipped, is not in the source any more"
    }
    return HopdError(
      .shippedSchemaChanged,
      message + ". Stores of that release are of no version then (134504, “unknown model version”)", at: place,
      hint: "restore the shipped version, and make the change in a new one: "
        + freeze(first, shipped.name) + " prints it as it was shipped")
  }

  private func freeze(_ tag: String, _ name: String) -> String {
    (["hopctl", "model", "freeze", bundle.path.string, "--tag", tag, "--name", name] + words.sourceWithoutTags)
      .map(\.quotedForShell).joined(separator: " ")
  }

  private struct Change {
    let entity: String
    var property: String?
    let words: String
  }

  /// The changes of an entity that change its hash, from the shipped version to the one of now.
  private static func changes(_ entity: EntityDifference) -> [Change] {
    guard entity.isHashed else { return [] }
    if entity.kind == .added { return [Change(entity: entity.name, words: "\(entity.name) was added")] }
    if entity.kind == .removed { return [Change(entity: entity.name, words: "\(entity.name) was removed")] }
    let own = entity.changes.filter(\.isHashed).map {
      Change(entity: entity.name, words: "\(entity.name): \($0.words)")
    }
    return own
      + entity.properties.filter(\.isHashed).map { property in
        let details = property.changes.filter(\.isHashed).map(\.words).joined(separator: ", ")
        let verb =
          switch property.kind {
          case .added: "was added (\(details))"
          case .removed: "was removed (\(details))"
          case .renamed: "was \(property.oldName ?? "")" + (details.isEmpty ? "" : " (\(details))")
          case .changed: "was changed (\(details))"
          }
        return Change(
          entity: entity.name, property: property.name, words: "\(entity.name).\(property.name) \(verb)")
      }
  }

  // MARK: Stages

  private func isDeclared(_ stage: AppStage) -> Bool {
    declared.contains { declared in
      guard let first = bundle.version(named: declared.source), let last = bundle.version(named: declared.destination)
      else { return false }
      return stage.begins(at: first.versionHashes) && stage.ends(at: last.versionHashes)
    }
  }

  private func stage(_ stage: AppStage) -> CheckFinding {
    let first = bundle.versions.last { stage.begins(at: $0.versionHashes) }?.name ?? stage.source
    let last = bundle.versions.first { stage.ends(at: $0.versionHashes) }?.name ?? stage.destination
    return CheckFinding(
      HopdError(
        .stageNeedsProgram,
        "the stage \(stage.source) → \(stage.destination) runs code of the app, which hopd does not have: the "
          + "versions were tried without it, and hopctl migrate and hopd refuse stores that pass it", at: stage.place),
      remedies: [
        Remedy(
          .other,
          "write what it does as a program (docs/POLICIES.md, “Stages”), and put this into a file next to "
            + "the models, such as \(bundle.name).hopstages.toml (--write-stages FILE writes it); without the hooks, "
            + "stores pass the stage without its code",
          text: Self.skeleton(of: stage, from: first, to: last))
      ])
  }

  private static func skeleton(of stage: AppStage, from first: String, to last: String) -> String {
    // A program is a class in Swift and in Python.
    let name = String(stage.destination.map { $0.isLetter || $0.isNumber ? $0 : "_" })
    var lines = ["[[stage]]", "from = \(TOMLText.quoted(first))", "to = \(TOMLText.quoted(last))"]
    if stage.hasWillMigrate { lines.append("will_migrate = \(TOMLText.quoted("WillMigrateTo\(name)"))") }
    if stage.hasDidMigrate { lines.append("did_migrate = \(TOMLText.quoted("DidMigrateTo\(name)"))") }
    return lines.joined(separator: "\n")
  }
}
