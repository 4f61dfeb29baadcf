// Copies of many files. A sync after each copy waits for the disk each time, a millisecond and more; if several copies
// are written already, the first sync covers the others too.

import Diagnostics
import SystemPackage

/// Copies of many files, synced some at a time: each is durable after `finish()`.
package struct FileCopies {
  /// How many copies wait for their sync, each with an open descriptor: an error of the disk is only reported to
  /// descriptors that were open at the time.
  package static let unsyncedMax = 64

  private let files: any DurableFileSystem
  private var unsynced: [UnsyncedFile] = []

  /// Copies nothing yet.
  package init(_ files: any DurableFileSystem) { self.files = files }

  /// Copies a file as `DurableFileSystem.copyFile` does. Attributes that it gets before the next call are synced with
  /// it.
  ///
  /// - Throws: also the error of an earlier copy's sync.
  package mutating func copy(from source: FilePath, to destination: FilePath) throws {
    if unsynced.count >= Self.unsyncedMax { try finish() }
    unsynced.append(try files.copyUnsyncedFile(from: source, to: destination))
  }

  /// Creates all copies durable. Their names are not yet safe: sync the directory.
  package mutating func finish() throws {
    defer { unsynced = [] }
    for file in unsynced { try file.sync() }
  }
}
