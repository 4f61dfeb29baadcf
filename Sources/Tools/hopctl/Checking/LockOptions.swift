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
      "File with the hashes of all shipped versions",
      discussion: "Default: hop.lock in this directory, or next to the first model.", valueName: "file"),
    completion: .file())
  var lock: String?

  @Flag(
    help: ArgumentHelp(
      "Record the versions up to the current one in the lock as shipped",
      discussion: "Existing records do not change."))
  var freeze = false

  @Option(
    help: ArgumentHelp(
      "Accept that a recorded version was changed or removed; --freeze replaces it; repeatable",
      valueName: "version"))
  var replace: [String] = []

  @Option(
    help: ArgumentHelp(
      "Git commit, tag or branch that contains the shipped versions",
      discussion: """
        The lock of that commit takes precedence over the local one, and changed versions are compared with that \
        commit. Without a lock, all its versions count as shipped.
        """,
      valueName: "ref"))
  var base: String?

  @Flag(
    name: .customLong("fail-on-drop"),
    help: ArgumentHelp(
      "Fail if a hop drops an entity or a property without permission in the lock",
      discussion: "The finding has the line that permits it."))
  var failOnDrop = false

  func validate() throws {
    if !replace.isEmpty, !freeze, base == nil {
      throw ValidationError("--replace requires --freeze or --base.")
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
        .notFound, "no lock file", at: Place(file: loaded.file),
        hint: "create one with --freeze, or remove --lock")
    }
    if let base {
      loaded.record.ref = base
      let folder = try ScratchDirectory(in: scratch, files: LinuxFileSystem(isDurable: false))
      defer { try? folder.remove() }
      for (index, bundle) in bundles.enumerated() {
        if bundle.origin != nil {
          // The releases are the versions, and none of them changes.
          if source.tags == nil, let found = try sourceAtBase(base, bundle, source) {
            loaded.record.bases.append(found)
          }
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

  /// The models that the source had at a commit; nil if there was no source.
  private func sourceAtBase(_ base: String, _ bundle: ModelBundle, _ source: SourceChoice) throws -> ModelBundle? {
    let target: SourceTarget
    do throws(HopdError) {
      target = try GitSource(folder: bundle.path).target(ofCommit: base, choice: source)
    } catch {
      if error.code == .noSourceModels { return nil }
      throw error
    }
    let models = try SourceModels(
      target, schema: source.schema, calibrated: CalibrationFile.read(besides: bundle.path),
      words: source.words(for: bundle.path))
    return try models.bundle(name: bundle.name, path: bundle.path)
  }

  /// Throws if `--replace` names a version that is not recorded: nothing would be replaced.
  private func requireKnown(_ loaded: Loaded) throws(HopdError) {
    let known = loaded.record.names
    for name in replace where !known.contains(name) {
      throw HopdError(
        .noSuchVersion, "--replace: version '\(name)' is not in the lock file", at: Place(file: loaded.file),
        hint: known.isEmpty
          ? "remove --replace: no lock file exists"
          : NearestName.hint(NearestName.among(known, to: name), of: known))
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
