// The work on one remote store: fetch, migrate the copy, store it on condition that the object is still the one that
// was fetched. After a failure nothing here is trusted: the next attempt begins with the object.

import Diagnostics
import DurableFiles
import MigrationPipeline
import PersistentStore
import SystemPackage

/// Migrates single objects; from any thread.
package struct RemoteTask: Sendable {
  /// No sensible version is longer.
  private static let longestVersion = 1024

  private let local: StoreTask
  private let commands: RemoteCommands
  private let room: FilePath

  /// Prepares the work: `local` migrates copies in folders that are made in `room`.
  package init(local: StoreTask, commands: RemoteCommands, room: FilePath) {
    (self.local, self.commands, self.room) = (local, commands, room)
  }

  /// Migrates the object, which is complete afterwards, the old one or the new one, whatever the result.
  package func migrate(_ line: StoreLine, stop: StopSignal) -> ResultLine {
    ResultLine.timed(line, run: local.run) { result in
      do {
        try work(line, stop, &result)
      } catch {
        // The result of the migration was not stored, as far as is known.
        (result.rows, result.dropped) = (nil, nil)
        result.note(HopdError.of(error, at: Place()))
      }
      (result.store, result.isRemote, result.backup) = (line.store, true, nil)
    }
  }

  private func work(_ line: StoreLine, _ stop: StopSignal, _ result: inout ResultLine) throws {
    // The copy that was sent to an object that had then changed since it was fetched.
    var sent: (digest: String, result: ResultLine)?
    for attempt in 1...commands.retries.tries {
      let copy = try fetch(line.store, stop)
      defer { copy.remove() }
      if let sent, try copy.digest() == sent.digest {
        // The upload succeeded, and only its reply was lost.
        result = sent.result
        return
      }
      var here = line
      (here.store, here.size) = (copy.location.database.string, try copy.size())
      result = local.migrate(here, stop: stop)
      guard result.result == .migrated else {
        if let text = result.error?.hint { result.error?.hint = hint(text, copy) }
        return
      }
      guard try !store(copy, as: line.store, stop) else { return }
      sent = (try copy.digest(), result)
      if attempt < commands.retries.tries { Alarm.sleep(commands.retries.pause(after: attempt), unless: stop) }
    }
    throw HopdError(
      .objectChanged, "others wrote the object while it was migrated; tried \(commands.retries.tries) times",
      hint: "run the worker while nobody writes it")
  }

  private func fetch(_ key: String, _ stop: StopSignal) throws -> FetchedStore {
    // By bytes: a slash with a combining mark behind it is one Character, and a slash for the file system all the same.
    let slash = UInt8(ascii: "/")
    guard key.utf8.last != slash, let last = key.utf8.split(separator: slash).last,
      let name = FilePath.Component(String(Substring(last))), name.kind == .regular
    else {
      throw HopdError(.objectRefused, "the key has no file name at its end", hint: "correct the list of keys")
    }
    var folder: ScratchDirectory?
    do {
      // The command gets the folder's name before there is one: each try has an empty folder of the same name.
      let made = try ScratchDirectory(in: room, files: LinuxFileSystem(isDurable: false))
      folder = made
      let database = made.path.appending(name)
      let answer = try commands.perform(
        commands.fetch, [.key: key, .path: database.string, .directory: made.path.string], failure: .fetchFailed,
        stop: stop
      ) {
        try made.remove()
        try LinuxFileSystem(isDurable: false).makeDirectory(made.path, mode: 0o700)
      }
      guard case .done(let output) = answer else { throw RemoteCommands.interrupted }
      let copy = try FetchedStore(
        location: StoreLocation(database: database), folder: made, version: Self.version(output))
      if !commands.store.template.has(.directory) { try copy.requireNoLog() }
      return copy
    } catch {
      try? folder?.remove()
      throw error
    }
  }

  /// The output of the fetch command: one line.
  private static func version(_ output: [UInt8]) throws -> String {
    let lines = String(decoding: output, as: UTF8.self).split(whereSeparator: \.isNewline)
      .filter { !$0.allSatisfy(\.isWhitespace) }
    guard lines.count == 1, let line = lines.first, line.utf8.count <= longestVersion,
      !line.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7f })
    else {
      throw HopdError(
        .objectRefused,
        "the fetch command printed \(lines.isEmpty ? "no version" : "more than a version") on standard output",
        hint: "it has to print the version (ETag, generation) of what it fetched as one line, and nothing else")
    }
    return line.trimmingPrefix { $0.isWhitespace }.description
  }

  /// Stores a copy; false where the object has changed meanwhile.
  private func store(_ copy: FetchedStore, as key: String, _ stop: StopSignal) throws -> Bool {
    try copy.requireOneFile(takesFolder: commands.store.template.has(.directory))
    let answer = try commands.perform(
      commands.store,
      [
        .key: key, .path: copy.location.database.string, .directory: copy.folder.path.string, .version: copy.version,
      ], failure: .storeFailed, stop: stop)
    if case .changed = answer { return false }
    return true
  }

  /// The hint, with the object in place of the copy, which will be gone.
  private func hint(_ hint: String, _ copy: FetchedStore) -> String {
    let path = copy.location.database.string
    guard hint.contains(path) else { return hint }
    return "fetch the object, then: "
      + hint.split(separator: path, omittingEmptySubsequences: false).joined(separator: "FILE")
  }
}
