// The engine's side of the protocol: introduction, then call by call until the reply, questions answered in between.
// Every failure becomes an error with the policy, the hook, the program's last lines, and the next step.

import Diagnostics
import Glibc
import MigrationPolicy

/// A conversation with a policy program.
final class ProgramConversation: PolicyConversation {
  private let introduction: PolicyIntroduction
  private let command: [String]
  private let exchange: PolicyExchange
  private var isOver = false

  init(_ introduction: PolicyIntroduction, command: [String], exchange: PolicyExchange) {
    self.introduction = introduction
    self.command = command
    self.exchange = exchange
  }

  /// Sends the introduction and reads the program's.
  func introduce() throws {
    var time = exchange.limits.timeout
    let hook = "its introduction"
    let json = try send(.introduction(version: PolicyWire.version, introduction), hook, &time)
    switch try readable(hook, { try PolicyWire.decodeProgram(json, during: nil) }) {
    case .hello(PolicyWire.version): break
    case .hello(let version):
      throw fail(
        .policyProtocol, "speaks version \(version) of the protocol, hopd version \(PolicyWire.version)",
        hint: "install the policy library that came with this hopd")
    case .reply(.failed(let reason)): throw fail(.policyProgramFailed, "refused to begin: \(reason)")
    default: throw fail(.policyProtocol, "answered the introduction with something other than hello")
    }
  }

  func call(
    _ call: PolicyCall, keys: PolicyKeys, answering: (PolicyRequest) throws -> PolicyAnswer
  ) throws -> PolicyReply {
    guard !isOver else { throw HopdError(.internalError, "a policy was called after its end") }
    // Time that the engine takes for its replies is not the program's.
    var time = exchange.limits.timeout
    var json = try send(.call(call, keys: keys), call.hook, &time)
    while true {
      switch try readable(call.hook, { try PolicyWire.decodeProgram(json, during: call) }) {
      case .request(let request):
        // A stage does all its work in one call: there the limit is for the time between two messages.
        if introduction.stage != nil { time = exchange.limits.timeout }
        json = try answer(request, answering, call.hook, &time)
      case .reply(let reply): return try checked(reply, to: call)
      case .hello: throw fail(.policyProtocol, "said hello in the middle of \(call.hook)")
      }
    }
  }

  func create(
    _ batch: PolicyBatch, keys: PolicyKeys, meanwhile: () throws -> Void,
    answering: (PolicyRequest) throws -> PolicyAnswer
  ) throws -> PolicyBatchReply {
    guard !isOver else { throw HopdError(.internalError, "a policy was called after its end") }
    let hook = PolicyCall.createDestinationInstances([]).hook
    let frame = try bounded(batch.frame(keys: keys), hook)
    try explained(hook) { () throws(ExchangeFailure) in try exchange.begin(frame) }
    do {
      try meanwhile()
    } catch {
      // No result of the program is needed.
      end(waiting: .zero)
      throw error
    }
    // Time that the engine took meanwhile, or takes for its replies, is not the program's.
    var time = exchange.limits.timeout
    var message = try explained(hook) { () throws(ExchangeFailure) in try exchange.receive(time: &time) }
    while true {
      switch try readable(hook, { try PolicyWire.decode(message, instances: batch.instances.count) }) {
      case .done(let operations): return .done(operations)
      case .message(.reply(.failed(let reason))): throw failed(reason, hook)
      case .apply(let operations):
        message = try answer(
          .apply(PolicyOperation.spelledOut(operations) { batch.instances[$0] }), answering, hook, &time)
      case .message(.request(let request)): message = try answer(request, answering, hook, &time)
      case .message(.reply): throw fail(.policyProtocol, "ended \(hook) with a reply that belongs to another call")
      case .message(.hello): throw fail(.policyProtocol, "said hello in the middle of \(hook)")
      }
    }
  }

  private func checked(_ reply: PolicyReply, to call: PolicyCall) throws -> PolicyReply {
    switch (call, reply) {
    case (_, .failed(let reason)):
      throw failed(reason, call.hook)
    case (.method(let selector, let arguments), .results(let results, _)):
      guard results.count == arguments.count else {
        throw fail(.policyProtocol, "gave \(results.count) results for \(arguments.count) calls of \(selector)")
      }
      return reply
    case (.method, .done), (_, .results):
      throw fail(.policyProtocol, "ended \(call.hook) with a reply that belongs to another call")
    case (_, .done): return reply
    }
  }

  private func failed(_ reason: String, _ hook: String) -> HopdError {
    fail(
      .policyProgramFailed, "failed in \(hook): \(reason)",
      hint: "correct the policy or the data; the store is unchanged")
  }

  func finish() throws {
    guard !isOver else { return }
    // No more input: a program that keeps to the protocol ends now, and with 0 only where it has sent all its changes.
    switch exchange.process.finish(waiting: .seconds(10)) {
    case .exit(0), .unknown: close()
    case .signal(SIGKILL): throw fail(.policyProgramFailed, "did not end after its last hook")
    case .exit(let code):
      throw fail(
        .policyProgramFailed, "ended with exit status \(code) after its last hook: changes may be missing",
        hint: "exit with status 0 at the end of the input, after all changes are sent")
    case .signal(let signal):
      throw fail(.policyProgramFailed, "crashed with signal \(signal) after its last hook: changes may be missing")
    }
  }

  func close() { end(waiting: .seconds(1)) }

  /// Ends the program, once.
  private func end(waiting time: Duration) {
    guard !isOver else { return }
    isOver = true
    exchange.process.finish(waiting: time)
    exchange.drain()
  }

  // MARK: Messages

  private func send(_ message: PolicyEngineMessage, _ hook: String, _ time: inout Duration) throws -> [UInt8] {
    let frame = try bounded(PolicyWire.encode(message), hook)
    return try explained(hook) { () throws(ExchangeFailure) in try exchange.exchange(frame, time: &time) }
  }

  private func bounded(_ frame: [UInt8]?, _ hook: String) throws -> [UInt8] {
    guard let frame, frame.count <= exchange.limits.messageBytes else {
      throw fail(
        .policyLimit, "would get a message that exceeds the limit of \(exchange.limits.messageBytes) bytes in \(hook)",
        hint: "raise the policy's message limit; rows are sent with their binary values")
    }
    return frame
  }

  private func explained<Result>(_ hook: String, _ body: () throws(ExchangeFailure) -> Result) throws -> Result {
    do {
      return try body()
    } catch {
      throw explain(error, hook)
    }
  }

  /// Replies to a request and waits for the program's next message.
  private func answer(
    _ request: PolicyRequest, _ answering: (PolicyRequest) throws -> PolicyAnswer, _ hook: String,
    _ time: inout Duration
  ) throws -> [UInt8] {
    let answer: PolicyAnswer
    do {
      answer = try answering(request)
    } catch {
      close()
      throw error
    }
    return try send(.answer(answer), hook, &time)
  }

  private func readable<Message>(_ hook: String, _ decode: () throws -> Message) throws -> Message {
    do {
      return try decode()
    } catch {
      throw fail(
        .policyProtocol, "sent a message in \(hook) that cannot be read: \(error)",
        hint: "use the library for Swift or Python, or see Examples/Policies/MESSAGES.md")
    }
  }

  // MARK: Failures

  private func explain(_ failure: ExchangeFailure, _ hook: String) -> HopdError {
    switch failure {
    case .timeout:
      return fail(
        .policyLimit, "took longer than \(exchange.limits.timeout) in \(hook)",
        hint: "raise the policy's timeout, or check it for an endless loop or a wait")
    case .tooLong(_, looksLikeText: true), .outOfTurn:
      return fail(
        .policyProtocol, "wrote something to standard output in \(hook) that is not a message",
        hint: "write to standard error, or use the manager's log; standard output belongs to the protocol")
    case .tooLong(let length, looksLikeText: false):
      return fail(
        .policyLimit, "announced a message of \(length) bytes in \(hook); \(exchange.limits.messageBytes) are allowed",
        hint: "raise the policy's message limit, or send changes in smaller parts")
    case .stopped:
      close()
      return HopdError(.interrupted, "stopped while the policy \(introduction.policy) was running")
    case .system(let code):
      close()
      return HopdError(.inputOutput, "a pipe to the policy \(introduction.policy) failed: error \(code)")
    case .ended: return ended(in: hook)
    }
  }

  private func ended(in hook: String) -> HopdError {
    let byItself = exchange.process.hasEnded(within: .seconds(1))
    guard byItself else { return fail(.policyProgramFailed, "closed its standard output in \(hook)") }
    switch exchange.process.finish(waiting: .zero) {
    case .exit(127), .exit(126):
      return fail(
        .policyProgramFailed, "could not run its interpreter", hint: "run its command yourself: \(commandLine)")
    case .exit(let code): return fail(.policyProgramFailed, "ended in \(hook) with exit status \(code)")
    case .signal(SIGKILL):
      return fail(
        .policyProgramFailed, "was killed in \(hook)",
        hint: "check the kernel log (journalctl -k); it may have run out of memory"
      )
    case .signal(let signal):
      return fail(
        .policyProgramFailed, "crashed in \(hook) with signal \(signal)\(Self.names[signal].map { " (\($0))" } ?? "")",
        hint: "raise its memory limit of \(exchange.limits.memory >> 20) MiB, which it may have reached")
    case .unknown: return fail(.policyProgramFailed, "ended in \(hook)")
    }
  }

  private static let names: [Int32: String] = [
    SIGSEGV: "SIGSEGV", SIGABRT: "SIGABRT", SIGILL: "SIGILL", SIGTRAP: "SIGTRAP", SIGBUS: "SIGBUS", SIGFPE: "SIGFPE",
    SIGTERM: "SIGTERM", SIGPIPE: "SIGPIPE", SIGSYS: "SIGSYS",
  ]

  private var commandLine: String { command.joined(separator: " ") }

  /// Ends the program and returns the error, with the program's last lines.
  private func fail(_ code: HopdError.Code, _ what: String, hint: String? = nil) -> HopdError {
    end(waiting: .milliseconds(code == .policyProgramFailed ? 300 : 0))
    let name =
      introduction.stage == nil
      ? "the policy \(introduction.policy) of the mapping \(introduction.mapping)"
      : "the program \(introduction.policy) of the stage \(introduction.sourceVersion) → "
        + "\(introduction.destinationVersion)"
    var error = HopdError(
      code, "\(name) \(what)",
      at: Place(entity: introduction.destination ?? introduction.source),
      hint: hint ?? "check its program: \(commandLine)")
    let lines = exchange.diagnostics.last
    if lines.contains(where: { $0.contains("No module named 'hopd_policy'") }) { error.hint = PolicyLibrary.remedy }
    error.reasons = lines.map { HopdError(code, HopdError.quote + DiagnosticLines.quoted($0)) }
    return error
  }
}

extension PolicyCall {
  /// The hook's name, as authors use it.
  var hook: String { if case .method(let selector, _) = self { "the method “\(selector)”" } else { name } }
}
