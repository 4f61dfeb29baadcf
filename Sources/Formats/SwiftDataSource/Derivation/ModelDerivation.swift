// Derives a model from @Model classes. Every rule says how it is known: how many version hashes that Apple's software
// wrote agree with it, and of how many owners they are (docs/formats/swiftdata-source.md). What no hash shows is
// refused by name, or is what a calibration found.

import Diagnostics
import ManagedObjectModel
import SystemPackage

/// One derivation.
package struct ModelDerivation {
  let target: SourceTarget
  private let calibrated: CalibratedForms
  private(set) var refusals: [HopdError] = []
  private(set) var remarks: [HopdError] = []
  private var forms: [UnprovenForm: [Place]] = [:]
  /// Elements of composites so far: structs in structs can have more than fit into memory.
  private var elements = 0
  private static let maximumElements = 100_000
  private static let maximumRefusals = 1_000
  var drafts: [EntityDraft] = []
  /// The raw values of enums, by the key path of the attribute.
  private var enumValues: [PropertyKey: EnumValues] = [:]
  /// The entity and property that is being derived.
  private var subject = Place()

  private init(_ target: SourceTarget, _ calibrated: CalibratedForms) {
    self.target = target
    self.calibrated = calibrated
  }

  /// Returns the model of classes and everything that their relationships reach (4 to 5 entities of a schema that lists
  /// one, 3 of another). A class that nothing reaches is not in the model.
  package static func derive(
    _ roots: [SourceSymbol], of target: SourceTarget, name: String, identifiers: [String],
    calibrated: CalibratedForms = CalibratedForms()
  ) -> DerivedModel {
    var derivation = ModelDerivation(target, calibrated)
    derivation.collect(roots)
    derivation.pairInverses()
    return derivation.result(name: name, identifiers: identifiers)
  }

  private mutating func collect(_ roots: [SourceSymbol]) {
    var seen = Set(roots.map(\.index))
    var queue = roots.map(\.index)
    var names: [String: SourceSymbol] = [:]
    while !queue.isEmpty {
      let symbol = target.types[queue.removeFirst()]
      subject = place(of: symbol)
      if let first = names.updateValue(symbol, forKey: symbol.name) {
        refuse(
          "a second class of this name is in the model: \(target.place(of: first))", at: symbol.declaration.position)
        continue
      }
      let draft = entity(symbol)
      drafts.append(draft)
      for relationship in draft.relationships where seen.insert(relationship.destination).inserted {
        queue.append(relationship.destination)
      }
    }
  }

  private func result(name: String, identifiers: [String]) -> DerivedModel {
    var refusals = self.refusals
    var model: ManagedObjectModel?
    let entityPlaces = Dictionary(drafts.map { ($0.symbol.name, place(of: $0.symbol)) }) { first, _ in first }
    var propertyPlaces: [PropertyKey: Place] = [:]
    for draft in drafts {
      for (property, place) in draft.places {
        propertyPlaces[PropertyKey(entity: draft.symbol.name, property: property)] = place
      }
    }
    if refusals.isEmpty {
      var source = ModelSource(name: name, entities: drafts.map(entity(of:)))
      source.versionIdentifiers = identifiers
      // The model in a store of SwiftData has a configuration of this name.
      source.configurations = [.init(name: "default", members: source.entities.map(\.name))]
      do throws(HopdError) {
        model = try ModelValidation.validated(source)
      } catch {
        refusals = error.reasons.isEmpty ? [error] : error.reasons
        refusals = refusals.map { fault in
          let property = fault.place.property ?? ""
          let key = PropertyKey(entity: fault.place.entity ?? "", property: property)
          return fault.located(propertyPlaces[key] ?? entityPlaces[key.entity] ?? Place())
        }
      }
    }
    return DerivedModel(
      name: name, model: model, refusals: refusals, remarks: remarks, forms: forms, entityPlaces: entityPlaces,
      classes: Dictionary(drafts.map { ($0.symbol.name, $0.symbol.path) }) { first, _ in first },
      propertyPlaces: propertyPlaces, enumValues: enumValues)
  }

  private func entity(of draft: EntityDraft) -> Entity {
    Entity(
      name: draft.symbol.name, attributes: draft.attributes, relationships: draft.relationships.map(\.relationship),
      fetchIndexes: draft.indexes, uniquenessConstraints: draft.constraints)
  }

  // MARK: Refusals

  func place(of symbol: SourceSymbol) -> Place {
    Place(
      file: FilePath(target.files[symbol.scope.file]), line: symbol.declaration.position.line,
      column: symbol.declaration.position.column, entity: symbol.name)
  }

  /// What is derived from now on.
  mutating func begin(_ property: SourceProperty?, of symbol: SourceSymbol) {
    subject = place(of: symbol)
    guard let property else { return }
    subject.property = property.name
    subject.line = property.position.line
    subject.column = property.position.column
  }

  mutating func begin(at place: Place) { subject = place }

  /// Notes the raw values of the enum that an element of the current property has.
  mutating func note(valuesOf index: Int, element: String, isOptional: Bool) {
    guard let entity = subject.entity, let property = subject.property else { return }
    let values = target.rawValues(ofEnum: index)
    guard !values.isEmpty else { return }
    enumValues[PropertyKey(entity: entity, property: "\(property).\(element)")] = EnumValues(
      values, isOptional: isOptional)
  }

  /// The place of what is being derived.
  var currentPlace: Place { subject }

  private func place(at position: SwiftPosition?, in file: Int?) -> Place {
    var place = subject
    if let file { place.file = FilePath(target.files[file]) }
    if let position { (place.line, place.column) = (position.line, position.column) }
    return place
  }

  /// Refuses models that the source alone does not define.
  mutating func refuse(
    _ message: String, at position: SwiftPosition? = nil, in file: Int? = nil, hint: String? = nil
  ) {
    guard refusals.count < Self.maximumRefusals else { return }
    refusals.append(HopdError(.sourceUnclear, message, at: place(at: position, in: file), hint: hint))
  }

  /// Counts an element of a composite; false where there are too many.
  mutating func countElement(at position: SwiftPosition, in file: Int) -> Bool {
    elements += 1
    if elements == Self.maximumElements {
      refuse("the composites have more than \(Self.maximumElements) elements", at: position, in: file)
    }
    return elements < Self.maximumElements
  }

  /// Refuses what is compiled only under a condition that nothing decides.
  mutating func refuse(condition: String, at position: SwiftPosition, in file: Int? = nil) {
    refuse(
      "it is compiled only if \(condition), and that is unknown", at: position, in: file,
      hint: "pass --define '\(condition)', or --define '\(condition)=0'")
  }

  mutating func remark(_ code: HopdError.Code, _ message: String, hint: String? = nil) {
    remarks.append(HopdError(code, message, at: subject, hint: hint))
  }

  /// Returns what a calibration found for a form; otherwise refuses it by name.
  mutating func settle(
    _ form: UnprovenForm, _ what: String, at position: SwiftPosition? = nil, in file: Int? = nil
  ) -> String? {
    let place = place(at: position, in: file)
    guard refusals.count < Self.maximumRefusals else { return nil }
    forms[form, default: []].append(place)
    if let found = calibrated.found[form.name], form.alternatives.contains(found) { return found }
    refusals.append(
      HopdError(
        .sourceUnproven, "\(what): the model that SwiftData makes of this is not proven (\(form.name))", at: place,
        hint: form.alternatives.isEmpty
          ? nil
          : "prove it with a store of any version that the app created, hopctl model calibrate FOLDER --store STORE, "
            + "or with hashes in its tests, --pinned TESTS"))
    return nil
  }
}

extension Place {
  /// The same entity and property at another place.
  func moved(to position: SwiftPosition, file: String) -> Place {
    var copy = self
    copy.file = FilePath(file)
    (copy.line, copy.column) = (position.line, position.column)
    return copy
  }
}
