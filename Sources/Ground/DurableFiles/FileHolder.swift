// The holder of a file's lock, for the message that refuses the file.

import Diagnostics
import Glibc
import SystemPackage

/// A process that has a lock on a file.
package struct FileHolder: Hashable, Sendable, CustomStringConvertible {
  /// Its number.
  package let process: Int32
  /// Name of its program, where the system reports it.
  package let program: String?

  /// Notes a holder.
  package init(process: Int32, program: String?) {
    self.process = process
    self.program = program
  }

  /// Whether it is a program of hopd's.
  package var isHopd: Bool { program == "hopd" || program == "hopctl" }

  /// "sqlite3, process 4711".
  package var description: String {
    (program.map { $0.printableLine + ", " } ?? "") + "process \(process)"
  }
}

extension DurableFileSystem {
  /// For file systems that have no other processes.
  package func holder(of path: FilePath) throws -> FileHolder? { nil }
}

extension LinuxFileSystem {
  package func holder(of path: FilePath) throws -> FileHolder? {
    let file = try open(path, "ask for locks", O_RDONLY | O_NONBLOCK)
    // The request: may all of the file be locked for writing? The kernel returns a lock that conflicts.
    var question = Glibc.flock()
    question.l_type = Int16(F_WRLCK)
    question.l_whence = Int16(SEEK_SET)
    try call("ask for locks", at: path) { fcntl(file.number, F_GETLK, &question) }
    guard question.l_type != Int16(F_UNLCK), question.l_pid > 0 else { return nil }
    return FileHolder(process: question.l_pid, program: LinuxFileSystem.program(of: question.l_pid))
  }

  /// Name of a process's program, cut to 15 bytes by the kernel; nil if it is hidden or the process has exited.
  private static func program(of process: Int32) -> String? {
    let descriptor = Glibc.open("/proc/\(process)/comm", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 64)
    let count = Glibc.read(descriptor, &buffer, buffer.count)
    guard count > 1 else { return nil }
    return String(decoding: buffer.prefix(count).prefix { $0 != 0x0a }, as: UTF8.self)
  }
}
