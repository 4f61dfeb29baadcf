// Manifests and results as files that grow by lines of JSON.

import Diagnostics
import DurableFiles
import FoundationEssentials
import SystemPackage

/// Appends values to a file, each as one line of JSON, from any thread.
package final class LineFile: Sendable {
  private let file: AppendedFile

  /// The file.
  package var path: FilePath { file.path }

  /// Opens a file, or makes it, and removes half a line at its end. One program at a time may have it open. An existing
  /// file without lines of JSON is refused.
  package init(path: FilePath) throws(HopdError) {
    file = try AppendedFile(path: path, linesBeginWith: UInt8(ascii: "{"), endWith: UInt8(ascii: "}"))
  }

  /// Appends a value as one line.
  package func append(_ value: some Encodable) throws(HopdError) { try file.append(Self.bytes(of: value)) }

  /// Creates all lines durable; throws where some are lost.
  package func finish() throws(HopdError) { try file.finish() }

  /// A value as one line of JSON with its newline, keys sorted.
  package static func bytes(of value: some Encodable) throws(HopdError) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    do {
      return Array(try encoder.encode(value)) + [UInt8(ascii: "\n")]
    } catch {
      throw HopdError(.internalError, "a line cannot be written as JSON", cause: error)
    }
  }
}
