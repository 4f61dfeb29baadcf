// One edit of a shipped version as text: of an entity or of a property, from git or from the lock.

/// An edit of a shipped version.
struct ShippedChange {
  enum Kind {
    case added, removed, changed
    /// A renaming identifier was removed or changed.
    case identifier
    /// Only its parent changed, which is part of its hash.
    case inherited
    /// The table or an index changed, but no hash.
    case layout
  }

  let entity: String
  /// nil for the entity itself.
  let property: String?
  let kind: Kind
  /// The change; for an added or removed part, its description.
  var words = ""

  /// The edit as the end of a sentence.
  var sentence: String {
    let name = property.map { "the property \($0)" } ?? "the entity \(entity)"
    let detail = words.isEmpty ? "" : " (\(words))"
    switch kind {
    case .added: return "\(name) was added to it since\(detail)"
    case .removed: return "\(name) was removed from it since\(detail)"
    case .changed, .layout, .identifier: return "\(name) was changed in it since: \(words)"
    case .inherited: return "\(name) was changed in it since: its parent has another hash, which is part of its own"
    }
  }

  // MARK: Two states of an entity

  /// Returns the changes of an entity whose hash differs: by the model from git if there is one, otherwise by the short
  /// forms.
  static func between(
    _ first: ShippedEntity, _ second: ShippedEntity, _ difference: ModelDifference?
  ) -> [ShippedChange] {
    let found = difference?.entities.first { $0.name == first.name }.map(byGit) ?? byParts(first, second)
    return found.isEmpty ? [ShippedChange(entity: first.name, property: nil, kind: .inherited)] : found
  }

  private static func byGit(_ entity: EntityDifference) -> [ShippedChange] {
    let own = entity.changes.filter(\.isHashed).map(\.words).joined(separator: "; ")
    let changed = own.isEmpty ? [] : [ShippedChange(entity: entity.name, property: nil, kind: .changed, words: own)]
    return changed
      + entity.properties.filter(\.isHashed).map { property in
        let kind: Kind = property.kind == .added ? .added : property.kind == .removed ? .removed : .changed
        return ShippedChange(
          entity: entity.name, property: property.name, kind: kind,
          words: property.changes.filter(\.isHashed).map(\.words).joined(separator: "; "))
      }
  }

  private static func byParts(_ first: ShippedEntity, _ second: ShippedEntity) -> [ShippedChange] {
    let (before, after) = (first.partsByName, second.partsByName)
    return Set(before.keys).union(after.keys).sorted().compactMap { name -> ShippedChange? in
      guard before[name] != after[name] else { return nil }
      let (old, new) = (before[name] ?? [], after[name] ?? [])
      func own(_ words: String) -> ShippedChange {
        ShippedChange(entity: first.name, property: nil, kind: .changed, words: words)
      }
      switch name {
      case ShippedEntity.parent: return own("parent \(old.first ?? "none") → \(new.first ?? "none")")
      case ShippedEntity.abstract: return own(new.isEmpty ? "abstract → concrete" : "concrete → abstract")
      case ShippedEntity.modifier: return own("another version hash modifier")
      // It is not part of a hash, and reported separately.
      case ShippedEntity.identifier: return nil
      case ShippedEntity.unique:
        let gone = old.filter { !new.contains($0) }.map { "uniqueness constraint (\(list($0))) removed" }
        let added = new.filter { !old.contains($0) }.map { "uniqueness constraint (\(list($0))) added" }
        return own((gone + added).joined(separator: "; "))
      default:
        if old.isEmpty {
          return ShippedChange(entity: first.name, property: name, kind: .added, words: new.joined())
        }
        if new.isEmpty {
          return ShippedChange(entity: first.name, property: name, kind: .removed, words: old.joined())
        }
        let words = words(from: old.joined(), to: new.joined())
        return words.isEmpty
          ? nil : ShippedChange(entity: first.name, property: name, kind: .changed, words: words)
      }
    }
  }

  private static func list(_ constraint: String) -> String {
    constraint.split(separator: " ").filter { $0 != "+" }.joined(separator: ", ")
  }

  /// Returns the changes between two short forms: the type first, then added and removed words.
  private static func words(from old: String, to new: String) -> String {
    func split(_ text: String) -> [String] {
      text.split(separator: ",").map { $0.trimmingPrefix(" ").description }
        .filter { !$0.hasPrefix(ShippedEntity.identifierWord) }
    }
    var (before, after) = (split(old), split(new))
    var changes: [String] = []
    if let first = before.first, let second = after.first, first != second {
      changes.append((first.contains("to ") ? "" : "type ") + "\(first) → \(second)")
    }
    (before, after) = (Array(before.dropFirst()), Array(after.dropFirst()))
    if before.contains("optional") != after.contains("optional") {
      changes.append(after.contains("optional") ? "required → optional" : "optional → required")
    }
    changes += after.filter { $0 != "optional" && !before.contains($0) }.map { "now \($0)" }
    changes += before.filter { $0 != "optional" && !after.contains($0) }.map { "no more \($0)" }
    return changes.joined(separator: "; ")
  }

  // MARK: Renaming identifiers

  /// Returns renaming identifiers that an entity and its properties no longer have. An added identifier repairs a
  /// forgotten rename, and harms no store.
  static func lostIdentifiers(_ first: ShippedEntity, _ second: ShippedEntity) -> [ShippedChange] {
    let (before, after) = (first.identifiers, second.identifiers)
    return before.sorted { $0.key < $1.key }.compactMap { name, identifier in
      guard after[name] != identifier else { return nil }
      let words = "its renaming identifier \(identifier) is \(after[name].map { "\($0) now" } ?? "gone")"
      return ShippedChange(
        entity: first.name, property: name == ShippedEntity.identifier ? nil : name, kind: .identifier, words: words)
    }
  }
}
