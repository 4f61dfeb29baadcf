// The directory for a migration's intent records and locks. The next run finds an interrupted migration only in the
// same directory, so the choice depends on the environment and never on the store.

import ArgumentParser
import Diagnostics
import DurableFiles
import Glibc
import ServiceState
import SystemPackage

/// `--state-directory`.
struct StateOptions: ParsableArguments {
  @Option(
    name: .customLong("state-directory"),
    help: ArgumentHelp(
      "Directory for locks and records of running migrations",
      discussion: """
        Default: $HOPD_STATE_DIRECTORY, $STATE_DIRECTORY, /var/lib/hopd if writable, $XDG_STATE_HOME/hopd, or \
        .local/state/hopd in the home directory.
        """), completion: .directory)
  var stateDirectory: String?

  /// Returns the directory, and makes it if it is missing.
  func directory() throws -> FilePath {
    let path = try chosen()
    do {
      return try made(path)
    } catch var error as HopdError where error.hint == nil {
      error.hint = "pass a writable directory: --state-directory DIR, or $HOPD_STATE_DIRECTORY"
      throw error
    }
  }

  private func made(_ path: FilePath) throws -> FilePath {
    let files = LinuxFileSystem()
    // The parents are the user's own (~/.local/state), so they are kept; only missing folders are made.
    var missing: [FilePath.Component] = []
    var folder = path
    while true {
      do {
        folder = try folder.resolved()
        break
      } catch let error as HopdError where error.code == .notFound {
        guard let name = folder.lastComponent else { throw error }
        missing.append(name)
        folder.removeLastComponent()
        if folder.isEmpty { folder = "." }
      }
    }
    for name in missing.reversed() {
      folder.append(name)
      try files.ensureDirectory(folder)
    }
    FileLock.sweep(folder.appending("locks"))
    return folder
  }

  private func chosen() throws(HopdError) -> FilePath {
    if let stateDirectory { return FilePath(stateDirectory) }
    if let named = StateDirectory.ofEnvironment { return named }
    if access(StateDirectory.standard.string, W_OK | X_OK) == 0 {
      return StateDirectory.standard
    }
    if let state = Environment.value(of: "XDG_STATE_HOME"), state.hasPrefix("/") {
      return FilePath(state).appending("hopd")
    }
    if let home = Environment.value(of: "HOME"), home.hasPrefix("/") {
      return FilePath(home).appending(".local/state/hopd")
    }
    // Without HOME, as in many containers, the user's passwd entry gives the home directory.
    if let entry = getpwuid(geteuid()), let home = entry.pointee.pw_dir.map({ String(cString: $0) }),
      home.hasPrefix("/"), access(home, W_OK | X_OK) == 0
    {
      return FilePath(home).appending(".local/state/hopd")
    }
    throw HopdError(
      .usage,
      "cannot choose a state directory: $HOME is not set and the user has no home directory",
      hint: "pass a writable directory: --state-directory DIR, or $HOPD_STATE_DIRECTORY")
  }
}

/// Variables of the environment.
enum Environment {
  /// Returns the value of a variable; nil if it is unset or empty.
  static func value(of name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
  }
}
