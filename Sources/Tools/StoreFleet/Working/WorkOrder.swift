// In which order a share is worked through, and which of it is a sample.

/// `--first`.
package enum WorkOrder: String, Sendable, Hashable, CaseIterable {
  /// As the manifest has it.
  case manifest
  /// Small stores first: most stores are done soon.
  case smallest
  /// Large stores first: the last ones to finish are small, so all jobs end at about the same time.
  case largest
  /// The stores that were not written to for the longest time first.
  case oldest

  /// The stores in this order; equal ones stay in the manifest's order.
  package func sorted(_ lines: [StoreLine]) -> [StoreLine] {
    func sorted(_ comes: (StoreLine, StoreLine) -> Bool) -> [StoreLine] {
      // Swift's sort is stable in practice but does not promise it.
      lines.enumerated().sorted { a, b in
        comes(a.element, b.element) || (!comes(b.element, a.element) && a.offset < b.offset)
      }.map(\.element)
    }
    return switch self {
    case .manifest: lines
    case .smallest: sorted { ($0.size ?? 0) < ($1.size ?? 0) }
    case .largest: sorted { ($0.size ?? 0) > ($1.size ?? 0) }
    case .oldest: sorted { ($0.modified ?? 0) < ($1.modified ?? 0) }
    }
  }
}

/// `--canary`: the few stores that are migrated first.
package enum CanarySample {
  /// Up to `count` stores that are behind: of each version the smallest and the largest, then others of each version in
  /// turn, chosen by the hash of their path. The same manifest gives the same sample.
  package static func of(_ lines: [StoreLine], count: Int) -> [StoreLine] {
    struct Version: Hashable, Comparable {
      let model: String
      let version: String

      static func < (a: Self, b: Self) -> Bool { (a.model, a.version) < (b.model, b.version) }
    }
    let behind = lines.filter { $0.state == nil || $0.state == "behind" }
    let groups = Dictionary(grouping: behind) { Version(model: $0.model ?? "", version: $0.version ?? "") }
    let queues = groups.sorted { $0.key < $1.key }.map { queue(of: $0.value) }
    var sample: [StoreLine] = []
    var round = 0
    while sample.count < count, queues.contains(where: { round < $0.count }) {
      for queue in queues where sample.count < count && round < queue.count { sample.append(queue[round]) }
      round += 1
    }
    return sample
  }

  /// The stores of one version: the smallest, the largest, then the rest by hash.
  private static func queue(of lines: [StoreLine]) -> [StoreLine] {
    let bySize = WorkOrder.smallest.sorted(lines)
    let ends = bySize.count < 2 ? bySize : [bySize[0], bySize[bySize.count - 1]]
    let rest = bySize.dropFirst().dropLast().map { (StableHash.of($0.store), $0) }
      .sorted { ($0.0, $0.1.store) < ($1.0, $1.1.store) }
    return ends + rest.map(\.1)
  }
}

/// `--max-failures`: how many stores may fail before a worker stops.
package enum FailureLimit: Sendable, Hashable {
  case stores(Int)
  /// Of the worker's share, in per cent.
  case share(Double)

  /// "12" or "5%".
  package init?(_ text: String) {
    if text.hasSuffix("%") {
      guard let share = Double(text.dropLast()), (0...100).contains(share) else { return nil }
      self = .share(share)
    } else {
      guard let count = Int(text), count >= 0 else { return nil }
      self = .stores(count)
    }
  }

  /// Whether so many failures are too many for a share of `stores`.
  package func isExceeded(by failures: Int, of stores: Int) -> Bool {
    switch self {
    case .stores(let most): failures > most
    case .share(let percent): Double(failures) * 100 > percent * Double(stores)
    }
  }
}
