// The meaning of SQLite's errors during a hop.

import Diagnostics
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SQLite

extension Hop {
  /// Returns the error for an SQLite error during a hop. The source is unchanged in every case.
  func explained(_ error: SQLiteError, subject: String, connection: Connection?) -> HopdError {
    let place = Place(hop: title, entity: subject)
    if let failure = connection?.takeFunctionFailure() as? HopdError { return failure.located(place) }
    if error.isInterrupt {
      return HopdError(
        .interrupted, "stopped on request", at: place, hint: "retry; the migration continues from the last checkpoint")
    }
    func meaning(_ code: HopdError.Code, _ message: String, _ hint: String) -> HopdError {
      HopdError(code, message, at: place, cause: error, hint: hint)
    }
    if error.isFull { return meaning(.noSpace, "the disk is full", "free space and retry; the store is unchanged") }
    if error.isUniqueness {
      return HopdError(
        .uniquenessViolation, "rows break a uniqueness constraint of \(destination.name) (Core Data 134111)",
        at: constraintPlace(ofIndex: subject) ?? place, cause: error,
        hint: "remove the duplicates with the old app, or drop the constraint")
    }
    if error.isDamage {
      return meaning(
        .storeDamaged, "SQLite finds a database damaged",
        "check the store with `hopctl verify`; restore a backup if it is damaged")
    }
    if error.isInputOutput {
      return meaning(.inputOutput, "the disk reports an error", "the store is unchanged; \(error.inputOutputHint)")
    }
    if error.isTooLarge { return StoreReader.valueTooLarge(error, at: place) }
    if error.isForeignSchema { return StoreReader.foreignSchema(error, at: place) }
    return meaning(
      .internalError, "SQLite refused a statement of the hop",
      "report this bug with the journal at level debug; the store is unchanged")
  }

  /// Returns the entity that declares the constraint of a unique index, with its property; nil if the step that failed
  /// was not one.
  private func constraintPlace(ofIndex name: String) -> Place? {
    guard let index = destinationSchema.indexes.first(where: { $0.name == name && $0.isUnique }),
      let table = destinationSchema.table(named: index.table)
    else { return nil }
    for entity in table.entities.compactMap({ destination.entity(named: $0) }) {
      for constraint in entity.uniquenessConstraints
      where destinationSchema.columns(ofConstraint: constraint, in: entity.name) == index.columns.map(\.name) {
        return Place(
          hop: title, entity: entity.name, property: constraint.count == 1 ? constraint.first : nil)
      }
    }
    return nil
  }
}
