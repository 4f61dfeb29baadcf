// Small models in a few lines, for both sides of an inference.

import Diagnostics
import ManagedObjectModel
import MappingModel
import Testing

func model(_ name: String, _ entities: [Entity]) -> ManagedObjectModel {
  ManagedObjectModel(name: name, entities: entities)
}

func entity(
  _ name: String, id: String? = nil, parent: String? = nil, abstract: Bool = false, _ attributes: [Attribute] = [],
  _ relationships: [Relationship] = []
) -> Entity {
  Entity(
    name: name, parentName: parent, isAbstract: abstract, renamingIdentifier: id, attributes: attributes,
    relationships: relationships)
}

func attribute(
  _ name: String, _ type: AttributeType = .string, id: String? = nil, optional: Bool = true,
  transient: Bool = false, external: Bool = false, derivation: String? = nil, value: AttributeDefault? = nil
) -> Attribute {
  Attribute(
    name: name, type: type, isOptional: optional, isTransient: transient, defaultValue: value, renamingIdentifier: id,
    allowsExternalStorage: external, derivationExpression: derivation)
}

func toOne(_ name: String, _ destination: String, inverse: String? = nil, id: String? = nil) -> Relationship {
  Relationship(name: name, destinationEntityName: destination, inverseName: inverse, renamingIdentifier: id)
}

func toMany(
  _ name: String, _ destination: String, inverse: String? = nil, ordered: Bool = false, id: String? = nil
) -> Relationship {
  Relationship(
    name: name, destinationEntityName: destination, inverseName: inverse, isToMany: true, isOrdered: ordered,
    renamingIdentifier: id)
}

/// Returns the mapping, or fails the test.
func inferred(
  _ source: [Entity], _ destination: [Entity], sourceLocation: SourceLocation = #_sourceLocation
) throws -> InferredMapping {
  try MappingInference.infer(from: model("V1", source), to: model("V2", destination))
}

/// Returns "Entity.property" and message of every reason; empty if the pair can be inferred.
func reasons(_ source: [Entity], _ destination: [Entity]) -> [(place: String, message: String)] {
  do {
    _ = try MappingInference.infer(from: model("V1", source), to: model("V2", destination))
    return []
  } catch {
    return error.reasons.map { reason in
      ((reason.place.entity ?? "?") + (reason.place.property.map { ".\($0)" } ?? ""), reason.message)
    }
  }
}

/// Returns "Entity.property" and message of every condition on the rows.
func conditions(
  _ source: [Entity], _ destination: [Entity], renames: RenameRules = RenameRules()
) throws -> [(place: String, message: String)] {
  try MappingInference.infer(from: model("V1", source), to: model("V2", destination), renames: renames)
    .conditions.map { ($0.entity + ($0.property.map { ".\($0)" } ?? ""), $0.message) }
}
