// `hopctl work` on remote stores: the commands that fetch and store them, as typed.

import ArgumentParser
import Diagnostics
import DurableFiles
import FoundationEssentials
import Glibc
import HopdConfiguration
import MigrationPipeline
import PolicyHost
import StoreFleet
import SystemPackage

/// `--fetch`, `--store` and their related options.
struct RemoteOptions: ParsableArguments {
  /// The most bytes of a command's output. A version takes one line, so longer output is not a version.
  private static let outputLimit = 1 << 20

  @Option(
    help: ArgumentHelp(
      "The stores lie elsewhere: the manifest has keys, and this command fetches one.",
      discussion: """
        {key} in it is the key, {path} the file to write, {directory} its folder, empty before. No shell reads the \
        command; quotes hold words together. It runs in / and prints the version (ETag, generation) of what it fetched \
        as one line. Exit status: 0 fetched, 66 there is no such object, 65 or 77 a person has to look; all others are \
        tried again.
        """, valueName: "command"))
  var fetch: String?

  @Option(
    help: ArgumentHelp(
      "Stores a migrated store, only if the object still has the version that was fetched.",
      discussion: """
        {version} in it is that version, the others as for --fetch. Exit status: 0 stored, 76 the object is another \
        one meanwhile, 65 or 77 a person has to look; all others are tried again.
        """, valueName: "command"))
  var store: String?

  @Option(
    help: ArgumentHelp(
      "Where copies of objects are migrated: one for each of --jobs at a time.",
      discussion: "Else $TMPDIR or /var/tmp. What killed workers left there is removed.", valueName: "dir"),
    completion: .directory)
  var workDirectory: String?

  @Option(help: "How often --fetch, --store, and the work on an object that others write, are tried.")
  var tries = 5

  @Option(
    help: ArgumentHelp(
      "How long to wait before the second try; then twice as long each time, up to a minute.", valueName: "time"))
  var retryAfter = "1s"

  @Option(help: ArgumentHelp("End a command of --fetch or --store that takes longer.", valueName: "time"))
  var commandTimeout = "1h"

  func validate() throws {
    guard (fetch == nil) == (store == nil) else { throw ValidationError("--fetch and --store go together.") }
    if fetch == nil, workDirectory != nil { throw ValidationError("--work-directory goes with --fetch and --store.") }
    guard (1...100).contains(tries) else { throw ValidationError("--tries is a number from 1 to 100.") }
    for (option, text) in [("--retry-after", retryAfter), ("--command-timeout", commandTimeout)] {
      guard let time = Quantity.duration(text), time > .zero else {
        throw ValidationError("\(option) takes a time as 30s or 10min, not \"\(text)\".")
      }
    }
  }

  /// Returns the commands; nil if the stores are local files. Throws if a command is invalid.
  func commands() throws -> RemoteCommands? {
    guard let fetch, let store else { return nil }
    let time = Quantity.duration(commandTimeout) ?? .seconds(3600)
    let environment = ProcessInfo.processInfo.environment
    return try RemoteCommands(
      fetch: command(fetch, "--fetch"), store: command(store, "--store"),
      retries: RemoteCommands.Retries(tries: tries, first: Quantity.duration(retryAfter) ?? .seconds(1))
    ) { program, arguments, stop in
      let answer = ProgramOutput.run(
        program, arguments: [program.string] + arguments, environment: environment, limit: Self.outputLimit,
        within: time, isStopped: { stop.isStopping })
      return RemoteCommands.Answer(output: answer.output, errors: answer.errors, end: Self.end(answer.end))
    }
  }

  private static func end(_ end: ProgramOutput.End) -> RemoteCommands.End {
    switch end {
    case .exit(let status): .exit(status)
    case .signal(let number): .other("was ended by signal \(number)")
    case .stopped: .stopped
    case .late: .other("did not end within --command-timeout")
    case .talkative: .other("wrote more than a mebibyte to standard output")
    case .notStarted: .other("cannot be started")
    }
  }

  /// Returns a command; throws if its program does not exist, so that a wrong name does not fail 200,000 times.
  private func command(_ text: String, _ option: String) throws -> RemoteCommands.Command {
    let template = try CommandTemplate(text, option: option)
    let name = template.program
    // Commands run in /, but paths on the command line are relative to this directory.
    var path = ProgramOutput.path(
      of: name, getenv("PATH").map { String(cString: $0) } ?? "/usr/local/bin:/usr/bin:/bin")
    if name.contains("/") { path = try? FilePath(name).resolved() }
    guard let path, access(path.string, X_OK) == 0 else {
      throw HopdError(
        .usage, "the program of \(option) cannot be found: \(name.printableLine)",
        hint: "give its path; a script has to be executable: chmod +x")
    }
    return RemoteCommands.Command(template, program: path)
  }
}
