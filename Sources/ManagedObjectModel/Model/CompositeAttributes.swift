// Composite attributes: a store has a column for each element and none for the composite itself
// (docs/formats/composite-attributes.md, "Columns"). So a model holds the elements among the attributes of an entity,
// named by their key path, and the composites beside them for what is reported of the whole: hash, order, archive,
// dump.

extension Attribute {
  /// An element of a composite attribute of that name as an attribute of its own; its name is the key path.
  ///
  /// A composite that is nil has no values, so what an optional one requires of its elements cannot be required of the
  /// row.
  func element(_ element: Attribute) -> Attribute {
    var leaf = element
    leaf.name = "\(name).\(element.name)"
    leaf.renamingIdentifier = "\(renamingIdentifier).\(element.renamingIdentifier)"
    leaf.isOptional = isOptional || element.isOptional
    leaf.isTransient = isTransient || element.isTransient
    leaf.compositeName = name
    return leaf
  }

  /// Is it an element of a composite attribute?
  package var isElement: Bool { compositeName != nil }

  /// The name without the composite's before it: what its column is called after.
  package var ownName: String {
    guard let compositeName else { return name }
    return String(decoding: name.utf8.dropFirst(compositeName.utf8.count + 1), as: UTF8.self)
  }

  /// Are there composites among the elements? No store shows the columns of such a one.
  package var isNestedComposite: Bool { elements.contains { $0.type == .composite } }
}

extension Entity {
  /// The entity with its composite attributes opened; those with composites inside stay as they are.
  func openingComposites(_ types: [String: [Attribute]]) -> Entity {
    guard attributes.contains(where: { $0.type == .composite }) else { return self }
    var copy = self
    copy.attributes = attributes.flatMap { attribute -> [Attribute] in
      guard attribute.type == .composite else { return [attribute] }
      var composite = attribute
      if composite.elements.isEmpty, let type = attribute.compositeTypeName { composite.elements = types[type] ?? [] }
      guard !composite.elements.isEmpty, !composite.isNestedComposite else { return [attribute] }
      // What the type is called is in the source form alone.
      composite.compositeTypeName = nil
      copy.composites.append(composite)
      return composite.elements.map { composite.element($0) }
    }
    return copy
  }
}

extension ManagedObjectModel {
  /// Own and inherited composite attributes by name; a subentity's own one wins.
  package func allComposites(of entity: Entity) -> [String: Attribute] {
    lineage(of: entity).reduce(into: [:]) { result, ancestor in
      for composite in ancestor.composites { result[composite.name] = composite }
    }
  }
}
