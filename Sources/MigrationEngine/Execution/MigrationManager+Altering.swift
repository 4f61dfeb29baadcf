// Alters a file in place of writing all rows (`AlterProgram`): a copy of the hop's source, or the staged store of the hop
// before where it stands. Separate from writing rows because the file has rows before the hop begins.

import Diagnostics
import MigrationPlanning
import PersistentStore
import SQLite
import SystemPackage

extension MigrationManager {
  /// Makes the staged store of the hop by altering `staged`, which an interrupted run of the same plan may have begun.
  ///
  /// With `copies`, `staged` is empty or begun, and the source is copied into it first; an incomplete copy is made again.
  /// Else it is the complete staged store of the hop before, which is the manager's source too. Throws as `run(into:_:)`
  /// does, and leaves the staged store attached.
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
          identity: identity, options: options, note: note, control: control, references: references)
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
    var told: Int64 = 0
    do {
      try connection.copy(source.schemaName, to: staged) { done, all in
        // Progress is reported in rows: their share is that of the copied pages.
        let carried = all > 0 ? Int64(Double(program.rows) * Double(done) / Double(all)) : 0
        defer { told = carried }
        return control(
          HopProgress(
            hop: hop.index, subject: "copy", rows: carried, chunkRows: carried - told, chunks: 0,
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
      .interrupted, "stopped on request", at: Place(hop: hop.title), hint: "the next start begins the hop again")
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
