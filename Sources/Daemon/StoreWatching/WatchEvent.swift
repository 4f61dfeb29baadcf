// A watcher's input and output as plain values, so that the service can be tested without a disk.

import Diagnostics
import DurableFiles
import SystemPackage

/// A directory whose files are reported when they have settled.
package struct WatchedDirectory: Sendable, Equatable {
  /// Name of the watch; unique among the watches of one watcher.
  package var name: String
  /// The directory. Its path may contain symbolic links; links below it are never followed.
  package var path: FilePath { root.configured }
  /// Where it is.
  package var root: WatchRoot
  /// A file counts if its name matches one of these.
  package var include: [Glob]
  /// A file does not count if its name matches one of these.
  package var exclude: [Glob]
  /// Whether the directories below are watched too. Those whose name begins with a dot never are.
  package var recursive: Bool
  /// Directories below are left out, with everything in them, if their name matches one of these. The watched directory
  /// itself is watched whatever its name, because the configuration lists it.
  package var excludedFolders: [Glob]
  /// How long a file must be quiet.
  package var settle: Duration
  /// How often everything is scanned again, whatever the kernel reported.
  package var rescan: Duration
  /// Suffixes of side files: their changes count as changes of the file that they belong to.
  package var sideSuffixes: [String]
  /// Suffixes of side files that readers change too: they keep a file in motion but do not wake one at rest.
  package var noisySuffixes: [String]
  /// Whether a file counts even if the watcher's `ignores` returns true for its name. For files that are not stores.
  package var takesEverything = false

  /// Describes a directory to watch; the default suffixes of side files are SQLite's.
  package init(
    name: String, root: WatchRoot, include: [Glob] = [Glob("*")], exclude: [Glob] = [], recursive: Bool = false,
    excludedFolders: [Glob] = [], settle: Duration, rescan: Duration, sideSuffixes: [String] = ["-wal", "-journal"],
    noisySuffixes: [String] = ["-shm"]
  ) {
    self.name = name
    self.root = root
    self.include = include
    self.exclude = exclude
    self.recursive = recursive
    self.excludedFolders = excludedFolders
    self.settle = settle
    self.rescan = rescan
    self.sideSuffixes = sideSuffixes
    self.noisySuffixes = noisySuffixes
  }
}

/// A regular file that has been quiet for the settle time.
package struct SettledFile: Sendable {
  /// Name of the watch that found it.
  package var watch: String
  /// The file, by the path of the directory as the configuration names it.
  package var path: FilePath
  /// The file by its canonical path.
  package var key: FilePath
  /// Its size in bytes.
  package var size: Int64
  /// The directory in which it was found.
  package var folder: OpenDirectory?

  /// Names a file found by a watch.
  package init(watch: String, path: FilePath, key: FilePath, size: Int64, folder: OpenDirectory? = nil) {
    self.watch = watch
    self.path = path
    self.key = key
    self.size = size
    self.folder = folder
  }
}

/// An event that a watcher reports.
package enum WatchEvent: Sendable {
  /// The file is at rest and is new or has changed; reported once per change.
  case settled(SettledFile)
  /// A reported file was removed; `key` is its canonical path.
  case vanished(watch: String, path: FilePath, key: FilePath)
  /// The file has been quiet, but `transfer`, which belongs to it, is still being sent. `settled` follows after the
  /// transfer.
  case incomplete(watch: String, path: FilePath, transfer: FilePath)
  /// Symbolic links whose names match were found; they are never followed. Reported when their number changes; `first`
  /// is nil once there are none.
  case linksIgnored(watch: String, count: Int, first: FilePath?)
  /// A scan of the directory has ended; `files` is the number of files that count. If the directory itself is not
  /// available, `degraded` is reported instead.
  case scanned(watch: String, files: Int)
  /// The directory, or a part of it, cannot currently be watched; the watcher retries, and `restored` follows.
  case degraded(watch: String, HopdError)
  /// The directory is watched again, completely.
  case restored(watch: String)
  /// The kernel's limit of watches for this user is reached; the rescan finds changes in the other directories.
  case watchLimitReached(watch: String, HopdError)
  /// The kernel dropped events; everything is scanned again.
  case eventsLost

  /// Name of the watch that the event refers to; nil if it refers to all.
  package var watch: String? {
    switch self {
    case .settled(let file): file.watch
    case .vanished(let watch, _, _), .incomplete(let watch, _, _), .linksIgnored(let watch, _, _),
      .scanned(let watch, _), .degraded(let watch, _), .restored(let watch),
      .watchLimitReached(let watch, _):
      watch
    case .eventsLost: nil
    }
  }
}

extension HopdError.Code {
  /// A watched directory is missing or cannot currently be read.
  package static let watchUnavailable = HopdError.Code("watch-unavailable", exit: .noInput, isRetryable: true)
  /// The kernel's limit of inotify watches or instances is reached.
  package static let watchLimit = HopdError.Code("watch-limit", exit: .temporaryFailure, isRetryable: true)
}
