// One policy at work: the conversation of an entity mapping, from the begin of the hop to its end. What fails on the engine's
// side while a policy asks is kept here, so that it is told as it was, whatever the policy makes of it.

import Diagnostics
import MappingModel
import MigrationPolicy

/// The conversation of one entity mapping.
final class PolicySession {
  /// Index in `MappedHop.entityMappings`.
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

  /// Runs a hook that ends with changes.
  func changes(
    of call: PolicyCall, keys: PolicyKeys, answering: (PolicyRequest) throws -> PolicyAnswer
  ) throws -> [PolicyOperation] {
    switch try self.call(call, keys: keys, answering: answering) {
    case .done(let operations): return operations
    case .results: throw speaker.failure("it answered a hook with results")
    case .failed(let reason): throw failed(reason)
    }
  }

  /// Runs a method for many lists of arguments.
  func results(
    of selector: String, arguments: [[PolicyValue]], keys: PolicyKeys,
    answering: (PolicyRequest) throws -> PolicyAnswer
  ) throws -> [PolicyValue] {
    switch try call(.method(selector: selector, arguments: arguments), keys: keys, answering: answering) {
    case .results(let values):
      guard values.count == arguments.count else {
        throw speaker.failure("\(selector) gave \(values.count) results for \(arguments.count) calls")
      }
      return values
    case .done: throw speaker.failure("\(selector) gave no results")
    case .failed(let reason): throw failed(reason)
    }
  }

  private func call(
    _ call: PolicyCall, keys: PolicyKeys, answering: (PolicyRequest) throws -> PolicyAnswer
  ) throws -> PolicyReply {
    var failure: (any Error)?
    let reply: PolicyReply
    do {
      reply = try conversation.call(call, keys: keys) { request in
        if let failure { throw failure }
        do {
          return try answering(request)
        } catch {
          failure = error
          throw error
        }
      }
    } catch {
      if let failure { throw failure }
      if let known = error as? HopdError { throw known.located(speaker.failure("").place) }
      throw speaker.failure("it could not be called", cause: error)
    }
    // A policy that goes on after an error of ours would build on changes that were never made.
    if let failure { throw failure }
    return reply
  }

  private func failed(_ reason: String) -> HopdError {
    speaker.failure("it failed: \(reason.count > 2_000 ? String(reason.prefix(2_000)) + " …" : reason)")
  }

  /// Ends the conversation, once.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    conversation.close()
  }
}
