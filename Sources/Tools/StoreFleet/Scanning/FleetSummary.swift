// How many stores of each version there are: the first thing that an operator needs.

/// Counts the lines of a scan.
package struct FleetSummary: Codable, Sendable, Hashable {
  /// Stores of one version, or in one state without a version.
  package struct Group: Codable, Sendable, Hashable {
    package var model: String?
    package var version: String?
    package var state: String
    package var stores = 0
    package var bytes: Int64 = 0
    /// Hops to the target; nil where there is no chain.
    package var hops: Int?
    /// What they lose on the way, by entity and property.
    package var drops: [String]?
    /// One of them, for a closer inspection.
    package var example: String
    package var error: LineError?

    /// How far such a store is from the target, for people.
    package var route: String {
      if state == "current" { return "current" }
      return hops.map { $0 == 1 ? "1 hop" : "\($0) hops" } ?? "no route"
    }
  }

  /// Stores in all, and their bytes.
  package private(set) var stores = 0
  package private(set) var bytes: Int64 = 0
  /// SQLite databases that Core Data did not make.
  package var otherDatabases = 0
  /// The needs of migrating all that are behind: the largest need of space, and the seconds of one job.
  package private(set) var largestNeed: Int64 = 0
  package private(set) var seconds = 0.0
  package private(set) var groups: [Group] = []

  private var places: [Key: Int] = [:]

  private enum CodingKeys: String, CodingKey {
    case stores, bytes, otherDatabases, largestNeed, seconds, groups
  }

  private struct Key: Hashable, Sendable {
    let model: String?
    let version: String?
    let state: String
    let code: String?
  }

  /// An empty summary.
  package init() {}

  /// Counts one more store.
  package mutating func add(_ line: StoreLine) {
    let size = max(0, line.size ?? 0)
    stores += 1
    bytes = bytes.addingReportingOverflow(size).partialValue
    if let need = line.need {
      largestNeed = max(largestNeed, need.disk)
      seconds += need.seconds
    }
    let state = line.state ?? "unknown"
    let key = Key(model: line.model, version: line.version, state: state, code: line.error?.code)
    if let place = places[key] {
      groups[place].stores += 1
      groups[place].bytes = groups[place].bytes.addingReportingOverflow(size).partialValue
    } else {
      places[key] = groups.count
      groups.append(
        Group(
          model: line.model, version: line.version, state: state, stores: 1, bytes: size, hops: line.hops?.count,
          drops: line.drops,
          example: line.store, error: line.error))
    }
  }

  /// The number of stores that lose an entity or a property on the way, by its name.
  package var drops: [String: Int] {
    groups.reduce(into: [:]) { drops, group in
      for part in Set(group.drops ?? []) { drops[part, default: 0] += group.stores }
    }
  }

  /// The groups in the order for people: the oldest first, the current last, those without a chain at the end.
  package var inOrder: [Group] {
    groups.sorted { a, b in
      let (first, second) = (Self.rank(a), Self.rank(b))
      return first != second ? first < second : (a.model ?? "", a.version ?? "") < (b.model ?? "", b.version ?? "")
    }
  }

  private static func rank(_ group: Group) -> Int {
    switch group.state {
    case "behind": group.hops.map { -$0 } ?? 1
    case "current": 0
    default: 2
    }
  }
}
