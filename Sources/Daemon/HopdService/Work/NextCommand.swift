// The next command to type for each kind of error, ready to copy, with the store in quotation marks if its name needs
// them.

import Diagnostics
import DurableFiles
import MigrationPlanning
import PersistentStore
import PolicyHost
import StoreReplacement
import SystemPackage

/// Creates the command for an error of a store.
struct NextCommand {
  /// The store, as the configuration names it.
  var store: FilePath
  /// Name of its watch.
  var watch: String
  /// The file for `--config`.
  var configuration: FilePath
  /// The state directory of this hopd: commands for its stores name it if it is not the default.
  var stateDirectory: FilePath = "/var/lib/hopd"
  /// Whether the configuration is the installed one, rather than one file.
  var isInstalled = true

  /// The command for an error; empty if the operator can only wait.
  func text(_ error: HopdError) -> String {
    if error.isReadOnlyFileSystem { return dropIn }
    let folder = store.removingLastComponent().quotedForShell
    // The journal's entries name a store as text.
    let entry = "HOPD_STORE=" + store.printable.quotedForShell
    let store = store.quotedForShell
    switch error.code {
    // hopd finds the other store by itself.
    case .interrupted, .storeReplaced: return ""
    case .noSpace: return "df -h \(folder)"
    case .noPermission: return "ls -la \(store) && ls -lad \(folder)"
    case .inputOutput: return "journalctl -k -p err -b"
    case .pinned: return (error.cause as? PinGroup)?.command ?? "hopctl resume \(store)"
    case .storeIncomplete, .notFound: return "ls -la \(folder)"
    case .storeQuarantined, .recordUnreadable, .recordNewer: return "hopctl recover \(folder)\(state)"
    case .storeEndsService, .internalError: return "journalctl -x \(entry)"
    // A worker's lock is a name and keeps no file open.
    case .lockedByOther where error.place.file != nil: return "ls -la \(error.place.file?.quotedForShell ?? folder)"
    case let code where code.exit == .unavailable: return "fuser -v \(store)"
    case let code where code.name.hasPrefix("policy-"): return "journalctl \(entry)"
    // Identification does not read all pages: only `hopctl verify` shows which are damaged.
    case .storeDamaged: return "hopctl verify \(options)"
    case let code where ["not-a-store", "store-encrypted"].contains(code.name):
      return "hopctl identify \(options)"
    // What differs, and from which version; a plan only repeats the refusal.
    case let code where ["perhaps-newer", "foreign-store", "unknown-version"].contains(code.name):
      return "hopctl explain \(options)"
    default: return "hopctl plan \(options)"
    }
  }

  /// Installs the drop-in of the unit and restarts the unit with it. For a configuration that belongs to no unit it
  /// only prints.
  var dropIn: String {
    let (command, file) = ("hopctl check-config --drop-in", isInstalled ? "" : " \(configuration.quotedForShell)")
    let isInstance = configuration.removingLastComponent() == "/etc/hopd" && configuration.extension == "toml"
    guard isInstalled || isInstance else { return command + file }
    let name = isInstalled || configuration.stem == "hopd" ? "hopd" : "hopd@\(configuration.stem ?? "")"
    return "\(command) --install\(file) && systemctl daemon-reload && systemctl restart \(name.quotedForShell)"
  }

  private var state: String {
    stateDirectory == "/var/lib/hopd" ? "" : " --state-directory \(stateDirectory.quotedForShell)"
  }

  /// The store, and where its models are: hopctl finds the watch of the installed configuration by the store.
  private var options: String {
    if isInstalled { return store.quotedForShell }
    return "\(store.quotedForShell) --config \(configuration.quotedForShell) --watch \(watch.quotedForShell)"
  }
}
