// Models made from models: the part that a named configuration describes, and the merger of several models. Stores
// contain exactly the entities of the model that they were opened with, so hashes, entity numbers and tables of such a
// store are those of the part or of the merged model, and every later step treats it as a model of its own.

import Diagnostics

extension HopdError.Code {
  /// A model has no configuration of that name.
  package static let noSuchConfiguration = HopdError.Code("no-such-configuration", exit: .dataError)
  /// A configuration whose entities need others outside it.
  package static let configurationNotClosed = HopdError.Code("configuration-not-closed", exit: .dataError)
  /// Models to be merged define an entity in different ways.
  package static let modelsContradict = HopdError.Code("models-contradict", exit: .dataError)
}

extension ManagedObjectModel {
  /// Returns the model with the entities of a named configuration only: the content of a store that was opened with
  /// that configuration (docs/formats/version-hashes.md, "Digest and checksum").
  ///
  /// Throws `no-such-configuration`, or `configuration-not-closed` with every parent and every destination outside the
  /// configuration: Core Data has no relationships between stores.
  package func restricted(toConfiguration configuration: String) throws(HopdError) -> ManagedObjectModel {
    guard let members = configurations[configuration] else {
      let names = configurations.keys.sorted()
      throw HopdError(
        .noSuchConfiguration, "the version \(name) has no configuration \"\(configuration)\"",
        hint: names.isEmpty ? "remove the configuration; the model has none" : "use one of: " + quoted(names))
    }
    let inside = Set(members)
    let part = entities.filter { inside.contains($0.name) }
    var reasons: [HopdError] = []
    func miss(_ message: String, _ entity: Entity, _ property: String? = nil) {
      reasons.append(HopdError(.configurationNotClosed, message, at: Place(entity: entity.name, property: property)))
    }
    for entity in part {
      if let parent = entity.parentName, !inside.contains(parent) {
        miss("the parent \(parent) is not in the configuration", entity)
      }
      for relationship in entity.relationships
      where !relationship.isTransient && !inside.contains(relationship.destinationEntityName) {
        miss(
          "the destination \(relationship.destinationEntityName) is not in the configuration, and there are no "
            + "relationships between stores", entity, relationship.name)
      }
    }
    guard reasons.isEmpty, !part.isEmpty else {
      throw HopdError(
        .configurationNotClosed,
        part.isEmpty
          ? "the configuration \"\(configuration)\" of \(name) has no entities"
          : "the entities of the configuration \"\(configuration)\" of \(name) cannot be without others",
        hint: "add these entities to the configuration in the model", reasons: reasons)
    }
    return ManagedObjectModel(
      name: name, versionIdentifiers: versionIdentifiers, entities: part,
      configurations: [configuration: part.map(\.name)], composites: composites
    ).declaring(declaredVersionHashes.filter { inside.contains($0.key) })
  }

  /// Merges several models, as Core Data merges the models of an app. An entity that several of them define must have
  /// the same hash in all; the first definition is taken.
  ///
  /// Throws `models-contradict` with every entity whose hashes differ.
  package static func merging(_ models: [ManagedObjectModel], name: String) throws(HopdError) -> ManagedObjectModel {
    var entities: [Entity] = []
    var known: [String: (hash: VersionHash?, model: String)] = [:]
    var composites: [String: [Attribute]] = [:]
    var configurations: [String: [String]] = [:]
    // A hash that an app's compiled model states for an entity is valid in every model that has the entity.
    var declared: [String: VersionHash] = [:]
    var reasons: [HopdError] = []
    for model in models {
      declared.merge(model.declaredVersionHashes) { first, _ in first }
      let hashes = model.versionHashes
      for entity in model.entities {
        guard let first = known[entity.name] else {
          known[entity.name] = (hashes[entity.name], model.name)
          entities.append(entity)
          continue
        }
        if first.hash != hashes[entity.name] {
          reasons.append(
            HopdError(
              .modelsContradict, "\(first.model) and \(model.name) define this entity in different ways",
              at: Place(entity: entity.name)))
        }
      }
      for (type, elements) in model.composites {
        if let first = composites[type], first != elements {
          reasons.append(
            HopdError(.modelsContradict, "the composite type \(type) differs between the models, also \(model.name)"))
        }
        composites[type] = composites[type] ?? elements
      }
      for (configuration, members) in model.configurations {
        let present = Set(configurations[configuration] ?? [])
        configurations[configuration, default: []] += members.filter { !present.contains($0) }
      }
    }
    guard reasons.isEmpty else {
      throw HopdError(
        .modelsContradict, "the models cannot be put together as \(name)",
        hint: "pass the versions of the models that belong together", reasons: reasons)
    }
    let identifiers = Set(models.flatMap(\.versionIdentifiers)).sorted()
    return ManagedObjectModel(
      name: name, versionIdentifiers: identifiers.isEmpty ? [""] : identifiers, entities: entities,
      configurations: configurations, composites: composites
    ).declaring(declared)
  }

  /// Returns the same model under another name, which is not part of its hashes or of its compiled form.
  package func renamed(_ name: String) -> ManagedObjectModel {
    ManagedObjectModel(
      name: name, versionIdentifiers: versionIdentifiers, entities: entities, configurations: configurations,
      composites: composites
    ).declaring(declaredVersionHashes).compiled(to: compiledForm)
  }

  private func quoted(_ names: [String]) -> String { names.map { "\"\($0)\"" }.joined(separator: ", ") }
}
