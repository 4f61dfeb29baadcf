// The file that a running hopd was started from. An upgrade puts another file under its name, and the old program
// continues until somebody restarts it: a reader of the record compares the two.

import Glibc
import SystemPackage

/// A program's file as it was at one moment.
package struct ProgramFile: Sendable, Hashable {
  /// Where it lies.
  package let path: FilePath
  /// Its inode, size and time of change: another file has others.
  private let mark: String

  /// The file of this process; nil where the system does not tell.
  package static var own: ProgramFile? {
    var buffer = [CChar](repeating: 0, count: 4096)
    let count = readlink("/proc/self/exe", &buffer, buffer.count - 1)
    guard count > 0 else { return nil }
    return ProgramFile(FilePath(String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)))
  }

  /// The file at a path as it is now; nil where there is none, or none to be seen.
  package init?(_ path: FilePath) {
    var status = stat()
    guard path.withPlatformString({ stat($0, &status) }) == 0 else { return nil }
    self.path = path
    mark = "\(status.st_ino) \(status.st_size) \(status.st_mtim.tv_sec) \(status.st_mtim.tv_nsec)"
  }

  /// Reads what `text` wrote; nil for anything else.
  package init?(text: String) {
    let words = text.split(separator: " ", maxSplits: 4)
    guard words.count == 5 else { return nil }
    mark = words.prefix(4).joined(separator: " ")
    path = FilePath(String(words[4]))
  }

  /// In one line.
  package var text: String { "\(mark) \(path.string)" }

  /// Does another file lie there now? False where none is to be seen.
  package var isReplaced: Bool { ProgramFile(path).map { $0.mark != mark } ?? false }
}
