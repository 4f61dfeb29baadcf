// What an operator has paused: everything, watches, stores. A small file in the state directory keeps it, because an
// operator must be able to rely on a pause across a restart or a reboot.

import DurableFiles
import FoundationEssentials
import SystemPackage

/// The pauses in force.
package struct Pauses: Sendable {
  private struct Record: Codable {
    var all = false
    var watches: [String] = []
    var stores: [String] = []
  }

  private let file: FilePath?
  /// Whether everything is paused.
  package private(set) var all = false
  /// Names of paused watches.
  package private(set) var watches: Set<String> = []
  /// Keys of paused stores.
  package private(set) var stores: Set<FilePath> = []

  /// Nothing is paused, and no file is written.
  package init() { file = nil }

  /// Reads the file in the state directory. A file that cannot be read pauses nothing.
  package init(stateDirectory: FilePath) {
    let file = stateDirectory.appending("paused.json")
    self.file = file
    guard let bytes = try? LinuxFileSystem().read(file, limit: 1 << 24),
      let record = try? JSONDecoder().decode(Record.self, from: Data(bytes))
    else { return }
    all = record.all
    watches = Set(record.watches)
    stores = Set(record.stores.map { FilePath($0) })
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

  private func save() {
    guard let file else { return }
    let files = LinuxFileSystem()
    guard !isEmpty else {
      _ = try? files.unlinkIfPresent(file)
      return
    }
    let record = Record(all: all, watches: watches.sorted(), stores: stores.map(\.string).sorted())
    guard let data = try? JSONEncoder().encode(record) else { return }
    try? files.writeDurably(Array(data), to: file)
  }
}
