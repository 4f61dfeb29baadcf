// What a run over a fleet would do: the answer of `hopctl fleet run --dry-run`, and the list before its question.

import Diagnostics
import MigrationPlanning
import StoreFleet
import SystemPackage

/// The stores of a run, by what would happen to them.
struct FleetPreview {
  /// The maximum number of stores that are listed individually.
  private static let mostStores = 20

  private let stores: [StoreLine]
  /// The stores that would be migrated.
  let behind: [StoreLine]
  /// The stores that a restore has pinned: a run does not migrate them.
  let pinned: [StoreLine]
  /// The stores that cannot be migrated.
  let refused: [StoreLine]

  /// Sorts inspected stores.
  init(_ stores: [StoreLine]) {
    self.stores = stores
    let open = stores.filter { $0.state != StoreState.current.rawValue }
    behind = open.filter { $0.state == StoreState.behind.rawValue && $0.hops != nil && $0.error == nil }
    pinned = open.filter(\.isPinned)
    refused = open.filter {
      ($0.state != StoreState.behind.rawValue || $0.hops == nil || $0.error != nil) && !$0.isPinned
    }
  }

  /// The lines for a terminal.
  var lines: [String] {
    var lines = [
      behind.isEmpty
        ? "nothing to migrate"
        : "would migrate \(MessageFormatter.count(behind.count, "store", "stores")), \(Self.size(behind))"
    ]
    lines += MessageFormatter.table(
      behind.count <= Self.mostStores ? behind.map { Self.row([$0], title: $0.store.printableLine) } : byVersion,
      right: [2])
    let current = stores.count - behind.count - pinned.count - refused.count
    if current > 0 { lines.append("  \(MessageFormatter.count(current, "store is", "stores are")) already current") }
    return lines + reasons
  }

  /// Why stores would not be migrated.
  private var reasons: [String] {
    var lines: [String] = []
    for store in pinned.prefix(Self.mostStores) {
      lines.append("  pinned: \(store.store.printableLine): \(store.error?.message.printableLine ?? "?")")
      if let hint = store.error?.hint { lines.append("    \(hint.printableHint)") }
    }
    if pinned.count > Self.mostStores { lines.append("  and \(pinned.count - Self.mostStores) more that are pinned") }
    for store in refused.prefix(Self.mostStores) {
      lines.append("  cannot be migrated: \(store.store.printableLine): \(store.error?.message.printableLine ?? "?")")
    }
    if refused.count > Self.mostStores { lines.append("  and \(refused.count - Self.mostStores) more") }
    return lines
  }

  /// A row for all stores of a version, the first seen first.
  private var byVersion: [[String]] {
    var groups: [(title: String, stores: [StoreLine])] = []
    var places: [String: Int] = [:]
    for store in behind {
      let key = [store.model, store.version, store.targetVersion].map { $0 ?? "" }.joined(separator: "\0")
      if let place = places[key] {
        groups[place].stores.append(store)
      } else {
        places[key] = groups.count
        groups.append(("", [store]))
      }
    }
    return groups.map { group in
      Self.row(group.stores, title: MessageFormatter.count(group.stores.count, "store", "stores"))
    }
  }

  /// The row of stores of one version: title, versions, size and drops.
  private static func row(_ stores: [StoreLine], title: String) -> [String] {
    let first = stores.first
    let drops = (first?.drops ?? []).map { $0.contains(".") ? $0.printableLine : "\($0.printableLine) (all rows)" }
    return [
      title, "\((first?.version ?? "?").printableLine) → \((first?.targetVersion ?? "?").printableLine)", size(stores),
      drops.isEmpty ? "" : "drops \(drops.joined(separator: ", "))",
    ]
  }

  private static func size(_ stores: [StoreLine]) -> String {
    MessageFormatter.bytes(stores.reduce(Int64(0)) { $0.addingReportingOverflow(max(0, $1.size ?? 0)).partialValue })
  }

  /// Prints the answer of `--dry-run`; with `--json` what a scan prints. Ends with 65 if a store is pinned or
  /// cannot be migrated, as the run does.
  func report(_ output: OutputOptions) throws {
    try output.lines(lines)
    if output.quiet {
      for store in pinned + refused {
        StandardStreams.report(
          "hopctl: \(store.store.printableLine): \(store.error?.message.printableLine ?? "?")"
            + (store.error?.hint.map { "\n  hint: \($0.printableHint)" } ?? ""))
      }
    }
    if output.json {
      var summary = FleetSummary()
      for store in stores {
        summary.add(store)
        try StandardStreams.write(LineFile.bytes(of: store), to: .output)
      }
      try StandardStreams.write(LineFile.bytes(of: ScanSummaryLine(summary: summary)), to: .output)
    }
    if !refused.isEmpty || !pinned.isEmpty { throw Finished(status: .dataError) }
  }
}
