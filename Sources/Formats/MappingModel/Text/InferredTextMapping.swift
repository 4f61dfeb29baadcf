// An inferred mapping as a text mapping: a draft for authors who must continue where inference ends, and otherwise a
// readable account of what inference does.

import Diagnostics
import Expressions
import ManagedObjectModel
import SystemPackage

/// Writes inferred mappings as text mappings.
package enum InferredTextMapping {
  /// Returns the inferred mapping between two versions as the text of a `.hopmap.toml` file with comments.
  ///
  /// Throws if the step cannot be inferred. With `isSkeleton` it never throws for that: obstacles become comments that
  /// begin with TODO, for the author to resolve.
  package static func text(
    from source: ManagedObjectModel, to destination: ManagedObjectModel, modelName: String? = nil,
    isSkeleton: Bool = false
  ) throws(HopdError) -> String {
    let (inferred, findings) =
      isSkeleton
      ? MappingInference.attempt(from: source, to: destination)
      : (try MappingInference.infer(from: source, to: destination), [])
    let explicit = ExplicitMapping(inferred: inferred, source: source, destination: destination)
    var writer = TextMappingWriter(
      explicit, source: source, destination: destination, modelName: modelName,
      remarks: InferenceRemarks(inferred, explicit, source, destination, findings).remarks)
    return try writer.text()
  }
}

extension ExplicitMapping {
  /// The mapping model that does the same as an inferred mapping, except for the primary keys.
  ///
  /// Abstract entities have no rows and added ones get none, so they are left out. A relationship of which only the
  /// inverse is continued is left to that inverse: both ends share one storage.
  package init(inferred: InferredMapping, source: ManagedObjectModel, destination: ManagedObjectModel) {
    let carried = inferred.entityMappings.filter { mapping in
      mapping.sourceEntity.flatMap { source.entity(named: $0) }.map { !$0.isAbstract } ?? false
        && mapping.destinationEntity.flatMap { destination.entity(named: $0) }.map { !$0.isAbstract } ?? true
    }
    let entityMappings = carried.map { mapping in
      let title = TextEntityMapping.title(source: mapping.sourceEntity, destination: mapping.destinationEntity)
      return ExplicitEntityMapping(
        name: title, type: mapping.kind == .remove ? .remove : mapping.kind == .copy ? .copy : .transform,
        source: mapping.sourceEntity, destination: mapping.destinationEntity,
        attributes: mapping.attributes.map {
          ExplicitPropertyMapping(name: $0.destination, value: $0.source.map { .expression(.ofSource($0)) })
        }.sortedByBytes(of: \.name),
        relationships: mapping.relationships.map {
          ExplicitPropertyMapping(
            name: $0.destination,
            value: $0.source.flatMap { Self.lookup($0, of: mapping, source: source, carried: carried) })
        }.sortedByBytes(of: \.name))
    }
    self.init(
      name: "\(inferred.sourceVersion) to \(inferred.destinationVersion)", path: "",
      sourceVersion: inferred.sourceVersion, destinationVersion: inferred.destinationVersion,
      entityMappings: entityMappings)
  }

  private static func lookup(
    _ pairs: RelationshipMapping.SourcePairs, of mapping: EntityMapping, source: ManagedObjectModel,
    carried: [EntityMapping]
  ) -> PropertyValue? {
    guard !pairs.isInverted,
      let relationship = mapping.sourceEntity.flatMap({ source.relationship(pairs.relationship, of: $0) }),
      let target = source.entity(named: relationship.destinationEntityName)
    else { return nil }
    let objects = ExpressionNode.ofSource(pairs.relationship)
    if source.subentities(of: target).isEmpty,
      let maker = carried.first(where: { $0.sourceEntity == target.name }), let destination = maker.destinationEntity
    {
      let name = TextEntityMapping.title(source: target.name, destination: destination)
      return .expression(.destinationInstances(.entityMapping(name), objects))
    }
    return .expression(.destinationInstances(.sourceRelationship(pairs.relationship), objects))
  }
}

/// The comments of an inferred mapping, on the changes that a reader of the two models expects.
private struct InferenceRemarks {
  private(set) var remarks = TextMappingRemarks()

  init(
    _ inferred: InferredMapping, _ explicit: ExplicitMapping, _ source: ManagedObjectModel,
    _ destination: ManagedObjectModel, _ findings: [HopdError]
  ) {
    remarks.header = [
      "Inferred from \(source.name) to \(destination.name). Properties with unchanged names are copied and",
      "not listed. Relationships refer to objects created by the mappings of this file (docs/MAPPINGS.md).",
    ]
    let added = inferred.entityMappings.filter { $0.kind == .add }.compactMap(\.destinationEntity)
      .filter { destination.entity(named: $0)?.isAbstract == false }
    if !added.isEmpty { remarks.header.append("New, initially empty: \(added.joined(separator: ", ")).") }
    var reported: Set<Int> = []
    for (index, mapping) in explicit.entityMappings.enumerated() {
      let origin = inferred.entityMappings.first {
        $0.sourceEntity == mapping.source && $0.destinationEntity == mapping.destination
      }
      guard let origin else { continue }
      var lines: [String] = []
      if mapping.destination == nil {
        lines.append("\(mapping.source ?? "") was removed: its objects are dropped.")
      } else {
        if mapping.source != mapping.destination {
          lines.append("\(mapping.source ?? "") is \(mapping.destination ?? "") now, by its renaming identifier.")
        }
        let dropped = origin.droppedAttributes + origin.droppedRelationships
        if !dropped.isEmpty { lines.append("Dropped: \(dropped.joined(separator: ", ")).") }
      }
      remarks.properties[index] = properties(origin, destination)
      for (number, finding) in findings.enumerated() {
        // The finding names the entity that declares the property; subentities may have the property too.
        guard let name = finding.place.entity, name == mapping.destination || name == mapping.source else { continue }
        reported.insert(number)
        lines.append(Self.todo(finding))
      }
      if !lines.isEmpty { remarks.entities[index] = lines }
    }
    for (number, finding) in findings.enumerated() where !reported.contains(number) {
      remarks.header.append(Self.todo(finding))
    }
  }

  private func properties(_ mapping: EntityMapping, _ model: ManagedObjectModel) -> [(name: String, text: String)] {
    guard let entity = mapping.destinationEntity.flatMap({ model.entity(named: $0) }) else { return [] }
    let attributes = model.allAttributes(of: entity)
    let relationships = model.allRelationships(of: entity)
    var result: [(name: String, text: String)] = []
    for attribute in mapping.attributes {
      if let source = attribute.source {
        if source != attribute.destination { result.append((attribute.destination, "renamed from \(source)")) }
      } else if let added = attributes[attribute.destination], !added.isDerived {
        let value = added.defaultValue == nil ? "nil" : "the default of the model"
        result.append((attribute.destination, "new, \(value) in all objects"))
      }
    }
    for relationship in mapping.relationships {
      if let pairs = relationship.source {
        let inverse = relationships[relationship.destination].flatMap { model.inverse(of: $0) }
        if pairs.isInverted, let inverse {
          result.append(
            (relationship.destination, "filled through its inverse \(inverse.entity.name).\(inverse.relationship.name)")
          )
        } else if pairs.relationship != relationship.destination {
          result.append((relationship.destination, "renamed from \(pairs.relationship)"))
        }
      } else {
        result.append((relationship.destination, "new, initially empty"))
      }
    }
    return result
  }

  private static func todo(_ finding: HopdError) -> String {
    let property = finding.place.property.map { "\($0): " } ?? ""
    return "TODO \(property)\(finding.message)" + (finding.hint.map { " (\($0))" } ?? "")
  }
}
