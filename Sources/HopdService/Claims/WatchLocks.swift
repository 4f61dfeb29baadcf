// Ensures one daemon per watched directory, even between daemons with different state directories. A claim is a locked
// file in /dev/shm that names the daemon and the directory; the kernel releases the lock with the process. It is
// neither a file in the user's directory nor a lock on the directory itself: an open directory would keep its file
// system from being unmounted.

import Diagnostics
import DurableFiles
import Glibc
import StoreReplacement
import StoreWatching
import Synchronization
import SystemPackage

/// A daemon's claim to a directory that it watches.
package struct WatchClaim: Hashable, Sendable {
  /// Device and inode of the directory.
  package var identity: FileIdentity
  /// Its canonical path.
  package var directory: FilePath
  /// Whether the watch includes the directories below.
  package var isRecursive: Bool
  /// The daemon's process.
  package var process: Int32
  /// The daemon's state directory.
  package var stateDirectory: FilePath

  /// Whether two daemons with these claims could watch the same store.
  package func overlaps(_ other: WatchClaim) -> Bool {
    identity == other.identity || (isRecursive && other.directory.starts(with: directory))
      || (other.isRecursive && directory.starts(with: other.directory))
  }

  /// The content of the claim file. Each field ends with a zero byte, which no path contains.
  var bytes: [UInt8] {
    let fields = ["hopd-watch 1", String(process), isRecursive ? "tree" : "directory"].map { Array($0.utf8) }
    return (fields + [directory, stateDirectory].map(PathText.bytes)).flatMap { $0 + [0] }
  }

  private static func bytes(of path: FilePath) -> [UInt8] {
    path.withPlatformString { text in
      UnsafeBufferPointer(start: text, count: strlen(text)).map { UInt8(bitPattern: $0) }
    }
  }
}

extension WatchClaim {
  /// Parses the content that `bytes` produced; nil for anything else.
  init?(_ identity: FileIdentity, _ bytes: [UInt8]) {
    let fields = bytes.split(separator: 0, omittingEmptySubsequences: false).map(Array.init)
    guard fields.count >= 6, fields[0] == Array("hopd-watch 1".utf8),
      let process = Int32(String(decoding: fields[1], as: UTF8.self))
    else { return nil }
    self.init(
      identity: identity, directory: Self.path(fields[3]), isRecursive: fields[2] == Array("tree".utf8),
      process: process, stateDirectory: Self.path(fields[4]))
  }

  private static func path(_ bytes: [UInt8]) -> FilePath {
    FilePath(platformString: bytes.map { CChar(bitPattern: $0) } + [0])
  }
}

/// The claims of a running daemon.
package final class WatchLocks: Sendable {
  private let room: FilePath
  private let stateDirectory: FilePath
  private let held = Mutex<[FileIdentity: HeldClaim]>([:])

  /// Creates claims in `room`, a directory that the daemons of all users share.
  package init(stateDirectory: FilePath, room: FilePath = "/dev/shm") {
    self.stateDirectory = stateDirectory
    self.room = room
  }

  /// Claims exactly these directories. One that does not exist yet is claimed later, by `require`.
  ///
  /// - Throws: `.lockedByOther`; the earlier claims then stay.
  package func claim(_ watches: [WatchedDirectory]) throws(HopdError) {
    try held.withLock { held throws(HopdError) in
      var wanted: [FileIdentity: HeldClaim] = [:]
      for watch in watches {
        guard var claim = claim(of: watch) else { continue }
        // Two watches of one configuration may share a directory.
        if wanted[claim.identity]?.claim.isRecursive == true { claim.isRecursive = true }
        let had = wanted[claim.identity] ?? held[claim.identity]
        wanted[claim.identity] = try take(
          claim, watch.name, had: had, mine: Set(held.keys).union(wanted.keys))
      }
      held = wanted
    }
  }

  /// Claims the directory that is now at this watch's path, if it was created or replaced since `claim`. Throws
  /// `.lockedByOther` if another daemon has it.
  package func require(_ watch: WatchedDirectory) throws(HopdError) {
    try held.withLock { held throws(HopdError) in
      guard let claim = claim(of: watch), held[claim.identity] == nil else { return }
      held[claim.identity] = try take(claim, watch.name, had: nil, mine: Set(held.keys))
    }
  }

  /// Releases all claims.
  package func release() { held.withLock { $0 = [:] } }

  // MARK: Inside

  private func claim(of watch: WatchedDirectory) -> WatchClaim? {
    // Opened at each call, because the directory may have been replaced.
    guard let directory = try? watch.root.open() else { return nil }
    return WatchClaim(
      identity: directory.identity, directory: directory.path, isRecursive: watch.recursive, process: getpid(),
      stateDirectory: stateDirectory)
  }

  private func take(
    _ claim: WatchClaim, _ watch: String, had: HeldClaim?, mine: Set<FileIdentity>
  ) throws(HopdError) -> HeldClaim {
    if let had, had.claim.isRecursive == claim.isRecursive { return had }
    // Takes its own claim first: of two daemons that start at the same time, at least one sees the other.
    let held: HeldClaim
    if let had {
      had.say(claim)
      held = had
    } else {
      switch HeldClaim.take(claim, room: room) {
      case .held(let taken): held = taken
      case .lockedBy(let other): throw Self.refusal(claim, other, watch)
      case .cannot: return HeldClaim(claim)
      }
    }
    for other in HeldClaim.others(in: room, mine: mine.union([claim.identity])) where other.overlaps(claim) {
      if let had { had.say(had.claim) }
      throw Self.refusal(claim, other, watch)
    }
    held.claim = claim
    return held
  }

  private static func refusal(_ claim: WatchClaim, _ other: WatchClaim?, _ watch: String) -> HopdError {
    let place = Place(file: claim.directory, key: "watch.\(watch).directory")
    let remedy = "or take the directory out of one of the two configurations"
    guard let other else {
      return HopdError(.lockedByOther, "another hopd watches this directory", at: place, hint: "stop it, \(remedy)")
    }
    let what =
      other.identity == claim.identity
      ? "this directory"
      : other.isRecursive ? "\(other.directory.printable) and all below it" : other.directory.printable
    // The message names a process only if it is verified to be a hopd, because the reader will end it.
    let process = ClaimOwner.isHopd(other.process) ? other.process : nil
    return HopdError(
      .lockedByOther,
      "another hopd (" + (process.map { "process \($0), " } ?? "")
        + "state directory \(other.stateDirectory.printable)) watches \(what)", at: place,
      hint: "stop it (`systemctl stop hopd`\(process.map { " or `kill \($0)`" } ?? "")), \(remedy)")
  }
}

/// A claim file that this process has locked, with its claim. Used only under the mutex of `WatchLocks`.
private final class HeldClaim: @unchecked Sendable {
  enum Result {
    case held(HeldClaim)
    /// By another daemon of the same user, with its claim if that can be read.
    case lockedBy(WatchClaim?)
    /// Claims cannot be created. Stores are still safe, because SQLite's own locks keep two programs apart.
    case cannot
  }

  var claim: WatchClaim
  private let path: FilePath?
  private let descriptor: Int32

  init(_ claim: WatchClaim, path: FilePath? = nil, descriptor: Int32 = -1) {
    self.claim = claim
    self.path = path
    self.descriptor = descriptor
  }

  deinit {
    guard descriptor >= 0 else { return }
    // Removed while it is locked, so that no other daemon can lock the file under this name.
    if let path { _ = path.withPlatformString { unlink($0) } }
    close(descriptor)
  }

  private static let prefix = "hopd-watch-"

  /// The file name up to the user's number. One file per directory and user, because a user can always write his own
  /// file.
  private static func stem(_ identity: FileIdentity) -> String {
    "\(prefix)\(String(identity.device, radix: 16))-\(String(identity.inode, radix: 16))-"
  }

  static func take(_ claim: WatchClaim, room: FilePath) -> Result {
    let path = room.appending("\(stem(claim.identity))\(geteuid())")
    for attempt in 0..<20 {
      if attempt > 0 { usleep(10_000) }
      let descriptor = path.withPlatformString { open($0, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o644) }
      guard descriptor >= 0 else { return .cannot }
      // A file of another user under this name does not count and blocks no daemon.
      guard let mine = ClaimFile.status(descriptor), mine.st_uid == geteuid() else {
        close(descriptor)
        return .cannot
      }
      switch ClaimFile.lock(descriptor) {
      case .taken:
        // A daemon that ended may have removed the file between the two calls.
        if ClaimFile.isNamed(path, mine) {
          // Daemons of other users must be able to read it, whatever the umask.
          fchmod(descriptor, 0o644)
          let held = HeldClaim(claim, path: path, descriptor: descriptor)
          held.say(claim)
          return .held(held)
        }
      case .isRead:
        // Any user who can read the file can take a read lock, which hopd never does. The file belongs to this user, so
        // it can be removed and created again.
        if ClaimFile.isNamed(path, mine) { _ = path.withPlatformString { unlink($0) } }
      case .isHeld:
        close(descriptor)
        return .lockedBy(ClaimFile.read(path).flatMap { WatchClaim(claim.identity, $0) })
      }
      close(descriptor)
    }
    return .cannot
  }

  /// Writes the claim to the file.
  func say(_ claim: WatchClaim) {
    FileLock.note(claim.bytes, in: descriptor)
  }

  /// Returns the claims of other running daemons of this user and of root. Claims of other users do not count:
  /// otherwise a user could block this daemon from directories that he cannot even read. Removes files of dead daemons.
  static func others(in room: FilePath, mine: Set<FileIdentity>) -> [WatchClaim] {
    let files = LinuxFileSystem()
    let own = Set(mine.map { "\(stem($0))\(geteuid())" })
    let names = ((try? files.names(in: room)) ?? []).map(\.string).filter { $0.hasPrefix(prefix) && !own.contains($0) }
    return names.compactMap { name in
      let parts = name.dropFirst(prefix.count).split(separator: "-")
      guard parts.count == 3, let device = UInt64(parts[0], radix: 16), let inode = UInt64(parts[1], radix: 16),
        let user = UInt32(parts[2]), ClaimOwner.counts(user)
      else { return nil }
      let path = room.appending(name)
      guard ClaimFile.isHeld(path, by: user) else {
        ClaimFile.removeIfDead(path)
        return nil
      }
      return ClaimFile.read(path).flatMap { WatchClaim(FileIdentity(device: device, inode: inode), $0) }
    }
  }
}
