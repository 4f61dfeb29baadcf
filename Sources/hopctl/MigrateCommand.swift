import ArgumentParser
import Diagnostics
import DurableFiles
import HopdConfiguration
import ManagedObjectModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreReplacement
import StoreVerification
import SystemPackage

/// `hopctl migrate STORE`.
struct MigrateCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate", abstract: "Takes a store to the current version of its model.",
    discussion: """
      The store is replaced when its new version is complete, verified and durable; the old one is kept beside it. A run \
      that is interrupted leaves the store as it was, and the next one goes on.
      """)

  /// How the new store takes the old one's place.
  enum Replacement: String, ExpressibleByArgument, CaseIterable {
    case rename
    case inPlace = "in-place"
  }

  @OptionGroup var store: StoreArgument
  @OptionGroup var models: ModelOptions
  @OptionGroup var target: TargetOptions

  @Option(name: .customLong("output"), help: "Write a migrated copy here and only read the store.", completion: .file())
  var copy: String?

  @Option(help: "How the new store takes the old one's place.")
  var replace: Replacement = .rename

  @Option(help: ArgumentHelp("How many old stores are kept, or none.", valueName: "keep|none"))
  var backup: BackupCount?

  @Option(help: "How thoroughly the result is verified.")
  var verify: VerificationDepth?

  @OptionGroup var state: StateOptions
  @OptionGroup var output: OutputOptions

  func execute() throws {
    if replace == .inPlace {
      throw HopdError(
        .notSupportedYet, "--replace in-place is not supported yet", hint: "leave it out: the mode is rename")
    }
    let location = try store.location()
    let loaded = try models.load(for: location)
    output.warn(loaded.warnings)
    let request = try request(location, loaded)
    let bar = ProgressBar(output)
    let report: MigrationReport
    do {
      defer { bar.end() }
      report = try MigrationPipeline().run(request, stop: StopOnSignals.start()) { bar.show($0) }
    } catch {
      bar.end()
      try fail(error, request: request)
    }
    output.warn(report.warnings)
    try show(report, depth: request.verification, warnings: loaded.warnings + report.warnings)
  }

  private func request(_ location: StoreLocation, _ loaded: ModelOptions.Loaded) throws -> MigrationRequest {
    let watch = loaded.watch
    var request = MigrationRequest(
      location: location, catalog: loaded.catalog, target: target.target(watch), infer: watch?.infer ?? true,
      naming: try target.naming(loaded), history: target.history(watch), stateDirectory: try state.directory(),
      job: MigrateCommand.jobName())
    if let copy { request.output = try StoreArgument.location(of: copy).database }
    if let watch {
      request.backup = BackupRule(
        keep: watch.backup.keep, keepFor: watch.backup.keepFor, directory: watch.backup.directory)
      request.verification = watch.migration.verify == .full ? .full : .quick
      request.journalMode = ResultJournalMode(rawValue: watch.migration.journalMode.rawValue) ?? .keep
      request.engine.chunkTime = watch.migration.chunkTime
      request.engine.chunkRowsMax = Int64(watch.migration.chunkRowsMax)
    }
    if let memory = loaded.memoryLimit { request.engine.memoryLimit = memory }
    if let backup { request.backup.keep = backup.count }
    if let verify { request.verification = verify }
    return request
  }

  /// Short lower-case hex text: two runs never share one.
  static func jobName() -> String {
    let digits = String(UInt64.random(in: .min ... .max), radix: 16)
    return String(repeating: "0", count: 16 - digits.utf8.count) + digits
  }

  // MARK: Telling

  private func show(_ report: MigrationReport, depth: VerificationDepth, warnings: [HopdError]) throws {
    let path = report.store.printable
    switch report.result {
    case .current:
      try output.line(
        copy == nil
          ? "current \(path): \(report.to), nothing to do"
          : "current \(path): a copy of the store, which is \(report.to) already")
    case .migrated, .completedBeforeCrash:
      let rows = report.rows.values.reduce(Int64(0), &+)
      let how = report.result == .completedBeforeCrash ? "finished by the run before" : Wording.duration(report.seconds)
      try output.line(
        "migrated \(path): \(report.from) → \(report.to), "
          + "\(Wording.count(rows, "object", "objects")), \(how)\(report.wasResumed ? ", resumed" : "")")
      for drop in report.dropped {
        try output.line(
          "  dropped \(drop.entity).\(drop.property): \(Wording.count(drop.nonNull, "value", "values"))")
      }
      for table in report.clearedHistory where table.rows > 0 {
        try output.line(
          "  cleared \(table.table) (persistent history): \(Wording.count(table.rows, "row", "rows"))")
      }
      if let backup = report.backup { try output.line("  the old store is kept: \(backup.printable)") }
    }
    var shape = MigrateShape(
      store: report.store.string, result: report.result == .current ? "current" : "migrated",
      from: OrNull(wrappedValue: report.from), to: OrNull(wrappedValue: report.to),
      backup: OrNull(wrappedValue: report.backup?.string), seconds: report.seconds,
      verified: OrNull(
        wrappedValue: report.checks.isEmpty
          ? nil : MigrateShape.Verified(depth: depth.rawValue, checks: report.checks.map(CheckShape.init))))
    shape.hops = report.hops.map {
      MigrateShape.Hop(
        source: $0.source, destination: $0.destination, kind: $0.kind, rowsRead: $0.rowsRead,
        rowsWritten: $0.rowsWritten, chunks: $0.chunks, seconds: $0.seconds)
    }
    shape.rows = report.rows
    shape.dropped = report.dropped.map {
      MigrateShape.Dropped(
        hop: $0.hop, entity: $0.entity, property: OrNull(wrappedValue: $0.property),
        column: OrNull(wrappedValue: $0.column), table: $0.table, nonNull: $0.nonNull)
    }
    shape.dropped += report.clearedHistory.filter { $0.rows > 0 }.map {
      MigrateShape.Dropped(
        hop: $0.hop, entity: $0.entity, property: OrNull(wrappedValue: nil),
        column: OrNull(wrappedValue: nil), table: $0.table, nonNull: $0.rows)
    }
    shape.peakMemory = report.peakMemory
    shape.resumed = report.wasResumed
    shape.storeUUID = report.storeUUID
    shape.warnings = warnings.map(ErrorShape.init)
    try output.object(shape)
  }

  private func fail(_ failure: MigrationFailure, request: MigrationRequest) throws -> Never {
    var error = failure.error
    if error.code == .interrupted {
      error.hint =
        request.output == nil
        ? "the store is as it was; run the same command again: it goes on from the last checkpoint"
        : "the store is as it was; run the same command again: a copy starts over"
    }
    StandardStreams.tell("hopctl: \(error)")
    let isRefusal: Bool
    switch failure.stage {
    case .identify, .lock, .recover, .plan: isRefusal = true
    case .migrate, .verify, .replace, .report: isRefusal = false
    }
    try output.object(
      MigrateShape(
        store: request.location.database.string,
        result: isRefusal && error.code != .interrupted ? "refused" : "failed",
        from: OrNull(wrappedValue: failure.from), to: OrNull(wrappedValue: failure.to),
        backup: OrNull(wrappedValue: nil), seconds: 0, verified: OrNull(wrappedValue: nil),
        storeUUID: failure.storeUUID, error: ErrorShape(error)))
    throw Finished(status: error.code.exit)
  }
}

/// KEEP of `--backup`: a number, or "none".
struct BackupCount: ExpressibleByArgument {
  let count: Int

  init?(argument: String) {
    if argument == "none" {
      count = 0
    } else {
      guard let number = Int(argument), (0...1000).contains(number) else { return nil }
      count = number
    }
  }
}

extension VerificationDepth: ExpressibleByArgument {}
