// The remedies for a broken hop, with the text to paste: a renaming identifier, a default, a mapping model. They are
// made from the two models, so that the reader need not look anything up.

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import SystemPackage
import TOMLDocuments

/// Makes remedies.
struct Remedies {
  let source: ManagedObjectModel
  let destination: ManagedObjectModel
  let difference: ModelDifference
  let model: FilePath
  /// Whether the models were derived from Swift source.
  let isSource: Bool
  /// The command of the check, to be typed again.
  let words: CheckWords

  /// Returns the remedies for a finding of this hop.
  func remedies(of error: HopdError) -> [Remedy] {
    let concerned: [HopdError.Code] = [
      .missingRequiredValue, .notInferable, .uniquenessViolation, .numberDoesNotFit, .rowsForbidInference,
      .rowsOfUnknownEntity, .noRoute, .unmappedEntities, .inferenceOff,
    ]
    guard concerned.contains(error.code) else { return [] }
    return [answer(error), renaming(error), standard(error), distinct(error), mapping(error)].compactMap(\.self)
  }

  private func attribute(_ error: HopdError) -> (entity: Entity, attribute: Attribute)? {
    guard let name = error.place.entity, let property = error.place.property,
      let entity = destination.entity(named: name),
      let owner = destination.declaringEntity(of: property, in: entity),
      let attribute = owner.attributes.first(where: { $0.name == property })
    else { return nil }
    return (owner, attribute)
  }

  /// Returns the attribute of the earlier version that continues as this one; nil if this one is new.
  private func earlier(_ attribute: Attribute, of owner: Entity) -> Attribute? {
    let part = difference.entities.first { $0.name == owner.name }
    let change = part?.properties.first { $0.name == attribute.name && $0.kind != .removed }
    guard change?.kind != .added, let old = source.entity(named: part?.oldName ?? owner.name) else { return nil }
    return source.allAttributes(of: old)[change?.oldName ?? attribute.name]
  }

  /// Returns the option that decides between renaming identifiers and names, if they contradict each other.
  private func answer(_ error: HopdError) -> Remedy? {
    guard let hint = error.hint, hint.contains("--rename "), error.message.contains("renaming identifiers") else {
      return nil
    }
    return Remedy(.other, "pass whether it is the same, or correct its renaming identifier in the model", text: hint)
  }

  // MARK: Renaming identifier

  private func renaming(_ error: HopdError) -> Remedy? {
    guard let name = error.place.entity, answer(error) == nil else { return nil }
    guard let property = error.place.property else {
      // SwiftData has no new name for a class.
      guard !isSource, let known = suspicion(entity: nil, new: name) else { return nil }
      return .renaming(
        known.old, to: name,
        text: "in \(destination.name):\n<entity name=\"\(name.inXML)\" elementID=\"\(known.identifier.inXML)\" …>"
          + known.explanation)
    }
    // A property that already continues needs no other name.
    let isNew = difference.entities.first { $0.name == name }?.properties.contains {
      $0.name == property && $0.kind == .added
    }
    guard isNew == true, let (owner, attribute) = attribute(error) else { return nil }
    let known = suspicion(entity: owner.name, new: property)
    var copy = attribute
    copy.renamingIdentifier = known?.identifier ?? "OLD NAME"
    let text =
      "in \(destination.name), entity \(owner.name):\n\(copy.declaration(isSource: isSource))"
      + (known?.explanation ?? "")
    let identifier = isSource ? "originalName" : "renaming identifier"
    return known.map { .renaming($0.old, to: property, text: text) }
      ?? Remedy(
        .renamingIdentifier, "if \(property) was renamed, set its former name as its \(identifier)", text: text
      )
  }

  private func suspicion(entity: String?, new: String) -> RenameSuspicion? {
    difference.suspicions.first { $0.entity == entity && $0.new == new }
  }

  // MARK: Default

  private func standard(_ error: HopdError) -> Remedy? {
    guard error.code == .missingRequiredValue, let (owner, attribute) = attribute(error) else { return nil }
    var (with, optional) = (attribute, attribute)
    with.defaultValue = attribute.defaultValue ?? attribute.type.form.plainDefault
    optional.isOptional = true
    let place = "in \(destination.name), entity \(owner.name):\n"
    if isUnique(attribute.name, of: owner) {
      return Remedy(
        .modelDefault,
        "make \(attribute.name) optional, and set it in the app: it is unique, and a default would be equal in all "
          + "rows", text: place + optional.declaration(isSource: isSource))
    }
    let isPossible = with.defaultValue != nil || attribute.type == .date
    let lines =
      (isPossible ? [with.declaration(isSource: isSource)] : []) + [
        "\(isPossible ? "or, optional: " : "")\(optional.declaration(isSource: isSource))"
      ]
    return Remedy(
      .modelDefault,
      isPossible
        ? "set a default for \(attribute.name), or make it optional"
        : "make \(attribute.name) optional: its type has no default", text: place + lines.joined(separator: "\n"))
  }

  /// Whether a uniqueness constraint covers this attribute alone.
  private func isUnique(_ attribute: String, of owner: Entity) -> Bool {
    destination.subtree(of: owner).contains { entity in
      destination.lineage(of: entity).contains { $0.uniquenessConstraints.contains([attribute]) }
    }
  }

  /// Returns the remedy that keeps one of several equal rows.
  private func distinct(_ error: HopdError) -> Remedy? {
    guard error.code == .uniquenessViolation, let name = error.place.entity,
      let entity = destination.entity(named: name)
    else { return nil }
    // Rules are for entities with rows; below an abstract one, any of them may have the equal rows.
    return Remedy(
      .other, "keep the first of equal rows, if the app would do so",
      text: words.line(adding: ["--invalid-rows", entity.isAbstract ? "skip" : "\(name)=skip"]))
  }

  // MARK: Mapping model

  private func mapping(_ error: HopdError) -> Remedy? {
    let (from, to) = (source.name, destination.name)
    let file = "\(from) to \(to)\(TextMapping.fileNameEnd)"
    let infer =
      ["hopctl", "mapping", "infer", model.string, from, to] + words.source + ["--skeleton", "--output", file]
    let lines =
      [infer.map(\.quotedForShell).joined(separator: " ")] + edit(error, file)
      + [words.line(adding: ["--mappings", file])]
    return Remedy(
      .mappingModel, "write a mapping model for this hop",
      text: lines.joined(separator: "\n"))
  }

  /// Returns what to change in the file before it can be used.
  private func edit(_ error: HopdError, _ file: String) -> [String] {
    // The skeleton has comments about what inference refuses, but not about what rows forbid.
    let isComment = error.code == .notInferable || error.code == .noRoute
    let unknown = [
      isComment
        ? "then edit \(file) at each TODO comment"
        : "then decide in \(file) how to handle rows that violate a rule"
    ]
    guard let name = error.place.entity, let entity = destination.entity(named: name),
      let property = error.place.property
    else { return unknown }
    let entities = destination.subtree(of: entity).filter { !$0.isAbstract }.map(\.name)
    guard !entities.isEmpty else { return unknown }
    let place = entities.prefix(8).map { "destination = \(TOMLText.quoted($0))" }.joined(separator: ", and below ")
    guard let (owner, attribute) = attribute(error) else {
      guard destination.allRelationships(of: entity)[property] != nil else { return unknown }
      return [
        "then, in \(file), below \(place), set the objects that it refers to:",
        "relationships.\(TOMLText.key(property)) = \(TOMLText.quoted("$source.NAME"))",
      ]
    }
    if error.code == .uniquenessViolation { return distinctLines(attribute, owner, "in \(file), below \(place)") }
    let value = ValueProposal(
      of: attribute, from: earlier(attribute, of: owner),
      suspected: suspicion(entity: owner.name, new: property).map(\.old),
      isUnique: isUnique(attribute.name, of: owner))
    return [
      "then, in \(file), below \(place), add this line (\(value.remark)):",
      "attributes.\(TOMLText.key(property)) = \(TOMLText.quoted(value.expression))",
    ]
  }

  /// Returns the lines that let a mapping model keep one of several equal objects.
  private func distinctLines(_ attribute: Attribute, _ owner: Entity, _ place: String) -> [String] {
    let constraint = destination.subtree(of: owner).flatMap { destination.lineage(of: $0) }
      .flatMap(\.uniquenessConstraints).first { $0.contains(attribute.name) }
    let names = (constraint ?? [attribute.name]).map { name in
      owner.attributes.first { $0.name == name }.flatMap { earlier($0, of: owner) }?.name
    }
    let values = names.compactMap { $0.map { TOMLText.quoted("$source.\($0)") } }
    guard values.count == names.count else {
      return ["then, \(place), set \(attribute.name) to a unique expression"]
    }
    return [
      "then, \(place), add this line (of objects with equal values, one is kept, with all references):",
      "deduplicate_by = " + (values.count == 1 ? values.joined() : "[\(values.joined(separator: ", "))]"),
    ]
  }
}

extension AttributeForm {
  /// A default to start with; nil if a model's file cannot hold one.
  fileprivate var plainDefault: AttributeDefault? {
    switch self {
    case .integer: .integer(0)
    case .boolean: .boolean(false)
    case .real: .double(0)
    case .decimal: .decimal("0")
    case .string: .string("")
    case .date: .date(0)
    case .binary, .uuid, .uri, .transformable, .other: nil
    }
  }
}
