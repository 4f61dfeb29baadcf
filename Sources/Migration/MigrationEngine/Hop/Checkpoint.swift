// The progress of a hop, stored inside the staged store and committed with the chunk that it refers to, so that the two
// can never disagree. A staged store is written without syncs: its pages are safe only while the machine runs, so a
// checkpoint is valid only under the same boot id.

import Diagnostics
import SQLite

extension HopdError.Code {
  /// The staged store belongs to another plan or another boot, or is unreadable: the hop starts over.
  package static let stagingStale = HopdError.Code("staging-stale", exit: .temporaryFailure, isRetryable: true)
}

/// A position in a hop's program.
package struct Checkpoint: Sendable, Hashable {
  /// The identity of a run, which a resumed run must have, too.
  package struct Identity: Sendable, Hashable {
    /// `MigrationPlan.fingerprint`.
    package let plan: String
    /// Identifies the source as it was under the lock.
    package let source: String
    /// /proc/sys/kernel/random/boot_id; empty if it cannot be read, and then no hop is resumed.
    package let boot: String

    /// Creates an identity.
    package init(plan: String, source: String, boot: String) {
      self.plan = plan
      self.source = source
      self.boot = boot
    }
  }

  /// The current step; the number of steps if all are done.
  package var step: Int
  /// The last key done in that step; nil at its start.
  package var key: Int64?
  /// The rows written so far in this hop, over all runs.
  package var rows: Int64
  /// The chunks committed so far.
  package var chunks: Int64
  /// The time spent so far, in seconds.
  package var seconds: Double
  /// Whether the hop is complete.
  package var isComplete: Bool

  /// The checkpoint at the start of the next step.
  var next: Checkpoint {
    var next = self
    next.step += 1
    next.key = nil
    return next
  }

  /// Whether hopd could have written the checkpoint. A process with write access to the staged store may write anything
  /// there.
  var isPossible: Bool {
    let counts: ClosedRange<Int64> = 0...(1 << 50)
    return step >= 0 && step < 1 << 30 && counts.contains(rows) && counts.contains(chunks) && seconds.isFinite
      && seconds >= 0
  }
}

/// The checkpoint table of a staged store. Core Data's tables begin with Z or A, so the name is free.
struct CheckpointTable {
  static let name = "HOPD_CHECKPOINT"

  let connection: Connection
  let schema: String

  private var qualified: String { SQLiteIdentifier.quoted(schema) + "." + SQLiteIdentifier.quoted(Self.name) }

  /// Creates the table with its only row; `moment` is the value of `now()` in the hop, over all runs.
  func create(_ identity: Checkpoint.Identity, hop: Int, moment: Double) throws(SQLiteError) {
    try connection.execute(
      "CREATE TABLE \(qualified) (plan TEXT, source TEXT, boot TEXT, hop INTEGER, step INTEGER, key INTEGER,"
        + " rows INTEGER, chunks INTEGER, seconds REAL, complete INTEGER, moment REAL)")
    try connection.run(
      "INSERT INTO \(qualified) VALUES (?, ?, ?, ?, 0, NULL, 0, 0, 0, 0, ?)",
      [
        .text(identity.plan), .text(identity.source), .text(identity.boot), .integer(Int64(hop)), .real(moment),
      ])
  }

  /// Returns the moment of the hop that was begun; nil if none was.
  func moment() throws(SQLiteError) -> Double? {
    guard try connection.hasTable(Self.name, in: schema),
      case .real(let moment)? = try connection.value("SELECT moment FROM \(qualified)")
    else { return nil }
    return moment
  }

  /// Returns the checkpoint of a hop; nil if the staged store is empty, or, with `followsComplete`, if it is the
  /// complete one of the hop before.
  func read(_ identity: Checkpoint.Identity, hop: Int, followsComplete: Bool = false) throws -> Checkpoint? {
    let objects = try connection.integer("SELECT count(*) FROM \(SQLiteIdentifier.quoted(schema)).sqlite_master") ?? 0
    if objects == 0 { return nil }
    let stale = { (reason: String) in
      HopdError(
        .stagingStale, "the staged store cannot be resumed: \(reason)", hint: "retry; the hop starts over")
    }
    let rows: [(String?, String?, String?, Int64, Checkpoint)]
    do {
      rows = try connection.rows(
        "SELECT plan, source, boot, hop, step, key, rows, chunks, seconds, complete FROM \(qualified)"
      ) { row in
        (
          row.text(at: 0), row.text(at: 1), row.text(at: 2), row.integer(at: 3),
          Checkpoint(
            step: Int(clamping: row.integer(at: 4)), key: row.isNull(at: 5) ? nil : row.integer(at: 5),
            rows: row.integer(at: 6), chunks: row.integer(at: 7), seconds: row.real(at: 8),
            isComplete: row.integer(at: 9) != 0)
        )
      }
    } catch {
      throw stale("it has no checkpoint")
    }
    guard rows.count == 1, let row = rows.first else { throw stale("it has no checkpoint") }
    guard row.2 == identity.boot, !identity.boot.isEmpty else { throw stale("the machine was restarted since") }
    guard row.0 == identity.plan else { throw stale("the plan changed") }
    guard row.1 == identity.source else { throw stale("the store changed") }
    if followsComplete, row.3 == Int64(hop) - 1, row.4.isComplete { return nil }
    guard row.3 == Int64(hop) else { throw stale("it belongs to another hop") }
    guard row.4.isPossible else { throw stale("its checkpoint has impossible numbers") }
    return row.4
  }

  /// Prepares the update that goes into each chunk's transaction.
  func prepareUpdate() throws(SQLiteError) -> Statement {
    try connection.prepare(
      "UPDATE \(qualified) SET step = ?, key = ?, rows = ?, chunks = ?, seconds = ?, complete = ?")
  }

  /// Returns the values for the statement of `prepareUpdate`.
  static func values(_ checkpoint: Checkpoint) -> [SQLiteValue] {
    [
      .integer(Int64(checkpoint.step)), checkpoint.key.map(SQLiteValue.integer) ?? .null, .integer(checkpoint.rows),
      .integer(checkpoint.chunks), .real(checkpoint.seconds), .integer(checkpoint.isComplete ? 1 : 0),
    ]
  }
}
