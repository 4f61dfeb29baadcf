// Checks that the programs of `on_failure` and `on_migrated` exist and can be started.

import Diagnostics
import HopdConfiguration
import PolicyHost
import SystemPackage

extension HopdError.Code {
  /// The program of `on_failure` or `on_migrated` cannot be started.
  package static let commandUnusable = HopdError.Code("command-unusable", exit: .configuration)
  /// The program of `on_failure` or `on_migrated` ended with an error, or was ended.
  package static let commandFailed = HopdError.Code("command-failed", severity: .warning)
}

/// The commands of a configuration, each with the key that sets it.
package enum CommandPrograms {
  /// Returns an error, with file and line, for each program that cannot be started.
  package static func findings(in loaded: LoadedConfiguration) -> [HopdError] {
    commands(of: loaded.configuration).compactMap { command, key in
      do throws(HopdError) {
        _ = try ProgramPath.of(command, called: "the program of `\(name(of: key))`", code: .commandUnusable)
        return nil
      } catch {
        return error.located(loaded.place(of: key))
      }
    }
  }

  /// The commands that are set, with their keys; a watch that takes those of `[daemon]` has none of its own.
  static func commands(of configuration: Configuration) -> [(command: [String], key: String)] {
    let all = configuration.daemon.commands
    func named(_ commands: Configuration.Commands, _ table: String) -> [(command: [String], key: String)] {
      [(commands.onFailure, "\(table).on_failure"), (commands.onMigrated, "\(table).on_migrated")]
    }
    let own = configuration.watches.flatMap { watch in
      named(
        Configuration.Commands(
          onFailure: watch.commands.onFailure == all.onFailure ? [] : watch.commands.onFailure,
          onMigrated: watch.commands.onMigrated == all.onMigrated ? [] : watch.commands.onMigrated),
        "watch.\(watch.name)")
    }
    return (named(all, "daemon") + own).filter { !$0.command.isEmpty }
  }

  private static func name(of key: String) -> String { key.split(separator: ".").last.map(String.init) ?? key }
}
