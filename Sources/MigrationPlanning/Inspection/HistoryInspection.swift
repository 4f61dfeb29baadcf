// Persistent history and CloudKit mirroring: tables that belong to no entity. History is carried without its rows, or
// refused, as the operator says; a mirrored store is refused before anything else is looked at, and everything else
// that uses reserved numbers is refused by name.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite

struct HistoryInspection {
  /// The tables that the migrated store gets; nil where it has no history.
  private(set) var layout: HistoryLayout?
  /// Tables whose rows go, also empty ones.
  private(set) var cleared: [ClearedTable] = []
  private(set) var findings = Findings()
  private(set) var warnings: [HopdError] = []

  /// Looks at the store that the hop at `hop` makes one of `destination`.
  init(reader: StoreReader, destination: ManagedObjectModel, hop: Int, rule: HistoryRule) throws(SQLiteError) {
    let found = try HistoryLayout.read(from: reader)
    for entry in try reader.primaryKeys() where entry.isReserved {
      guard found.layout?.numbers.contains(where: { $0.number == entry.number }) != true else { continue }
      findings.add(
        HopdError(
          .historyNotUnderstood,
          "Z_PRIMARYKEY has the reserved number \(entry.number) (\(entry.name)), which is not persistent history's",
          hint: "hopd cannot tell whose it is; migrate the store with its app"))
    }
    guard let layout = found.layout else {
      // Tables of which not one is understood.
      for error in found.errors { findings.add(error) }
      return
    }
    let names = HistoryLayout.Table.allCases.filter { found.rows[$0] != nil || layout.tables[$0] != nil }
    if rule == .refuse, !names.isEmpty {
      findings.add(
        HopdError(
          .historyNotSupported,
          "the store keeps persistent history (\(names.map(\.rawValue).joined(separator: ", "))), and such stores are "
            + "to be refused",
          hint: "migrate it with its app, or let the rows of its history go: `history = \"clear\"`, --history clear"))
      return
    }
    for error in found.errors { findings.add(error) }
    self.layout = layout.widened(for: destination)
    cleared = names.map {
      ClearedTable(hop: hop, table: $0.rawValue, entity: $0.entityName, rows: found.rows[$0] ?? 0)
    }
    warnings = found.warnings
    let lost = cleared.filter { $0.rows > 0 }
    if !lost.isEmpty {
      warnings.append(
        HopdError(
          .historyCleared,
          "the persistent history is cleared: "
            + lost.map { "\($0.rows) row\($0.rows == 1 ? "" : "s") of \($0.table)" }.joined(separator: ", "),
          hint: "whoever reads it (other processes, widgets, sync) starts over, as after an expired history token; "
            + "`history = \"refuse\"` leaves such stores alone"))
    }
  }

  /// Throws `cloudkit-not-supported` where anything in the store belongs to CloudKit mirroring.
  ///
  /// Its tables refer to rows and entities by number and to the cloud by record: a store with renumbered entities would
  /// mix up records on every device of its user.
  static func refuseMirroring(_ reader: StoreReader) throws {
    let objects = try reader.schemaObjects().filter { isMirroring($0.name) || isMirroring($0.table) }
    let numbers = try reader.primaryKeys().filter { $0.number >= firstMirroringNumber || $0.name.hasPrefix("NSCK") }
    guard !objects.isEmpty || !numbers.isEmpty else { return }
    let names = Set(objects.map(\.table)).sorted() + numbers.map { "number \($0.number) \($0.name)" }
    let more = names.count > 3 ? " and \(names.count - 3) more" : ""
    throw HopdError(
      .cloudKitNotSupported,
      "the store is mirrored with CloudKit (\(names.prefix(3).joined(separator: ", "))\(more)), and hopd does not "
        + "migrate such stores",
      hint: "migrate it with its app, on a device that is signed in; `exclude` of the watch keeps hopd away from it")
  }

  /// CloudKit mirroring numbers its entities from here on (docs/formats/store-layout.md, "Reserved entity numbers").
  private static let firstMirroringNumber: Int64 = 17000

  /// ANSCK… are its tables, and their indexes and triggers are named after them or stand on them
  /// (docs/formats/history-and-cloudkit.md, "CloudKit tables").
  private static func isMirroring(_ name: String) -> Bool {
    let name = name.uppercased()
    return name.hasPrefix("ANSCK") || name.hasPrefix("Z_NSCK") || name.hasPrefix("NSCK")
  }
}
