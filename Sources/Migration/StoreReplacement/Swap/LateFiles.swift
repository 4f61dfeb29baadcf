// Side files that were written for the old store and reach the directory when the new store is already in place: a
// copying program sends the database first and its log seconds later. SQLite goes by the name, so the next program that
// opens the store would play the old log into the new database and ruin it. Such files are set aside under a name of
// their own, never removed: the committed rows in them can still be joined with the backup.

import Diagnostics
import DurableFiles
import PersistentStore
import SQLite
import SystemPackage

extension HopdError.Code {
  /// A log that belongs to the store before its migration was found beside the migrated store, and was set aside.
  package static let lateLog = HopdError.Code("late-log", exit: .unavailable, isRetryable: true)
}

/// Finds and sets aside side files that came too late.
package struct LateFiles {
  /// The store.
  let location: CanonicalStoreLocation
  let files: any DurableFileSystem
  /// Reads the digest of a version from a connection.
  let identify: (Connection) throws -> String
  /// Called repeatedly while pages are checked; false ends the check, and nothing is proven.
  let keepAlive: () -> Bool

  /// Looks at the store at `location`.
  package init(
    location: CanonicalStoreLocation, files: any DurableFileSystem, identify: @escaping (Connection) throws -> String,
    keepAlive: @escaping () -> Bool = { true }
  ) {
    self.location = location
    self.files = files
    self.identify = identify
    self.keepAlive = keepAlive
  }

  // MARK: Replacement

  /// Sets aside files that appeared between the last check before the rename and the end of the replacement, and
  /// returns warnings about them.
  ///
  /// Called at once after the rename, for the file `placed`: a program that opened the new store in this instant still
  /// has it open, and then the side files belong to that program. `job` makes the names.
  func setAsideAfterSwap(job: String, old: FilePath, placed: FileIdentity?) throws -> [HopdError] {
    let late = try found()
    guard !late.isEmpty, try files.status(location.database)?.identity == placed else { return [] }
    var names: [FilePath] = []
    // Programs that open the store now wait until the files have their new names.
    let isOpen = try files.isOpenElsewhere(location.database) { names = try setAside(late, job: job) }
    return isOpen == false ? [warning(names, old: old)] : []
  }

  // MARK: Deferred work

  /// Sets aside a log that provably belongs to the store before its migration; returns the warning to report. Throws
  /// `.storeBusy` where a program has the store open. Files that cannot be read prove nothing: the inspection that
  /// follows reports the reason.
  package func setAsideIfProven(backups: BackupSet, job: String) throws -> HopdError? {
    guard let log = try files.status(location.writeAheadLog), log.kind == .regular, log.size > 0,
      let generation = try backups.generations().first, let record = generation.record
    else { return nil }
    let before = try SourceFingerprint(of: location, files: files)
    guard try isOlder(log, than: record) || doesNotFit(record),
      try SourceFingerprint(of: location, files: files) == before
    else { return nil }
    let late = try found().filter { $0 != location.rollbackJournal }
    var names: [FilePath] = []
    let isOpen = try files.isOpenElsewhere(location.database) { names = try setAside(late, job: job) }
    guard isOpen == false else {
      throw HopdError(
        .storeBusy,
        "the log next to the store was written for the store before its migration, and "
          + (isOpen == true ? "a program has the store open" : "hopd cannot see whether a program has the store open"),
        at: Place(store: location.database, file: location.writeAheadLog),
        hint: "close the program before it writes the log into the store, and move the log; the old store is "
          + generation.database.printable)
    }
    return warning(names, old: generation.database)
  }

  /// Proof by time: no program has written into the database since hopd put it there, and the log was last written
  /// before. A log of the new store cannot be older than the store.
  private func isOlder(_ log: FileStatus, than record: BackupRecord) throws -> Bool {
    guard let store = try files.status(location.database), let placed = record.placed,
      SourceFingerprint.Stamp(store) == placed
    else { return false }
    let (swapped, overflow) = record.createdAt.multipliedReportingOverflow(by: 1_000_000_000)
    return !overflow && log.modified < swapped
  }

  /// Proof by the content: alone the database is a sound store of the version that hopd made; with the log it is
  /// damaged, or is of the version before.
  private func doesNotFit(_ record: BackupRecord) -> Bool {
    guard record.from.digest != record.to.digest else { return false }
    // Reading the version alone is quick. The pages are checked where probably no program of this machine made the log:
    // such a program makes an index first, unless it uses exclusive locking.
    let isPlain = (try? files.status(location.sharedMemory)) ?? nil != nil
    switch answer(of: .unlocked, checksPages: !isPlain) {
    case .sound(record.from.digest), .damaged: break
    case .sound, .unreadable: return false
    }
    return answer(of: .immutable, checksPages: true) == .sound(record.to.digest)
  }

  private enum Answer: Equatable {
    case sound(String)
    case damaged
    case unreadable
  }

  /// The state of the store, read without locks: its main file alone, or with the log.
  private func answer(of access: Connection.Access, checksPages: Bool) -> Answer {
    do {
      let connection = try Connection(path: location.database, access: access)
      connection.setProgressHandler(every: 200_000, keepAlive)
      if checksPages, try connection.text("PRAGMA quick_check(1)") != "ok" { return .damaged }
      return .sound(try identify(connection))
    } catch let error as SQLiteError {
      return error.isDamage || error.message.hasPrefix("no such ") ? .damaged : .unreadable
    } catch let error as HopdError {
      return error.code == .storeDamaged ? .damaged : .unreadable
    } catch {
      return .unreadable
    }
  }

  // MARK: Aside files

  /// Logs and journals with content; an index goes with its log.
  private func found() throws -> [FilePath] {
    var found: [FilePath] = []
    for file in [location.writeAheadLog, location.rollbackJournal] {
      guard let status = try files.status(file), status.kind == .regular, status.size > 0 else { continue }
      found.append(file)
      if file == location.writeAheadLog, try files.status(location.sharedMemory)?.kind == .regular {
        found.append(location.sharedMemory)
      }
    }
    return found
  }

  private func setAside(_ late: [FilePath], job: String) throws -> [FilePath] {
    // A log may arrive twice within one job: each gets a number that is free for all its files.
    var number = 1
    func name(_ file: FilePath) -> FilePath {
      let suffix = String(file.string.dropFirst(location.database.string.count))
      // The name ends as a side file's does, so no program takes it for a store.
      return location.directory.appending(
        "\(location.fileName).late-\(job)\(number > 1 ? "-\(number)" : "")\(suffix)")
    }
    while try number < 1000 && late.contains(where: { try files.status(name($0)) != nil }) { number += 1 }
    for file in late { try files.renameNoReplace(file, to: name(file)) }
    try files.syncDirectory(location.directory)
    return late.map(name)
  }

  private func warning(_ names: [FilePath], old: FilePath) -> HopdError {
    HopdError(
      .lateLog,
      "\(names.map(\.printable).joined(separator: ", ")) arrived after the store was migrated and was set aside",
      at: Place(store: location.database),
      hint: "copy \(old.printable) and the log, which may contain committed rows, to another directory as a.sqlite and "
        + "a.sqlite-wal, open that with sqlite3, and migrate it; next time copy the log before the database")
  }
}
