// The conversation with one policy, from the begin of its entity mapping to its end. An error on the engine's side
// during a call is kept here, so that it is reported unchanged, even if the policy catches it.

import Diagnostics
import MappingModel
import MigrationEngine
import MigrationPolicy

/// The conversation of one entity mapping.
final class PolicySession {
  /// The index in `MappedHop.entityMappings`.
  let index: Int
  let mapping: ExplicitEntityMapping
  let speaker: PolicySpeaker
  private let conversation: any PolicyConversation
  private var isClosed = false

  init(index: Int, mapping: ExplicitEntityMapping, speaker: PolicySpeaker, conversation: any PolicyConversation) {
    self.index = index
    self.mapping = mapping
    self.speaker = speaker
    self.conversation = conversation
  }

  /// The call after which the conversation ends: the one hook of a stage, or endEntityMapping.
  var lastCall: PolicyCall {
    switch speaker.hook?.moment {
    case .willMigrate?: .willMigrate
    case .didMigrate?: .didMigrate
    case nil: .end
    }
  }

  /// Runs a hook and returns its changes.
  func changes(
    of call: PolicyCall, keys: PolicyKeys, answering: (PolicyRequest) throws -> PolicyAnswer
  ) throws -> [PolicyOperation] {
    switch try self.call(call, keys: keys, answering: answering) {
    case .done(let operations): return operations
    case .results: throw speaker.failure("it answered a hook with results")
    case .failed(let reason): throw failed(reason)
    }
  }

  /// Runs a method for many lists of arguments. The caller must apply its changes, like those of a hook.
  func results(
    of selector: String, arguments: [[PolicyValue]], keys: PolicyKeys,
    answering: (PolicyRequest) throws -> PolicyAnswer
  ) throws -> (values: [PolicyValue], changes: [PolicyOperation]) {
    switch try call(.method(selector: selector, arguments: arguments), keys: keys, answering: answering) {
    case .results(let values, let operations):
      guard values.count == arguments.count else {
        throw speaker.failure("\(selector) gave \(values.count) results for \(arguments.count) calls")
      }
      return (values, operations)
    case .done: throw speaker.failure("\(selector) gave no results")
    case .failed(let reason): throw failed(reason)
    }
  }

  /// Runs createDestinationInstances for a batch, and `meanwhile` in hopd's process.
  func create(
    _ batch: PolicyBatch, keys: PolicyKeys, meanwhile: () throws -> Void,
    answering: (PolicyRequest) throws -> PolicyAnswer
  ) throws -> [PolicyWireOperation] {
    let own = OwnFailure()
    let reply = try throwingOwnFailure(own) {
      try conversation.create(
        batch, keys: keys, meanwhile: { try own.noticing(meanwhile) },
        answering: { request in try own.noticing { try answering(request) } })
    }
    switch reply {
    case .done(let operations): return operations
    case .failed(let reason): throw failed(reason)
    }
  }

  private func call(
    _ call: PolicyCall, keys: PolicyKeys, answering: (PolicyRequest) throws -> PolicyAnswer
  ) throws -> PolicyReply {
    let own = OwnFailure()
    return try throwingOwnFailure(own) {
      try conversation.call(call, keys: keys) { request in try own.noticing { try answering(request) } }
    }
  }

  /// The first failure on the engine's side during a call.
  private final class OwnFailure {
    private(set) var failure: (any Error)?

    func noticing<T>(_ body: () throws -> T) throws -> T {
      if let failure { throw failure }
      do {
        return try body()
      } catch {
        failure = error
        throw error
      }
    }
  }

  private func throwingOwnFailure<Reply>(_ own: OwnFailure, _ body: () throws -> Reply) throws -> Reply {
    let reply: Reply
    do {
      reply = try body()
    } catch {
      if let failure = own.failure { throw failure }
      if let known = error as? HopdError { throw known.located(speaker.failure("").place) }
      throw speaker.failure("it could not be called", cause: error)
    }
    // A policy that continues after hopd's error would depend on changes that were not made.
    if let failure = own.failure { throw failure }
    return reply
  }

  private func failed(_ reason: String) -> HopdError {
    speaker.failure("it failed: \(reason.count > 2_000 ? String(reason.prefix(2_000)) + " …" : reason)")
  }

  /// Ends the conversation after its last call. Throws if the policy may have changes that it never sent.
  func finish() throws {
    guard !isClosed else { return }
    isClosed = true
    do {
      try conversation.finish()
    } catch let known as HopdError {
      throw known.located(speaker.failure("").place)
    } catch {
      throw speaker.failure("it did not end well", cause: error)
    }
  }

  /// Ends the conversation, once.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    conversation.close()
  }
}
