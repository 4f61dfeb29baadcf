// A file that an export writes, in portions.

import Diagnostics
import SystemPackage

/// A new file, written through a buffer.
final class OutputFile {
  private let descriptor: FileDescriptor
  private let path: FilePath
  private var buffer: [UInt8] = []
  private var isOpen = true
  private static let portion = 256 << 10

  /// Creates the file, which must not exist.
  init(_ path: FilePath) throws(HopdError) {
    self.path = path
    do {
      descriptor = try FileDescriptor.open(
        path, .writeOnly, options: [.create, .exclusiveCreate, .noFollow, .closeOnExec],
        permissions: [.ownerReadWrite])
    } catch {
      throw OutputFile.failure(error, path)
    }
    buffer.reserveCapacity(OutputFile.portion + 4096)
  }

  deinit { if isOpen { try? descriptor.close() } }

  /// Writes bytes.
  func write(_ bytes: some Sequence<UInt8>) throws(HopdError) {
    buffer.append(contentsOf: bytes)
    if buffer.count >= OutputFile.portion { try flush() }
  }

  /// Writes a text.
  func write(_ text: String) throws(HopdError) { try write(text.utf8) }

  /// Writes the rest and closes the file.
  func close() throws(HopdError) {
    try flush()
    isOpen = false
    do { try descriptor.close() } catch { throw OutputFile.failure(error, path) }
  }

  private func flush() throws(HopdError) {
    do { _ = try descriptor.writeAll(buffer) } catch { throw OutputFile.failure(error, path) }
    buffer.removeAll(keepingCapacity: true)
  }

  private static func failure(_ error: any Error, _ path: FilePath) -> HopdError {
    let code: HopdError.Code =
      switch error as? Errno {
      case .noSpace?, .diskQuotaExceeded?: .noSpace
      case .permissionDenied?, .notPermitted?, .readOnlyFileSystem?: .noPermission
      default: .inputOutput
      }
    return HopdError(
      code, "the file cannot be written", at: Place(file: path), cause: error,
      hint: "choose a writable path with enough free space")
  }
}
