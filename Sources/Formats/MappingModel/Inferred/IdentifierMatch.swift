// Matches the names of a destination with those of a source. Entities, attributes and relationships have one rule: the
// renaming identifiers are equal, and each defaults to the own name (docs/formats/migration-semantics.md, "Matching").
// Separate from the inference because it is used three times and can be tested exhaustively.

import ManagedObjectModel

/// A name with its renaming identifier.
struct Identified: Hashable {
  let name: String
  let identifier: String
}

extension Identified {
  init(_ entity: Entity) { self.init(name: entity.name, identifier: entity.renamingIdentifier) }
  init(_ attribute: Attribute) { self.init(name: attribute.name, identifier: attribute.renamingIdentifier) }
  init(_ relationship: Relationship) { self.init(name: relationship.name, identifier: relationship.renamingIdentifier) }
}

/// The pairs of two lists of names, and the doubtful cases.
struct IdentifierMatch {
  /// Destination name to source name.
  private(set) var sourceByDestination: [String: String] = [:]
  /// Identifiers that several names of the source share, with those names.
  let duplicatesInSource: [String: [String]]
  /// Identifiers that several names of the destination share, with those names.
  let duplicatesInDestination: [String: [String]]
  /// Names that exist on both sides without being matched with each other, sorted: an identifier contradicts the equal
  /// names, and the models do not show whether that was meant.
  let contradictions: [String]
  /// Identifiers by name, for messages about contradictions.
  let sourceIdentifiers: [String: String]
  let destinationIdentifiers: [String: String]

  /// Matches names; `decided` maps source names to the operator's destination names, empty for names that end.
  init(source: [Identified], destination: [Identified], decided: [String: String] = [:], namesCount: Bool = false) {
    // Most entities of two versions are equal.
    if decided.isEmpty, source == destination, Set(source.map(\.identifier)).count == source.count {
      sourceByDestination = Dictionary(source.map { ($0.name, $0.name) }) { first, _ in first }
      (duplicatesInSource, duplicatesInDestination, contradictions) = ([:], [:], [])
      (sourceIdentifiers, destinationIdentifiers) = ([:], [:])
      return
    }
    func identifiers(_ items: [Identified]) -> [String: String] {
      Dictionary(items.map { ($0.name, $0.identifier) }) { first, _ in first }
    }
    sourceIdentifiers = identifiers(source)
    destinationIdentifiers = identifiers(destination)
    let names = (source: Set(source.map(\.name)), destination: Set(destination.map(\.name)))
    // Decided names need no identifier. A name that the destination lacks is meant for another hop.
    var pairs = decided.filter { names.destination.contains($0.value) }
    if namesCount {
      let taken = Set(pairs.values)
      for name in names.source.intersection(names.destination) where decided[name] == nil && !taken.contains(name) {
        pairs[name] = name
      }
    }
    let ended = Set(decided.filter { $0.value.isEmpty }.keys)
    let openSource = source.filter { pairs[$0.name] == nil && !ended.contains($0.name) }
    let settled = Set(pairs.values)
    let openDestination = destination.filter { !settled.contains($0.name) }
    duplicatesInSource = IdentifierMatch.duplicates(openSource)
    duplicatesInDestination = IdentifierMatch.duplicates(openDestination)
    for (old, new) in pairs { sourceByDestination[new] = old }
    var sourceByIdentifier: [String: String] = [:]
    for item in openSource where duplicatesInSource[item.identifier] == nil {
      sourceByIdentifier[item.identifier] = item.name
    }
    for item in openDestination where duplicatesInDestination[item.identifier] == nil {
      sourceByDestination[item.name] = sourceByIdentifier[item.identifier]
    }
    // Names under a shared identifier are reported for that already.
    let doubtful = Set(duplicatesInSource.values.joined()).union(duplicatesInDestination.values.joined())
    let matched = sourceByDestination
    contradictions = Set(openDestination.map(\.name)).filter { name in
      openSource.contains { $0.name == name } && matched[name] != name && !doubtful.contains(name)
    }.sorted()
  }

  private static func duplicates(_ items: [Identified]) -> [String: [String]] {
    var names: [String: Set<String>] = [:]
    for item in items { names[item.identifier, default: []].insert(item.name) }
    return names.filter { $0.value.count > 1 }.mapValues { $0.sorted() }
  }
}
