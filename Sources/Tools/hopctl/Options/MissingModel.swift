// The error of a command that found no model: where it looked, what lies there, and the option that names it.

import Diagnostics
import MigrationPlanning
import PersistentStore
import SystemPackage

/// What a command without models has looked at.
struct MissingModel {
  /// The store that the command is about.
  var store: StoreLocation?
  /// The directories where a model may lie.
  var directories: [FilePath] = []
  /// The words for these directories, such as "beside the store".
  var place = "beside the store"
  /// The watch of the installed configuration that contains the store.
  var watch: FoundModels?
  /// Whether the store was searched for its own copy of the model.
  var isStoreSearched = false
  /// What could not be read on the way.
  var remarks: [HopdError] = []

  /// The error, with a hint to paste.
  var error: HopdError {
    let beside = directories.flatMap { FoundModels.inside($0)?.paths ?? [] }
    var message = "no model was given"
    var hint =
      "pass --models PATH: a .xcdatamodeld, .xcdatamodel, .momd or .mom, a store that holds its model, or a folder"
    if let first = beside.first {
      let names = beside.prefix(3).map { $0.lastComponent?.string.printableLine ?? $0.printable }
      message += "; \(place) \(beside.count == 1 ? "lies" : "lie") \(names.joined(separator: ", "))"
      hint = "pass --models \(first.quotedForShell)"
    } else if let watch {
      message += "; the watch \((watch.watch ?? "").printableLine) of hopd serves the store"
      hint = "pass \(watch.words)"
    } else {
      message += directories.isEmpty ? "" : ", none lies \(place)"
      if store != nil { message += ", no watch of hopd serves it" }
      if isStoreSearched { message += ", and it holds no copy of its own" }
    }
    return HopdError(.noModels, message, at: Place(store: store?.database), hint: hint, reasons: remarks)
  }
}
