// The file from which a running hopd was started. An upgrade replaces the file, and the old program continues until a
// restart: a reader of the record compares the two files.

import Glibc
import SystemPackage

/// The identity of a program's file at one moment.
package struct ProgramFile: Sendable, Hashable {
  /// Path of the file.
  package let path: FilePath
  /// Its inode, size and time of change: another file has others.
  private let mark: String

  /// The file of this process; nil if /proc does not show it.
  package static var own: ProgramFile? {
    var buffer = [CChar](repeating: 0, count: 4096)
    let count = readlink("/proc/self/exe", &buffer, buffer.count - 1)
    guard count > 0 else { return nil }
    return ProgramFile(FilePath(String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)))
  }

  /// The file that is at a path now; nil if it is missing or not visible.
  package init?(_ path: FilePath) {
    var status = stat()
    guard path.withPlatformString({ stat($0, &status) }) == 0 else { return nil }
    self.path = path
    mark = "\(status.st_ino) \(status.st_size) \(status.st_mtim.tv_sec) \(status.st_mtim.tv_nsec)"
  }

  /// Parses the result of `text`; nil for anything else.
  package init?(text: String) {
    let words = text.split(separator: " ", maxSplits: 4)
    guard words.count == 5 else { return nil }
    mark = words.prefix(4).joined(separator: " ")
    path = FilePath(String(words[4]))
  }

  /// The value as one line.
  package var text: String { "\(mark) \(path.string)" }

  /// Whether another file is at the path now; false if no file is visible.
  package var isReplaced: Bool { ProgramFile(path).map { $0.mark != mark } ?? false }
}
