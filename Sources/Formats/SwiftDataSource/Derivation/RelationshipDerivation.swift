// Relationships and their inverses.

import Diagnostics
import ManagedObjectModel
import SystemPackage

extension ModelDerivation {
  /// Adds a relationship: a property whose type is a model (39 hashes of 7 owners), or an array of models (87 of 5). It
  /// is optional exactly if its type is, never ordered, and has no counts: minimum 0, maximum 1 or none.
  mutating func add(
    _ property: SourceProperty, leadingTo destination: Int, isToMany: Bool, isOptional: Bool, _ options: Options,
    to draft: inout EntityDraft
  ) {
    let relationship = Relationship(
      name: property.name, destinationEntityName: target.types[destination].name, isOptional: isOptional,
      isToMany: isToMany, deleteRule: options.deleteRule, renamingIdentifier: options.originalName,
      versionHashModifier: options.hashModifier)
    var named: (type: [String], property: String)?
    switch options.inverse {
    case .keyPath(let root, let names)?:
      guard case .name(let path)? = root ?? .name([]), let last = names.last else {
        refuse("its inverse is not a key path of a model: \(options.inverse?.text ?? "")")
        break
      }
      named = (path.map(\.name) + names.dropLast(), last)
    case SourceExpression.none?, nil: break
    case let other?: refuse("its inverse is not a key path: \(other.text)")
    }
    draft.relationships.append(
      RelationshipDraft(
        relationship: relationship, position: property.position, owner: draft.symbol.index, destination: destination,
        hasMacro: options.hasRelationship, named: named))
  }

  // MARK: Inverses

  /// A relationship by the places of its entity and itself.
  private struct End: Hashable {
    let entity: Int
    let relationship: Int
  }

  private subscript(end: End) -> RelationshipDraft {
    get { drafts[end.entity].relationships[end.relationship] }
    set { drafts[end.entity].relationships[end.relationship] = newValue }
  }

  private func ends() -> [End] {
    drafts.indices.flatMap { entity in
      drafts[entity].relationships.indices.map { End(entity: entity, relationship: $0) }
    }
  }

  private mutating func begin(_ end: End) {
    let draft = drafts[end.entity]
    var place = place(of: draft.symbol)
    let relationship = self[end]
    place.property = relationship.relationship.name
    (place.line, place.column) = (relationship.position.line, relationship.position.column)
    begin(at: place)
  }

  mutating func pairInverses() {
    let ends = ends()
    let named = Dictionary(
      ends.map { (Name(owner: self[$0].owner, property: self[$0].relationship.name), $0) }
    ) { first, _ in first }
    for end in ends where self[end].named != nil { pairNamed(end, named) }
    pairImplied(ends)
  }

  /// A relationship by its class and its name.
  private struct Name: Hashable {
    let owner: Int
    let property: String
  }

  /// `inverse:` sets the inverse at its own end (33 hashes of 5 owners) and at the other one (74 of 5).
  private mutating func pairNamed(_ end: End, _ ends: [Name: End]) {
    begin(end)
    let draft = self[end]
    guard let named = draft.named else { return }
    if !named.type.isEmpty {
      let scope = drafts[end.entity].symbol.inside
      let found = target.resolve(SourceType.name(named.type.map { SourceTypeName(name: $0) }), in: scope)
      guard found == .model(draft.destination) else {
        return refuse(
          "its inverse is a property of \(named.type.joined(separator: ".")), which is not its destination "
            + target.types[draft.destination].qualifiedName)
      }
    }
    guard let other = ends[Name(owner: draft.destination, property: named.property)] else {
      // The destination itself was refused, or the property is no relationship.
      guard drafts.contains(where: { $0.symbol.index == draft.destination }) else { return }
      return refuse("its inverse \(draft.relationship.destinationEntityName).\(named.property) is not a relationship")
    }
    guard self[other].destination == draft.owner else {
      return refuse("its inverse \(draft.relationship.destinationEntityName).\(named.property) leads elsewhere")
    }
    for (one, name) in [(end, named.property), (other, draft.relationship.name)] {
      if let known = self[one].relationship.inverseName, known != name {
        return refuse("two inverses are declared for one relationship: \(known) and \(name)")
      }
      self[one].relationship.inverseName = name
    }
  }

  /// The classes at both ends of a relationship.
  private struct Way: Hashable {
    let from: Int
    let to: Int
  }

  /// Without any `inverse:` two relationships are inverses only if neither has `@Relationship` and each is the only
  /// candidate of the other (5 hashes of 2 owners).
  private mutating func pairImplied(_ ends: [End]) {
    let open = ends.filter { self[$0].relationship.inverseName == nil }
    let ways = Dictionary(grouping: open) { Way(from: self[$0].owner, to: self[$0].destination) }
    /// The candidates for the other end: the first ones, and how many there are.
    func candidates(_ end: End) -> (first: [End], count: Int) {
      let draft = self[end]
      let back = ways[Way(from: draft.destination, to: draft.owner)] ?? []
      let isSelf = draft.destination == draft.owner
      return (back.prefix(7).filter { $0 != end }, back.count - (isSelf ? 1 : 0))
    }
    for end in open where self[end].relationship.inverseName == nil {
      begin(end)
      let (found, count) = candidates(end)
      guard let other = found.first else { continue }
      if count > 1 || candidates(other).count > 1 {
        // Several candidates: none of them gets an inverse (2 hashes of 1 owner).
        let names = found.prefix(6).map {
          "\(self[end].relationship.destinationEntityName).\(self[$0].relationship.name)"
        }
        remarkLost("there are several candidates (\(names.joined(separator: ", ")))", end, nil)
      } else if self[end].hasMacro || self[other].hasMacro {
        // A macro without `inverse:` at either end: no inverse at both (4 hashes of 2 owners).
        remarkLost("@Relationship without `inverse:` leaves it without", end, other)
      } else if isPaired(end, other) {
        self[end].relationship.inverseName = self[other].relationship.name
        self[other].relationship.inverseName = self[end].relationship.name
      }
    }
  }

  /// Whether two relationships without macros, each the only candidate of the other, are inverses.
  private mutating func isPaired(_ end: End, _ other: End) -> Bool {
    let (one, two) = (self[end].relationship, self[other].relationship)
    let required = [one, two].filter { !$0.isToMany && !$0.isOptional }
    switch (one.isToMany, two.isToMany) {
    case (true, true):
      return settle(.pair("many-to-many without @Relationship"), "“\(one.name)” and “\(two.name)”")
        == UnprovenForm.paired
    case (false, false) where required.count == 1:
      return settle(.pair("one-to-one, required at one end, without @Relationship"), "“\(one.name)” and “\(two.name)”")
        == UnprovenForm.paired
    default:
      // A required to-one gets no inverse, and neither does the other end (5 hashes of 1 owner).
      guard !required.isEmpty else { return true }
      remarkLost("a required end does not get one automatically", end, other)
      return false
    }
  }

  private mutating func remarkLost(_ reason: String, _ end: End, _ other: End?) {
    let relationship = self[end].relationship
    let property = other.map { self[$0].relationship.name } ?? "PROPERTY"
    // Where both ends have values, only the operator knows which of them hold (`rows-forbid-inference`).
    let name = "\(target.types[self[end].owner].name).\(relationship.name)"
    remark(
      .lostInverse, "it has no inverse in the model: \(reason)",
      hint: "declare it in a new version, if it should have one: "
        + "@Relationship(inverse: \\\(relationship.destinationEntityName).\(property)); a hop to that version is "
        + "refused where objects are related already: pass --rename \(name)= to keep the other end's values, or write "
        + "a mapping model")
  }
}
