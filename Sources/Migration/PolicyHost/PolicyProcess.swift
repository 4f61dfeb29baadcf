// One running policy program: started through swift-subprocess with pipes of our own, in a process group of its own,
// and ended with the whole group. The library's `run` is asynchronous and lives in a task on a thread of its own; the
// engine's thread blocks, and never waits for Swift's pool, whose few threads it may be holding. The task keeps the
// ended program unreaped until the group has been killed: until then no other process gets its number.

import CLinux
import Dispatch
import Glibc
import Subprocess
import Synchronization
import SystemPackage

/// A started program and the engine's ends of its pipes.
final class PolicyProcess {
  /// How a program ended.
  enum End: Sendable, Hashable {
    case exit(Int32)
    case signal(Int32)
    case unknown
  }

  /// The engine's ends: nonblocking, closed on exec.
  private(set) var input: Int32
  let output: Int32
  let error: Int32
  /// Readable when the program has ended; -1 where the kernel has none.
  let descriptor: Int32
  private let number: pid_t
  private let state: ProcessState
  private var end: End?

  private init(_ state: ProcessState, number: pid_t, descriptor: Int32, ours: PolicyPipes.Ends) {
    self.state = state
    self.number = number
    self.descriptor = descriptor
    input = ours.input
    output = ours.output
    error = ours.error
  }

  /// Starts a program; `arguments` begin with its name. Without `memory` its memory is not limited. The values of
  /// `exact` are variables too, passed byte for byte.
  static func start(
    _ executable: FilePath, arguments: [String], environment: [String: String], exact: [String: [UInt8]] = [:],
    memory: Int64?
  ) throws -> PolicyProcess {
    let variables = variables(environment, exact)
    // A process that has written the file and starts other programs gives each a copy of the open file until its exec,
    // and Linux runs no file that is open for writing: such a file is tried again for a second.
    for _ in 0..<100 {
      do {
        return try startOnce(executable, arguments: arguments, variables: variables, memory: memory)
      } catch let error as SubprocessError where error.underlyingError?.rawValue == ETXTBSY {
        usleep(10_000)
      }
    }
    return try startOnce(executable, arguments: arguments, variables: variables, memory: memory)
  }

  /// The environment as the kernel takes it: `NAME=value`, each ended by a NUL. What it cannot take is left out.
  private static func variables(_ environment: [String: String], _ exact: [String: [UInt8]]) -> [[UInt8]] {
    exact.merging(environment.mapValues { Array($0.utf8) }) { exact, _ in exact }
      .filter { !$0.key.isEmpty && !$0.key.utf8.contains(UInt8(ascii: "=")) }
      .map { Array($0.utf8) + [UInt8(ascii: "=")] + $1 }
      .filter { !$0.contains(0) }
      .map { $0 + [0] }
  }

  private static func startOnce(
    _ executable: FilePath, arguments: [String], variables: [[UInt8]], memory: Int64?
  ) throws -> PolicyProcess {
    let pipes = try PolicyPipes()
    let state = ProcessState()
    var options = PlatformOptions()
    options.processGroupID = 0
    let configuration = Configuration(
      executable: .path(executable),
      arguments: Arguments(executablePathOverride: arguments.first, remainingValues: Array(arguments.dropFirst())),
      environment: .custom(variables), workingDirectory: "/", platformOptions: options)
    let theirs = pipes.theirs
    Task(executorPreference: ProcessThread.shared) {
      do {
        _ = try await Subprocess.run(
          configuration,
          input: .fileDescriptor(FileDescriptor(rawValue: theirs.input), closeAfterSpawningProcess: true),
          output: .fileDescriptor(FileDescriptor(rawValue: theirs.output), closeAfterSpawningProcess: true),
          error: .fileDescriptor(FileDescriptor(rawValue: theirs.error), closeAfterSpawningProcess: true)
        ) { execution in
          state.started(execution.processIdentifier)
          await state.release()
        }
      } catch {
        state.failed(error)
      }
    }
    let number: pid_t
    let descriptor: Int32
    do {
      (number, descriptor) = try state.waitForStart()
    } catch {
      pipes.closeOurs()
      throw error
    }
    let process = PolicyProcess(state, number: number, descriptor: descriptor, ours: pipes.ours)
    // The program may have started, but has no data yet: its first message comes later.
    if let memory, clinux_limit_process(number, UInt64(max(memory, 0))) < 0, errno != ESRCH {
      let code = Errno(rawValue: errno)
      process.finish(waiting: .zero)
      throw code
    }
    return process
  }

  /// Closes the program's input: a program that keeps to the protocol ends now.
  func closeInput() {
    if input >= 0 { close(input) }
    input = -1
  }

  /// Waits for the program to exit, at most that long; then kills its process group. Returns how it
  /// ended.
  @discardableResult
  func finish(waiting: Duration) -> End {
    if let end { return end }
    closeInput()
    hasEnded(within: waiting)
    kill(-number, SIGKILL)
    hasEnded(within: .seconds(10))
    var status: Int32 = 0
    var signal: Int32 = 0
    let isKnown = clinux_peek_end(number, &status, &signal) == 1
    let result: End = !isKnown ? .unknown : signal != 0 ? .signal(signal) : .exit(status)
    end = result
    // The library reaps it now, on its own thread; its next step may have to wait for Swift's pool, so its return is
    // not awaited.
    state.letGo()
    for _ in 0..<10_000 where clinux_peek_end(number, &status, &signal) >= 0 { usleep(1000) }
    return result
  }

  /// Whether it has ended, or does within this time.
  @discardableResult
  func hasEnded(within time: Duration) -> Bool {
    let clock = ContinuousClock()
    let deadline = clock.now.advanced(by: time)
    var status: Int32 = 0
    var signal: Int32 = 0
    while end == nil, clinux_peek_end(number, &status, &signal) == 0 {
      let left = clock.now.duration(to: deadline)
      guard left > .zero else { return false }
      var waited = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      poll(&waited, 1, Int32(clamping: min(left, descriptor >= 0 ? left : .milliseconds(10)).milliseconds))
    }
    return true
  }

  deinit {
    finish(waiting: .zero)
    for end in [output, error, descriptor] where end >= 0 { close(end) }
  }
}

extension Duration {
  /// Whole milliseconds, rounded up.
  var milliseconds: Int64 {
    let (seconds, attoseconds) = components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    return overflow ? .max : product + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
  }
}

/// Three pipes, from both sides.
private struct PolicyPipes {
  struct Ends {
    var input: Int32 = -1
    var output: Int32 = -1
    var error: Int32 = -1
  }

  /// F_SETPIPE_SZ, which glibc declares under _GNU_SOURCE only.
  private static let setPipeSize: Int32 = 1031
  /// The limit of Linux for every user.
  private static let pipeBytes: Int32 = 1 << 20

  var ours = Ends()
  var theirs = Ends()

  init() throws {
    do {
      (theirs.input, ours.input) = try Self.pipe(nonblocking: 1)
      (ours.output, theirs.output) = try Self.pipe(nonblocking: 0)
      (ours.error, theirs.error) = try Self.pipe(nonblocking: 0)
      // A whole batch fits, so neither side waits for the other to read. Where the system allows no more, a pipe keeps
      // its size.
      for end in [ours.input, ours.output] { _ = fcntl(end, Self.setPipeSize, Self.pipeBytes) }
    } catch {
      closeOurs()
      for end in [theirs.input, theirs.output, theirs.error] where end >= 0 { close(end) }
      throw error
    }
  }

  func closeOurs() {
    for end in [ours.input, ours.output, ours.error] where end >= 0 { close(end) }
  }

  private static func pipe(nonblocking: Int) throws -> (Int32, Int32) {
    var ends: [Int32] = [-1, -1]
    guard clinux_pipe(&ends) == 0 else { throw Errno(rawValue: errno) }
    guard fcntl(ends[nonblocking], F_SETFL, O_NONBLOCK) == 0 else {
      let code = Errno(rawValue: errno)
      close(ends[0])
      close(ends[1])
      throw code
    }
    return (ends[0], ends[1])
  }
}

/// The state of a program, shared by the task and the engine's thread.
private final class ProcessState: Sendable {
  private enum Start {
    case running(pid_t, descriptor: Int32)
    case failed(any Error)
  }

  private struct Facts {
    var start: Start?
    var isReleased = false
    var waiting: CheckedContinuation<Void, Never>?
  }

  private let facts = Mutex(Facts())
  private let start = DispatchSemaphore(value: 0)

  // Called by the task.

  func started(_ identifier: ProcessIdentifier) {
    // The library closes its descriptor when it has reaped the program; this value closes its own.
    let descriptor = identifier.processDescriptor >= 0 ? fcntl(identifier.processDescriptor, F_DUPFD_CLOEXEC, 0) : -1
    facts.withLock { $0.start = .running(identifier.value, descriptor: descriptor) }
    start.signal()
  }

  func failed(_ error: any Error) {
    facts.withLock { facts in
      if facts.start == nil { facts.start = .failed(error) }
    }
    start.signal()
  }

  func release() async {
    await withCheckedContinuation { continuation in
      let isReleased = facts.withLock { facts in
        if !facts.isReleased { facts.waiting = continuation }
        return facts.isReleased
      }
      if isReleased { continuation.resume() }
    }
  }

  // Called by the engine's thread.

  func waitForStart() throws -> (pid_t, Int32) {
    start.wait()
    switch facts.withLock({ $0.start }) {
    case .running(let number, let descriptor): return (number, descriptor)
    case .failed(let error): throw error
    case nil: throw Errno.noSuchProcess
    }
  }

  func letGo() {
    let waiting = facts.withLock { facts in
      facts.isReleased = true
      defer { facts.waiting = nil }
      return facts.waiting
    }
    waiting?.resume()
  }
}

/// The thread on which the tasks of all policy programs run: they only start and reap.
private final class ProcessThread: TaskExecutor {
  static let shared = ProcessThread()
  private let queue = DispatchQueue(label: "policy programs")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
