// The attributes of a pair of entities: which one continues which, and which changes cannot be made by copying a row's
// values. Properties are matched over all that an entity has, own and inherited, so that they may move up and down the
// hierarchy.

import Diagnostics
import ManagedObjectModel

extension InferenceRun {
  /// Returns mappings of all stored attributes of `entity`, and the names of attributes of `origin` that none
  /// continues.
  mutating func inferAttributes(
    of entity: Entity, from origin: Entity
  ) -> (mappings: [AttributeMapping], dropped: [String]) {
    let (old, new) = (source.storedAttributes(of: origin), destination.storedAttributes(of: entity))
    // Most entities of two versions are equal, and what follows takes a third of the time to plan a long chain.
    if renames.renames.isEmpty, old == new, new.allSatisfy({ $0.renamingIdentifier == $0.name }) {
      checkComposites(of: entity, from: origin)
      return (new.map { AttributeMapping(destination: $0.name, source: $0.name) }, [])
    }
    let names = old.map { Identified($0) }
    let match = IdentifierMatch(
      source: names, destination: new.map { Identified($0) }, decided: decided(names, of: origin, to: entity),
      namesCount: renames.namesCount)
    findings.add(match, kind: "attributes", owner: (origin.name, entity.name))
    findings.add(contradictionsOf: match, owner: (origin.name, entity.name)) { name, continued, successor in
      let standard = { AttributeReading.standard(entity: entity.name, attribute: $0) }
      let isSame = RowCondition.Demand.sameValues(
        entity: origin.name, continued.map { .source($0) } ?? standard(name), .source(name))
      // By name alone, the successor would be new.
      guard let successor, !match.contradictions.contains(successor) else { return [isSame] }
      return [isSame, .sameValues(entity: origin.name, .source(name), standard(successor))]
    }
    checkComposites(of: entity, from: origin)
    let oldByName = source.allAttributes(of: origin)
    for attribute in new {
      guard let name = match.sourceByDestination[attribute.name], let before = oldByName[name] else { continue }
      check(attribute, of: entity, against: before, of: origin)
    }
    for attribute in new {
      guard case .archived(let className)? = attribute.defaultValue else { continue }
      // The default is needed for rows of an added attribute, and for rows without a value once one is required.
      let before = match.sourceByDestination[attribute.name].flatMap { oldByName[$0] }
      if let before, attribute.isOptional || !before.isOptional { continue }
      findings.add(
        "its default is an object of class \(className), which only the app can turn into a stored value",
        entity: destination.declarer(of: attribute.name, in: entity), property: attribute.name,
        hint: "make the attribute optional without a default in this version and fill it in the app")
    }
    let taken = Set(match.sourceByDestination.values)
    return (
      new.map { AttributeMapping(destination: $0.name, source: match.sourceByDestination[$0.name]) },
      old.map(\.name).filter { !taken.contains($0) }
    )
  }

  private mutating func check(
    _ attribute: Attribute, of entity: Entity, against before: Attribute, of origin: Entity
  ) {
    func refuse(_ message: String) {
      findings.add(
        message, entity: destination.declarer(of: attribute.name, in: entity), property: attribute.name,
        hint: "convert the values in a mapping model for this hop, or drop them: "
          + RenameRules.dropping(origin.name, before.name))
    }
    // A derived value is computed again, or carried under its own conditions, which planning inspects.
    if attribute.isDerived { return }
    // A number continues as the same number; the rows decide whether each value fits.
    if attribute.type != before.type, NumberConversion(from: before.type, to: attribute.type) == nil {
      refuse(
        "the type changes from \(before.type.name) to \(attribute.type.name), and the values have no form of the "
          + "new type")
    }
    // A Binary keeps its value wherever its bytes are stored (decision 0014); for other types no stored form is known.
    if attribute.allowsExternalStorage != before.allowsExternalStorage, attribute.type != .binary {
      refuse(
        "external storage is switched \(attribute.allowsExternalStorage ? "on" : "off") for the type "
          + "\(attribute.type.name); how its values would be stored is unknown")
    }
  }

  /// Refuses attributes whose values hopd cannot make, continued or new.
  mutating func checkStorableAttributes(of entity: Entity) {
    for attribute in destination.storedAttributes(of: entity) where attribute.type.form == .other {
      findings.add(
        "it is stored with the type \(attribute.type.name)"
          + (attribute.type == .composite ? ", with composites inside or without elements" : "")
          + ", whose form in a store is unknown",
        entity: destination.declarer(of: attribute.name, in: entity), property: attribute.name,
        hint: "make the attribute transient or change its type")
    }
  }
}
