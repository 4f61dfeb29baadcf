// The names of the staged stores of one job, beside the store (the same file system, so that a rename is one step).

import Diagnostics
import DurableFiles
import PersistentStore
import SystemPackage

/// Where one job builds its staged stores: `.<name>.hop-<job>[-<n>].tmp` beside the store.
package struct StagingArea: Sendable {
  /// The store the job works on.
  package let location: CanonicalStoreLocation
  /// Short lower-case hex text that names the job.
  package let job: String
  private let files: any DurableFileSystem

  /// The area of a job.
  package init(location: CanonicalStoreLocation, job: String, files: any DurableFileSystem) {
    self.location = location
    self.job = job
    self.files = files
  }

  /// Path of the staged store of a hop, counted from 0; nil for a job that has only one.
  package func path(hop: Int?) -> FilePath {
    location.directory.appending(
      StagingArea.prefix(location) + job + (hop.map { "-\($0)" } ?? "") + ".tmp")
  }

  /// Path of another file of the job that goes with its staged stores.
  package func path(named name: String) -> FilePath {
    location.directory.appending(StagingArea.prefix(location) + job + "-\(name).tmp")
  }

  /// Creates the empty file that SQLite is to fill, readable for this user only; an existing file of that name is
  /// removed.
  package func create(hop: Int?) throws -> FilePath {
    let path = path(hop: hop)
    try make(path)
    return path
  }

  /// Creates the file as `create(hop:)` does, or takes the one that an interrupted run left, and reserves disk space
  /// for `bytes` where the file system can do that, so that no other program takes it later. Throws `.noSpace`, and
  /// leaves no new file.
  package func create(hop: Int?, reserving bytes: Int64, resuming: Bool = false) throws -> FilePath {
    let path = resuming ? path(hop: hop) : try create(hop: hop)
    do {
      try reserve(bytes, for: path)
    } catch {
      if !resuming { try? remove(path) }
      throw error
    }
    return path
  }

  /// The purpose of reserved space.
  package enum SpacePurpose: String, CaseIterable, Sendable {
    /// The staged store of the next hop.
    case nextStore = "reserve"
    /// Backup and side file of a commit in place.
    case commit = "reserve-commit"
  }

  /// Reserves disk space for files that are made later.
  package func reserveDiskSpace(_ bytes: Int64, for purpose: SpacePurpose) throws {
    let reserved = path(named: purpose.rawValue)
    try make(reserved)
    do { try reserve(bytes, for: reserved) } catch {
      try? remove(reserved)
      throw error
    }
  }

  /// Releases the space that `reserveDiskSpace` reserved.
  package func releaseDiskSpace(for purpose: SpacePurpose) throws {
    try files.unlinkIfPresent(path(named: purpose.rawValue))
  }

  /// Releases the space reserved beyond the end of a staged store that grows no more, or not for now.
  package func giveBackReserve(hop: Int?) throws {
    let path = path(hop: hop)
    if try files.status(path) != nil { try files.giveBackReserve(of: path) }
  }

  /// Bytes that this job's files have on the disk, including reserved ones.
  package func allocatedBytes(hops: Range<Int>) throws -> Int64 {
    try (hops.map { path(hop: $0) } + SpacePurpose.allCases.map { path(named: $0.rawValue) }).reduce(0) { sum, path in
      sum.addingReportingOverflow(try files.status(path)?.allocated ?? 0).partialValue
    }
  }

  private func reserve(_ bytes: Int64, for path: FilePath) throws {
    guard bytes > 0 else { return }
    do {
      _ = try files.reserve(bytes, for: path)
    } catch var error as HopdError where error.code == .noSpace {
      error.message = "not enough space: \(bytes) bytes cannot be set aside"
      error.place = Place(store: location.database)
      error.hint =
        "free \(bytes / 1_048_576 + 1) MiB on the file system of \(location.directory.printable), or raise the quota"
      throw error
    }
  }

  private func make(_ path: FilePath) throws {
    try remove(path)
    // Scratch until it is sealed, which syncs it.
    try files.createUnsyncedFile(path, [], mode: 0o600)
  }

  /// Gives a complete and closed staged store the name of the next hop's. A journal of either name is a leftover: that
  /// of the store has been closed, and one of the next hop would be taken for the store's.
  package func takeOver(hop: Int, as next: Int) throws {
    try remove(path(hop: next))
    try StagingArea.removeSideFiles(of: path(hop: hop), files: files)
    try files.rename(path(hop: hop), to: path(hop: next))
  }

  /// Removes one staged store with its side files.
  package func remove(_ staged: FilePath) throws {
    try StagingArea.remove(staged, files: files)
  }

  /// Removes everything of this job except `kept`, then syncs the directory.
  package func removeAll(except kept: FilePath? = nil) throws {
    let mine = try StagingArea.leftovers(of: location, files: files).filter { $0.job == job && $0.path != kept }
    for leftover in mine { try remove(leftover.path) }
    if !mine.isEmpty { try files.syncDirectory(location.directory) }
  }

  /// Throws `.noSpace` with the missing amount unless `bytes` more fit on the file system, with a tenth in reserve.
  package func requireSpace(_ bytes: Int64) throws {
    try StagingArea.requireSpace(bytes, at: location.directory, for: location, files: files)
  }

  /// The same for another directory in which files of the store's replacement are made.
  static func requireSpace(
    _ bytes: Int64, at directory: FilePath, for location: CanonicalStoreLocation, files: any DurableFileSystem
  ) throws {
    let needed = bytes.addingReportingOverflow(bytes / 10)
    let free = try files.freeBytes(at: directory)
    guard needed.overflow || free < needed.partialValue else { return }
    let missing = needed.overflow ? Int64.max : needed.partialValue - free
    throw HopdError(
      .noSpace,
      "not enough space: \(ByteCount.text(needed.overflow ? .max : needed.partialValue)) are needed, "
        + "\(ByteCount.text(free)) are free",
      at: Place(store: location.database),
      hint: "free at least \(ByteCount.text(missing)) on the file system of \(directory.printable); "
        + "list backups there with hopctl backups \(location.directory.quotedForShell), "
        + "those that can be deleted with hopctl prune \(location.directory.quotedForShell) --keep 1 --dry-run")
  }

  /// Proves before any work that a file beside the store can get the store's owner, mode, ACLs and labels.
  ///
  /// Creates an empty file, sets them, and removes it. Throws `.cannotReplace` with each attribute that cannot be kept.
  package func proveAttributesCanBeKept() throws {
    let attributes = try files.attributes(of: location.database)
    let probe = location.directory.appending(StagingArea.prefix(location) + job + "-probe.tmp")
    try make(probe)
    do {
      try files.setAttributes(attributes, of: probe)
    } catch {
      _ = try? files.unlinkIfPresent(probe)
      throw StagingArea.attributesLost(location, error)
    }
    try files.unlink(probe)
  }

  static func attributesLost(_ location: CanonicalStoreLocation, _ cause: any Error) -> HopdError {
    HopdError(
      .cannotReplace, "owner, mode, ACL or extended attributes of the store cannot be given to a new file",
      at: Place(store: location.database), cause: cause,
      hint: "run as the owner of the store, or \(ReplacementMode.keepsTheFile)")
  }

  // MARK: Leftovers

  /// A staged store found beside a store.
  package struct Leftover: Hashable, Sendable {
    /// Its database file.
    package let path: FilePath
    /// The job in its name.
    package let job: String
  }

  /// Staged stores of any job beside this store, including those of which only a side file is left.
  package static func leftovers(of location: CanonicalStoreLocation, files: any DurableFileSystem) throws -> [Leftover]
  {
    leftovers(of: location, among: try files.names(in: location.directory))
  }

  /// Whether a file of that name could belong to a staged store.
  static func mayBeStaged(_ name: FilePath.Component) -> Bool {
    name.string.hasPrefix(".") && name.string.contains(".hop-")
  }

  /// Those among names of the store's directory.
  static func leftovers(of location: CanonicalStoreLocation, among names: [FilePath.Component]) -> [Leftover] {
    let prefix = prefix(location)
    var found: [Leftover] = []
    for name in names {
      guard name.string.hasPrefix(prefix), let end = name.string.ranges(of: ".tmp").last else { continue }
      let rest = name.string[end.upperBound...]
      guard rest.isEmpty || sideFileSuffixes.contains(String(rest)) else { continue }
      let middle = name.string[..<end.lowerBound].dropFirst(prefix.count)
      let leftover = Leftover(
        path: location.directory.appending(String(name.string[..<end.upperBound])),
        job: String(middle.prefix { $0 != "-" }))
      if !found.contains(leftover) { found.append(leftover) }
    }
    return found
  }

  static func remove(_ staged: FilePath, files: any DurableFileSystem) throws {
    try files.unlinkIfPresent(staged)
    try removeSideFiles(of: staged, files: files)
  }

  private static func removeSideFiles(of staged: FilePath, files: any DurableFileSystem) throws {
    guard let name = staged.lastComponent else { return }
    for suffix in sideFileSuffixes {
      try files.unlinkIfPresent(staged.removingLastComponent().appending(name.string + suffix))
    }
  }

  private static let sideFileSuffixes = ["-journal", "-wal", "-shm"]

  private static func prefix(_ location: CanonicalStoreLocation) -> String {
    ".\(NameLabel.label(of: location.fileName)).hop-"
  }
}
