import ArgumentParser
import Diagnostics
import DurableFiles
import ManagedObjectModel
import PersistentStore
import StoreReplacement
import SwiftDataReading
import SwiftDataSource
import SystemPackage

/// `hopctl model calibrate FOLDER --store STORE`, `--pinned TESTS`.
struct ModelCalibrateCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "calibrate", abstract: "Settle unproven forms of Swift source by known hashes",
    discussion: """
      Tries each possible meaning of a form until the version hashes match those of a store that the app created, or \
      those that its tests pin, and writes the result to hop.calibration.toml in the directory. One entity with the \
      form is enough. If no hash decides between two ways to store a collection, rows of the store do.
      """)

  @Argument(help: "Directory of Swift source", completion: .file())
  var path: String

  @Option(help: "Store that the app created with a version of this source", completion: .file())
  var store: String?

  @Option(
    help: ArgumentHelp(
      "File or directory with version hashes, e.g. tests of the app; repeatable",
      discussion: """
        Any text that contains hashes, checksums or digests, in base64 or hexadecimal: dictionaries, assertions, JSON, \
        hop.lock.
        """),
    completion: .file())
  var pinned: [String] = []

  @Option(help: ArgumentHelp("NSManagedObjectModel.versionChecksum of such a version", valueName: "base64"))
  var checksum: String?

  @OptionGroup(title: "Swift source options") var source: SourceOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    guard [store != nil, !pinned.isEmpty, checksum != nil].count(where: { $0 }) == 1 else {
      throw ValidationError("Pass one of --store, --pinned and --checksum.")
    }
  }

  func execute() throws {
    let folder = FilePath(path)
    let known = try known()
    let before = try CalibrationFile.read(besides: folder)
    var calibration: Calibration
    do {
      calibration = try Calibration.find(known, in: sources(folder), schema: source.schema, calibrated: before)
    } catch let error as HopdError {
      throw error.located(Place(file: folder))
    }
    try readRows(&calibration)
    let new = calibration.found.found.filter { before.found[$0.key] != $0.value }
    guard !new.isEmpty || calibration.fits.contains(where: \.isWhole) else { throw nothing(calibration, folder) }
    let file = try CalibrationFile.path(besides: folder)
    if !new.isEmpty {
      try LinuxFileSystem().writeDurably(
        Array(CalibrationFile.text(calibration.found).utf8), to: file.resolvedInFolder(), mode: 0o644,
        temporarySuffix: ".hop-\(RequestOptions.jobName()).tmp")
    }
    try report(calibration, new, file)
  }

  private func known() throws -> PinnedHashes {
    if let store {
      let location = try StoreArgument.location(of: store).store
      let hashes = try StoreReader.withUnchangedStore(at: location) { try $0.metadata().versionHashes }
      return PinnedHashes(hashes, of: location.database.lastComponent?.string ?? store)
    }
    guard let checksum else { return try PinnedFiles.read(pinned.map { FilePath($0) }) }
    var known = PinnedHashes()
    known.add(checksum.utf8, of: "--checksum")
    guard !known.isEmpty else {
      throw HopdError(
        .usage, "--checksum takes 32 bytes in base64, 44 characters",
        hint: "print NSManagedObjectModel.versionChecksum in a test of the app")
    }
    return known
  }

  /// The source of the folder, and of the releases with `--tags`.
  private func sources(_ folder: FilePath) throws -> [Calibration.Source] {
    var sources: [Calibration.Source] = []
    if let pattern = source.tags {
      let git = try GitSource(folder: folder)
      for tag in try git.tags(pattern) {
        guard let target = try? git.target(at: tag.commit, choice: source.choice) else { continue }
        sources.append(Calibration.Source(tag: tag.name, target: target))
      }
    }
    return sources + [Calibration.Source(target: try SwiftDataSourceReader(source.choice).target(at: folder))]
  }

  /// Asks the rows of the store about what no hash decides.
  private func readRows(_ calibration: inout Calibration) throws {
    guard let store, !calibration.open.isEmpty else { return }
    let location = try StoreArgument.location(of: store).store
    let name = location.database.lastComponent?.string ?? store
    let open = calibration.open
    let shown = try StoreReader.withUnchangedStore(at: location) { reader in
      let rows = try CollectionRows(reader)
      return try open.map { try rows.reading(of: $0) }
    }
    for (form, reading) in zip(open, shown) {
      guard let reading else { continue }
      calibration.settle(
        form.form, as: reading.alternative, evidence: "no hash, but rows of \(name): \(reading.property)")
    }
  }

  private func nothing(_ calibration: Calibration, _ folder: FilePath) -> HopdError {
    let nearest = calibration.fits.max { $0.equal * $1.all < $1.equal * $0.all }
    let near = nearest.map { "; the nearest is \($0.version) with \($0.equal) of \($0.all) entities" } ?? ""
    return HopdError(
      .sourceUnclear, "no version in the source has these hashes, whatever its unproven forms are\(near)",
      at: Place(file: folder),
      hint: source.tags == nil
        ? "add --tags 'v*' to try the source of the releases too"
        : "pass the directory, or --target, whose models the hashes are of")
  }

  private func report(_ calibration: Calibration, _ new: [String: String], _ file: FilePath) throws {
    let whole = calibration.fits.first(where: \.isWhole)
    for fit in calibration.fits.prefix(whole == nil ? 3 : 8) where fit.isWhole || whole == nil {
      try output.line(
        fit.isWhole
          ? "the hashes are those of \(fit.version)"
          : "\(fit.equal) of \(fit.all) entities of \(fit.version) have known hashes")
    }
    for (name, model) in new.sorted(by: { $0.key < $1.key }) {
      try output.line("  \(name): \(model) (\(calibration.found.evidence[name] ?? ""))")
    }
    for open in calibration.open {
      try output.line("  \(open.form.name): not settled (\(open.places.first?.description ?? ""))")
    }
    try output.line(new.isEmpty ? "nothing had to be settled" : "written to \(file.printable)")
    try output.object([
      "version": whole?.version, "forms": calibration.found.found, "evidence": calibration.found.evidence,
      "open": calibration.open.map(\.form.name), "path": new.isEmpty ? nil : file.string,
    ])
  }
}
