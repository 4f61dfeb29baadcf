// Runs one hop: SQL writes a staged store of the destination version, chunk by chunk, through the connection that has
// the source. It does the work of Core Data's NSMigrationManager, which has all objects in memory.

import Diagnostics
import Expressions
import Glibc
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SQLite
import SystemPackage

extension HopdError.Code {
  /// Rows violate a uniqueness constraint of the destination (Core Data 134111).
  package static let uniquenessViolation = HopdError.Code("uniqueness-violation", exit: .dataError)
}

/// Migrates one hop.
package struct HopExecutor {
  let connection: Connection
  let hop: Hop
  let source: SourceTables
  let destinationSchema: String
  let isFinal: Bool
  let options: EngineOptions
  let identity: Checkpoint.Identity
  private let external: ExternalDataDirectory?
  private let policySteps: MakePolicyStepRunner?
  let note: HopNote.Taker?
  let references: ReferenceCache
  private let counts: RowCountCache?
  /// The schema of the original store, which has the rows of persistent history.
  let original: String

  /// Prepares a hop. `connection` has the tables of `source`; `run` attaches the staged file. Values that leave
  /// external storage are read from `external`, `policySteps` makes the runner of policy steps, and `note` takes lines
  /// for a debug journal.
  package init(
    connection: Connection, hop: Hop, source: SourceTables, isFinal: Bool, identity: Checkpoint.Identity,
    options: EngineOptions, external: ExternalDataDirectory? = nil, policySteps: MakePolicyStepRunner? = nil,
    note: HopNote.Taker? = nil, references: ReferenceCache = ReferenceCache(), counts: RowCountCache? = nil,
    original: String? = nil
  ) {
    self.original = original ?? source.schemaName
    self.counts = counts ?? references.counts
    self.references = references
    self.connection = connection
    self.external = external
    self.policySteps = policySteps
    self.note = note
    self.hop = hop
    self.source = source
    destinationSchema = StagedStore.schemaName(ofHop: hop.index)
    self.isFinal = isFinal
    self.identity = identity
    self.options = options
  }

  /// Runs the hop into `staged`, an empty file or one that an interrupted run of the same plan left.
  ///
  /// The staged store stays attached, as the source of the next hop. Throws `interrupted` if `control` stops it, and
  /// `staging-stale` if the file cannot be resumed.
  package func run(into staged: FilePath, _ control: HopProgress.Control) throws -> StagedStore {
    try withoutActuallyEscaping(control) { control in
      try attach(staged)
      try registerContentFunction()
      defer { connection.setProgressHandler(nil) }
      let (compiled, mapped) = try compile()
      var program = compiled
      if let history = HistoryProgram(hop, original: original, destination: destinationSchema) {
        try history.registerFunctions(on: connection)
        program = history.appended(
          to: compiled, bookkeeping: hop.destinationSchema.bookkeepingStatements(in: destinationSchema))
      }
      if hop.index > 0, !source.isGone {
        program.scratch += try StageTables.carrying(from: source.schemaName, to: destinationSchema, connection)
      }
      if hop.mapped != nil, hop.index > 0, !source.isGone { try indexSource() }
      if let mapped, !source.isGone {
        try ExpressionFunctions.register(on: connection)
        try mapped.fallbacks.register(on: connection, schema: hop.sourceSchema, tables: source)
      }
      defer { mapped?.fallbacks.unregister() }
      defer { mapped?.policies?.close() }
      var runner = HopRunner(
        connection: connection, hop: hop, program: program, isFinal: isFinal, identity: identity,
        options: options, note: note, control: control, mapped: mapped, references: references,
        running: RunningRows(connection.tallyRows()), names: SubjectNames(hop.destinationSchema))
      do {
        return try runner.run(into: staged)
      } catch let error as SQLiteError {
        throw explained(error, subject: runner.subject)
      }
    }
  }

  /// Gives the staged store of the hop before the indexes of relationships that a store of its version has: mapping
  /// models follow them from their other end.
  private func indexSource() throws(SQLiteError) {
    let schema = hop.sourceSchema
    let joins = Set(schema.joinTables.map(\.name))
    let toOnes = Dictionary(
      schema.tables.map { table in
        (table.name, Set(table.columns.filter { if case .toOne = $0.role { true } else { false } }.map(\.name)))
      }
    ) { first, _ in first }
    let made = Set(
      try connection.rows(
        "SELECT name FROM \(SQLiteIdentifier.quoted(source.schemaName)).sqlite_schema WHERE type = 'index'"
      ) { row in row.text(at: 0) ?? "" })
    let writer = StoreWriter(connection: connection, schema: source.schemaName)
    for index in schema.indexes where !index.isUnique && !made.contains(index.name) {
      let isOfRelationship =
        joins.contains(index.table) || index.columns.allSatisfy { toOnes[index.table]?.contains($0.name) == true }
      if isOfRelationship { try writer.createIndex(index) }
    }
  }

  private func compile() throws -> (HopProgram, MappedRun?) {
    guard hop.mapped != nil else {
      let program = try HopCompiler.compile(
        hop: hop, source: source, destinationSchema: destinationSchema, withIndexes: isFinal)
      return (program, nil)
    }
    let begun = try CheckpointTable(connection: connection, schema: destinationSchema).moment()
    let moment = begun ?? Self.now()
    let layout =
      source.isGone
      ? try AssociationLayout(hop: hop, spans: [:])
      : try AssociationLayout(
        hop: hop, source: StoreReader(connection: connection, tables: source, rowCountCache: counts))
    let compiler = MappedHopCompiler(
      hop: hop, layout: layout, source: source, destinationSchema: destinationSchema, moment: moment,
      withIndexes: isFinal, isSound: SourceReference.asking(source, of: connection, references: references))
    let program = try compiler.compile()
    let policies = program.hasPolicies ? policySteps?(external, note) : nil
    return (
      program,
      MappedRun(
        layout: layout, scratch: compiler.scratch, moment: moment, fallbacks: compiler.fallbacks, policies: policies)
    )
  }

  /// Seconds since 2001-01-01 UTC, in whole milliseconds: the value of `now()` in a hop that begins.
  static func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Double(time.tv_sec - 978_307_200) + Double(time.tv_nsec / 1_000_000) / 1000
  }

  /// Registers the function that converts values with external storage to their content, one at a time: a reference
  /// becomes the content of its file.
  func registerContentFunction() throws(SQLiteError) {
    guard let external else { return }
    let limit = options.externalValueMax
    try connection.registerFailingFunction(ExternalDataForm.contentFunction.text, argumentCount: 1) { values in
      switch values.first {
      case .null?: return .null
      case .blob(let bytes)?:
        switch ExternalDataForm(bytes) {
        case .inline: return .blob(Array(bytes.dropFirst()))
        case .reference(let name): return .blob(try external.content(of: name, limit: limit))
        case .malformed: break
        }
      default: break
      }
      throw HopdError(
        .externalDataMalformed, "a value with external storage has no known form",
        hint: "restore a backup of the store, or clear the value with the app")
    }
  }

  func attach(_ staged: FilePath) throws {
    do {
      try connection.attach(staged, as: destinationSchema)
      // Only this process opens the staged store. In normal locking mode each of the several hundred statements that
      // prepare the hop would lock the file and check for a journal (about 20 system calls).
      try connection.execute("PRAGMA \(SQLiteIdentifier.quoted(destinationSchema)).locking_mode = EXCLUSIVE")
      let prefix = "PRAGMA \(SQLiteIdentifier.quoted(destinationSchema))."
      // The file is disposable until it is verified and synced: no syncs, and a journal that is kept between chunks
      // (docs/PERFORMANCE.md).
      try connection.execute(
        "\(prefix)synchronous = OFF; \(prefix)cache_size = -\(options.cacheKibibytes);"
          + " \(prefix)secure_delete = OFF; PRAGMA temp_store = FILE")
    } catch {
      throw HopdError(
        .stagingStale, "the staged store cannot be opened", at: Place(file: staged), cause: error,
        hint: "retry; the hop starts over")
    }
  }

  /// Throws `staging-stale` unless the staged store that is attached as a source is a complete one of this run.
  package static func requireComplete(
    hop index: Int, identity: Checkpoint.Identity, connection: Connection
  ) throws {
    let table = CheckpointTable(connection: connection, schema: StagedStore.schemaName(ofHop: index))
    guard try table.read(identity, hop: index)?.isComplete == true else {
      throw HopdError(
        .stagingStale, "the staged store of the previous hop is not complete",
        hint: "retry; the migration starts over"
      )
    }
  }

  /// Completes the staged store: without checkpoint, in rollback mode, detached and without side files.
  package func seal() throws {
    do {
      try connection.transaction { try MappedScratch.drop(connection, schema: destinationSchema) }
      try giveBackFreePages()
      try detach()
    } catch let error as SQLiteError {
      throw explained(error, subject: "sealing")
    }
  }

  /// Releases the pages of hopd's own tables if they are many and the store can shrink, as Core Data's stores can.
  private func giveBackFreePages() throws(SQLiteError) {
    let prefix = "PRAGMA \(SQLiteIdentifier.quoted(destinationSchema))."
    let free = try connection.integer("\(prefix)freelist_count") ?? 0
    let pages = try connection.integer("\(prefix)page_count") ?? 0
    guard free > 16, free > pages / 64, try connection.integer("\(prefix)auto_vacuum") == 2 else { return }
    // It frees one page per step, so it must run to its end.
    try connection.execute("\(prefix)incremental_vacuum")
  }

  /// Detaches the staged store and removes its journal.
  package func detach() throws(SQLiteError) {
    // The change from PERSIST to DELETE removes the journal file.
    try connection.execute("PRAGMA \(SQLiteIdentifier.quoted(destinationSchema)).journal_mode = DELETE")
    try connection.detach(destinationSchema)
  }

  /// Returns the error for an SQLite error during the hop.
  func explained(_ error: SQLiteError, subject: String) -> HopdError {
    hop.explained(error, subject: subject, connection: connection)
  }
}

// Alters a file in place of writing all rows (`AlterProgram`): a copy of the hop's source, or the staged store of the
// hop before where it stands. Separate from writing rows because the file has rows before the hop begins.

extension HopExecutor {
  /// Creates the staged store of the hop by altering `staged`, which an interrupted run of the same plan may have
  /// begun.
  ///
  /// With `copies`, `staged` is empty or begun, and the source is copied into it first; an incomplete copy is made
  /// again. Otherwise it is the complete staged store of the hop before, which is the executor's source too. Throws as
  /// `run(into:_:)` does, and leaves the staged store attached.
  package func alter(
    into staged: FilePath, by program: AlterProgram, copies: Bool, _ control: HopProgress.Control
  ) throws -> StagedStore {
    try withoutActuallyEscaping(control) { control in
      defer { connection.setProgressHandler(nil) }
      var subject = "copy"
      do {
        try attach(staged)
        try registerContentFunction()
        var steps = try alteringProgram(program)
        let table = CheckpointTable(connection: connection, schema: destinationSchema)
        let wasBegun = try table.read(identity, hop: hop.index, followsComplete: !copies) != nil
        if !wasBegun {
          for condition in steps.preconditions { try condition.check(connection, hop: hop) }
          note?(.decision("\(copies ? "a copy" : "the staged store") is altered: \(program.summary)"))
          var seconds = 0.0
          if copies {
            try connection.detach(destinationSchema)
            seconds = try copy(to: staged, for: program, control)
            try attach(staged)
          }
          try begin(table, program: program, seconds: seconds, control)
        }
        if let history = HistoryProgram(hop, original: original, destination: destinationSchema) {
          try history.registerFunctions(on: connection)
          steps = history.altering(steps)
        }
        var runner = HopRunner(
          connection: connection, hop: hop, program: steps, isFinal: isFinal,
          identity: identity, options: options, note: note, control: control, references: references,
          running: RunningRows(connection.tallyRows()), names: SubjectNames(hop.destinationSchema))
        defer { subject = runner.subject }
        let done = try runner.run(into: staged)
        return StagedStore(
          path: done.path, hop: done.hop, rows: done.rows, chunks: done.chunks, seconds: done.seconds,
          wasResumed: wasBegun)
      } catch let error as SQLiteError {
        throw explained(error, subject: subject)
      }
    }
  }

  /// Returns the steps; written tables have those of the hop's program.
  private func alteringProgram(_ program: AlterProgram) throws(HopdError) -> HopProgram {
    let rows =
      program.readsSource && !source.isGone
      ? try HopCompiler.compile(hop: hop, source: source, destinationSchema: destinationSchema, withIndexes: false)
      : HopProgram(source: source, destination: destinationSchema, preconditions: [], steps: [])
    return program.program(rows, destination: destinationSchema)
  }

  /// Copies the source and returns the seconds that it took.
  private func copy(to staged: FilePath, for program: AlterProgram, _ control: HopProgress.Control) throws -> Double {
    let start = ContinuousClock.now
    var reported: Int64 = 0
    do {
      try connection.copy(source.schemaName, to: staged) { done, all in
        // Progress is reported in rows: their share is that of the copied pages.
        let carried = all > 0 ? Int64(Double(program.rows) * Double(done) / Double(all)) : 0
        defer { reported = carried }
        return control(
          HopProgress(
            hop: hop.index, subject: "copy", rows: carried, chunkRows: carried - reported, chunks: 0,
            stage: .copy, share: all > 0 ? Double(done) / Double(all) : 0))
      }
    } catch {
      guard error.isInterrupt else { throw error }
      throw stoppedBeforeRows
    }
    return (ContinuousClock.now - start).seconds
  }

  private var stoppedBeforeRows: HopdError {
    HopdError(
      .interrupted, "stopped on request", at: Place(hop: hop.title), hint: "retry; the hop starts over")
  }

  /// Gives the file the tables of the hop's destination. After that it is a staged store like any other.
  private func begin(
    _ table: CheckpointTable, program: AlterProgram, seconds: Double, _ control: HopProgress.Control
  ) throws {
    let progress = HopProgress(
      hop: hop.index, subject: "copy", rows: program.rows, chunkRows: 0, chunks: 0, stage: .copy, share: 1)
    var shown = ContinuousClock.now
    try connection.transaction {
      // Those of the hop before, except what the hooks of stages keep.
      try MappedScratch.drop(connection, schema: destinationSchema) { $0 == StageTables.name }
      for statement in program.schemaStatements(in: destinationSchema) {
        try connection.execute(statement)
        // SQLite's progress handler is not called while it reads the texts of a schema.
        guard ContinuousClock.now - shown > .milliseconds(250) else { continue }
        shown = .now
        guard control(progress) else { throw stoppedBeforeRows }
      }
      try table.create(identity, hop: hop.index, moment: 0)
      try table.prepareUpdate().run(
        CheckpointTable.values(
          Checkpoint(step: 0, key: nil, rows: program.rows, chunks: 1, seconds: seconds, isComplete: false)))
    }
  }
}
