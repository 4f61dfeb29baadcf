// What a watcher is asked to watch and what it tells: plain values, so that the service can be tested without a disk.

import Diagnostics
import SystemPackage

/// A directory whose files are to be reported when they have come to rest.
package struct WatchedDirectory: Sendable, Hashable {
  /// Name of the watch; unique among the watches of one watcher.
  package var name: String
  /// The directory. It may be reached by a symbolic link; links below it are never followed.
  package var path: FilePath
  /// A file counts if its name matches one of these.
  package var include: [Glob]
  /// A file does not count if its name matches one of these.
  package var exclude: [Glob]
  /// Are the directories below watched too? Those whose name begins with a dot never are.
  package var recursive: Bool
  /// How long a file must be quiet.
  package var settle: Duration
  /// How often everything is inspected again, whatever the kernel told.
  package var rescan: Duration
  /// Endings of side files: their changes count as changes of the file that they belong to.
  package var sideSuffixes: [String]
  /// Endings of side files that mere readers change too: they keep a file in motion but do not wake one at rest.
  package var noisySuffixes: [String]
  /// Does a file count whatever the watcher's `ignores` says of its name? For files that are not stores.
  package var takesEverything = false

  /// A directory to watch; the endings of side files are those of SQLite.
  package init(
    name: String, path: FilePath, include: [Glob] = [Glob("*")], exclude: [Glob] = [], recursive: Bool = false,
    settle: Duration, rescan: Duration, sideSuffixes: [String] = ["-wal", "-journal"],
    noisySuffixes: [String] = ["-shm"]
  ) {
    self.name = name
    self.path = path
    self.include = include
    self.exclude = exclude
    self.recursive = recursive
    self.settle = settle
    self.rescan = rescan
    self.sideSuffixes = sideSuffixes
    self.noisySuffixes = noisySuffixes
  }
}

/// A regular file that has been quiet for the settle time.
package struct SettledFile: Sendable, Hashable {
  /// Name of the watch that found it.
  package var watch: String
  /// The file.
  package var path: FilePath
  /// Its size in bytes.
  package var size: Int64

  /// Names a file found by a watch.
  package init(watch: String, path: FilePath, size: Int64) {
    self.watch = watch
    self.path = path
    self.size = size
  }
}

/// What a watcher tells.
package enum WatchEvent: Sendable {
  /// The file is at rest and is new or has changed; told once for each change.
  case settled(SettledFile)
  /// A file that had been reported is gone.
  case vanished(watch: String, path: FilePath)
  /// The file has been quiet, but `transfer` beside it is still being sent. It is reported as settled after that.
  case incomplete(watch: String, path: FilePath, transfer: FilePath)
  /// Symbolic links whose names match were found; they are never followed. Told when their number changes.
  case linksLeftAlone(watch: String, count: Int, first: FilePath)
  /// The whole directory was inspected; `files` is how many count. One that cannot be read answers `degraded` instead.
  case scanned(watch: String, files: Int)
  /// The directory, or a part of it, cannot be watched now; it is tried again, and `restored` follows.
  case degraded(watch: String, HopdError)
  /// The directory is watched again, completely.
  case restored(watch: String)
  /// The kernel watches no more directories for this user; changes in the others are found by the rescan.
  case watchLimitReached(watch: String, HopdError)
  /// Rights, owner or links of files of the watch have changed, or of its directory. Their content has not.
  case rightsChanged(watch: String)
  /// The kernel dropped events; everything is scanned again.
  case eventsLost

  /// Name of the watch that the event refers to; nil where it refers to all.
  package var watch: String? {
    switch self {
    case .settled(let file): file.watch
    case .vanished(let watch, _), .incomplete(let watch, _, _), .linksLeftAlone(let watch, _, _),
      .rightsChanged(let watch), .scanned(let watch, _), .degraded(let watch, _), .restored(let watch),
      .watchLimitReached(let watch, _):
      watch
    case .eventsLost: nil
    }
  }
}

extension HopdError.Code {
  /// A watched directory is missing or cannot be read now.
  package static let watchUnavailable = HopdError.Code("watch-unavailable", exit: .noInput, isRetryable: true)
  /// The kernel's limit of inotify watches or instances is reached.
  package static let watchLimit = HopdError.Code("watch-limit", exit: .temporaryFailure, isRetryable: true)
}
