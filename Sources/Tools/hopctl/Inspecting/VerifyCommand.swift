import ArgumentParser
import Diagnostics
import HopdConfiguration
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import StoreReplacement
import StoreVerification
import SystemPackage

/// `hopctl verify STORE`.
struct VerifyCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify", abstract: "Check the integrity of a store", discussion: "Read-only.")

  @OptionGroup var store: StoreArgument
  @OptionGroup(title: "Model options") var models: ModelOptions

  @Option(name: .customLong("verify"), help: "Depth of verification; full compares every index with its table")
  var depth: VerificationDepth = .quick

  @Flag(
    help: ArgumentHelp(
      "Require exactly the schema of a new store",
      discussion: "In a store migrated by altering a copy, later columns are last."))
  var exact = false

  @OptionGroup var evidence: EvidenceOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func execute() throws {
    let location = try store.location().store
    let evidence = try evidence.begin(location, output)
    let loaded = try models.load(for: location, search: .everywhere)
    output.tell(loaded.found)
    output.warn(loaded.warnings)
    let (version, remarks, missing, checks) = try StoreReader.withUnchangedStore(at: location) { reader in
      let found = try StoreIdentifier.identify(
        reader: reader, location: location, catalog: loaded.catalog, target: .own, countsRows: false)
      guard let version = found.version, let metadata = found.metadata else {
        throw found.explanation ?? HopdError(.internalError, "the store has no version, without a reason")
      }
      let framework = metadata.frameworkVersion
      var schema = try reader.layout(of: version.model, frameworkVersion: framework)
      schema.history = try HistoryLayout.read(from: reader).layout?.asMade(byFramework: framework)
      schema.history?.mirroring = try MirroringLayout.read(from: reader).layout?.statements ?? []
      return (
        version, schema.joinTableRemarks, try reader.gaps(in: schema),
        try StoreVerifier(depth: depth).checks(
          of: reader, schema: schema, isExact: exact, external: ExternalDataDirectory(of: location))
      )
    }
    output.warn(remarks.map { $0.located(Place(store: location.database)) })
    let failed = checks.filter { !$0.passed }
    try output.line(
      "\(store.text): \(version.model.name), "
        + (failed.isEmpty
          ? "all \(checks.count) checks passed" : "\(failed.count) of \(checks.count) checks failed")
        + (checks.contains(where: \.isNoted) ? ", with notes" : "")
        + (depth == .quick ? " (quick check; --verify full also compares index entries with rows)" : ""))
    let rows: [[TerminalText]] = checks.map { check in
      let mood = !check.passed ? Mood.bad : check.isNoted ? .attention : .good
      return [TerminalText(check.word, mood), "\(check.name)", "\(check.detail)"]
    }
    try output.lines(MessageFormatter.table(rows))
    if !failed.isEmpty {
      for gap in missing { try output.line("\(gap.isWrong ? "wrong" : "missing"): \(gap.sentence)") }
    }
    let error =
      failed.isEmpty
      ? nil
      : refusal(
        failed, of: checks.count, isRepairable: missing.contains { $0.kind != .modelCache },
        at: location)
    var object: JSONObject = [
      "store": location.database.string, "model": version.modelName, "version": version.model.name,
      "depth": depth.rawValue, "passed": failed.isEmpty, "checks": checks.map(\.json),
    ]
    // Objects of the version that the store lacks, or has with a wrong value.
    if !missing.isEmpty { object += ["missing": missing.map(\.json)] }
    if let statement = try evidence?.finish() { object += statement }
    if let found = loaded.found { object += ["models": found.json()] }
    try output.object(error.map { object + ["error": $0.json] } ?? object)
    if let error {
      ErrorReport.report(error)
      throw Finished(status: error.code.exit)
    }
  }

  private func refusal(
    _ failed: [VerificationCheck], of count: Int, isRepairable: Bool, at location: StoreLocation
  ) -> HopdError {
    // A migration adds no reference to a missing row, so the backup that it made has the same ones.
    let isOld = failed.allSatisfy { $0.name == "relationships" }
    let repair = (["hopctl migrate", store.text.quotedForShell, models.words, "--repair"].filter { !$0.isEmpty })
      .joined(separator: " ")
    return HopdError(
      .checksFailed, "the store failed \(failed.count) of \(count) checks", at: Place(store: location.database),
      hint: isOld
        ? "repair these references with the app; the backup of the migration has them too"
        : isRepairable
          ? "run `\(repair)`, which repairs the store and keeps a backup"
          : "restore a backup (hopctl restore STORE), or repair the store with its app",
      reasons: failed.map { HopdError(.checksFailed, "\($0.name): \($0.detail)") })
  }
}

extension HopdError.Code {
  /// A store does not match its model.
  static let checksFailed = HopdError.Code("checks-failed", exit: .dataError)
}
