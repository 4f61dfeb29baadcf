// Composite attributes in inference. Their elements are matched as attributes named by their key path. The only other
// case is an attribute that becomes a composite, or the reverse: a change of type.

import ManagedObjectModel

extension InferenceRun {
  /// Refuses a composite that continues an attribute, and an attribute that continues a composite.
  mutating func checkComposites(of entity: Entity, from origin: Entity) {
    if source.allComposites(of: origin).isEmpty, destination.allComposites(of: entity).isEmpty { return }
    let (before, after) = (Self.kinds(of: origin, in: source), Self.kinds(of: entity, in: destination))
    guard (before + after).contains(where: \.isComposite) else { return }
    let ended = decided(before.map { Identified(name: $0.name, identifier: $0.identifier) }, of: origin, to: entity)
    for new in after {
      // Matched by renaming identifier, which defaults to the name, as attributes are.
      guard let old = before.first(where: { $0.identifier == new.identifier }), old.isComposite != new.isComposite,
        ended[old.name] == nil
      else { continue }
      findings.add(
        "the type changes from \(old.title) to \(new.title); a change of type cannot be inferred",
        entity: destination.declarer(of: new.name, in: entity), property: new.name,
        hint: "convert the values in a mapping model for this hop (elements are "
          + "$source.\(old.isComposite ? old.name + ".…" : old.name)), or let the attribute start without them: "
          + RenameRules.dropping(origin.name, old.name))
    }
  }

  /// An attribute or a composite of an entity.
  private struct Kind {
    let name: String
    let identifier: String
    let isComposite: Bool
    let title: String
  }

  private static func kinds(of entity: Entity, in model: ManagedObjectModel) -> [Kind] {
    model.storedAttributes(of: entity).filter { !$0.isElement }.map {
      Kind(name: $0.name, identifier: $0.renamingIdentifier, isComposite: false, title: $0.type.name)
    }
      + model.allComposites(of: entity).values.filter { !$0.isTransient }.sorted { $0.name < $1.name }.map {
        Kind(name: $0.name, identifier: $0.renamingIdentifier, isComposite: true, title: "Composite")
      }
  }
}
