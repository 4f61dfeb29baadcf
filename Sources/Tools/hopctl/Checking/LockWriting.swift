// `--freeze`: records the shipped versions in the lock file. Recorded versions stay unchanged unless `--replace` names
// them.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import MigrationChecking
import SystemPackage

/// Writes a lock file.
struct LockWriting {
  let file: FilePath
  let record: ShippedRecord
  let frameworkVersion: Int64

  /// Records the versions of these models, whose check was not red, and returns the changes as lines.
  func write(_ bundles: [ModelBundle], _ report: CheckReport) throws -> [String] {
    let names = bundles.map(\.name)
    guard Set(names).count == names.count else {
      throw HopdError(
        .usage, "two models have the same name, which identifies a model in the lock", at: Place(file: file),
        hint: "check them individually, each with its own --lock")
    }
    var lines: [String] = []
    var models: [ShippedModel] = []
    var taken: Set<String> = Set(names)
    for bundle in bundles {
      let now = ShippedModel(bundle, frameworkVersion: frameworkVersion)
      let known = record.shipped(of: bundle, besides: names, frameworkVersion: frameworkVersion)
      if let known, record.lock?.model(named: known.name) != nil { taken.insert(known.name) }
      let later = Set(
        report.models.first { $0.path == bundle.path }?.versions.filter { $0.verdict == .later }.map(\.name) ?? [])
      let (model, changes) = noted(now, over: record.lock == nil ? nil : known, leavingOut: later)
      models.append(model)
      lines += changes
    }
    let text = LockFile(models: models + (record.lock?.models ?? []).filter { !taken.contains($0.name) }).text
    let versions = models.reduce(0) { $0 + $1.versions.count }
    let count = MessageFormatter.count(versions, "version", "versions")
    if text == record.lock?.text { return ["unchanged: \(file.printable) already has the \(count)"] + lines }
    try save(text)
    return ["froze \(count) in \(file.printable)"] + lines
  }

  /// The new record of a model, and its changes as lines.
  private func noted(
    _ now: ShippedModel, over known: ShippedModel?, leavingOut later: Set<String>
  ) -> (ShippedModel, [String]) {
    let before = Set(known?.versions.map(\.name) ?? [])
    let renamed = known.map { now.newNames(of: $0) } ?? [:]
    var lines = renamed.sorted { $0.key < $1.key }.map {
      "  renamed: \($0.key.printableLine) to \($0.value.printableLine)"
    }
    var versions: [ShippedVersion] = []
    for version in now.versions {
      let name = version.name
      let isKnown = before.contains(name) || renamed.values.contains(name)
      guard isKnown || !later.contains(name) else {
        lines.append("  skipped: \(name.printableLine) comes after the current version")
        continue
      }
      versions.append(version)
      if known != nil, !isKnown { lines.append("  new: \(name.printableLine)") }
    }
    for name in before.subtracting(now.versions.map(\.name)).subtracting(renamed.keys).sorted() {
      lines.append("  removed: \(name.printableLine)")
    }
    let here = known.flatMap { record.lock?.model(named: $0.name) } ?? record.lock?.model(named: now.name)
    let allowed = Dictionary(
      (here?.allowedDrops ?? [:]).map { (renamed[$0.key] ?? $0.key, $0.value) }, uniquingKeysWith: { first, _ in first }
    )
    return (ShippedModel(name: now.name, versions: versions, allowedDrops: allowed), lines)
  }

  private func save(_ text: String) throws {
    let files = LinuxFileSystem()
    guard file.lastComponent?.kind == .regular else {
      throw HopdError(.usage, "--lock: not a file name", at: Place(file: file), hint: "pass a file name, e.g. hop.lock")
    }
    try files.writeDurably(
      Array(text.utf8), to: file.resolvedInFolder(), mode: 0o644,
      temporarySuffix: ".hop-\(RequestOptions.jobName()).tmp")
  }
}
