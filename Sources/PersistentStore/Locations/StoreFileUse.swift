// Which database files this process has open, and how. POSIX locks die with any close of the same file in the same
// process (docs/formats/faults.md, "SQLite and files"): a mere look at a store, under whatever name, would take the
// lock away from the job that migrates it. So a file is either held by one job or inspected, never both.

import Synchronization

/// The uses of database files within this process, by device and inode: names do not count, a hard link or a bind mount
/// is the same file.
package enum StoreFileUse {
  /// A file, whatever it is called.
  package struct File: Hashable, Sendable {
    /// Device number.
    package let device: UInt64
    /// Inode number on it.
    package let inode: UInt64

    /// Names a file.
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

  /// Begins to hold a file alone; false when it is held or inspected.
  package static func beginHolding(_ file: File) -> Bool {
    uses.withLock { uses in
      guard uses[file] == nil else { return false }
      uses[file] = .held
      return true
    }
  }

  /// Ends holding it.
  package static func endHolding(_ file: File) {
    uses.withLock { uses in
      if case .held = uses[file] { uses[file] = nil }
    }
  }

  /// Begins a look; false when it is held. Any number of looks may continue at once.
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

  /// Ends a look.
  package static func endReading(_ file: File) {
    uses.withLock { uses in
      guard case .read(let count) = uses[file] else { return }
      uses[file] = count > 1 ? .read(by: count - 1) : nil
    }
  }
}
