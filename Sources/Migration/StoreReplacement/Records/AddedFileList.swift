// The external files that an import writes into the directory of a store before the store refers to them. Their names
// are in a file of the job, so that recovery can remove them if the job was killed. After a power cut, the list may
// lack the names of the last second.

import Diagnostics
import DurableFiles
import PersistentStore
import SystemPackage

/// A list of external files on disk, beside the staged store of a job.
package final class AddedFileList {
  private let location: CanonicalStoreLocation
  private let path: FilePath
  private let descriptor: FileDescriptor
  private let schemaVersion: Int64
  private let files: any DurableFileSystem

  private static let name = "added"
  /// A name and the end of the line.
  private static let lineLength = 37

  /// Creates the list of a job. `schemaVersion` is that of the store: the import changes it, so a store that still has
  /// it refers to none of the files.
  package init(in area: StagingArea, schemaVersion: Int64, files: any DurableFileSystem) throws {
    location = area.location
    path = area.path(named: Self.name)
    self.schemaVersion = schemaVersion
    self.files = files
    try files.createUnsyncedFile(path, Array("\(schemaVersion)\n".utf8), mode: 0o600)
    descriptor = try FileDescriptor.open(path, .writeOnly, options: [.append, .noFollow, .closeOnExec])
  }

  deinit { try? descriptor.close() }

  /// Notes a file that is about to be written.
  package func note(_ name: ExternalFileName) throws {
    do { try descriptor.writeAll(Array("\(name.text)\n".utf8)) } catch {
      let isFull = [.noSpace, .diskQuotaExceeded].contains(error as? Errno)
      throw HopdError(
        isFull ? .noSpace : .inputOutput, "the list of external files cannot be written", at: Place(file: path),
        cause: error, hint: "free space or check the kernel log")
    }
  }

  /// Removes the list: the store refers to the files now.
  package func remove() throws { try files.unlinkIfPresent(path) }

  /// Removes the files: the store is the old one.
  package func withdraw() throws {
    try Self.withdraw(path, of: location, schemaVersion: schemaVersion, files: files)
  }

  /// Whether a file of a job is such a list.
  static func isList(_ path: FilePath) -> Bool { path.lastComponent?.string.hasSuffix("-\(name).tmp") == true }

  /// Removes the files of a list, if the store has the schema version of the list.
  static func withdraw(
    _ list: FilePath, of location: CanonicalStoreLocation, schemaVersion: Int64?, files: any DurableFileSystem
  ) throws {
    guard let schemaVersion, try files.status(list)?.kind == .regular else { return }
    let descriptor = try FileDescriptor.open(list, .readOnly, options: [.noFollow, .closeOnExec])
    try descriptor.closeAfter {
      let head = Array("\(schemaVersion)\n".utf8)
      guard try Self.read(descriptor, at: 0, count: head.count) == head else { return }
      var place = Int64(head.count)
      while true {
        let lines = try Self.read(descriptor, at: place, count: 1024 * lineLength)
        guard lines.count >= lineLength else { break }
        place += Int64(lines.count - lines.count % lineLength)
        for start in stride(from: 0, through: lines.count - lineLength, by: lineLength) {
          guard let name = ExternalFileName(lines[start..<start + lineLength - 1]) else { continue }
          try files.unlinkIfPresent(location.externalDataDirectory.appending(name.text))
        }
      }
    }
    guard try files.status(location.externalDataDirectory)?.kind == .directory else { return }
    try files.syncDirectory(location.externalDataDirectory)
    // Directories with other files stay.
    try? files.removeDirectory(location.externalDataDirectory)
    try? files.removeDirectory(location.supportDirectory)
  }

  private static func read(_ descriptor: FileDescriptor, at place: Int64, count: Int) throws -> [UInt8] {
    try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      filled = 0
      while filled < count {
        let portion = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...])
        let read = try descriptor.read(fromAbsoluteOffset: place + Int64(filled), into: portion)
        if read == 0 { break }
        filled += read
      }
    }
  }
}
