// The reasons why two versions cannot be joined by inference, collected over a whole run so that an author who changes
// a model sees all of them at once. An inherited property breaks the same rule in every subentity; it is reported once.

import Diagnostics

extension HopdError.Code {
  /// Two versions differ in a way that lightweight migration cannot follow.
  package static let notInferable = HopdError.Code("not-inferable", exit: .dataError)
}

struct InferenceFindings {
  private(set) var reasons: [HopdError] = []
  /// The conditions that the rows must fulfil.
  private(set) var conditions: [RowCondition] = []
  private var seen: Set<Key> = []

  private struct Key: Hashable {
    let place: Place
    let message: String
  }

  mutating func add(_ message: String, entity: String, property: String? = nil, hint: String) {
    let place = Place(entity: entity, property: property)
    guard seen.insert(Key(place: place, message: message)).inserted else { return }
    reasons.append(HopdError(.notInferable, message, at: place, hint: hint))
  }

  /// Adds a condition; an inherited property has the same one in every subentity, and it is added once.
  mutating func demand(
    _ demand: RowCondition.Demand, entity: String, property: String?, _ message: String, hint: String
  ) {
    let condition = RowCondition(demand: demand, entity: entity, property: property, message: message, hint: hint)
    if !conditions.contains(condition) { conditions.append(condition) }
  }

  /// Adds the mistakes of a match of names: of entities (`owner` nil), or of the properties of `owner`.
  mutating func add(_ match: IdentifierMatch, kind: String, owner: (source: String, destination: String)?) {
    for (side, duplicates, ownerName) in [
      ("source", match.duplicatesInSource, owner?.source),
      ("destination", match.duplicatesInDestination, owner?.destination),
    ] {
      for (identifier, names) in duplicates.sorted(by: { $0.key < $1.key }) {
        let name = names.first ?? identifier
        add(
          "the \(side) version gives the renaming identifier \"\(identifier)\" to several \(kind): "
            + names.joined(separator: ", "), entity: ownerName ?? name, property: ownerName == nil ? nil : name,
          hint: "set a different renaming identifier for each")
      }
    }
  }

  /// Adds conditions for names whose renaming identifiers contradict their equality: both readings must give the same
  /// rows. `demands` returns the conditions for a name.
  mutating func add(
    contradictionsOf match: IdentifierMatch, owner: (source: String, destination: String)?,
    demands: (_ name: String, _ continued: String?, _ successor: String?) -> [RowCondition.Demand]
  ) {
    for name in match.contradictions {
      let old = match.sourceIdentifiers[name] ?? name
      let new = match.destinationIdentifiers[name] ?? name
      let continued = match.sourceByDestination[name]
      let successor = match.sourceByDestination.first { $0.value == name }?.key
      let from = continued.map { "it continues \($0)" } ?? "it continues nothing"
      let to = successor.map { ", and that one continues as \($0)" } ?? ""
      let path = { (part: String) in owner.map { "\($0.source).\(part)" } ?? part }
      let answer = continued.map { "\(path($0))=\(name)" } ?? "\(path(name))=\(successor ?? "")"
      for demand in demands(name, continued, successor) {
        self.demand(
          demand, entity: owner?.destination ?? name, property: owner == nil ? nil : name,
          "both versions have \(name), but their renaming identifiers (\"\(old)\" and then \"\(new)\") say that they "
            + "are not the same: \(from)\(to)",
          hint: "pass --rename \(path(name))=\(name) if they are the same, or --no-rename for all such names; if not, "
            + "--rename \(answer). For the daemon, set renames or no_rename")
      }
    }
  }
}
