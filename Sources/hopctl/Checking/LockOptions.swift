// `--lock`, `--freeze`, `--base`: what has shipped, from a file in the repository or from git.

import ArgumentParser
import Diagnostics
import DurableFiles
import Glibc
import ManagedObjectModel
import MigrationChecking
import MigrationPipeline
import PolicyHost
import SystemPackage

/// `--lock`, `--freeze`, `--base`.
struct LockOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The file with the hashes of all shipped versions.",
      discussion: "Else hop.lock in this folder, or beside the first model.", valueName: "file"),
    completion: .file())
  var lock: String?

  @Flag(help: "Write the lock: from now on every version that is there counts as shipped.")
  var freeze = false

  @Option(
    help: ArgumentHelp(
      "A commit, tag or branch of git that holds the model as it shipped.",
      discussion:
        "A changed version is compared with the one there. Without a lock, all versions there count as shipped.",
      valueName: "ref"))
  var base: String?

  /// What is known of shipped models, and where the lock is.
  struct Loaded {
    let file: FilePath
    let lock: LockFile?
    var bases: [ModelBundle] = []
  }

  /// Reads lock and git.
  func load(models: [String], bundles: [ModelBundle], scratch: FilePath?) throws -> Loaded {
    let file = try place(models)
    let found = try LockFile.read(file)
    if lock != nil, !freeze, found == nil {
      throw HopdError(
        .notFound, "there is no lock file", at: Place(file: file), hint: "write one with --freeze, or leave --lock out")
    }
    guard let base else { return Loaded(file: file, lock: found) }
    let folder = try ScratchDirectory(in: scratch, files: LinuxFileSystem(isDurable: false))
    defer { try? folder.remove() }
    var bases: [ModelBundle] = []
    for (index, bundle) in bundles.enumerated() {
      let copy = folder.path.appending("\(index)")
      if let bundle = try GitModel(ref: base, bundle: bundle.path).read(into: copy) { bases.append(bundle) }
    }
    return Loaded(file: file, lock: found, bases: bases)
  }

  private func place(_ models: [String]) throws -> FilePath {
    if let lock { return FilePath(lock) }
    let here = FilePath("hop.lock")
    if access("hop.lock", F_OK) == 0 { return here }
    guard let first = models.first else { return here }
    let beside = FilePath(first).removingLastComponent().appending("hop.lock")
    return access(beside.string, F_OK) == 0 ? beside : here
  }

  /// Writes the lock with these models; what it holds of others stays.
  static func write(_ models: [ShippedModel], over old: LockFile?, to file: FilePath) throws {
    let names = Set(models.map(\.name))
    guard names.count == models.count else {
      throw HopdError(
        .usage, "two models have the same name, and the lock names models by it", at: Place(file: file),
        hint: "check them one by one, each with a --lock of its own")
    }
    let text = LockFile(models: models + (old?.models ?? []).filter { !names.contains($0.name) }).text
    let files = LinuxFileSystem()
    guard let name = file.lastComponent else {
      throw HopdError(.usage, "--lock names no file", at: Place(file: file), hint: "name a file such as hop.lock")
    }
    let parent = file.removingLastComponent()
    let folder = try files.canonical(parent.isEmpty ? "." : parent)
    try files.writeDurably(
      Array(text.utf8), to: folder.appending(name), mode: 0o644, temporarySuffix: ".hop-\(RequestOptions.jobName()).tmp"
    )
  }
}

/// A model as git keeps it.
struct GitModel {
  let ref: String
  let bundle: FilePath

  /// Copies the model of the commit into a folder and reads it; nil where the commit has no such model.
  func read(into folder: FilePath) throws -> ModelBundle? {
    let files = LinuxFileSystem(isDurable: false)
    let path = try files.canonical(bundle)
    guard let name = path.lastComponent?.string else { return nil }
    let parent = path.removingLastComponent().string
    guard !ref.isEmpty, !ref.hasPrefix("-") else {
      throw HopdError(.usage, "--base takes a commit, tag or branch", hint: "such as origin/main or v1.2")
    }
    let listed = try git(["-C", parent, "ls-tree", "-r", "-z", ref, "--", name])
    try files.makeDirectory(folder, mode: 0o700)
    var count = 0
    for line in listed.split(separator: 0) {
      // MODE TYPE OBJECT, a tab, and the path below `parent`.
      guard let tab = line.firstIndex(of: 9) else { continue }
      let words = String(decoding: line[..<tab], as: UTF8.self).split(separator: " ")
      let below = FilePath(String(decoding: line[line.index(after: tab)...], as: UTF8.self))
      guard words.count >= 3, words[1] == "blob", words[0] != "120000", !below.isAbsolute,
        below.components.allSatisfy({ $0.kind == .regular }), count < 10_000
      else { continue }
      let bytes = try git(["-C", parent, "cat-file", "blob", String(words[2])])
      let target = folder.appending(below.components)
      var above = folder
      for part in below.components.dropLast() {
        above.append(part)
        try files.ensureDirectory(above)
      }
      try files.createUnsyncedFile(target, bytes, mode: 0o600)
      count += 1
    }
    guard count > 0 else { return nil }
    do throws(HopdError) {
      return try ModelReader.read(at: folder.appending(name))
    } catch {
      // The copy is gone when this is read.
      var error = error
      error.place.file = bundle
      throw error
    }
  }

  private func git(_ words: [String]) throws(HopdError) -> [UInt8] {
    var environment: [String: String] = ["LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"]
    for name in ["PATH", "HOME", "GIT_DIR", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0"] {
      if let value = getenv(name) { environment[name] = String(cString: value) }
    }
    guard let answer = ProgramOutput.of(["git"] + words, environment: environment) else {
      throw HopdError(
        .usage, "git cannot be started, and --base needs it",
        hint: "install git, or leave --base out: the lock names the properties too")
    }
    guard answer.status == 0 else {
      throw HopdError(
        .usage, "git cannot show the model of \(ref): \(answer.errors.split(separator: "\n").first ?? "")",
        at: Place(file: bundle),
        hint: "is the commit there? In a pipeline: fetch it first, for example with fetch-depth: 0")
    }
    return answer.output
  }
}
