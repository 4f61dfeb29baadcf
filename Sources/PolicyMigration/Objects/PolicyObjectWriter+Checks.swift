// The checks before a policy's change is written.

import Diagnostics
import ManagedObjectModel
import MigrationEngine
import MigrationPolicy
import PersistentStore
import SQLite

extension PolicyObjectWriter {
  /// Throws if a result of a policy's method cannot be the value of an attribute.
  func check(_ value: PolicyValue, of attribute: String, _ id: PolicyObjectID, for speaker: PolicySpeaker) throws {
    let shape = try shape(id, for: speaker)
    guard case .attribute(let index)? = shape.slots[attribute] else { throw unknown(attribute, id, for: speaker) }
    _ = try stored(value, of: shape.attributes[index], id, kept: nil, for: speaker)
  }

  func shape(_ id: PolicyObjectID, for speaker: PolicySpeaker) throws -> PolicyShape {
    guard id.side == .destination else {
      throw speaker.failure("it wants to change an object of the source", at: id)
    }
    guard let shape = side.shape(of: id.entity) else {
      throw speaker.failure("the destination version has no entity \(id.entity)", at: id)
    }
    return shape
  }

  /// Returns the row of an object, which must exist with that entity.
  func row(_ id: PolicyObjectID, for speaker: PolicySpeaker) throws -> PolicyLinkWriter.Row {
    let shape = try self.shape(id, for: speaker)
    guard try targets.number(of: id.key, in: shape.table.name) == shape.number else { throw missing(id, for: speaker) }
    return PolicyLinkWriter.Row(key: id.key, number: shape.number)
  }

  /// Returns the row of an object that a relationship shall point to.
  func row(
    _ target: PolicyObjectID, of owner: PolicyObjectID, _ link: PolicyLink, for speaker: PolicySpeaker
  ) throws -> PolicyLinkWriter.Row {
    guard target.side == .destination else {
      throw speaker.failure("it points a relationship to an object of the source", at: owner, property: link.name)
    }
    guard let shape = side.shape(of: target.entity), link.targetNumbers.contains(shape.number) else {
      throw speaker.failure(
        "the relationship leads to \(link.target), and the policy sent an object of \(target.entity)", at: owner,
        property: link.name)
    }
    guard try targets.number(of: target.key, in: shape.table.name) == shape.number else {
      throw speaker.failure(
        "there is no object \(target.entity) \(target.key) for the relationship", at: owner, property: link.name)
    }
    return PolicyLinkWriter.Row(key: target.key, number: shape.number)
  }

  func rows(
    _ targets: [PolicyObjectID], of owner: PolicyObjectID, _ link: PolicyLink, for speaker: PolicySpeaker
  ) throws -> [PolicyLinkWriter.Row] {
    try targets.map { try row($0, of: owner, link, for: speaker) }
  }

  func target(
    _ value: PolicyValue, of owner: PolicyObjectID, _ link: PolicyLink, for speaker: PolicySpeaker
  ) throws -> PolicyObjectID {
    guard case .object(let target) = value else {
      throw speaker.failure(
        "a to-one takes an object, and the policy sent \(value.kind)", at: owner, property: link.name)
    }
    return target
  }

  func toMany(
    _ name: String, of id: PolicyObjectID, for speaker: PolicySpeaker
  ) throws -> (PolicyLinkWriter.Row, PolicyLink) {
    guard let link = try shape(id, for: speaker).link(name) else { throw unknown(name, id, for: speaker) }
    let owner = try row(id, for: speaker)
    guard link.isToMany else {
      throw speaker.failure("objects are added to and removed from to-manys only", at: id, property: link.name)
    }
    return (owner, link)
  }

  func stored(
    _ value: PolicyValue, of slot: PolicyShape.AttributeSlot, _ id: PolicyObjectID,
    kept: [(attribute: String, content: PolicyValue, stored: SQLiteValue)]?, for speaker: PolicySpeaker
  ) throws -> SQLiteValue {
    guard !slot.isComputed else {
      throw speaker.failure("the attribute is a derived count, which is computed", at: id, property: slot.name)
    }
    if let kept, let same = kept.first(where: { $0.attribute == slot.name }), same.content == value {
      return same.stored
    }
    guard let stored = slot.form.stored(value) else {
      throw speaker.failure(
        "the attribute is of type \(slot.form.attribute.type.xmlName ?? "Undefined"), and the policy sent "
          + "\(value.kind), which is of another type or beyond the range (docs/POLICIES.md, “Values”)", at: id,
        property: slot.name)
    }
    return stored
  }

  func unknown(_ name: String, _ id: PolicyObjectID, for speaker: PolicySpeaker) -> HopdError {
    speaker.failure("the destination version stores no such property", at: id, property: name)
  }

  func missing(_ id: PolicyObjectID, for speaker: PolicySpeaker) -> HopdError {
    speaker.failure("there is no such object", at: id)
  }
}
