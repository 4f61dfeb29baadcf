// The two commands that fetch an object and store it again, and the meaning of their exit statuses. The second one has
// to be conditional: it gets the version that was fetched, and has to refuse where the object has another one.

import Diagnostics
import MigrationPipeline
import SystemPackage

extension HopdError.Code {
  /// The fetch command failed each time.
  package static let fetchFailed = HopdError.Code("fetch-failed", exit: .unavailable, isRetryable: true)
  /// The store command failed each time; whether the object is stored is not known.
  package static let storeFailed = HopdError.Code("store-failed", exit: .unavailable, isRetryable: true)
  /// Other programs wrote the object each time.
  package static let objectChanged = HopdError.Code("object-changed", exit: .temporaryFailure, isRetryable: true)
  /// A command reports, or its result shows, that a retry does not help.
  package static let objectRefused = HopdError.Code("object-refused", exit: .dataError)
}

/// `--fetch` and `--store`.
package struct RemoteCommands: Sendable {
  /// The meaning of the commands' exit statuses; all others but 0 are retried.
  package enum Status {
    /// EX_DATAERR: a person has to decide.
    package static let refused: Int32 = 65
    /// EX_NOINPUT: there is no such object.
    package static let missing: Int32 = 66
    /// The object is not the one that was fetched: no program that stores objects exits with this status by itself.
    package static let changed: Int32 = 76
    /// EX_NOPERM: the rights are missing.
    package static let forbidden: Int32 = 77
  }

  /// How a command ended.
  package enum End: Sendable, Hashable {
    case exit(Int32)
    /// On request.
    case stopped
    /// In another way, in words: "was ended by signal 9".
    case other(String)
  }

  /// The result of a command.
  package struct Answer: Sendable, Hashable {
    package var output: [UInt8]
    package var errors: String
    package var end: End

    /// Makes an answer.
    package init(output: [UInt8], errors: String, end: End) {
      (self.output, self.errors, self.end) = (output, errors, end)
    }
  }

  /// Runs a program with arguments until it ends or is stopped.
  package typealias Runner =
    @Sendable (_ program: FilePath, _ arguments: [String], _ stop: StopSignal) -> Answer

  /// The number of attempts, and the pause between two of them.
  package struct Retries: Sendable, Hashable {
    private static let longest = Duration.seconds(60)

    package let tries: Int
    private let first: Duration

    /// The pause doubles with each attempt, up to a minute.
    package init(tries: Int, first: Duration) { (self.tries, self.first) = (max(1, tries), first) }

    /// The pause after an attempt, counted from 1: between half and all of its time, so that workers that failed
    /// together do not retry together.
    func pause(after attempt: Int) -> Duration {
      let whole = min(Self.longest, min(first, Self.longest) * (1 << min(max(attempt, 1) - 1, 16)))
      return whole * Double.random(in: 0.5...1)
    }
  }

  /// A command, and where its program is.
  package struct Command: Sendable {
    let template: CommandTemplate
    let program: FilePath

    /// Pairs them.
    package init(_ template: CommandTemplate, program: FilePath) { (self.template, self.program) = (template, program) }
  }

  let fetch: Command
  let store: Command
  let retries: Retries
  let run: Runner

  /// Takes the two commands. Throws where one lacks a required placeholder.
  package init(fetch: Command, store: Command, retries: Retries, run: @escaping Runner) throws(HopdError) {
    (self.fetch, self.store, self.retries, self.run) = (fetch, store, retries, run)
    for (option, command) in [("--fetch", fetch.template), ("--store", store.template)] {
      guard command.has(.key) else {
        throw CommandTemplate.wrong(option, "lacks {key}", "say which object it is about")
      }
      guard command.has(.path) || command.has(.directory) else {
        throw CommandTemplate.wrong(option, "lacks {path} and {directory}", "say which files it is about")
      }
    }
    if fetch.template.has(.version) {
      throw CommandTemplate.wrong("--fetch", "has {version}", "it prints the version of what it fetched")
    }
    guard store.template.has(.version) else {
      throw CommandTemplate.wrong(
        "--store", "lacks {version}",
        "a store that was changed meanwhile would be written over: store only if the version is still this one")
    }
  }

  /// Runs a command until it succeeds, ends with a final status, or has used up its attempts.
  func perform(
    _ command: Command, _ values: [CommandTemplate.Placeholder: String], failure: HopdError.Code, stop: StopSignal,
    prepare: () throws -> Void = {}
  ) throws -> Result {
    guard let arguments = command.template.arguments(values) else {
      throw HopdError(
        .objectRefused, "the key or the version begins with a dash, and the command would take it for an option",
        hint: "put something before the placeholder, as --key={key}")
    }
    var last = ""
    for attempt in 1...retries.tries {
      guard !stop.isStopping else { throw Self.interrupted }
      try prepare()
      let answer = run(command.program, arguments, stop)
      switch answer.end {
      case .exit(0): return .done(answer.output)
      case .exit(Status.changed) where failure == .storeFailed: return .changed
      case .exit(Status.missing):
        throw HopdError(
          .notFound, "there is no such object\(Self.tail(answer.errors))", hint: "make the list of keys anew")
      case .exit(let status) where status == Status.refused || status == Status.forbidden:
        throw HopdError(
          .objectRefused,
          "the \(failure.command) command refuses, with exit status \(status)\(Self.tail(answer.errors))",
          hint: status == Status.forbidden ? "give it the rights, then start the worker again" : nil)
      case .exit(let status): last = "ended with exit status \(status)\(Self.tail(answer.errors))"
      case .stopped: throw Self.interrupted
      case .other(let words): last = words + Self.tail(answer.errors)
      }
      if attempt < retries.tries { Alarm.sleep(retries.pause(after: attempt), unless: stop) }
    }
    throw HopdError(
      failure, "the \(failure.command) command \(last); tried \(retries.tries) times",
      hint: "the same command again goes on; to see why, run the \(failure.command) command by hand")
  }

  /// The result of a command.
  enum Result {
    case done([UInt8])
    /// The object is another one now.
    case changed
  }

  static var interrupted: HopdError {
    HopdError(
      .interrupted, "stopped on request; the object is as it was, or stored", hint: "run the same command again")
  }

  /// The last lines of a program's errors.
  private static func tail(_ errors: String) -> String {
    let lines = errors.split(whereSeparator: \.isNewline).filter { !$0.allSatisfy(\.isWhitespace) }
    let text = lines.suffix(3).map { $0.trimmingPrefix { $0.isWhitespace } }.joined(separator: "; ")
    return text.isEmpty ? "" : ": \(text.suffix(400))"
  }
}

extension HopdError.Code {
  /// The command that fails so.
  fileprivate var command: String { self == .storeFailed ? "store" : "fetch" }
}
