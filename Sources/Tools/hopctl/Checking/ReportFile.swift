// Output files of a command: reports and lock files. Each replaces the file of the run before atomically.

import Diagnostics
import DurableFiles
import Glibc
import StoreReplacement
import SystemPackage

/// Writes output files.
enum ReportFile {
  /// The present in UTC, as "2026-01-31T12:00:00Z".
  static var now: String { BackupRecord.time(Int64(time(nil))) }

  /// Writes a text to a path as typed; an existing file is replaced.
  static func write(_ text: String, to name: String) throws {
    let file = FilePath(name)
    guard file.lastComponent?.kind == .regular else {
      throw HopdError(.usage, "not a file name", at: Place(file: file), hint: "pass the path of a file")
    }
    let files = LinuxFileSystem(isDurable: false)
    do {
      try write(text, to: file.resolvedInFolder(), files)
    } catch let error as HopdError where error.code == .notFound {
      throw missing(file)
    }
  }

  /// Throws if the folder of a file does not exist: before work whose result could not be written.
  static func requireFolder(of name: String) throws {
    let file = FilePath(name)
    do { _ = try file.resolvedInFolder() } catch let error as HopdError where error.code == .notFound {
      throw missing(file)
    }
  }

  private static func missing(_ file: FilePath) -> HopdError {
    HopdError(
      .notFound, "directory does not exist", at: Place(file: file),
      hint: "create it: mkdir -p \(file.removingLastComponent().quotedForShell)")
  }

  /// The same for a path whose folder is resolved.
  static func write(_ text: String, to path: FilePath, _ files: LinuxFileSystem) throws {
    guard let name = path.lastComponent else { return }
    let status = try files.status(path)
    // A device or a pipe, such as /dev/stdout, is written directly.
    if let status, status.kind != .regular {
      let descriptor = try FileDescriptor.open(path, .writeOnly, options: [.closeOnExec])
      _ = try descriptor.closeAfter { try descriptor.writeAll(text.utf8) }
      return
    }
    let hidden = path.removingLastComponent().appending(
      ".\(name.string).hop-\(String(UInt64.random(in: .min ... .max), radix: 16)).tmp")
    try files.createFile(hidden, Array(text.utf8), mode: 0o644)
    do {
      try files.rename(hidden, to: path)
    } catch {
      _ = try? files.unlinkIfPresent(hidden)
      throw error
    }
  }
}
