// The stores of a directory that have backups, also stores that are gone: for listing, for removal, and for the
// daemon's sweep. Only names are read until a generation may have to be removed.

import Diagnostics
import DurableFiles
import FoundationEssentials
import PersistentStore
import SystemPackage

/// The backups in and for a directory of stores.
package struct BackupSurvey: Sendable {
  private let directory: FilePath
  private let isRecursive: Bool
  private let files: any DurableFileSystem
  /// The configured place for backups.
  private let base: CanonicalDirectory?
  private static let suffix = BackupSet.folderSuffix

  /// The backups of the stores in `directory`, or also below it; `rule` gives the other place of backups.
  package init(
    of directory: CanonicalDirectory, recursive: Bool = false, rule: BackupRule, files: any DurableFileSystem
  ) throws {
    self.directory = directory.path
    isRecursive = recursive
    base = try rule.place(files)
    self.files = files
  }

  /// Calls `body` once with the backups of each store that has a folder of them, until it returns false. Reports what
  /// cannot be read to `problem`, and continues.
  package func forEach(_ body: (BackupSet) throws -> Bool, problem: (HopdError) -> Void) throws {
    var given: Set<FilePath> = []
    func give(_ store: FilePath) throws -> Bool {
      guard given.insert(store).inserted else { return true }
      do {
        return try body(BackupSet(location: CanonicalStoreLocation(unresolved: store), base: base, files: files))
      } catch let error as HopdError {
        problem(error.located(Place(store: store)))
        return true
      }
    }
    var folders = [directory]
    while let folder = folders.popLast() {
      let names: [FilePath.Component]
      do { names = try files.names(in: folder) } catch let error as HopdError where folder != directory {
        problem(error)
        continue
      }
      for name in names {
        let path = folder.appending(name)
        if name.string.hasPrefix("."), name.string.hasSuffix(Self.suffix) {
          let label = String(name.string.dropFirst().dropLast(Self.suffix.count))
          guard try files.status(path)?.kind == .directory, let store = store(label, in: folder, path) else { continue }
          guard try give(store) else { return }
        } else if isRecursive, !name.string.hasPrefix("."), try files.status(path)?.kind == .directory {
          folders.append(path)
        }
      }
    }
    guard let base = base?.path else { return }
    for name in try files.names(in: base) where name.string.hasSuffix(Self.suffix) {
      let label = String(name.string.dropLast(Self.suffix.count))
      guard let store = try elsewhere(label, base.appending(name)) else { continue }
      guard try give(store) else { return }
    }
  }

  /// The store whose folder of backups has this label; if the label is cut, those of its generations name the store.
  private func store(_ label: String, in folder: FilePath, _ path: FilePath) -> FilePath? {
    guard NameLabel.mayBeCut(label) else {
      guard let name = FilePath.Component(label), name.kind == .regular else { return nil }
      return folder.appending(name)
    }
    return records(in: path).compactMap { $0.store.path.lastComponent }.first {
      NameLabel.label(of: $0.string) == label
    }
    .map { folder.appending($0) }
  }

  /// The store of this survey whose backups are in a folder of the configured place, named LABEL-DIGEST there; nil for
  /// others.
  private func elsewhere(_ name: String, _ path: FilePath) throws -> FilePath? {
    func isMine(_ store: FilePath) -> Bool {
      let folder = store.removingLastComponent()
      return isRecursive ? folder.starts(with: directory) : folder == directory
    }
    guard let dash = name.lastIndex(of: "-"), try files.status(path)?.kind == .directory else { return nil }
    let (label, digest) = (String(name[..<dash]), String(name[dash...].dropFirst()))
    if !NameLabel.mayBeCut(label), let component = FilePath.Component(label), component.kind == .regular {
      let store = directory.appending(component)
      if PathText.digest(PathText.bytes(of: store)) == digest { return store }
      guard isRecursive else { return nil }
    }
    return records(in: path).map(\.store.path).first {
      isMine($0) && PathText.digest(PathText.bytes(of: $0)) == digest
    }
  }

  private func records(in folder: FilePath) -> [BackupRecord] {
    ((try? files.names(in: folder)) ?? []).compactMap { BackupSet.record(in: folder.appending($0), files: files) }
  }
}

/// The removal of generations that a rule no longer keeps, for all stores of a directory.
package struct BackupSweep: Sendable {
  private let survey: BackupSurvey
  private let rule: BackupRule

  /// Sweeps what the survey finds by the rule.
  package init(_ survey: BackupSurvey, rule: BackupRule) {
    self.survey = survey
    self.rule = rule
  }

  /// Removes backups, reports each to `removed`, and returns when the next one becomes too old (seconds since 1970);
  /// nil where there is none. Leaves locked stores to the next sweep. `keep` does not apply to removed stores.
  package func run(
    now: Int64, isStopped: () -> Bool = { false }, removed: (CanonicalStoreLocation, BackupRemoval) -> Void,
    problem: (HopdError) -> Void
  ) throws -> Int64? {
    var next: Int64?
    try survey.forEach(
      { backups in
        if isStopped() { return false }
        var times = try backups.times()
        if mayExpire(times, now: now) {
          let isThere = try backups.isStoreThere()
          for removal in try backups.remove(
            patience: .zero,
            {
              BackupSet.removals($0, rule, now: now, counts: isThere)
            })
          { removed(backups.location, removal) }
          times = try backups.times()
        }
        if let longest = rule.longestAge, let oldest = times.min() {
          next = min(next ?? .max, oldest.addingReportingOverflow(longest).partialValue)
        }
        return true
      },
      problem: { error in
        if error.code != .lockedByOther { problem(error) }
      })
    return next
  }

  /// Whether number and names of the folders alone show that a generation may be removed. Labels are only read then.
  private func mayExpire(_ times: [Int64], now: Int64) -> Bool {
    if times.count > max(0, rule.keep) { return true }
    guard let longest = rule.longestAge, let oldest = times.min() else { return false }
    return now.subtractingReportingOverflow(oldest).partialValue > longest
  }
}

extension BackupSet {
  /// Whether there is anything under the store's name.
  package func isStoreThere() throws -> Bool { try files.status(location.database) != nil }

  /// The times in the names of the generations' folders.
  func times() throws -> [Int64] {
    try paths().compactMap { path in
      path.lastComponent.flatMap { $0.string.hasSuffix(".part") ? nil : BackupTime.seconds(ofName: $0.string) }
    }
  }
}
