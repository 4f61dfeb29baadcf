// The database files that this process has open, and their use. Any close of a file in a process drops the process's
// POSIX locks on it (tools/README.md, "SQLite and files"): an inspection of a store, under whatever name, would
// drop the lock of the job that migrates it. So a file is either held by one job or inspected, never both.

import Synchronization

/// The uses of database files within this process, by device and inode: names do not count, because a hard link or a
/// bind mount is the same file.
package enum StoreFileUse {
  /// A file, independent of its name.
  package struct File: Hashable, Sendable {
    /// Device number.
    package let device: UInt64
    /// Inode number on it.
    package let inode: UInt64

    /// Creates the identity of a file.
    package init(device: UInt64, inode: UInt64) {
      self.device = device
      self.inode = inode
    }
  }

  private enum Use {
    case held
    case read(by: Int)
  }

  private static let uses = Mutex<[File: Use]>([:])

  /// Begins to hold a file alone; false if it is held or inspected.
  package static func beginHolding(_ file: File) -> Bool {
    uses.withLock { uses in
      guard uses[file] == nil else { return false }
      uses[file] = .held
      return true
    }
  }

  /// Ends the hold of a file.
  package static func endHolding(_ file: File) {
    uses.withLock { uses in
      if case .held = uses[file] { uses[file] = nil }
    }
  }

  /// Begins an inspection; false if the file is held. Any number of inspections may run at once.
  package static func beginReading(_ file: File) -> Bool {
    uses.withLock { uses in
      switch uses[file] {
      case .held: return false
      case .read(let count): uses[file] = .read(by: count + 1)
      case nil: uses[file] = .read(by: 1)
      }
      return true
    }
  }

  /// Ends an inspection.
  package static func endReading(_ file: File) {
    uses.withLock { uses in
      guard case .read(let count) = uses[file] else { return }
      uses[file] = count > 1 ? .read(by: count - 1) : nil
    }
  }
}
