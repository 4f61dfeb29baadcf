// Runs the commands of `on_failure` and `on_migrated`, a few at once, within limits. They run beside the work, on
// threads of their own: no migration waits for them, and none fails because of them.

import ConfigurationInspection
import DequeModule
import Diagnostics
import Dispatch
import Logging
import PolicyHost
import Synchronization
import SystemPackage
import SystemdSupport

/// Runs commands about stores.
package final class StoreCommands: Sendable {
  private struct State {
    var waiting: Deque<StoreCommand> = []
    var running = 0
    /// Commands that were dropped since the queue was last empty.
    var dropped = 0
  }

  private let logger: Logger
  private let stateDirectory: FilePath
  private let limits: ProgramOutput.Limits
  /// The maximum number of commands that run at once, and that wait.
  private let (most, mostWaiting): (Int, Int)
  private let state = Mutex(State())
  private let ended = DispatchSemaphore(value: 0)

  /// The maximum number of lines of a command that go to the journal.
  static let mostLines = 100

  /// Creates a queue of commands. The default limits are those of a policy program.
  init(
    stateDirectory: FilePath, logger: Logger, most: Int = 2, mostWaiting: Int = 1000,
    limits: ProgramOutput.Limits = .init(output: 256 << 10, time: .seconds(30), memory: 256 << 20)
  ) {
    (self.stateDirectory, self.logger, self.limits) = (stateDirectory, logger, limits)
    (self.most, self.mostWaiting) = (most, mostWaiting)
  }

  /// Runs a command as soon as there is room; drops it, and reports that, while too many wait.
  func run(_ command: StoreCommand) {
    enum Next { case begin, wait, dropFirst, drop }
    let next = state.withLock { state -> Next in
      if state.running < most {
        state.running += 1
        return .begin
      }
      guard state.waiting.count < mostWaiting else {
        state.dropped += 1
        return state.dropped == 1 ? .dropFirst : .drop
      }
      state.waiting.append(command)
      return .wait
    }
    switch next {
    case .begin: BlockingWork.run("command") { [self] in work(command) }
    case .dropFirst:
      report(
        command, "dropped its command of \(command.key), and later ones: \(mostWaiting) are waiting",
        code: .commandUnusable, hint: "make the command faster: at most \(most) run at once")
    case .wait, .drop: break
    }
  }

  /// Waits until all commands have ended, but not longer than `limit`; then drops those that wait.
  func finish(within limit: Duration) {
    let end = DispatchTime.now() + .milliseconds(Int(limit / .milliseconds(1)))
    while state.withLock({ $0.running > 0 }), ended.wait(timeout: end) == .success {}
    let left = state.withLock { state in
      defer { state.waiting = [] }
      return state.waiting.count + state.running
    }
    if left > 0 { reportDropped(left, "because hopd is stopping") }
  }

  // MARK: Running

  /// Runs a command, and then those that wait.
  private func work(_ first: StoreCommand) {
    var next: StoreCommand? = first
    while let command = next {
      execute(command)
      let dropped = state.withLock { state -> Int in
        guard state.waiting.isEmpty else { return 0 }
        defer { state.dropped = 0 }
        return state.dropped
      }
      if dropped > 0 { reportDropped(dropped, "because too many were waiting") }
      next = state.withLock { state in
        if let next = state.waiting.popFirst() { return next }
        state.running -= 1
        return nil
      }
    }
    ended.signal()
  }

  private func execute(_ command: StoreCommand) {
    let program: FilePath
    do throws(HopdError) {
      program = try ProgramPath.of(
        command.command, called: "the program of \(command.key)", code: .commandUnusable)
    } catch {
      return report(command, error.message, code: error.code, hint: error.hint)
    }
    let result: ProgramOutput.Result
    do {
      result = try ProgramOutput.run(
        command.command, at: program, environment: command.environment(stateDirectory: stateDirectory),
        exact: command.paths, limits: limits)
    } catch {
      return report(
        command, "the program of \(command.key) cannot be started: \(program.printable): \("\(error)".printableLine)",
        code: .commandUnusable, hint: "start the script with a line such as #!/bin/sh whose program exists")
    }
    write(result.output, of: command, level: .debug)
    write(result.errors, of: command, level: .notice)
    let how: String
    switch result.end {
    case .exit(0): return
    case .exit(let status): how = "exited with status \(status)"
    case .signal(let number): how = "was terminated by signal \(number)"
    case .outOfTime: how = "was stopped after \(StatusLine.duration(seconds: limits.time.seconds))"
    case .tooMuchOutput: how = "was stopped because it wrote more than \(limits.output >> 10) KiB"
    case .unknown: how = "exited with an unknown status"
    }
    // The journal's entries name a store as text.
    let entries = "HOPD_STORE=" + command.store.printable.quotedForShell
    report(
      command, "the command of \(command.key) \(how)", code: .commandFailed,
      hint: "run `journalctl -t hopd \(entries) -n 20`")
  }

  // MARK: Journal

  private func fields(_ command: StoreCommand) -> [JournalField: String] {
    var fields: [JournalField: String] = [.store: command.store.printable]
    for field in [JournalField.job, .watch] { fields[field] = command.fields[field] }
    return fields
  }

  private func write(_ output: [UInt8], of command: StoreCommand, level: Logger.Level) {
    let lines = output.split { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
    for line in lines.prefix(Self.mostLines) {
      let text = String(decoding: line.prefix(4096), as: UTF8.self).escapingControls(keepingNewlines: false)
      logger.event(
        .commandOutput, "\(command.store.printable): \(command.key): \(text)", level: level, fields: fields(command))
    }
    guard lines.count > Self.mostLines else { return }
    logger.event(
      .commandOutput,
      "\(command.store.printable): \(command.key): … (\(lines.count - Self.mostLines) more lines)", level: level,
      fields: fields(command))
  }

  private func report(_ command: StoreCommand, _ text: String, code: HopdError.Code, hint: String?) {
    var fields = fields(command)
    (fields[.error], fields[.hint]) = (code.name, hint)
    logger.event(.commandFailed, "\(command.store.printable): \(text)", fields: fields)
  }

  private func reportDropped(_ count: Int, _ why: String) {
    logger.event(
      .commandFailed,
      "\(count) \(count == 1 ? "command" : "commands") of on_failure or on_migrated did not run to the "
        + "end, \(why)",
      fields: [.count: String(count), .error: HopdError.Code.commandFailed.name])
  }
}
