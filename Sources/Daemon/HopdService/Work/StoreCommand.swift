// A command of `on_failure` or `on_migrated`, with what its program gets to know.

import Diagnostics
import PolicyHost
import StoreReplacement
import SystemPackage
import SystemdSupport

/// A command that is run about a store.
struct StoreCommand: Sendable {
  /// The key that sets it: `on_failure` or `on_migrated`.
  var key: String
  /// The program and its arguments.
  var command: [String]
  /// The store, as the configuration names it.
  var store: FilePath
  /// The fields of the journal entry that the command is run for.
  var fields: [JournalField: String]
  /// The backup, if there is one.
  var backup: FilePath?

  /// Fields that are passed on. The text of an entry is not among them: it may quote what a policy program wrote.
  private static let passed: [JournalField] = [
    .storeUUID, .job, .watch, .from, .to, .hops, .entity, .rows, .microseconds, .result, .error, .hint, .attempt, .next,
  ]

  /// The environment: nothing of hopd's but the paths of programs, and the fields under their names.
  func environment(stateDirectory: FilePath) -> [String: String] {
    var variables = ["PATH": ProgramPath.folders, "LANG": "C.UTF-8", "HOPD_STATE_DIRECTORY": stateDirectory.string]
    for field in Self.passed {
      variables[field.rawValue] = fields[field]?.escapingControls(keepingNewlines: false)
    }
    return variables
  }

  /// Paths, which are passed byte for byte.
  var paths: [String: [UInt8]] {
    [JournalField.store.rawValue: store, JournalField.backup.rawValue: backup].compactMapValues { path in
      path.map { PathText.bytes(of: $0) }
    }
  }
}
