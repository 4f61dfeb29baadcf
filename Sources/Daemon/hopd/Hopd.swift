// The daemon's command line; everything else is HopdService.

import ArgumentParser
import Diagnostics
import Glibc
import HopdService

@main struct Hopd: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hopd", abstract: "Migrate Core Data stores in watched directories",
    version: HopdVersion.text)

  @Option(name: .customLong("config"), help: "Configuration file (default: the installed ones)")
  var configurationFile: String?
  @Option(help: "State directory (default: $HOPD_STATE_DIRECTORY, $STATE_DIRECTORY or /var/lib/hopd)")
  var stateDirectory: String?
  @Flag(help: "Check the configuration and exit")
  var check = false
  @Flag(
    name: .customLong("check-reload"),
    help:
      "Check as for a reload: a missing or read-only directory is only a warning")
  var checkReload = false

  static func main() async {
    let command: Hopd
    do { command = try parse() } catch {
      if exitCode(for: error) == .success {  // --help, --version
        Daemon.print(fullMessage(for: error), asError: false)
        Glibc.exit(ExitStatus.success.rawValue)
      }
      let usage = HopdError.usage(parserMessage: message(for: error), command: "hopd")
      Daemon.print("hopd: \(usage)", asError: true)
      Glibc.exit(usage.code.exit.rawValue)
    }
    let daemon = Daemon(configurationFile: command.configurationFile, stateDirectory: command.stateDirectory)
    Glibc.exit(command.check || command.checkReload ? daemon.check(forReload: !command.check) : await daemon.run())
  }
}
