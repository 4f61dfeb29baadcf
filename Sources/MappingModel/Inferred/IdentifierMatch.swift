// Which named thing of a destination continues which one of a source. One rule for entities, attributes and
// relationships: the renaming identifiers are equal, each defaulting to the own name
// (docs/formats/migration-semantics.md, "Matching"). Separate from the inference because it is the same three times and
// can be tried out exhaustively.

/// A name with its renaming identifier.
struct Identified: Hashable {
  let name: String
  let identifier: String
}

/// The pairs of two lists of names, and what makes them doubtful.
struct IdentifierMatch {
  /// Destination name to source name.
  private(set) var sourceByDestination: [String: String] = [:]
  /// Identifiers that several names of the source share, with those names.
  let duplicatesInSource: [String: [String]]
  /// The same for the destination.
  let duplicatesInDestination: [String: [String]]
  /// Names that stand on both sides without being matched with each other, sorted: an identifier says that the one is
  /// not the other, and nobody can tell whether that was meant.
  let contradictions: [String]
  /// Identifiers by name, for messages.
  let sourceIdentifiers: [String: String]
  let destinationIdentifiers: [String: String]

  init(source: [Identified], destination: [Identified]) {
    sourceIdentifiers = Dictionary(source.map { ($0.name, $0.identifier) }, uniquingKeysWith: { first, _ in first })
    destinationIdentifiers = Dictionary(
      destination.map { ($0.name, $0.identifier) }, uniquingKeysWith: { first, _ in first })
    duplicatesInSource = IdentifierMatch.duplicates(source)
    duplicatesInDestination = IdentifierMatch.duplicates(destination)
    var sourceByIdentifier: [String: String] = [:]
    for item in source where duplicatesInSource[item.identifier] == nil {
      sourceByIdentifier[item.identifier] = item.name
    }
    for item in destination where duplicatesInDestination[item.identifier] == nil {
      sourceByDestination[item.name] = sourceByIdentifier[item.identifier]
    }
    // Names under a shared identifier have their own reason already.
    let doubtful = Set(duplicatesInSource.values.joined()).union(duplicatesInDestination.values.joined())
    let sourceNames = Set(source.map(\.name))
    let pairs = sourceByDestination
    contradictions = Set(destination.map(\.name)).filter {
      sourceNames.contains($0) && pairs[$0] != $0 && !doubtful.contains($0)
    }.sorted()
  }

  private static func duplicates(_ items: [Identified]) -> [String: [String]] {
    var names: [String: Set<String>] = [:]
    for item in items { names[item.identifier, default: []].insert(item.name) }
    return names.filter { $0.value.count > 1 }.mapValues { $0.sorted() }
  }
}
