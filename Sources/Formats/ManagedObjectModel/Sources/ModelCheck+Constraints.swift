// Checks of constraints, configurations and composites. Indexes are not checked: a layout leaves out those that it
// cannot make, and a store works without them.

import Diagnostics

extension ModelCheck {
  mutating func checkReferences() {
    for (index, entity) in source.entities.enumerated() {
      let place = place(ofEntity: index)
      let lineage = self.line(of: index)
      func missing(_ name: String) -> Bool {
        // A key path leads into a composite; its first key is the attribute.
        let first = String(Substring(name.utf8.prefix { $0 != UInt8(ascii: ".") }))
        return ![name, first].compactMap { numbers[$0] }.contains { number in
          lineage.contains { ownNames[$0].contains(number) }
        }
      }
      for name in entity.uniquenessConstraints.joined() where missing(name) {
        fault("a uniqueness constraint names “\(name)”, which the entity has not", at: place)
      }
    }
  }

  mutating func checkConfigurations() {
    for configuration in source.configurations {
      for member in configuration.members where indexByName[member] == nil {
        fault(
          "the configuration “\(configuration.name)” names the entity “\(member)”, which is not in the model",
          at: Place(line: configuration.line))
      }
    }
  }

  // MARK: Composites

  mutating func checkComposites() {
    let byName = Dictionary(source.composites.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    var seen: Set<String> = []
    for composite in source.composites where !seen.insert(composite.name).inserted {
      fault("duplicate composite type “\(composite.name)”", at: Place(line: composite.line))
    }
    for composite in source.composites where opened[composite.name] == nil {
      _ = open(composite, among: byName, depth: 0)
    }
    for (index, entity) in source.entities.enumerated() {
      for attribute in entity.attributes where attribute.type == .composite {
        let typeName = attribute.compositeTypeName ?? ""
        let place = place(ofProperty: attribute.name, entity: index)
        checkElements(of: attribute, byName[typeName]?.elements, entity: index, at: place)
        // A compiled model has the elements in the attribute itself.
        guard attribute.elements.isEmpty, byName[typeName] == nil else { continue }
        fault("its composite type “\(typeName)” is not in the model", at: place)
      }
    }
  }

  /// Elements are named by their key path, so no other property may have that name.
  private mutating func checkElements(
    of attribute: Attribute, _ typed: [Attribute]?, entity index: Int, at place: Place
  ) {
    let elements = attribute.elements.isEmpty ? typed ?? [] : attribute.elements
    let type = attribute.elements.isEmpty ? attribute.compositeTypeName : nil
    // A hostile model has thousands of attributes of one large type: its own names are checked once.
    let isTypeChecked = type.map(soundComposites.contains) ?? false
    var seen: Set<String> = []
    var isSound = true
    for element in elements.prefix(ModelValidation.maximumCompositeElements) {
      if !isTypeChecked, element.name.isEmpty || element.name.unicodeScalars.contains("\0") {
        fault("an element of the composite has no proper name", at: place)
        isSound = false
      } else if !isTypeChecked, !seen.insert(element.name).inserted {
        fault("the composite has a second element “\(element.name)”", at: place)
        isSound = false
      } else if hasDottedNames, let number = numbers["\(attribute.name).\(element.name)"],
        ownNames[index].contains(number)
      {
        fault("another property has the name of the element “\(element.name)”", at: place)
      }
    }
    if isSound, let type { soundComposites.insert(type) }
  }

  /// A composite type with its nested composites opened.
  struct Opened {
    var elements = 0
    /// Bytes that hashing the elements reads.
    var bytes = 0
    var height = 0
    var isComplete = false
  }

  private mutating func open(
    _ composite: ModelSource.Composite, among byName: [String: ModelSource.Composite], depth: Int
  ) -> Opened {
    if let known = opened[composite.name] {
      if !known.isComplete {
        fault("the composite type “\(composite.name)” contains itself", at: Place(line: composite.line))
      }
      return known
    }
    var result = Opened()
    opened[composite.name] = result
    for element in composite.elements {
      result.bytes += element.hashedBytes
      guard element.type == .composite else {
        result.elements += 1
        continue
      }
      guard let nested = byName[element.compositeTypeName ?? ""] else {
        fault(
          "its composite type “\(element.compositeTypeName ?? "")” is not in the model",
          at: Place(line: composite.line, entity: composite.name, property: element.name))
        continue
      }
      // The depth bounds the recursion; the height covers types that were opened before.
      let inner =
        depth < ModelValidation.maximumCompositeDepth
        ? open(nested, among: byName, depth: depth + 1) : Opened(height: ModelValidation.maximumCompositeDepth)
      result.elements += inner.elements
      result.bytes += inner.bytes
      result.height = max(result.height, inner.height + 1)
      if result.elements > ModelValidation.maximumCompositeElements { break }
    }
    if result.elements > ModelValidation.maximumCompositeElements {
      fault(
        "the composite type “\(composite.name)” has more than \(ModelValidation.maximumCompositeElements) elements",
        at: Place(line: composite.line), code: .modelTooLarge)
      result.elements = 0
    }
    if result.height > ModelValidation.maximumCompositeDepth {
      fault(
        "composite types are nested deeper than \(ModelValidation.maximumCompositeDepth) in “\(composite.name)”",
        at: Place(line: composite.line), code: .modelTooLarge)
      result.height = 0
    }
    result.isComplete = true
    opened[composite.name] = result
    return result
  }

  mutating func fault(_ message: String, at place: Place = Place(), code: HopdError.Code = .invalidModel) {
    count += 1
    guard faults.count < ModelLimits.findings else { return }
    var place = place
    if place.entity == "" { place.entity = nil }
    if place.property == "" { place.property = nil }
    faults.append(HopdError(code, message, at: place))
  }

  func place(ofEntity index: Int) -> Place {
    Place(line: source.line(ofEntity: index), entity: source.entities[index].name)
  }

  func place(ofProperty name: String, occurrence: Int = 0, entity index: Int) -> Place {
    Place(
      line: source.line(ofProperty: name, occurrence: occurrence, entity: index), entity: source.entities[index].name,
      property: name)
  }
}
