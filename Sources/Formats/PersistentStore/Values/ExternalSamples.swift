// Files for the sample values of a filled store. Core Data puts large values into files; samples do so with a few, so
// that even a store of a million objects has only a few megabytes of them.

import Diagnostics

/// Receives the sample values that go into external files.
package final class ExternalSamples {
  /// Core Data keeps values of up to about 100 KB in the column (docs/formats/store-layout.md, "External binary data").
  static let size = 120_000
  private static let most = 16

  private let write: (ExternalFileName, [UInt8]) throws -> Void
  private var count = 0
  private var failure: (any Error)?

  /// Creates an instance that passes every file to `write`.
  package init(write: @escaping (ExternalFileName, [UInt8]) throws -> Void) { self.write = write }

  /// Whether another file is allowed.
  var hasRoom: Bool { count < ExternalSamples.most && failure == nil }

  /// Writes a file; false if that failed.
  func keep(_ content: [UInt8], as name: ExternalFileName) -> Bool {
    do {
      try write(name, content)
      count += 1
      return true
    } catch {
      failure = error
      return false
    }
  }

  /// Throws the error of a failed write.
  func throwIfFailed() throws { if let failure { throw failure } }
}
