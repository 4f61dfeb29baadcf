// Steps of hops with mapping models: validation, quarantine, policies.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite
import SystemPackage

extension HopRunner {
  private var demands: [ValidationRule] {
    ValidationRule.all(in: hop.destinationSchema, space: .schema(program.destination))
  }

  private func validation(_ demands: [ValidationRule]) -> MappedHopValidation {
    MappedHopValidation(
      connection: connection, layout: hop.destinationSchema, space: .schema(program.destination),
      rules: options.invalidRows, hop: hop.title, demands: demands)
  }

  /// Builds an index. If it cannot be unique, a rule that was left to the index is violated: validation then finds the
  /// rows and names them.
  mutating func build(_ index: HopProgram.StatementStep, update: Statement) throws {
    do {
      try run(index, update: update)
    } catch let error as SQLiteError where error.isUniqueness && mapped != nil {
      _ = try validation(demands).run()
      throw error
    }
  }

  /// Runs pass 3 over the whole destination, in one transaction.
  mutating func validate(update: Statement) throws {
    let start = ContinuousClock.now
    watchLongStatements()
    let implied = ImpliedConstraints(
      written: WrittenTables(program, of: hop), counts: references.counts,
      indexes: options.invalidRows.isFail && program.buildsIndexes ? hop.destinationSchema.indexes : [])
    let validation = validation(demands.filter { !implied.contains($0) })
    var done = checkpoint.next
    try connection.transaction {
      let invalid = try validation.run()
      try mapped?.scratch.keep(invalid, connection, schema: program.destination)
      done.seconds += (ContinuousClock.now - start).seconds
      try save(done, update)
    }
    checkpoint = done
    try report(rows: 0)
  }

  mutating func run(_ step: HopProgram.PolicyStep, update: Statement) throws {
    guard let mapped, let policies = mapped.policies else {
      throw HopdError(
        .internalError, "no policies were given for a hop that needs one", at: Place(hop: hop.title, entity: subject))
    }
    let start = ContinuousClock.now
    watchLongStatements()
    var written: Int64 = 0
    var taken: Int64 = 0
    let (control, base, index, title, subject) = (self.control, checkpoint, hop.index, hop.title, self.subject)
    var share = share
    let objects = Double(hop.entities.first { $0.mapping == step.subject }?.rows ?? 0)
    let context = PolicyStepContext(
      connection: connection, hop: hop, source: program.source, destinationSchema: program.destination,
      layout: mapped.layout, moment: mapped.moment, fallbacks: mapped.fallbacks, options: options
    ) { rows, objectsTaken in
      written &+= rows
      taken &+= objectsTaken
      if objects > 0 { share?.reached(share: Double(taken) / objects) }
      let progress = HopProgress(
        hop: index, subject: subject, rows: base.rows &+ written, chunkRows: rows, chunks: base.chunks,
        stage: share?.stage ?? .rows, share: share?.value ?? 0)
      guard control(progress) else {
        throw HopdError(
          .interrupted, "stopped on request", at: Place(hop: title, entity: subject),
          hint: "the next start begins the hop again: a policy may keep what it saw")
      }
    }
    var done = checkpoint.next
    try policies.run(step, context: context)
    done.rows &+= written
    done.seconds += (ContinuousClock.now - start).seconds
    try save(done, update)
    checkpoint = done
    try report(rows: 0)
  }

  /// Writes the bookkeeping tables and the mark that the hop is complete, in one transaction.
  mutating func finish(update: Statement) throws {
    let autoVacuum = try connection.integer("PRAGMA \(SQLiteIdentifier.quoted(program.destination)).auto_vacuum")
    let books = HopBookkeeping(
      hop: hop, source: source,
      destination: StoreReader(connection: connection, schema: program.destination), layout: mapped?.layout)
    let metadata = try books.metadata(autoVacuum: autoVacuum)
    let marks = try books.highWaterMarks()
    // Intermediate stores are never opened by an app. If the model cannot be archived, the plan has reported it.
    let modelCache = isFinal ? try? ModelCache.content(for: hop.destinationSchema) : nil
    var done = checkpoint
    done.isComplete = true
    try connection.transaction {
      try mapped?.scratch.keepResults(connection, schema: program.destination, usesPairs: program.usesPairs)
      if !isFinal, options.invalidRows.isFail {
        try VerifiedReferences(connection: connection, schema: program.destination)
          .note(program, hop: hop, memory: references)
      }
      if program.replacesBookkeeping { try writer.dropBookkeeping() }
      try writer.createBookkeeping(
        hop.destinationSchema, highWaterMarks: marks, metadata: metadata, modelCache: modelCache,
        hasTables: program.makesBookkeeping,
        hasHistory: program.hasHistory)
      if let history = hop.destinationSchema.history, let mark = hop.history?.mark {
        try mark.write(connection, schema: program.destination, layout: history, at: MigrationManager.now())
      }
      try save(done, update)
    }
    checkpoint = done
    // With a rule that removes rows, references to them are removed too.
    if !isFinal, options.invalidRows.isFail, let counts = references.counts { program.notePresent(hop, in: counts) }
    try report(rows: 0)
  }
}
