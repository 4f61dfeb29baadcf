// Is the source sound? A damaged store is refused, and nothing of it is put in place (docs/formats/replacement.md, "P4:
// Check"). The look at its pages runs beside the plan and the migration: its answer is needed before the new store
// takes the old one's place, not before the first row (docs/decisions/0153).

import Diagnostics
import DurableFiles
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification

extension MigrationRun {
  /// Looks at every page, and waits for the answer.
  func checkSource(_ reader: StoreReader) throws {
    try requireSound(reader, by: "quick_check")
  }

  /// Begins to look at every page; small stores and those with a log are looked at here and now.
  func beginSourceCheck(_ reader: StoreReader) throws {
    cancelSourceCheck()
    let hasLog = try (files.status(storeLocation().writeAheadLog)?.size ?? 0) > 0
    if !hasLog { pages = PageCheck(reading: reader.schema, of: reader.connection, pragma: "quick_check") }
    if pages == nil { try checkSource(reader) }
  }

  /// Waits for the answer; throws where the store is damaged.
  func finishSourceCheck() throws {
    guard let pages else { return }
    defer { self.pages = nil }
    try require(try pages.finish(keepAlive: heartbeat()).joined(separator: "\n"), cause: nil)
  }

  /// Ends the check without an answer. The connection whose file it reads must not be closed before.
  func cancelSourceCheck() {
    pages?.cancel()
    pages = nil
  }

  /// Runs what plans, builds or verifies the new store beside the check of its pages. Damage says more than whatever
  /// was found in a damaged store.
  func besideSourceCheck<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch {
      if stop.isStopping { cancelSourceCheck() } else { try finishSourceCheck() }
      throw error
    }
  }

  /// Runs what builds and verifies the new store. Rows that are missing there may be missing in the source's indexes,
  /// and rows that break a key there may be twice under the same key: at that quick_check does not look. Then the store
  /// is damaged, and no bug of hopd's is to be reported.
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
