// What SQLite's errors mean in the middle of a hop.

import Diagnostics
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SQLite

extension Hop {
  /// What a SQLite error in the middle of a hop means. The source is untouched in every case.
  func explained(_ error: SQLiteError, subject: String, connection: Connection?) -> HopdError {
    let place = Place(hop: title, entity: subject)
    if let failure = connection?.takeFunctionFailure() as? HopdError { return failure.located(place) }
    if error.isInterrupt {
      return HopdError(
        .interrupted, "stopped on request", at: place, hint: "the next start continues from the last checkpoint")
    }
    if error.isFull {
      return HopdError(
        .noSpace, "the disk is full", at: place, cause: error,
        hint: "the store is untouched; free space and try again")
    }
    if error.isUniqueness {
      return HopdError(
        .uniquenessViolation, "rows break a uniqueness constraint of \(destination.name) (Core Data 134111)",
        at: place, cause: error, hint: "remove the duplicates with the old app, or drop the constraint")
    }
    if error.isDamage {
      return HopdError(
        .storeDamaged, "SQLite finds a database damaged", at: place, cause: error,
        hint: "check the store with `hopctl verify`; restore a backup if it is damaged")
    }
    if error.isInputOutput {
      return HopdError(
        .inputOutput, "the disk reports an error", at: place, cause: error, hint: "the store is untouched")
    }
    if error.isTooLarge { return StoreReader.valueTooLarge(error, at: place) }
    if error.isForeignSchema { return StoreReader.foreignSchema(error, at: place) }
    return HopdError(
      .internalError, "SQLite refused a statement of the hop", at: place, cause: error,
      hint: "the store is untouched; please report this with the journal at level debug")
  }
}
