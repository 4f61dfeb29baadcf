// Composite attributes: a store has a column for each element and none for the composite itself
// (docs/formats/store-layout.md, "Composite attributes"). So a model has the elements among an entity's attributes,
// named by their key path, and the composites in a separate list, which hash, order, archive and dump use.

extension Attribute {
  /// Returns an element of this composite attribute as an attribute; its name is the key path.
  ///
  /// An optional composite that is nil has no values, so the row cannot require what the composite requires of its
  /// elements.
  func element(_ element: Attribute) -> Attribute {
    var leaf = element
    leaf.name = "\(name).\(element.name)"
    leaf.renamingIdentifier = "\(renamingIdentifier).\(element.renamingIdentifier)"
    leaf.isOptional = isOptional || element.isOptional
    leaf.isTransient = isTransient || element.isTransient
    leaf.compositeName = name
    return leaf
  }

  /// Whether it is an element of a composite attribute.
  package var isElement: Bool { compositeName != nil }

  /// The name without the composite's name before it; the column is named after it.
  package var ownName: String {
    guard let compositeName else { return name }
    return String(decoding: name.utf8.dropFirst(compositeName.utf8.count + 1), as: UTF8.self)
  }

  /// Whether its elements include composites. No store shows the columns of such a composite.
  package var isNestedComposite: Bool { elements.contains { $0.type == .composite } }
}

extension Entity {
  /// Returns the entity with its composite attributes opened; nested ones stay unchanged.
  func openingComposites(_ types: [String: [Attribute]]) -> Entity {
    guard attributes.contains(where: { $0.type == .composite }) else { return self }
    var copy = self
    copy.attributes = attributes.flatMap { attribute -> [Attribute] in
      guard attribute.type == .composite else { return [attribute] }
      var composite = attribute
      if composite.elements.isEmpty, let type = attribute.compositeTypeName { composite.elements = types[type] ?? [] }
      guard !composite.elements.isEmpty, !composite.isNestedComposite else { return [attribute] }
      // Only the source form has the type's name.
      composite.compositeTypeName = nil
      copy.composites.append(composite)
      return composite.elements.map { composite.element($0) }
    }
    return copy
  }
}

extension ManagedObjectModel {
  /// Own and inherited composite attributes by name; a subentity's own one has precedence.
  package func allComposites(of entity: Entity) -> [String: Attribute] {
    lineage(of: entity).reduce(into: [:]) { result, ancestor in
      for composite in ancestor.composites { result[composite.name] = composite }
    }
  }
}
