// The ways out of a hop that is broken, with the text to paste: a renaming identifier, a default, a mapping model. They
// are made from the two models, so that nobody has to look anything up.

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import SystemPackage

/// Makes the ways out.
struct Remedies {
  let source: ManagedObjectModel
  let destination: ManagedObjectModel
  let difference: ModelDifference
  let model: FilePath

  /// The ways out of a finding of this hop.
  func waysOut(of error: HopdError) -> [Remedy] {
    let concerned: [HopdError.Code] = [
      .missingRequiredValue, .notInferable, .uniquenessViolation, .numberDoesNotFit, .rowsForbidInference,
      .rowsOfUnknownEntity, .noRoute, .unmappedEntities, .inferenceOff,
    ]
    guard concerned.contains(error.code) else { return [] }
    return [answer(error), renaming(error), standard(error), mapping(error)].compactMap(\.self)
  }

  private func attribute(_ error: HopdError) -> (entity: Entity, attribute: Attribute)? {
    guard let name = error.place.entity, let property = error.place.property,
      let entity = destination.entity(named: name),
      let owner = destination.declaringEntity(of: property, in: entity),
      let attribute = owner.attributes.first(where: { $0.name == property })
    else { return nil }
    return (owner, attribute)
  }

  /// Where renaming identifiers contradict names: the words that settle it.
  private func answer(_ error: HopdError) -> Remedy? {
    guard let hint = error.hint, hint.contains("--rename "), error.message.contains("renaming identifiers") else {
      return nil
    }
    return Remedy(.other, "say whether it is the same, or correct its renaming identifier in the model", text: hint)
  }

  // MARK: Renaming identifier

  private func renaming(_ error: HopdError) -> Remedy? {
    guard let name = error.place.entity else { return nil }
    guard let property = error.place.property else {
      guard let old = suspicion(entity: nil, new: name)?.old ?? goneEntity() else { return nil }
      return Remedy(
        .renamingIdentifier, "if \(name) is \(old) under a new name, give it the renaming identifier of the old one",
        text: "<entity name=\"\(name.inXML)\" elementID=\"\(old.inXML)\" …>")
    }
    // A property that goes on already needs no other name.
    let isNew = difference.entities.first { $0.name == name }?.properties.contains {
      $0.name == property && $0.kind == .added
    }
    guard isNew == true, let (owner, attribute) = attribute(error) else { return nil }
    let candidates = dropped(like: attribute, in: name)
    let old = suspicion(entity: name, new: property)?.old ?? candidates.first
    var copy = attribute
    copy.renamingIdentifier = old ?? "OLD NAME"
    return Remedy(
      .renamingIdentifier,
      old.map { "if \(property) is \($0) under a new name, give it the renaming identifier of the old one" }
        ?? "if \(property) had another name before, give it that one as its renaming identifier",
      text: "in \(destination.name), entity \(owner.name):\n\(copy.xml)")
  }

  private func suspicion(entity: String?, new: String) -> RenameSuspicion? {
    difference.suspicions.first { $0.entity == entity && $0.new == new }
  }

  private func goneEntity() -> String? { difference.entities.first { $0.kind == .removed }?.name }

  private func dropped(like attribute: Attribute, in entity: String) -> [String] {
    guard let part = difference.entities.first(where: { $0.name == entity }),
      let old = source.entity(named: part.oldName ?? entity)
    else { return [] }
    let before = source.allAttributes(of: old)
    return part.properties.filter { $0.kind == .removed && before[$0.name]?.type == attribute.type }.map(\.name)
  }

  // MARK: Default

  private func standard(_ error: HopdError) -> Remedy? {
    guard error.code == .missingRequiredValue, let (owner, attribute) = attribute(error) else { return nil }
    var (with, optional) = (attribute, attribute)
    with.defaultValue = attribute.defaultValue ?? attribute.type.plainDefault
    optional.isOptional = true
    let isPossible = with.defaultValue != nil || attribute.type == .date
    let lines = (isPossible ? [with.xml] : []) + ["\(isPossible ? "or, optional: " : "")\(optional.xml)"]
    return Remedy(
      .modelDefault,
      isPossible
        ? "give \(attribute.name) a default, which rows without a value get, or make it optional"
        : "make \(attribute.name) optional: its type has no default",
      text: "in \(destination.name), entity \(owner.name):\n" + lines.joined(separator: "\n"))
  }

  // MARK: Mapping model

  private func mapping(_ error: HopdError) -> Remedy? {
    let (from, to) = (source.name, destination.name)
    let name = "\(from) to \(to).hopmap.toml"
    var text =
      "hopctl mapping infer \(model.string.quotedForShell) \(from.quotedForShell) \(to.quotedForShell) --skeleton "
      + "--output \(name.quotedForShell)\n"
      + "hopctl check \(model.string.quotedForShell) --mappings \(name.quotedForShell)"
    if let entity = error.place.entity, let property = error.place.property,
      let part = difference.entities.first(where: { $0.name == entity }), attribute(error) != nil
    {
      text += "\nin it:\n[[entity]]\nsource = \(TOMLText.quoted(part.oldName ?? entity))\n"
      text += "destination = \(TOMLText.quoted(entity))\nattributes.\(TOMLText.key(property)) = "
      text += TOMLText.quoted(attribute(error).map { $0.attribute.type.sampleExpression } ?? "nil")
    }
    return Remedy(
      .mappingModel, "write a mapping model for this hop, which says where the values come from", text: text)
  }
}

extension AttributeType {
  /// A default to begin with; nil where a model's file can hold none.
  fileprivate var plainDefault: AttributeDefault? {
    switch self {
    case .integer16, .integer32, .integer64: .integer(0)
    case .boolean: .boolean(false)
    case .double, .float: .double(0)
    case .decimal: .decimal("0")
    case .string: .string("")
    case .date: .date(0)
    case .binary, .uuid, .uri, .transformable, .undefined, .objectID, .composite: nil
    }
  }

  /// An expression of a text mapping that gives a value of the type.
  fileprivate var sampleExpression: String {
    switch self {
    case .integer16, .integer32, .integer64, .double, .float, .decimal: "0"
    case .boolean: "NO"
    case .string: "''"
    case .date, .binary, .uuid, .uri, .transformable, .undefined, .objectID, .composite: "$source.OLD_NAME"
    }
  }
}
