// Checks that the source is sound. A damaged store is refused, and nothing of it is put in place
// (docs/formats/replacement.md, "P4: Check"). The check of its pages runs during the plan and the migration: its result
// is needed before the new store takes the old one's place, not before the first row (docs/decisions/0153).

import Diagnostics
import DurableFiles
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification

extension MigrationRun {
  /// Checks every page, and waits for the result.
  func checkSource(_ reader: StoreReader) throws {
    try requireSound(reader, by: "quick_check")
  }

  /// Begins to check every page beside the planning and the migration. Small stores and those with a log are checked
  /// here.
  func beginSourceCheck(_ reader: StoreReader) throws {
    cancelSourceCheck()
    let hasLog = try (files.status(request.location.writeAheadLog)?.size ?? 0) > 0
    if !hasLog { pages = PageCheck(reading: reader.schema, of: reader.connection, pragma: "quick_check") }
    if pages == nil { try checkSource(reader) }
  }

  /// Waits for the result; throws where the store is damaged.
  func finishSourceCheck() throws {
    guard let pages else { return }
    defer { self.pages = nil }
    try require(try pages.finish(keepAlive: heartbeat()).joined(separator: "\n"), cause: nil)
  }

  /// Ends the check without a result. The connection whose file it reads must not be closed before.
  func cancelSourceCheck() {
    pages?.cancel()
    pages = nil
  }

  /// Runs the planning, building or verification of the new store during the check of the source's pages. Damage takes
  /// precedence over any error found in a damaged store.
  func besideSourceCheck<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch {
      if stop.isStopping { cancelSourceCheck() } else { try finishSourceCheck() }
      throw error
    }
  }

  /// Runs the building and verification of the new store. Rows that are missing there may be missing in the source's
  /// indexes, and rows that break a key there may exist twice under the same key: quick_check does not check that. Then
  /// the store is reported as damaged, and not a bug of hopd's.
  func reportingSourceDamage<Result>(_ reader: StoreReader, _ body: () throws -> Result) throws -> Result {
    do {
      let result = try besideSourceCheck(body)
      try finishSourceCheck()
      return result
    } catch let error as HopdError
      where error.code == .verificationFailed || error.code == .internalError && error.cause is SQLiteError
    {
      try requireSound(reader, by: "integrity_check", cause: error)
      throw error
    }
  }

  private func requireSound(_ reader: StoreReader, by check: String, cause: HopdError? = nil) throws {
    let answer = try reader.connection.text("PRAGMA \(SQLiteIdentifier.quoted(reader.schema)).\(check)(1)")
    try require(answer ?? "no answer", cause: cause)
  }

  private func require(_ answer: String, cause: HopdError?) throws(HopdError) {
    guard answer == "ok" else {
      throw HopdError(
        .storeDamaged, "SQLite finds the database damaged: \(answer.joiningLines)", cause: cause,
        hint: HopdError.damageHint)
    }
  }
}
