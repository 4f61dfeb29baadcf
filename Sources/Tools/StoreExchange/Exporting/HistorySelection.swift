// The objects that a store's persistent history names since a transaction, for exports that only take what is new
// (docs/formats/history-and-cloudkit.md, "History tables").

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite

/// What changed since a transaction.
package struct HistorySelection {
  private let reader: StoreReader
  private let schema: StoreSchema
  private let since: Int64
  /// The newest transaction: the one to pass the next time; that of `since` if there is none later.
  package let last: Int64
  /// The warning that older transactions were removed, so that changes may be missing; nil if there is none.
  package let warning: HopdError?

  /// Reads the history of an open store; `since` is a number in ATRANSACTION, 0 for all.
  package init(since: Int64, in reader: StoreReader, schema: StoreSchema) throws {
    let tables = Set(try reader.schemaObjects().filter { $0.type == "table" }.map(\.name))
    guard tables.isSuperset(of: ["ACHANGE", "ATRANSACTION"]) else {
      throw HopdError(
        .usage, "the store has no persistent history", hint: "export all objects, without --since")
    }
    self.reader = reader
    self.schema = schema
    self.since = since
    let table = reader.qualified("ATRANSACTION")
    last = max(since, try reader.connection.integer("SELECT max(Z_PK) FROM \(table)") ?? 0)
    let first = try reader.connection.integer("SELECT min(Z_PK) FROM \(table)") ?? 0
    warning =
      since > 0 && first > since + 1
      ? HopdError(
        .historyTruncated,
        "the history begins with transaction \(first): changes since \(since) may be missing",
        hint: "export all objects, without --since") : nil
  }

  /// SQL that is true for a row `s` of an entity's table that was inserted or updated.
  func condition(of entity: Entity) -> String {
    "s.\"Z_PK\" IN (SELECT ZENTITYPK FROM \(reader.qualified("ACHANGE"))"
      + " WHERE ZENTITY = \(schema.number(of: entity.name) ?? 0) AND ZTRANSACTIONID > \(since))"
  }

  /// Calls `emit` with a line for each object of the selection's entities that was deleted; returns their number.
  package func writeDeleted(
    of selection: StoreSelection, _ emit: ([UInt8]) throws -> Void
  ) throws -> Int64 {
    var count: Int64 = 0
    for (number, entity) in schema.entityNames.sorted(by: { $0.key < $1.key }) where selection.contains(entity) {
      guard let table = schema.table(of: entity) else { continue }
      let rows = try reader.connection.prepare(
        "SELECT DISTINCT ZENTITYPK FROM \(reader.qualified("ACHANGE")) WHERE ZENTITY = \(number)"
          + " AND ZTRANSACTIONID > \(since) AND ZCHANGETYPE = 2"
          + " AND ZENTITYPK NOT IN (SELECT Z_PK FROM \(reader.qualified(table.name))) ORDER BY 1")
      while try rows.step() {
        let id = try JSONLines.quoted("\(entity)/p\(rows.integer(at: 0))")
        try emit(Array("{\"entity\":\(try JSONLines.quoted(entity)),\"id\":\(id),\"deleted\":true}\n".utf8))
        count &+= 1
      }
    }
    return count
  }
}
