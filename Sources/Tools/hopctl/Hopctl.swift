// The program: the list of subcommands, and the only place where an error becomes text, JSON and an exit status.

import ArgumentParser
import Diagnostics
import Glibc
import PersistentStore
import SQLite
import SystemPackage

/// `hopctl`.
@main
struct Hopctl: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hopctl",
    abstract: "Migrate Core Data stores and control the hopd daemon",
    discussion: """
      Exit status:
        0 success        6 not configured   7 hopd not running   10 work to do
        64 usage error   65 invalid store or model               66 file not found
        69 store in use  70 internal error  73 cannot create output
        74 I/O error     75 temporary failure, retry             77 permission denied
        78 configuration error

      Options of every command:
        --json           Print JSON
        -q, --quiet      Print only errors
        --no-progress    Hide the progress bar
      """,
    version: ProgramVersion.text(program: "hopctl", sqlite: Connection.libraryVersion),
    groupedSubcommands: [
      CommandGroup(
        name: "Model",
        subcommands: [
          CheckCommand.self, ExplainCommand.self, ModelCommand.self, MappingCommand.self,
        ]),
      CommandGroup(
        name: "Store",
        subcommands: [
          IdentifyCommand.self, PlanCommand.self, RehearseCommand.self, MigrateCommand.self, VerifyCommand.self,
          RestoreCommand.self, BackupsCommand.self, PruneCommand.self, RecoverCommand.self, CreateCommand.self,
          DumpCommand.self, ExportCommand.self, ImportCommand.self,
        ]),
      CommandGroup(name: "Fleet", subcommands: [FleetCommand.self]),
      CommandGroup(
        name: "Daemon",
        subcommands: [
          StatusCommand.self, ListCommand.self, HistoryCommand.self, TopCommand.self, RetryCommand.self,
          PauseCommand.self, ResumeCommand.self, ReloadCommand.self, SetCommand.self, CheckConfigCommand.self,
          DoctorCommand.self,
        ]),
    ])

  /// The output of `hopctl` without arguments.
  private static let examples = """
    hopctl check   Library.xcdatamodeld                       # test every model version
    hopctl migrate old.sqlite --models Library.xcdatamodeld   # migrate one store
    hopctl list    --state failed                             # list stores that need attention

    Run 'hopctl --help' for all commands, 'hopctl help COMMAND' for one.
    """

  static func main() {
    // A write beyond `ulimit -f` then fails with EFBIG, which becomes an error with its cause.
    signal(SIGXFSZ, SIG_IGN)
    if CommandLine.argc == 1 {
      print(examples)
      Glibc.exit(ExitStatus.success.rawValue)
    }
    let command: any ParsableCommand
    do throws(HopdError) {
      try requireText()
      if let unknown = UnknownCommand(CommandLine.arguments.dropFirst()) { throw unknown.error }
      try requireKnownHelp(CommandLine.arguments.dropFirst())
    } catch {
      ErrorReport.report(error, json: CommandLine.arguments.contains("--json"))
      Glibc.exit(error.code.exit.rawValue)
    }
    do {
      command = try parseAsRoot()
    } catch {
      endParsing(error)
    }
    guard let work = command as? any HopctlCommand else {
      // Only a command that needs a subcommand gets here: ArgumentParser shows its help.
      var command = command
      do {
        try command.run()
      } catch {
        endParsing(error)
      }
      Glibc.exit(ExitStatus.success.rawValue)
    }
    do {
      try work.execute()
      Glibc.exit(ExitStatus.success.rawValue)
    } catch let finished as Finished {
      Glibc.exit(finished.status.rawValue)
    } catch {
      let error = ErrorReport.hopdError(error)
      ErrorReport.report(error, json: work.output.json)
      Glibc.exit(error.code.exit.rawValue)
    }
  }

  /// Throws if an argument is not UTF-8. Swift replaces invalid bytes, so the argument would name another file. Every
  /// command, and the daemon, refuses such a file, because the names of its side files are unknown.
  private static func requireText() throws(HopdError) {
    for case let word? in UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc))
    where String(validatingCString: word) == nil {
      let path = FilePath(platformString: word)
      guard access(word, F_OK) == 0 else {
        throw HopdError(.usage, "argument is not valid UTF-8: \(path.printable)")
      }
      throw HopdError(
        .notAStore, "the file name is not valid UTF-8", at: Place(file: path),
        hint: "rename the store together with its -wal, -shm and -journal files")
    }
  }

  /// Throws if `hopctl help WORD` names no command: ArgumentParser would show the general help instead.
  private static func requireKnownHelp(_ words: ArraySlice<String>) throws(HopdError) {
    guard words.first == "help" else { return }
    var commands = configuration.subcommands
    var path = "hopctl"
    for word in words.dropFirst().prefix(while: { !$0.hasPrefix("-") }) {
      if word == "help", path == "hopctl" { continue }
      guard let next = commands.first(where: { $0.configuration.commandName == word }) else {
        throw UnknownCommand(
          word: word, parent: path, siblings: commands.compactMap { $0.configuration.commandName }
        ).error
      }
      commands = next.configuration.subcommands
      path += " \(word)"
    }
  }

  /// Ends the program after ArgumentParser's error. Help and version are not errors; all others are usage errors.
  private static func endParsing(_ error: any Error) -> Never {
    guard exitCode(for: error) != .success else {
      let text = fullMessage(for: error)
      if !text.isEmpty { print(withWrappedUsage(text)) }
      Glibc.exit(ExitStatus.success.rawValue)
    }
    let arguments = CommandLine.arguments.dropFirst()
    let usage = HopdError.usage(parserMessage: message(for: error), command: commandPath(arguments))
    ErrorReport.report(usage, json: arguments.contains("--json"))
    Glibc.exit(usage.code.exit.rawValue)
  }

  /// Returns a help text whose usage line is wrapped to 80 columns, as ArgumentParser wraps all other lines.
  static func withWrappedUsage(_ help: String) -> String {
    let start = "USAGE: "
    return help.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      guard line.hasPrefix(start), line.count > 80 else { return String(line) }
      var lines = [start + "hopctl"]
      // A part is an argument with its brackets, which may contain spaces.
      var (part, depth) = ("", 0)
      for character in line.dropFirst(start.count + "hopctl".count) {
        if character == " ", depth == 0 {
          append(part, to: &lines)
          part = ""
        } else {
          depth += character == "[" ? 1 : character == "]" ? -1 : 0
          part.append(character)
        }
      }
      append(part, to: &lines)
      return lines.joined(separator: "\n")
    }.joined(separator: "\n")
  }

  private static func append(_ part: String, to lines: inout [String]) {
    guard !part.isEmpty, let last = lines.last else { return }
    if last.count + 1 + part.count <= 80 {
      lines[lines.count - 1] = "\(last) \(part)"
    } else {
      lines.append("          \(part)")
    }
  }

  /// The command and its subcommands at the start of a command line, such as "hopctl fleet run".
  private static func commandPath(_ words: ArraySlice<String>) -> String {
    var (path, commands) = ("hopctl", configuration.subcommands)
    for word in words {
      guard let next = commands.first(where: { $0.configuration.commandName == word }) else { break }
      path += " \(word)"
      commands = next.configuration.subcommands
    }
    return path
  }
}
