// External files of a backup that the store has lost, copied back before the store gets its name. The directory is the
// user's, so a file gets its own name only when it is complete: every program, and the next restore too, would take
// half a file under that name for the whole one.

import Diagnostics
import DurableFiles
import PersistentStore
import SystemPackage

/// Copies external files back, and never changes existing ones (docs/formats/replacement.md, "External data").
struct RestoredExternalData {
  /// The backup.
  let source: StoreLocation
  /// The store.
  let destination: CanonicalStoreLocation
  let files: any DurableFileSystem

  /// Links the files, or copies them if that fails, and makes their names durable.
  func bringBack() throws {
    guard try files.status(source.externalDataDirectory)?.kind == .directory else { return }
    let directory = destination.externalDataDirectory
    for directory in [destination.supportDirectory, directory] { try files.ensureDirectory(directory, mode: 0o755) }
    for name in try files.names(in: directory) where Self.isPart(name) { try files.unlink(directory.appending(name)) }
    for name in try files.names(in: source.externalDataDirectory) where !Self.isPart(name) {
      try bringBack(source.externalDataDirectory.appending(name), as: directory.appending(name))
    }
    // Includes files that an interrupted restore had made and not synced.
    for directory in [directory, destination.supportDirectory, destination.directory] {
      try files.syncDirectory(directory)
    }
  }

  /// Names of files that are in both places with different content; files that are one by hard links are not read.
  func differingFiles() throws -> [String] {
    guard try files.status(source.externalDataDirectory)?.kind == .directory,
      try files.status(destination.externalDataDirectory)?.kind == .directory
    else { return [] }
    return try files.names(in: source.externalDataDirectory).filter { name in
      let (own, other) = (
        source.externalDataDirectory.appending(name), destination.externalDataDirectory.appending(name)
      )
      guard !Self.isPart(name), let kept = try files.status(own), kept.kind == .regular,
        let there = try files.status(other), there.identity != kept.identity
      else { return false }
      return try there.kind != .regular || there.size != kept.size || !files.hasSameContent(own, other)
    }.map(\.string)
  }

  private func bringBack(_ file: FilePath, as target: FilePath) throws {
    guard try files.status(file)?.kind == .regular, try files.status(target) == nil else { return }
    do {
      return try files.link(file, as: target)
    } catch let error as HopdError where error.asksForCopy {}
    let part = target.removingLastComponent().appending(
      ".\(PathText.digest(PathText.bytes(of: target)))\(Self.suffix)")
    do {
      try files.copyFile(from: file, to: part)
      // The copy gets the file's owner, where this process may set it.
      _ = try? files.copyAttributes(from: file, to: part)
      try files.renameNoReplace(part, to: target)
    } catch {
      _ = try? files.unlinkIfPresent(part)
      throw error
    }
  }

  private static let suffix = ".hopd-part"

  private static func isPart(_ name: FilePath.Component) -> Bool {
    name.string.hasPrefix(".") && name.string.hasSuffix(suffix)
  }
}
