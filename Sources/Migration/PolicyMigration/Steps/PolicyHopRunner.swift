// Runs the policy steps of one hop: hooks in Core Data's order, source objects in chunks, and the changes of policies
// in the transaction of the chunk. The shared state of a hop's policies (keys, associations, tables, statements) lives
// as long as the hop. An interrupted hop starts over, because policies may keep state.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPlanning
import MigrationPolicy
import PersistentStore
import SQLite

/// The policies of one hop.
package final class PolicyHopRunner: PolicyStepRunner {
  private let provider: any PolicyProvider
  private let external: ExternalDataDirectory?
  private let note: HopNote.Taker?
  private let store: PolicyStore?
  private var work: PolicyWork?
  private var sessions: [PolicySession] = []

  /// Opens conversations with `provider`. The content of external files is read from `external`, policies' log lines go
  /// to `note`, and `store` describes the migrated store to them.
  package init(
    provider: any PolicyProvider, external: ExternalDataDirectory? = nil, note: HopNote.Taker? = nil,
    store: PolicyStore? = nil
  ) {
    self.store = store
    self.provider = provider
    self.external = external
    self.note = note
  }

  /// Makes runners that open conversations with `provider`; nil if there is no provider.
  package static func maker(_ provider: (any PolicyProvider)?, of store: IdentifiedStore? = nil)
    -> MakePolicyStepRunner?
  {
    guard let provider else { return nil }
    let store = store.map { PolicyStore($0) }
    return { external, note in PolicyHopRunner(provider: provider, external: external, note: note, store: store) }
  }

  package func close() {
    for session in sessions { session.close() }
    sessions = []
    work = nil
  }

  package func run(_ step: HopProgram.PolicyStep, context: PolicyStepContext) throws {
    let work = try begun(context)
    guard let session = sessions.first(where: { $0.index == step.mapping }) else {
      throw HopdError(
        .internalError, "a policy step names no mapping with a policy", at: Place(hop: context.hop.title))
    }
    // Between two steps the hop's own statements may have written order keys.
    work.links.forgetOrders()
    try work.keys.refresh()
    switch step.pass {
    case .createInstances: try createInstances(session, work, context)
    case .createRelationships: try createRelationships(session, work, context)
    case .performCustomValidation: try hook(.performCustomValidation, session, work, context)
    case .end, .stage:
      try hook(session.lastCall, session, work, context)
      if session === sessions.last {
        for session in sessions { try session.finish() }
        try PolicyIndexes.drop(from: context.destinationSchema, of: context.connection)
      }
    }
  }

  // MARK: Opening policies

  /// Opens every policy of the hop at its first step, so that a policy that cannot start is reported before hours of
  /// work.
  private func begun(_ context: PolicyStepContext) throws -> PolicyWork {
    if let work { return work }
    let work = try PolicyWork(context, external: external)
    for (index, mapping) in (context.hop.mapped?.entityMappings ?? []).enumerated() {
      guard let policy = mapping.policy else { continue }
      let speaker = PolicySpeaker(
        policy: policy, mapping: mapping.name, hop: context.hop.title, hook: context.hop.hook)
      guard mapping.grouping == .each else {
        throw speaker.failure(
          "an entity mapping with a policy cannot also take source objects together",
          hint: "do it in the policy, or remove the policy")
      }
      guard provider.isBound(policy) else {
        throw speaker.failure(
          "no program is bound to it", hint: "bind one with `--policy \(policy)=COMMAND` or in the configuration")
      }
      let conversation = try provider.open(
        PolicyIntroduction(
          mapping, policy: policy, hop: context.hop, source: work.source, destination: work.destination, store: store)
      )
      sessions.append(
        PolicySession(index: index, mapping: mapping, speaker: speaker, conversation: conversation))
    }
    self.work = work
    return work
  }

  // MARK: Passes

  private func createRelationships(_ session: PolicySession, _ work: PolicyWork, _ context: PolicyStepContext) throws {
    let relationships = try work.relationshipMethods(for: session, context: context)
    var pace = PolicyPace(options: context.options)
    var row: Int64 = 0
    var isDone = false
    while !isDone {
      let start = ContinuousClock.now
      try inChunk(work, context) {
        let objects = try work.associations.chunk(of: session.index, after: row, limit: pace.rows)
        isDone = Int64(objects.count) < pace.rows
        guard let last = objects.last else { return 0 }
        row = last.row
        work.taken = Int64(objects.count)
        var written =
          try relationships?.apply(to: objects, session, work) { try answer($0, session, work, context) } ?? 0
        written += try changes(of: .createRelationships(objects.map(\.destination)), session, work, context)
        return written
      }
      pace.record(ContinuousClock.now - start)
    }
    try hook(.endRelationshipCreation, session, work, context)
  }

  // MARK: Calls

  /// Runs a hook without objects, in a transaction of its own.
  func hook(
    _ call: PolicyCall, _ session: PolicySession, _ work: PolicyWork, _ context: PolicyStepContext
  ) throws {
    try inChunk(work, context) { try changes(of: call, session, work, context) }
  }

  private func changes(
    of call: PolicyCall, _ session: PolicySession, _ work: PolicyWork, _ context: PolicyStepContext
  ) throws -> Int64 {
    work.inserted = 0
    let operations = try session.changes(of: call, keys: work.keys.keys) { try answer($0, session, work, context) }
    work.inserted += try work.writer.apply(operations, mapping: session.index, for: session.speaker)
    return work.inserted
  }

  func answer(
    _ request: PolicyRequest, _ session: PolicySession, _ work: PolicyWork, _ context: PolicyStepContext
  ) throws -> PolicyAnswer {
    // A policy may send requests for a long time: the observer is called meanwhile, and may stop the hop.
    if ContinuousClock.now - work.lastSign > .milliseconds(100) {
      try context.report(0, 0)
      work.lastSign = ContinuousClock.now
    }
    switch request {
    case .apply(let operations):
      work.inserted += try work.writer.apply(operations, mapping: session.index, for: session.speaker)
      return .done
    case .log(let line):
      note?(
        .policyOutput(
          policy: session.mapping.policy ?? "", mapping: session.mapping.name,
          line: String(line.prefix(PolicyAnswers.lineLength))))
      return .done
    default: return try work.answers.answer(request, for: session.speaker)
    }
  }

  /// Runs `body` in a transaction and reports the rows that it wrote.
  func inChunk(_ work: PolicyWork, _ context: PolicyStepContext, _ body: () throws -> Int64) throws {
    do {
      work.taken = 0
      let rows = try context.connection.transaction { () throws -> Int64 in try body() }
      try context.report(rows, work.taken)
      work.lastSign = ContinuousClock.now
    } catch let error as HopdError {
      throw error.located(Place(hop: context.hop.title))
    }
  }
}
