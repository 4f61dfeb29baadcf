// Reads the text of a file that people write by hand. A user with write access can replace it by anything, so
// everything but a plain file of a sensible size is refused before it is read.

import Diagnostics
import Glibc
import SystemPackage

/// Reads files of TOML.
package enum TOMLFile {
  /// Returns the text of a file, nil if there is none; empty for a device such as /dev/null.
  ///
  /// Messages call the file `title`; a file that is not a text of at most 1 MiB is refused with `code`.
  package static func text(
    of file: FilePath, called title: String, code invalid: HopdError.Code
  ) throws(HopdError) -> String? {
    // Nonblocking: a pipe in place of the file must not block the start.
    let descriptor = file.withPlatformString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }
    if descriptor < 0, errno == ENOENT { return nil }
    var status = stat()
    guard descriptor >= 0, fstat(descriptor, &status) == 0 else {
      let code = Errno(rawValue: errno)
      if descriptor >= 0 { close(descriptor) }
      throw HopdError(
        code == .permissionDenied ? .noPermission : .inputOutput, "the \(title) cannot be read: \(code)",
        at: Place(file: file))
    }
    defer { close(descriptor) }
    if status.st_mode & S_IFMT == S_IFCHR { return "" }
    guard status.st_mode & S_IFMT == S_IFREG, status.st_size <= 1 << 20 else {
      throw HopdError(
        invalid, "this is not a regular file of at most 1 MiB", at: Place(file: file),
        hint: "replace it with a TOML file")
    }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 * 1024)
    while true {
      let count = read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else {
        throw HopdError(.inputOutput, "the \(title) cannot be read: \(Errno(rawValue: errno))", at: Place(file: file))
      }
      if count == 0 { break }
      bytes += buffer.prefix(count)
      // The file may have grown since the inspection.
      if bytes.count > 2 << 20 { break }
    }
    // NUL would end the value where the system reads it, as a path or an argument.
    guard !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) else {
      let lines = bytes.split(separator: 10, omittingEmptySubsequences: false)
      let bad = lines.firstIndex { $0.contains(0) || String(validating: $0, as: UTF8.self) == nil } ?? 0
      throw HopdError(
        invalid, "this is no UTF-8 text", at: Place(file: file, line: bad + 1),
        hint: "save the file as UTF-8, without NUL characters")
    }
    return text
  }
}
