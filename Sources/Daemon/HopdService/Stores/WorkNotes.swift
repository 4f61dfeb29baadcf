// Notes which stores are being inspected or migrated, in a file that outlives the process. If the daemon is killed
// during the work (by a signal, for lack of memory, by the watchdog), the next one reads there which stores were being
// worked on. The notes cost two writes into the page cache for each piece of work, and no sync: they need not survive a
// crash of the machine.

import DurableFiles
import Glibc
import StoreReplacement
import Synchronization
import SystemPackage

/// A piece of work that was unfinished when a daemon was killed.
package struct UnfinishedWork: Hashable, Sendable {
  /// The key of the store.
  package let store: FilePath
  /// The kind of work.
  package let step: JobStep
}

/// The notes of a running daemon.
package final class WorkNotes: Sendable {
  /// The work that the previous daemon was doing when it was killed.
  package let unfinished: [UnfinishedWork]
  private let descriptor: Int32
  private let path: FilePath
  private let slots = Mutex<[Bool]>([])

  /// Bytes of a note: a length, a step, and a path.
  private static let slotSize = 8192
  private static let headerSize = 64
  private static let fileName: FilePath.Component = "at-work"
  /// The maximum number of notes that are read; there are never more than two per job.
  private static let mostSlots = 1024

  /// Reads the notes of the previous daemon and begins new ones; nil if the state directory cannot be written.
  package init?(stateDirectory: FilePath, boot: String) {
    path = stateDirectory.appending(Self.fileName)
    descriptor = path.withPlatformString { open($0, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600) }
    guard descriptor >= 0 else { return nil }
    let header = Self.header(boot)
    unfinished = Self.bytes(descriptor, count: Self.headerSize, at: 0) == header ? Self.read(descriptor) : []
    FileLock.note(header, in: descriptor)
    // All properties are set, so `deinit` closes the file.
    guard Self.bytes(descriptor, count: Self.headerSize, at: 0) == header else { return nil }
  }

  deinit { close(descriptor) }

  /// Notes that work on a store begins; returns the slot for `end`.
  package func begin(_ store: FilePath, _ step: JobStep) -> Int {
    let slot = slots.withLock { slots in
      if let free = slots.firstIndex(of: false) {
        slots[free] = true
        return free
      }
      slots.append(true)
      return slots.count - 1
    }
    let path = PathText.bytes(of: store)
    guard path.count <= Self.slotSize - 4 else { return slot }
    let note: [UInt8] = [UInt8(path.count & 255), UInt8(path.count >> 8), step == .inspect ? 1 : 2, 0] + path
    _ = pwrite(descriptor, note, note.count, Self.offset(slot))
    return slot
  }

  /// Notes that the work has ended, with whatever result.
  package func end(_ slot: Int) {
    let nothing: [UInt8] = [0, 0, 0, 0]
    _ = pwrite(descriptor, nothing, nothing.count, Self.offset(slot))
    slots.withLock { slots in
      if slots.indices.contains(slot) { slots[slot] = false }
    }
  }

  /// Invalidates the notes because the daemon stops: work that is unfinished from now on makes no store a suspect.
  package func stop() {
    let header = [UInt8](repeating: 0, count: Self.headerSize)
    _ = pwrite(descriptor, header, header.count, 0)
  }

  /// Removes the notes, because no work is unfinished.
  package func remove() { _ = path.withPlatformString { unlink($0) } }

  // MARK: Private helpers

  private static func offset(_ slot: Int) -> off_t { off_t(headerSize &+ slot &* slotSize) }

  /// The header names the boot, because after a reboot no store counts as the cause.
  private static func header(_ boot: String) -> [UInt8] {
    let text = Array("hopd-work 1 \(boot)".utf8).prefix(headerSize)
    return text + [UInt8](repeating: 0, count: headerSize - text.count)
  }

  private static func read(_ descriptor: Int32) -> [UnfinishedWork] {
    (0..<mostSlots).compactMap { slot in
      let head = bytes(descriptor, count: 4, at: offset(slot))
      guard head.count == 4 else { return nil }
      let length = Int(head[0]) | Int(head[1]) << 8
      guard length > 0, length <= slotSize - 4 else { return nil }
      let path = bytes(descriptor, count: length, at: offset(slot) + 4)
      guard path.count == length, !path.contains(0) else { return nil }
      let store = FilePath(platformString: path.map { CChar(bitPattern: $0) } + [0])
      return UnfinishedWork(store: store, step: head[2] == 1 ? .inspect : .migrate)
    }
  }

  private static func bytes(_ descriptor: Int32, count: Int, at offset: off_t) -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: count)
    let got = pread(descriptor, &buffer, count, offset)
    return Array(buffer.prefix(max(0, got)))
  }
}
