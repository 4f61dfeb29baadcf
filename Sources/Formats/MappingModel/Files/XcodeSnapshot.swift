// The copies of both models in an `.xcmappingmodel`: archives of Xcode's editing objects, from which Xcode compiles the
// mapping model. They hold no version hashes, but everything that these are computed from
// (docs/formats/mapping-models.md, "Which versions a mapping joins").

import Diagnostics
import ManagedObjectModel
import PropertyLists

/// The copy of one model in a mapping model.
enum XcodeSnapshot {
  /// Returns the version hashes of the copied model; nil if it cannot be read, so that only names identify the version.
  static func hashes(base64 text: String?) -> [String: VersionHash]? {
    guard let text, let bytes = Base64.decode(text.utf8) else { return nil }
    do {
      let root = try KeyedArchive.decode(bytes).root()
      let classes = try root.object("_xd_rootPackage")?.object("XDBucketForClassesstorage")
      let entities = try classes?.entries().compactMap { try $0.value.object.map(entity) } ?? []
      let hashes = try ModelValidation.validated(ModelSource(name: "", entities: entities)).versionHashes
      return hashes.isEmpty ? nil : hashes
    } catch {
      return nil
    }
  }

  private static func entity(_ object: ArchivedObject) throws(HopdError) -> Entity {
    let marks = try marks(of: object)
    var attributes: [Attribute] = []
    var relationships: [Relationship] = []
    for (_, value) in try object.object("XDBucketForOwnedAttributesstorage")?.entries() ?? [] {
      guard let property = value.object else { continue }
      if property.isKind(of: "XDPMRelationship") {
        relationships.append(try relationship(property))
      } else if property.isKind(of: "XDPMAttribute") {
        attributes.append(try attribute(property))
      }
    }
    var constraints: [[String]] = []
    for constraint in try marks["XDPMUniquenessConstraints"]?.elements("_default") ?? [] {
      constraints.append(try constraint.object?.elements().compactMap(\.string) ?? [])
    }
    let parents = try object.object("XDBucketForGeneralizationsstorage")?.elements() ?? []
    return Entity(
      name: try name(of: object), parentName: try parents.first?.object?.object("_general").map(name),
      isAbstract: try marks["XD_PSK_isAbstract"]?.boolean("_default") ?? false,
      versionHashModifier: try marks["XD_PSK_versionHashModifier"]?.string("_default"), attributes: attributes,
      relationships: relationships,
      uniquenessConstraints: constraints)
  }

  private static func attribute(_ object: ArchivedObject) throws(HopdError) -> Attribute {
    let marks = try marks(of: object)
    let type = try marks["XD_PAttK_attributeType"]?.integer("_default").flatMap { AttributeType(rawValue: Int($0)) }
    return Attribute(
      name: try name(of: object), type: type ?? .undefined,
      isOptional: try marks["XD_PPSK_isOptional"]?.boolean("_default") ?? false,
      isTransient: try marks["XD_PPSK_isTransient"]?.boolean("_default") ?? false,
      versionHashModifier: try marks["XD_PPSK_versionHashModifier"]?.string("_default"),
      allowsExternalStorage: try marks["XD_PAttK_allowsExternalBinaryDataStorage"]?.boolean("_default") ?? false)
  }

  private static func relationship(_ object: ArchivedObject) throws(HopdError) -> Relationship {
    let marks = try marks(of: object)
    let target = try marks["XD_PRK_destination"]?.object("_default").map(name) ?? ""
    return Relationship(
      name: try name(of: object), destinationEntityName: target,
      inverseName: try marks["XD_PRK_inverseRelationship"]?.object("_default").map(name),
      isOptional: try marks["XD_PPSK_isOptional"]?.boolean("_default") ?? false,
      isTransient: try marks["XD_PPSK_isTransient"]?.boolean("_default") ?? false,
      isToMany: try marks["XD_PRK_isToMany"]?.boolean("_default") ?? false,
      isOrdered: try marks["XD_PRK_ordered"]?.boolean("_default") ?? false,
      maxCount: try marks["XD_PRK_maxCount"]?.integer("_default"),
      minCount: try marks["XD_PRK_minCount"]?.integer("_default") ?? 0,
      versionHashModifier: try marks["XD_PPSK_versionHashModifier"]?.string("_default"))
  }

  private static func name(of object: ArchivedObject) throws(HopdError) -> String { try object.text("_name") ?? "" }

  /// The properties of an element's stereotypes, by name; `_default` holds the value of each.
  private static func marks(of object: ArchivedObject) throws(HopdError) -> [String: ArchivedObject] {
    var marks: [String: ArchivedObject] = [:]
    for (_, stereotype) in try object.object("XDBucketForStereotypesstorage")?.entries() ?? [] {
      for (key, mark) in try stereotype.object?.object("XDBucketForOwnedAttributesstorage")?.entries() ?? [] {
        if let name = key.string, let mark = mark.object { marks[name] = mark }
      }
    }
    return marks
  }
}
