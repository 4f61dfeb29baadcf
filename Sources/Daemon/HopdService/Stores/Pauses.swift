// What an operator has paused: everything, watches, stores. A small file in the state directory keeps it, because an
// operator must be able to rely on a pause across a restart or a reboot.

import Diagnostics
import DurableFiles
import SystemPackage

/// The pauses in force.
package struct Pauses: Sendable {
  private struct Record: Codable {
    var all = false
    var watches: [String] = []
    var stores: [String] = []
  }

  private let file: DurableRecord<Record>?
  /// Why the file could not be read or written; nil where it holds what is paused here.
  package private(set) var problem: HopdError?
  /// Whether everything is paused.
  package private(set) var all = false
  /// Names of paused watches.
  package private(set) var watches: Set<String> = []
  /// Keys of paused stores.
  package private(set) var stores: Set<FilePath> = []

  /// Nothing is paused, and no file is written.
  package init() { file = nil }

  /// Reads the file in the state directory. A file that cannot be read pauses everything, because what an operator had
  /// paused must not begin; `problem` says so.
  package init(stateDirectory: FilePath) {
    let file = DurableRecord<Record>(
      "the list of pauses", at: stateDirectory.appending("paused.json"), limit: 1 << 24)
    self.file = file
    do {
      guard let record = try file.read().get() else { return }
      all = record.all
      watches = Set(record.watches)
      stores = Set(record.stores.map { FilePath($0) })
    } catch {
      all = true
      problem = HopdError(
        .inputOutput, "cannot read the list of pauses; all migrations are paused", at: Place(file: file.path),
        cause: error, hint: "run `hopctl resume`, then pause individual watches or stores again")
    }
  }

  /// Whether nothing is paused.
  package var isEmpty: Bool { !all && watches.isEmpty && stores.isEmpty }

  /// Pauses everything, a watch, or a store.
  package mutating func pause(all: Bool = false, watch: String? = nil, store: FilePath? = nil) {
    if all { self.all = true }
    if let watch { watches.insert(watch) }
    if let store { stores.insert(store) }
    save()
  }

  /// Ends the pause of a watch or store, or all pauses; false if there was none.
  package mutating func resume(watch: String? = nil, store: FilePath? = nil) -> Bool {
    let was = isEmpty
    let watchWas = watch.map { watches.remove($0) != nil } ?? false
    let storeWas = store.map { stores.remove($0) != nil } ?? false
    if watch == nil, store == nil { (all, watches, stores) = (false, [], []) }
    save()
    return watch == nil && store == nil ? !was : watchWas || storeWas
  }

  /// Ends the pause of everything, but not those of watches and stores; false if there was none.
  package mutating func resumeGlobal() -> Bool {
    let was = all
    all = false
    save()
    return was
  }

  private mutating func save() {
    guard let file else { return }
    do {
      problem = nil
      guard !isEmpty else {
        try file.remove()
        return
      }
      try file.write(Record(all: all, watches: watches.sorted(), stores: stores.map(\.string).sorted()))
    } catch {
      problem = HopdError(
        .inputOutput, "cannot write the list of pauses: this pause lasts only until hopd stops",
        at: Place(file: file.path), cause: error, hint: "check the disk of the state directory, then retry")
    }
  }
}
