// A wrapper of inotify(7): one nonblocking instance, with watches on directories only.

import DurableFiles
import Glibc
import SystemPackage

/// One inotify instance.
struct Inotify: ~Copyable {
  /// One event; the name is bytes, not text.
  struct Event {
    var watch: Int32
    var mask: UInt32
    var name: [UInt8]

    func has(_ bits: Int32) -> Bool { mask & UInt32(truncatingIfNeeded: bits) != 0 }
  }

  /// The descriptor, for poll(2).
  let descriptor: Int32

  /// Opens an instance, or returns the kernel's error. A failable initializer would run `deinit`, whose close(2)
  /// overwrites errno.
  static func open() -> Result<Int32, Errno> {
    let descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
    return descriptor >= 0 ? .success(descriptor) : .failure(Errno(rawValue: errno))
  }

  /// Takes over a descriptor that `open` made.
  init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(descriptor) }

  /// Watches an open directory, by its name in /proc: whatever its path leads to by now. Returns nil on failure, with
  /// errno set.
  func add(_ directory: OpenDirectory) -> Int32? {
    let mask =
      IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF
      | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK
    let watch = inotify_add_watch(
      descriptor, "/proc/self/fd/\(directory.descriptor)", UInt32(truncatingIfNeeded: mask))
    return watch >= 0 ? watch : nil
  }

  func remove(_ watch: Int32) { inotify_rm_watch(descriptor, watch) }

  /// Reads the pending events, at most one full buffer; empty if there are none.
  func read() -> [Event] {
    var events: [Event] = []
    withUnsafeTemporaryAllocation(byteCount: 64 * 1024, alignment: MemoryLayout<inotify_event>.alignment) { buffer in
      guard let base = buffer.baseAddress else { return }
      let count = Glibc.read(descriptor, base, buffer.count)
      var offset = 0
      let header = MemoryLayout<inotify_event>.size
      while offset + header <= count {
        let event = buffer.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
        let end = offset + header + Int(event.len)
        guard end <= count else { return }
        // The name is padded with NULs.
        let name = buffer[(offset + header)..<end].prefix { $0 != 0 }
        events.append(Event(watch: event.wd, mask: event.mask, name: Array(name)))
        offset = end
      }
    }
    return events
  }
}

/// Calls `body` with the bytes as a C string.
func withCString<Result>(_ bytes: [UInt8], _ body: (UnsafePointer<CChar>) -> Result) -> Result {
  var terminated = bytes.map { CChar(bitPattern: $0) }
  terminated.append(0)
  return terminated.withUnsafeBufferPointer { buffer in
    // The array is never empty, because it contains the NUL.
    buffer.baseAddress.map(body) ?? body("")
  }
}
