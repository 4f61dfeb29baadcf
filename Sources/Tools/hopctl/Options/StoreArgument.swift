// The store argument of a command: its path as typed, and its canonical location.

import ArgumentParser
import Diagnostics
import DurableFiles
import PersistentStore
import StoreReplacement
import SystemPackage

/// STORE.
struct StoreArgument: ParsableArguments {
  @Argument(help: "SQLite file of the store", completion: .file())
  var store: String

  /// The path as typed, safe for a terminal.
  var text: String { FilePath(store).printable }

  /// The store's location, with links in its folders resolved. Its own name is kept: a link with the store's name is
  /// refused, never followed.
  func location() throws -> CanonicalStoreLocation { try StoreArgument.location(of: store) }

  /// The same for any path.
  static func location(of path: String) throws -> CanonicalStoreLocation {
    let given = FilePath(path)
    guard given.lastComponent?.kind == .regular else {
      throw HopdError(
        .usage, "not a file name", at: Place(file: given), hint: "pass the path of the store's SQLite file")
    }
    do {
      return try CanonicalStoreLocation(resolving: given)
    } catch let error as HopdError where error.code == .notFound {
      throw HopdError(
        .notFound, "directory does not exist", at: Place(store: given), cause: error.cause, hint: "check the path")
    }
  }
}
