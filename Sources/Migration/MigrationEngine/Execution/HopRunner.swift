// Runs a hop's program step by step, chunk by chunk, from a checkpoint to the end.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite
import SystemPackage

extension HopProgram.Action.Refusal {
  /// Returns the error for a row of keys.
  func error(keys: [Int64], hop: String) -> HopdError {
    HopdError(code, message.text(keys: keys), at: Place(hop: hop, entity: entity, property: property), hint: hint)
  }
}

/// The inputs for a hop with mapping models.
struct MappedRun {
  let layout: AssociationLayout
  let scratch: MappedScratch
  let moment: Double
  let fallbacks: ExpressionFallbacks
  let policies: (any PolicyStepRunner)?
}

struct HopRunner {
  let connection: Connection
  let hop: Hop
  let program: HopProgram
  let isFinal: Bool
  let identity: Checkpoint.Identity
  let options: EngineOptions
  /// Takes notes for a debug journal; nil if there is none.
  let note: HopNote.Taker?
  let control: HopProgress.Control
  /// The inputs for a hop with mapping models.
  var mapped: MappedRun?
  /// The facts known about references in the source tables.
  let references: ReferenceCache
  /// The rows that running statements have written.
  let running: RunningRows
  /// The model's names of the steps' subjects.
  let names: SubjectNames
  private(set) var pageSize: Int64 = 4096

  private(set) var subject = "preparing"
  /// The share of the program that is done; nil before its first step.
  var share: HopShare?
  var checkpoint = Checkpoint(step: 0, key: nil, rows: 0, chunks: 0, seconds: 0, isComplete: false)
  private(set) var lastChunkRows: Int64 = 0

  private var table: CheckpointTable { CheckpointTable(connection: connection, schema: program.destination) }
  var writer: StoreWriter { StoreWriter(connection: connection, schema: program.destination) }
  var source: StoreReader {
    StoreReader(connection: connection, tables: program.source, rowCountCache: references.counts)
  }

  mutating func run(into staged: FilePath) throws -> StagedStore {
    var found = try table.read(identity, hop: hop.index)
    if program.hasPolicies, let begun = found, !begun.isComplete {
      try mapped?.scratch.clear(connection, schema: program.destination)
      found = nil
    }
    if let found {
      checkpoint = found
      // A journal left by a killed process was rolled back when the file was attached; from here on the file is kept.
      try keepJournal()
    } else {
      try checkPreconditions()
      try prepare()
    }
    if !checkpoint.isComplete {
      guard !program.source.isGone else {
        throw HopdError(
          .stagingStale, "the store of the previous hop is missing", hint: "retry; the migration starts over")
      }
      if program.usesPairs { try MappedScratch.prepareRun(connection) }
      let update = try table.prepareUpdate()
      pageSize = try connection.integer("PRAGMA \(SQLiteIdentifier.quoted(program.destination)).page_size") ?? 4096
      share = HopShare(of: program, in: hop, on: connection)
      while checkpoint.step < program.steps.count {
        let step = program.steps[checkpoint.step]
        share?.begin(checkpoint.step)
        subject = step.subject
        switch step {
        case .copy(let copy): try run(copy, update: update)
        case .chunks(let chunks): try run(chunks, update: update)
        case .policy(let policy): try run(policy, update: update)
        case .validate: try validate(update: update)
        case .index(let statement): try build(statement, update: update)
        case .update(let statement), .table(let statement), .trigger(let statement):
          try run(statement, update: update)
        }
      }
      subject = "bookkeeping"
      share?.begin(checkpoint.step)
      try finish(update: update)
    }
    var result = StagedStore(
      path: staged, hop: hop.index, rows: checkpoint.rows, chunks: checkpoint.chunks, seconds: checkpoint.seconds,
      wasResumed: found != nil)
    if let mapped { result.tallies = try mapped.scratch.tallies(connection, schema: program.destination) }
    return result
  }

  private func keepJournal() throws(SQLiteError) {
    try connection.execute("PRAGMA \(SQLiteIdentifier.quoted(program.destination)).journal_mode = PERSIST")
  }

  private func checkPreconditions() throws {
    for condition in program.preconditions { try condition.check(connection, hop: hop) }
  }

  /// Creates the tables and the checkpoint, in one transaction.
  private func prepare() throws {
    let main = SQLiteIdentifier.quoted(program.source.schemaName)
    // The source's page size is kept, so that the store could also be replaced in place (docs/formats/replacement.md,
    // "P6: Build").
    let pageSize = try connection.integer("PRAGMA \(main).page_size") ?? 4096
    let autoVacuum = try connection.integer("PRAGMA \(main).auto_vacuum") ?? 2
    try writer.prepareFile(
      pageSize: pageSize, autoVacuum: autoVacuum,
      hasOldestFormat: FrameworkVersion.hasOldestFileFormat(hop.destinationSchema.frameworkVersion))
    try keepJournal()
    try connection.transaction {
      try writer.createTables(hop.destinationSchema)
      try table.create(identity, hop: hop.index, moment: mapped?.moment ?? 0)
      for statement in program.scratch { try connection.run(statement) }
    }
  }

  func save(_ done: Checkpoint, _ update: Statement) throws(SQLiteError) {
    try update.run(CheckpointTable.values(done))
  }

  // MARK: Copying

  mutating func run(_ copy: HopProgram.CopyStep, update: Statement) throws {
    let insert = try connection.prepare(copy.insert)
    let running = self.running
    try runRanges(copy.rows.driver, statements: [copy.insert], update: update) { connection, low, end in
      running.begin(.new)
      try insert.run([.integer(low), .integer(end)])
      running.begin(.other)
      return (connection.changes, connection.changes)
    }
  }

  mutating func run(_ chunks: HopProgram.ChunkStep, update: Statement) throws {
    let (title, running) = (hop.title, self.running)
    var statements: [(statement: Statement, action: HopProgram.Action)] = []
    for action in chunks.actions { statements.append((try connection.prepare(action.sql), action)) }
    try runRanges(
      chunks.driver, statements: chunks.actions.map(\.sql), update: update
    ) { connection, low, end in
      var rows: Int64 = 0
      var touched: Int64 = 0
      for (statement, action) in statements {
        try statement.bind(action.isRanged ? [.integer(low), .integer(end)] : [])
        running.begin(action.isCounted ? .new : action.effect.kind)
        if let refusal = action.refusal {
          if try statement.step() {
            let keys = (0..<statement.columnCount).map { statement.integer(at: $0) }
            statement.reset()
            throw refusal.error(keys: keys, hop: title)
          }
          statement.reset()
        } else {
          try statement.run(action.isRanged ? [.integer(low), .integer(end)] : [])
          touched = max(touched, connection.changes)
          if action.isCounted { rows &+= connection.changes }
        }
      }
      running.begin(.other)
      return (rows, touched)
    }
  }

  /// Runs `body` for each range of keys, in a transaction with its checkpoint. `body` returns the rows written, and the
  /// rows touched, by which chunks are measured.
  private mutating func runRanges(
    _ driver: SourceTables.Driver, statements: [String], update: Statement,
    _ body: (Connection, Int64, Int64) throws -> (written: Int64, touched: Int64)
  ) throws {
    let next = try connection.prepare(driver.nextKey)
    try share?.begin(checkpoint.step, over: driver, after: checkpoint.key)
    var sizer = ChunkSizer(
      target: options.chunkTime, maximumRows: options.chunkRowsMax, maximumBytes: options.chunkBytesMax)
    _ = connection.takePagesWritten()
    watchLongStatements()
    note?(.decision("step \(checkpoint.step + 1) of \(program.steps.count): chunks of \(subject)"))
    // All statements are prepared: an observer may release the memory of compiling them before the page cache fills. A
    // stop takes effect after the first chunk, so that a hop that is stopped often still makes progress.
    _ = control(progress(rows: 0))
    while true {
      let start = ContinuousClock.now
      // Both bounds are inclusive: no key is before the least one, Int64.min.
      let (low, isPastLast) = checkpoint.key?.addingReportingOverflow(1) ?? (Int64.min, false)
      if isPastLast { break }
      try next.bind(.integer(low), at: 1)
      let first: Int64? = try next.step() && !next.isNull(at: 0) ? next.integer(at: 0) : nil
      next.reset()
      guard let first else { break }
      // The chunk includes `first`; the range never exceeds the largest key.
      let (high, overflow) = first.addingReportingOverflow(sizer.span - 1)
      let end = overflow ? Int64.max : high
      var done = checkpoint
      var touched: Int64 = 0
      try connection.transaction {
        (lastChunkRows, touched) = try body(connection, low, end)
        done.key = end
        done.rows &+= lastChunkRows
        done.chunks += 1
        done.seconds += (ContinuousClock.now - start).seconds
        try save(done, update)
      }
      checkpoint = done
      share?.reached(end)
      let seconds = (ContinuousClock.now - start).seconds
      if let note {
        for sql in statements {
          note(.statement(sql: sql, seconds: seconds, rows: statements.count == 1 ? lastChunkRows : nil))
        }
      }
      note?(.decision("keys \(low)…\(end) of \(subject) are done; the next chunk begins after them"))
      sizer.record(
        rows: touched, bytes: connection.takePagesWritten().multipliedReportingOverflow(by: pageSize).partialValue,
        duration: ContinuousClock.now - start)
      try report(rows: lastChunkRows)
    }
    let done = checkpoint.next
    try save(done, update)
    checkpoint = done
  }

  // MARK: Single statements

  mutating func run(_ statement: HopProgram.StatementStep, update: Statement) throws {
    let start = ContinuousClock.now
    watchLongStatements()
    running.begin(statement.effect.kind)
    var done = checkpoint.next
    try connection.transaction {
      // Executes one statement only, whatever the text: a trigger's may come from the store.
      try connection.run(statement.sql)
      running.begin(.other)
      done.seconds += (ContinuousClock.now - start).seconds
      try save(done, update)
    }
    checkpoint = done
    note?(.statement(sql: statement.sql, seconds: (ContinuousClock.now - start).seconds, rows: nil))
    try report(rows: 0)
  }

  // MARK: Progress and stopping

  func progress(rows: Int64, isInStatement: Bool = false) -> HopProgress {
    HopProgress(
      hop: hop.index, subject: names[subject], rows: checkpoint.rows, chunkRows: rows, chunks: checkpoint.chunks,
      stage: share?.stage ?? .rows, share: share?.value ?? 0, changed: running.changed, isInStatement: isInStatement)
  }

  func report(rows: Int64) throws(HopdError) {
    running.commit(progress(rows: 0, isInStatement: true))
    guard control(progress(rows: rows)) else {
      throw HopdError(
        .interrupted, "stopped on request", at: Place(hop: hop.title, entity: names[subject]),
        hint: "retry; the migration continues from the last checkpoint")
    }
  }

  /// Reports progress inside long statements, which may stop there.
  func watchLongStatements() {
    let (control, running) = (self.control, self.running)
    running.commit(progress(rows: 0, isInStatement: true))
    // About every 10 ms: rarely enough to cost nothing, often enough for a watchdog and a stop.
    connection.setProgressHandler(every: 200_000) { running.progress.map(control) ?? true }
  }
}

// Steps of hops with mapping models: validation, quarantine, policies.

extension HopRunner {
  private var demands: [ValidationRule] {
    ValidationRule.all(in: hop.destinationSchema, tables: .schema(program.destination))
  }

  private func validation(_ demands: [ValidationRule]) -> MappedHopValidation {
    MappedHopValidation(
      connection: connection, layout: hop.destinationSchema, tables: .schema(program.destination),
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
    let running = self.running
    var share = share
    let objects = Double(hop.entities.first { $0.mapping == step.subject }?.rows ?? 0)
    let context = PolicyStepContext(
      connection: connection, hop: hop, source: program.source, destinationSchema: program.destination,
      layout: mapped.layout, moment: mapped.moment, fallbacks: mapped.fallbacks, options: options
    ) { rows, objectsTaken in
      written &+= rows
      taken &+= objectsTaken
      if objects > 0 { share?.reached(share: Double(taken) / objects) }
      var progress = HopProgress(
        hop: index, subject: subject, rows: base.rows &+ written, chunkRows: 0, chunks: base.chunks,
        stage: share?.stage ?? .rows, share: share?.value ?? 0, changed: running.changed, isInStatement: true)
      running.commit(progress)
      (progress.chunkRows, progress.isInStatement) = (rows, false)
      guard control(progress) else {
        throw HopdError(
          .interrupted, "stopped on request", at: Place(hop: title, entity: subject),
          hint: "retry; the hop starts over, because policies have state")
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
          .note(program, hop: hop, references: references)
      }
      if program.replacesBookkeeping { try writer.dropBookkeeping() }
      try writer.createBookkeeping(
        hop.destinationSchema, highWaterMarks: marks, metadata: metadata, modelCache: modelCache,
        hasTables: program.makesBookkeeping,
        hasHistory: program.hasHistory)
      if let history = hop.destinationSchema.history, let mark = hop.history?.mark {
        try mark.write(connection, schema: program.destination, layout: history, at: HopExecutor.now())
      }
      try save(done, update)
    }
    checkpoint = done
    // With a rule that removes rows, references to them are removed too.
    if !isFinal, options.invalidRows.isFail, let counts = references.counts { program.notePresent(hop, in: counts) }
    try report(rows: 0)
  }
}
