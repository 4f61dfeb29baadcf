// The error of a command that found no model: where it looked, what lies there, and the option that names it.

import Diagnostics
import MigrationPlanning
import PersistentStore
import SystemPackage

/// Where a command without models has searched.
struct MissingModel {
  /// The store that the command is about.
  var store: StoreLocation?
  /// The directories where a model may lie.
  var directories: [FilePath] = []
  /// The words for these directories, such as "next to the store".
  var place = "next to the store"
  /// The watch of the installed configuration that contains the store.
  var watch: FoundModels?
  /// Whether the store was searched for its own copy of the model.
  var isStoreSearched = false
  /// What could not be read on the way.
  var remarks: [HopdError] = []

  /// The error, with a hint to paste.
  var error: HopdError {
    let beside = directories.flatMap { FoundModels.inside($0)?.paths ?? [] }
    var message = "no model specified"
    var hint =
      "pass --models PATH: a .xcdatamodeld, .xcdatamodel, .momd or .mom, a store with its model, or a directory"
    if let first = beside.first {
      let names = beside.prefix(3).map { $0.lastComponent?.string.printableLine ?? $0.printable }
      message += "; found \(place): \(names.joined(separator: ", "))"
      hint = "pass --models \(first.quotedForShell)"
    } else if let watch {
      message += "; the watch \((watch.watch ?? "").printableLine) of hopd includes the store"
      hint = "pass \(watch.words)"
    } else {
      message += directories.isEmpty ? "" : ", none found \(place)"
      if store != nil { message += ", no watch of hopd includes it" }
      if isStoreSearched { message += ", and it contains no copy of its model" }
    }
    return HopdError(.noModels, message, at: Place(store: store?.database), hint: hint, reasons: remarks)
  }
}
