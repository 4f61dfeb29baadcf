// Errors of other libraries as errors of hopd.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import MigrationEngine
import MigrationPlanning
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage

extension HopdError {
  /// Any error as one of hopd's.
  package static func of(_ error: any Error, at place: Place = Place()) -> HopdError {
    switch error {
    case let error as HopdError: return error.located(place)
    case let error as SQLiteError:
      return place.store.map { StoreReader.explained(error, location: StoreLocation(database: $0)) }
        ?? HopdError(.internalError, "SQLite refused a statement", at: place, cause: error)
    default: return HopdError(.internalError, "internal error", at: place, cause: error)
    }
  }
}
