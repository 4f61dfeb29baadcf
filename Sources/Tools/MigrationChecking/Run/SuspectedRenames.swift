// Renames without a renaming identifier, as warnings: the hop runs, and the values of the old name are dropped. Each
// has the text to paste if it is a rename, and the option to type if it is not.

import Diagnostics
import ManagedObjectModel

extension HopdError.Code {
  /// An added part looks like a removed one under another name.
  package static let renameSuspected = HopdError.Code("rename-suspected", exit: .success)
}

/// Makes warnings from suspicions.
struct SuspectedRenames {
  /// The hops that stores use.
  let hops: [HopCheck]
  /// Findings that are already reported.
  let findings: [CheckFinding]
  let words: CheckWords
  /// Whether the models were derived from Swift source.
  let isSource: Bool

  /// Returns a warning for each suspicion about a hop that no mapping model decides; `models` are the versions.
  func warnings(_ models: [ManagedObjectModel]) -> [CheckFinding] {
    hops.filter { $0.isConsecutive && [.inferred, .missing].contains($0.step.kind) }.flatMap { hop in
      hop.difference.suspicions.filter { !isReported($0, hop.title) }.map { suspicion in
        CheckFinding(
          error(suspicion, hop),
          remedies: [
            renaming(suspicion, models.first { $0.name == hop.step.destination }), denial(suspicion),
          ].compactMap(\.self))
      }
    }
  }

  /// Whether a finding that stops stores already offers the renaming identifier.
  private func isReported(_ suspicion: RenameSuspicion, _ hop: String) -> Bool {
    findings.contains { finding in
      let place = finding.error.place
      return place.hop == hop && place.entity == suspicion.entity ?? suspicion.new
        && place.property == (suspicion.entity == nil ? nil : suspicion.new)
        && finding.remedies.contains { $0.kind == .renamingIdentifier }
    }
  }

  private func error(_ suspicion: RenameSuspicion, _ hop: HopCheck) -> HopdError {
    let lost =
      switch suspicion.part {
      case .entity: "the objects of \(suspicion.old)"
      case .attribute: "the values of \(suspicion.old)"
      case .relationship: "the references of \(suspicion.old)"
      }
    return HopdError(
      .renameSuspected, "\(suspicion.question); without one, \(lost) would be dropped",
      at: Place(
        hop: hop.title, entity: suspicion.entity ?? suspicion.new,
        property: suspicion.entity == nil ? nil : suspicion.new))
  }

  private func renaming(_ suspicion: RenameSuspicion, _ model: ManagedObjectModel?) -> Remedy? {
    guard let model else { return nil }
    let entity = (suspicion.entity ?? suspicion.new).printableLine
    let element: String? =
      switch suspicion.part {
      // SwiftData has no new name for a class.
      case .entity where isSource: nil
      case .entity:
        "<entity name=\"\(suspicion.new.inXML)\" elementID=\"\(suspicion.identifier.inXML)\" …>"
      case .attribute:
        suspicion.entity.flatMap { model.entity(named: $0) }?.attributes.first { $0.name == suspicion.new }.map {
          var attribute = $0
          attribute.renamingIdentifier = suspicion.identifier
          return attribute.declaration(isSource: isSource)
        }
      case .relationship where isSource: "@Relationship(originalName: \"\(suspicion.identifier)\") var \(suspicion.new)"
      case .relationship:
        "<relationship name=\"\(suspicion.new.inXML)\" elementID=\"\(suspicion.identifier.inXML)\" …/>"
      }
    guard let element else { return nil }
    return .renaming(
      suspicion.old, to: suspicion.new, text: "in \(model.name), entity \(entity):\n\(element)" + suspicion.explanation)
  }

  /// Returns the remedy if the two are different things.
  private func denial(_ suspicion: RenameSuspicion) -> Remedy {
    let rule = [suspicion.oldEntity, suspicion.old].compactMap(\.self).joined(separator: ".") + "="
    return Remedy(
      .other, "if they are different, declare that \(suspicion.old) ends, which silences this warning",
      text: words.line(adding: ["--rename", rule]))
  }
}
