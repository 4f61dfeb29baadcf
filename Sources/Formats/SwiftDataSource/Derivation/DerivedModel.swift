import Diagnostics
import ManagedObjectModel
import SystemPackage

extension HopdError.Code {
  /// The source has a form whose model is not known.
  package static let sourceUnproven = HopdError.Code("source-unproven", exit: .dataError)
  /// The source is not a model, or not one that can be derived from the source alone.
  package static let sourceUnclear = HopdError.Code("source-unclear", exit: .dataError)
  /// A relationship has no inverse, where its author may believe that it has one.
  package static let lostInverse = HopdError.Code("lost-inverse", severity: .warning)
  /// A version of the past has a type that the app still changes.
  package static let liveType = HopdError.Code("live-type", severity: .warning)
  /// Two versions have the same hashes, or one identifier stands for several shapes.
  package static let versionsAlike = HopdError.Code("versions-alike", severity: .warning)
  /// A version cannot be reached by the migration plan.
  package static let stageMissing = HopdError.Code("stage-missing", severity: .warning)
  /// A new case of an enum would change the version hash.
  package static let casesCount = HopdError.Code("cases-count", severity: .note)
  /// A default is another value in each process of the app.
  package static let frozenDefault = HopdError.Code("default-not-constant", severity: .note)
}

/// A model that was derived from source, or why it could not be.
package struct DerivedModel: Sendable {
  /// Name of the version.
  package let name: String
  /// The model; nil if something was refused.
  package let model: ManagedObjectModel?
  /// Everything that was refused, each with its place.
  package let refusals: [HopdError]
  /// Remarks of the kinds above.
  package let remarks: [HopdError]
  /// The unproven forms that it has, with the places where each is used.
  package let forms: [UnprovenForm: [Place]]
  /// Where each entity is declared.
  package let entityPlaces: [String: Place]
  /// The class of each entity, with the types around it.
  package let classes: [String: [String]]
  /// Where each property is declared.
  package let propertyPlaces: [PropertyKey: Place]
  /// The raw values of enums, by the key path of the attribute.
  package var enumValues: [PropertyKey: EnumValues] = [:]

  /// Where entities and properties are declared; the property of an entity itself is empty.
  package var places: [PropertyKey: Place] {
    entityPlaces.reduce(into: propertyPlaces) { $0[PropertyKey(entity: $1.key, property: "")] = $1.value }
  }

  /// The refusal as one error, for a version that is left out.
  package func refusal(at place: Place) -> HopdError {
    HopdError(
      refusals.contains { $0.code == .sourceUnproven } ? .sourceUnproven : .sourceUnclear,
      "the model of \(name) cannot be derived from its source", at: place, hint: refusals.first?.hint,
      reasons: refusals)
  }
}

/// A relationship before its inverse is known.
struct RelationshipDraft {
  var relationship: Relationship
  let position: SwiftPosition
  /// The types at both ends.
  let owner: Int
  let destination: Int
  /// Whether it has `@Relationship`.
  let hasMacro: Bool
  /// The inverse that it names: the type, where it is written, and the property.
  let named: (type: [String], property: String)?
}

/// An entity before the inverses are known.
struct EntityDraft {
  let symbol: SourceSymbol
  var attributes: [Attribute] = []
  var relationships: [RelationshipDraft] = []
  var constraints: [[String]] = []
  var indexes: [FetchIndex] = []
  var places: [String: Place] = [:]
}
