// Ensures one daemon per watched directory, even between daemons with different state directories. A claim is a locked
// file in /dev/shm that names the daemon and the directory; the kernel releases the lock with the process. Its name
// ends with a random number, because every user can make files there: nobody can take the name before. It is neither a
// file in the user's directory nor a lock on the directory itself: an open directory would keep its file system from
// being unmounted.

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
  private let reported = Mutex<Set<String>>([])
  private let problem: @Sendable (HopdError) -> Void

  /// Creates claims in `room`, a directory that the daemons of all users share. `problem` gets, once each, what weakens
  /// the claims: a directory that cannot be claimed, and files of other users under the names of claims.
  package init(
    stateDirectory: FilePath, room: FilePath = "/dev/shm", problem: @escaping @Sendable (HopdError) -> Void = { _ in }
  ) {
    self.stateDirectory = stateDirectory
    self.room = room
    self.problem = problem
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
        wanted[claim.identity] = try take(claim, watch.name, had: had, mine: Array(held.values) + wanted.values)
      }
      held = wanted
    }
  }

  /// Claims the directory that is now at this watch's path, if it was created or replaced since `claim`. Throws
  /// `.lockedByOther` if another daemon has it.
  package func require(_ watch: WatchedDirectory) throws(HopdError) {
    try held.withLock { held throws(HopdError) in
      guard let claim = claim(of: watch), held[claim.identity] == nil else { return }
      held[claim.identity] = try take(claim, watch.name, had: nil, mine: Array(held.values))
    }
  }

  /// Releases all claims.
  package func release() { held.withLock { $0 = [:] } }

  // MARK: Private helpers

  private func claim(of watch: WatchedDirectory) -> WatchClaim? {
    // Opened at each call, because the directory may have been replaced.
    guard let directory = try? watch.root.open() else { return nil }
    return WatchClaim(
      identity: directory.identity, directory: directory.path, isRecursive: watch.recursive, process: getpid(),
      stateDirectory: stateDirectory)
  }

  private func take(
    _ claim: WatchClaim, _ watch: String, had: HeldClaim?, mine: [HeldClaim]
  ) throws(HopdError) -> HeldClaim {
    if let had, had.claim.isRecursive == claim.isRecursive { return had }
    // Takes its own claim first: of two daemons that start at the same time, at least one sees the other.
    had?.say(claim)
    guard let held = had ?? HeldClaim.take(claim, room: room) else {
      report(
        "cannot create files in \(room.printable), so another hopd could watch this directory too", claim.directory)
      return HeldClaim(claim)
    }
    for other in others(than: mine + [held]) where other.overlaps(claim) {
      if let had { had.say(had.claim) }
      throw Self.refusal(claim, other, watch)
    }
    held.claim = claim
    return held
  }

  /// Returns the claims of other running daemons of this user and of root. Claims of other users do not count:
  /// otherwise a user could block this daemon from directories that he cannot even read. Removes files of dead daemons.
  private func others(than mine: [HeldClaim]) -> [WatchClaim] {
    let own = Set(mine.compactMap { $0.path?.lastComponent?.string })
    let names = ((try? LinuxFileSystem().names(in: room)) ?? []).map(\.string)
    return names.filter { !own.contains($0) }.compactMap { name in
      guard let (identity, user) = HeldClaim.parsed(name), ClaimOwner.counts(user) else { return nil }
      let path = room.appending(name)
      switch ClaimFile.state(of: path, user: user) {
      case .held: return ClaimFile.read(path).flatMap { WatchClaim(identity, $0) }
      case .dead: ClaimFile.removeIfDead(path)
      case .foreign: report("a claim file belongs to another user and is ignored", path)
      }
      return nil
    }
  }

  private func report(_ message: String, _ path: FilePath) {
    guard reported.withLock({ $0.insert(message).inserted }) else { return }
    problem(
      HopdError(
        .claimProblem, message, at: Place(file: path),
        hint: "check who created the files there: `ls -l \(room.quotedForShell)`"))
  }

  private static func refusal(_ claim: WatchClaim, _ other: WatchClaim, _ watch: String) -> HopdError {
    let place = Place(file: claim.directory, key: "watch.\(watch).directory")
    let remedy = "or remove the directory from one of the two configurations"
    let what =
      other.identity == claim.identity
      ? "this directory"
      : other.isRecursive ? "\(other.directory.printable) and its subdirectories" : other.directory.printable
    // The message names a process only if it is verified to be a hopd, because the reader will end it.
    let process = ClaimOwner.isHopd(other.process) ? other.process : nil
    return HopdError(
      .lockedByOther,
      "another hopd (" + (process.map { "process \($0), " } ?? "")
        + "state directory \(other.stateDirectory.printable)) watches \(what)", at: place,
      hint: "stop it (`systemctl stop hopd`\(process.map { " or `kill \($0)`" } ?? "")), \(remedy)")
  }
}

extension HopdError.Code {
  /// Something weakens the claims of watched directories.
  static let claimProblem = HopdError.Code("claim-problem", severity: .warning)
}

/// A claim file that this process has locked, with its claim; without a file if none can be made. Stores are safe all
/// the same, because SQLite's own locks keep two programs apart. Used only under the mutex of `WatchLocks`.
private final class HeldClaim: @unchecked Sendable {
  var claim: WatchClaim
  let path: FilePath?
  private let descriptor: Int32

  init(_ claim: WatchClaim, path: FilePath? = nil, descriptor: Int32 = -1) {
    self.claim = claim
    self.path = path
    self.descriptor = descriptor
  }

  deinit {
    guard descriptor >= 0 else { return }
    // Removed while it is locked, so that no other daemon takes it for a dead one's.
    if let path { _ = path.withPlatformString { unlink($0) } }
    close(descriptor)
  }

  private static let prefix = "hopd-watch-"

  /// The directory and the user in a file's name; nil for other names.
  static func parsed(_ name: String) -> (FileIdentity, UInt32)? {
    let parts = name.dropFirst(prefix.count).split(separator: "-")
    // An older hopd makes names without the random number.
    guard name.hasPrefix(prefix), [3, 4].contains(parts.count), let device = UInt64(parts[0], radix: 16),
      let inode = UInt64(parts[1], radix: 16), let user = UInt32(parts[2])
    else { return nil }
    return (FileIdentity(device: device, inode: inode), user)
  }

  /// Makes and locks a file; nil if that is not possible.
  static func take(_ claim: WatchClaim, room: FilePath) -> HeldClaim? {
    let numbers = [claim.identity.device, claim.identity.inode].map { String($0, radix: 16) }
    for _ in 0..<20 {
      let random = String(UInt64.random(in: 0 ... .max), radix: 16)
      let path = room.appending("\(prefix)\(numbers[0])-\(numbers[1])-\(geteuid())-\(random)")
      let descriptor = path.withPlatformString { open($0, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644) }
      guard descriptor >= 0, let mine = ClaimFile.status(descriptor) else { return nil }
      // Between the two calls any user can lock the file for reading, and another daemon can take it for a dead one's
      // and remove it.
      if ClaimFile.lock(descriptor), ClaimFile.isNamed(path, mine) {
        // Daemons of other users must be able to read it, whatever the umask.
        fchmod(descriptor, 0o644)
        let held = HeldClaim(claim, path: path, descriptor: descriptor)
        held.say(claim)
        return held
      }
      if ClaimFile.isNamed(path, mine) { _ = path.withPlatformString { unlink($0) } }
      close(descriptor)
    }
    return nil
  }

  /// Writes the claim to the file.
  func say(_ claim: WatchClaim) {
    if descriptor >= 0 { FileLock.note(claim.bytes, in: descriptor) }
  }
}
