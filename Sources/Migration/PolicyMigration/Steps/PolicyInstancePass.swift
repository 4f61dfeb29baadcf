// Runs createDestinationInstances over a mapping's source objects, with the engine and the program in parallel: while
// the program handles one batch, the engine stores the changes of the previous batch and reads the next one. The order
// of effects stays the same as without it: a request is answered after all earlier changes are stored, and of two
// failures the earlier one is reported. Only the next free keys must be predicted: those after the batch that is not
// stored yet.

import Diagnostics
import MigrationEngine
import MigrationPolicy
import SQLite

/// A policy's changes for a batch, not stored yet.
struct PolicyUnwrittenBatch {
  let batch: PolicyBatch
  let operations: [PolicyWireOperation]
}

extension PolicyHopRunner {
  func createInstances(_ session: PolicySession, _ work: PolicyWork, _ context: PolicyStepContext) throws {
    try hook(.begin, session, work, context)
    if let reader = try work.sourceReader(for: session, context: context) {
      try createInstances(of: reader, session, work, context)
    }
    try hook(.endInstanceCreation, session, work, context)
  }

  private func createInstances(
    of reader: PolicySourceReader, _ session: PolicySession, _ work: PolicyWork, _ context: PolicyStepContext
  ) throws {
    var pace = PolicyPace(options: context.options)
    var unwritten: PolicyUnwrittenBatch?
    var next: Result<PolicySourceReader.Chunk, any Error>? = Result {
      try reader.chunk(from: .min, rows: pace.rows, bytes: pace.bytes)
    }
    defer { withdraw(work) }
    while let read = next {
      next = nil
      let start = ContinuousClock.now
      try inChunk(work, context) {
        work.inserted = 0
        var chunk = try read.get()
        guard !chunk.batch.instances.isEmpty else { return 0 }
        if !reader.methods.isEmpty {
          // The methods belong to the objects that are sent next, and may request earlier ones.
          try write(&unwritten, session, work)
          try addResults(to: &chunk, reader, session, work, context)
        }
        let keys = unwritten.map { work.keys.keys(after: $0.operations) } ?? work.keys.keys
        let operations = try session.create(
          chunk.batch, keys: keys,
          meanwhile: {
            try write(&unwritten, session, work)
            offer(chunk, work)
            guard let low = chunk.next else { return }
            next = Result {
              var chunk = try reader.chunk(from: low, rows: pace.rows, bytes: pace.bytes)
              if reader.methods.isEmpty { chunk.batch.encode() }
              return chunk
            }
          },
          answering: { try answer($0, session, work, context) })
        unwritten = PolicyUnwrittenBatch(batch: chunk.batch, operations: operations)
        work.taken = Int64(chunk.batch.instances.count)
        return work.inserted
      }
      pace.record(ContinuousClock.now - start)
    }
    guard unwritten != nil else { return }
    try inChunk(work, context) {
      work.inserted = 0
      try write(&unwritten, session, work)
      return work.inserted
    }
  }

  /// Stores the changes that are not stored yet.
  private func write(_ unwritten: inout PolicyUnwrittenBatch?, _ session: PolicySession, _ work: PolicyWork) throws {
    guard let made = unwritten else { return }
    unwritten = nil
    let operations = PolicyOperation.spelledOut(made.operations) { made.batch.instances[$0] }
    work.inserted += try work.writer.apply(operations, mapping: session.index, for: session.speaker)
    withdraw(work)
  }

  /// Allows inserting the standard objects of a chunk from now on.
  private func offer(_ chunk: PolicySourceReader.Chunk, _ work: PolicyWork) {
    let instances = chunk.batch.instances
    guard let first = instances.first else { return }
    let root = work.destination.shape(of: first.standard.id.entity)?.root ?? ""
    work.keys.offer(instances.lazy.map(\.standard.id.key), root: root)
    work.associations.offer(first.source.id.entity, instances.lazy.map(\.source.id.key))
    work.writer.keepReferences(chunk.references)
  }

  private func withdraw(_ work: PolicyWork) {
    work.keys.withdraw()
    work.associations.offer("", EmptyCollection())
    work.writer.keepReferences([:])
  }

  /// A method of an attribute runs before default creation: the object that is about to be made takes no changes yet.
  private func requireNoneOf(
    _ changes: [PolicyOperation], comesBefore batch: PolicyBatch, of selector: String, _ session: PolicySession
  ) throws {
    var keys: Set<Int64>?
    for change in changes {
      guard let id = change.changed, id.side == .destination, id.entity == batch.instances.first?.standard.id.entity
      else { continue }
      if keys == nil { keys = Set(batch.instances.lazy.map(\.standard.id.key)) }
      guard keys?.contains(id.key) == true else { continue }
      throw session.speaker.failure(
        "\(selector) wants to change $destination, which is made only when the methods of its attributes are done",
        entity: id.entity, row: id.key,
        hint: "return the value from the method, or change the object in createDestinationInstances")
    }
  }

  /// Adds the results of the policy's methods to the values of the standard objects.
  private func addResults(
    to chunk: inout PolicySourceReader.Chunk, _ reader: PolicySourceReader, _ session: PolicySession,
    _ work: PolicyWork, _ context: PolicyStepContext
  ) throws {
    var instances = chunk.batch.instances
    for (method, arguments) in zip(reader.methods, chunk.arguments) {
      let results = try session.results(
        of: method.selector, arguments: arguments, keys: work.keys.keys
      ) { try answer($0, session, work, context) }
      try requireNoneOf(results.changes, comesBefore: chunk.batch, of: method.selector, session)
      work.inserted += try work.writer.apply(results.changes, mapping: session.index, for: session.speaker)
      for (index, result) in zip(instances.indices, results.values) {
        try work.writer.check(result, of: method.property, instances[index].standard.id, for: session.speaker)
        instances[index].standard.values[method.property] = result
      }
    }
    chunk.batch.instances = instances
  }
}

extension PolicyOperation {
  /// The object that must exist already.
  fileprivate var changed: PolicyObjectID? {
    switch self {
    case .insert: nil
    case .set(let object): object.id
    case .add(let id, _, _), .remove(let id, _, _), .delete(let id), .associate(_, let id): id
    }
  }
}
