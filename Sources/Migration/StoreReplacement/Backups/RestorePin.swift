// A restored store stays at its version until the operator decides. The pin is beside the store, in the folder of its
// backups, because hopctl and hopd may have different state directories and users. It is durable before the restored
// version can be seen, and names the file it refers to, so that it holds nothing back when the restore did not happen
// or another store took the name.

import Diagnostics
import DurableFiles
import PersistentStore
import SystemPackage

extension HopdError.Code {
  /// The store was restored, and is not migrated until it is unpinned.
  package static let pinned = HopdError.Code("pinned", exit: .unavailable, isRetryable: true)
}

/// The record that a restore makes about its store.
package struct RestorePin: Hashable, Sendable, Codable {
  static let currentFormat = 1

  /// Format of the note.
  package var format: Int = RestorePin.currentFormat
  /// Z_UUID of the store that was put in place.
  package var storeUUID: String?
  /// Its version: the one that the store is pinned to.
  package var restored: StoreVersionMark
  /// The version that the restore replaced, and those that a restore before it replaced. Empty where they are unknown.
  /// Under `PinRule.newVersion` the store is migrated to any other version; if they are unknown, to none.
  package var replaced: [StoreVersionMark]
  /// When, in seconds since 1970.
  package var restoredAt: Int64
  /// The job of the restore.
  package var job: String
  /// The restore of a set that it belongs to; nil for the restore of one store. An older hopd ignores it.
  package var group: String?
  /// The pin that the store had before this restore; it still applies where a crash came before the restored version
  /// got its name. One at most.
  var former: [RestorePin]?

  /// Whether it refers to the store that has this identifier and this version.
  package func isOf(storeUUID: String?, digest: String) -> Bool {
    restored.digest == digest && (self.storeUUID == nil || storeUUID == nil || self.storeUUID == storeUUID)
  }

  /// This pin, or the one before it, whichever refers to the store that has this identifier and this version; nil where
  /// neither does.
  package func matching(storeUUID: String?, digest: String) -> RestorePin? {
    ([self] + (former ?? [])).first { $0.isOf(storeUUID: storeUUID, digest: digest) }
  }

  /// Whether the store must not be migrated to that version.
  package func forbids(_ target: StoreVersionMark, rule: PinRule) -> Bool {
    rule == .byHand || replaced.isEmpty
      || replaced.contains { $0.digest == target.digest || $0.name == target.name }
  }

  /// When the restore was made, in RFC 3339 form.
  package var time: String { BackupTime.standardText(restoredAt) }

  /// The versions that the restore replaced, in words; empty where they are unknown.
  private var names: String { replaced.map(\.name).joined(separator: " or ") }

  /// The history of the store, for people: true even if the pin was removed.
  package var account: String {
    "restored to \(restored.name) at \(time)" + (names.isEmpty ? "" : ", replacing \(names)")
      + (group.map { " (group \($0))" } ?? "")
  }

  /// The pin in one sentence, for people: what happened, and what it means as long as the pin is there.
  package var sentence: String {
    "\(account); hopd does not migrate it until it is unpinned"
  }

  /// How the store is released.
  package func release(_ store: FilePath) -> String {
    "run `hopctl resume \(store.quotedForShell)` to unpin it"
      + (group.map { ", `\(PinGroup($0).command)` to unpin its group" } ?? "")
      + ", or `hopctl migrate` to migrate it now"
  }

  /// Why the store is held back from a version.
  package func refusal(_ store: FilePath) -> HopdError {
    HopdError(
      .pinned, "the store was \(sentence)", at: Place(store: store), cause: group.map { PinGroup($0) },
      hint: release(store))
  }
}

/// The restore of a set, as the cause of a refusal: the pins of all its stores have its name.
package struct PinGroup: Error, Sendable, Hashable, CustomStringConvertible {
  /// The name.
  package let name: String
  private static let release = "hopctl resume --group "

  /// The group with that name.
  package init(_ name: String) { self.name = name }

  /// A name for the restore of a set that begins now (seconds since 1970): the set's name and the time, of letters that
  /// no shell interprets.
  package init(of set: String, now: Int64) {
    let plain = set.unicodeScalars.map { $0.isASCII && ($0.properties.isAlphabetic || "0"..."9" ~= $0) ? $0 : "-" }
    name = String(String.UnicodeScalarView(plain)) + "-" + BackupTime.text(now)
  }

  /// The group that a command releases; nil if it releases none.
  package init?(command: String) {
    guard command.hasPrefix(Self.release) else { return nil }
    self.init(String(command.dropFirst(Self.release.count)))
  }

  /// The command that releases all stores of the group.
  package var command: String { Self.release + name.quotedForShell }

  package var description: String { name }
}

/// The pin of one store.
package struct PinStore: Sendable {
  private let backups: BackupSet
  private var files: any DurableFileSystem { backups.files }
  private var directory: FilePath { backups.directory }
  private var record: DurableRecord<RestorePin> {
    DurableRecord(
      "the pin of a restore", at: path, newestFormat: RestorePin.currentFormat,
      hints: ("run `hopctl resume \(backups.location.database.quotedForShell)` to remove it", "use the newer hopd"),
      files: files)
  }
  /// The file.
  package var path: FilePath { directory.appending("pin.json") }

  /// The pin of the store at `location`.
  package init(location: CanonicalStoreLocation, files: any DurableFileSystem) {
    backups = BackupSet(location: location, base: nil, files: files)
  }

  /// The pin; nil where there is none. A pin that cannot be read is an error: then nothing may migrate the store.
  package func read() throws -> RestorePin? {
    let finding = try record.read()
    if case .none = finding { return nil }
    try backups.requireTrusted(directory)
    do { return try finding.get() } catch let error as HopdError {
      throw error.located(Place(store: backups.location.database))
    }
  }

  /// The pin, if it keeps the store with this identifier and version from the target.
  package func pin(
    against target: StoreVersionMark, storeUUID: String?, digest: String, rule: PinRule = .byHand
  ) throws -> RestorePin? {
    guard let pin = try read()?.matching(storeUUID: storeUUID, digest: digest), pin.forbids(target, rule: rule) else {
      return nil
    }
    return pin
  }

  /// Writes the pin durably: after a crash the file is the former pin or this one.
  func write(_ pin: RestorePin) throws {
    try files.ensureDirectory(directory, mode: 0o700)
    try backups.requireTrusted(directory)
    try record.write(pin)
    // Syncs the folder's own name too: a run that ended before its sync may have made it.
    try files.syncDirectory(directory.removingLastComponent())
  }

  /// Removes the pin, and the directory if it is empty then; returns whether there was one.
  @discardableResult
  package func remove() throws -> Bool {
    let half = directory.appending("pin.json.new")
    guard try files.status(path) != nil || files.status(half) != nil else { return false }
    try backups.requireTrusted(directory)
    try files.unlinkIfPresent(half)
    let wasThere = try record.remove()
    if try files.names(in: directory).isEmpty {
      try files.removeDirectory(directory)
      try files.syncDirectory(directory.removingLastComponent())
    }
    return wasThere
  }
}
