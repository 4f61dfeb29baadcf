// `--lock`, `--freeze`, `--replace`, `--base`: the shipped versions, from a file in the repository or from git.

import ArgumentParser
import Diagnostics
import DurableFiles
import Glibc
import ManagedObjectModel
import MigrationChecking
import MigrationPipeline
import MigrationPlanning
import SwiftDataReading
import SwiftDataSource
import SystemPackage

/// `--lock`, `--freeze`, `--replace`, `--base`.
struct LockOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The file with the hashes of all shipped versions.",
      discussion: "Without it: hop.lock in this folder, or beside the first model.", valueName: "file"),
    completion: .file())
  var lock: String?

  @Flag(
    help: ArgumentHelp(
      "Note the versions up to the current one in the lock: from now on they count as shipped.",
      discussion: "It does not change what is noted already."))
  var freeze = false

  @Option(
    help: ArgumentHelp(
      "Accept that a noted version has changed or is gone; --freeze replaces its lines. May be repeated.",
      valueName: "version"))
  var replace: [String] = []

  @Option(
    help: ArgumentHelp(
      "A commit, tag or branch of git that holds what has shipped.",
      discussion: """
        The lock there decides over the one here, and a changed version is compared with the one there. Without a \
        lock, all versions there count as shipped.
        """,
      valueName: "ref"))
  var base: String?

  @Flag(
    name: .customLong("fail-on-drop"),
    help: ArgumentHelp(
      "Fail if a hop drops an entity or a property that the lock does not allow to go.",
      discussion: "The finding has the line that allows it."))
  var failOnDrop = false

  func validate() throws {
    if !replace.isEmpty, !freeze, base == nil {
      throw ValidationError("--replace goes with --freeze, which replaces lines of the lock, or with --base.")
    }
  }

  /// The options as typed.
  var words: [String] {
    var words: [String] = []
    if let lock { words += ["--lock", lock] }
    if let base { words += ["--base", base] }
    return words + (failOnDrop ? ["--fail-on-drop"] : [])
  }

  /// The record of shipped models, and the path of the lock file.
  struct Loaded {
    var file: FilePath
    var record = ShippedRecord()
  }

  /// Reads the lock file, and the commit of `--base` through git.
  func load(
    models: [String], bundles: [ModelBundle], scratch: FilePath?, source: SourceChoice
  ) throws -> Loaded {
    var loaded = Loaded(file: place(models))
    loaded.record.lock = try LockFile.read(loaded.file)
    loaded.record.replaced = Set(replace)
    loaded.record.isFreezing = freeze
    if lock != nil, !freeze, loaded.record.lock == nil {
      throw HopdError(
        .notFound, "there is no lock file", at: Place(file: loaded.file),
        hint: "write one with --freeze, or leave --lock out")
    }
    if let base {
      loaded.record.ref = base
      let folder = try ScratchDirectory(in: scratch, files: LinuxFileSystem(isDurable: false))
      defer { try? folder.remove() }
      for (index, bundle) in bundles.enumerated() {
        if bundle.origin != nil {
          let models = try SourceModels(
            GitSource(folder: bundle.path).target(ofCommit: base, choice: source), schema: source.schema,
            calibrated: CalibrationFile.read(besides: bundle.path))
          loaded.record.bases.append(try models.bundle(name: bundle.name, path: bundle.path))
          continue
        }
        let copy = folder.path.appending("\(index)")
        if let bundle = try GitModel(ref: base, bundle: bundle.path).read(into: copy) {
          loaded.record.bases.append(bundle)
        }
      }
      for file in [loaded.file] + places(models) where loaded.record.lockAtBase == nil {
        guard let text = try GitFile(ref: base, file: file).text() else { continue }
        loaded.record.lockAtBase = try LockFile(text: text, of: file)
        // If the lock file was removed, it is written again to its path in that commit.
        if loaded.record.lock == nil { loaded.file = file }
      }
    }
    try requireKnown(loaded)
    return loaded
  }

  /// Throws if `--replace` names a version that is not recorded: nothing would be replaced.
  private func requireKnown(_ loaded: Loaded) throws(HopdError) {
    let known = loaded.record.names
    for name in replace where !known.contains(name) {
      throw HopdError(
        .noSuchVersion, "--replace names the version “\(name)”, which is not noted", at: Place(file: loaded.file),
        hint: NearestName.among(known, to: name).map { "did you mean “\($0)”?" }
          ?? (known.isEmpty
            ? "there is no lock yet: leave --replace out" : "noted are: \(known.joined(separator: ", "))"))
    }
  }

  /// Paths to search for the lock file: in this folder, then next to the first model.
  private func places(_ models: [String]) -> [FilePath] {
    if let lock { return [FilePath(lock)] }
    return ["hop.lock"] + models.prefix(1).map { FilePath($0).removingLastComponent().appending("hop.lock") }
  }

  private func place(_ models: [String]) -> FilePath {
    let places = places(models)
    return places.first { access($0.string, F_OK) == 0 } ?? places.first ?? "hop.lock"
  }
}
