// Who may watch a directory: two daemons are two `WatchLocks` with one room.

import Diagnostics
import DurableFiles
import Glibc
import StoreWatching
import Synchronization
import SystemPackage
import Testing

@testable import HopdService

@Suite("One daemon per directory")
struct WatchLocksTests {
  /// A room for claims and a few directories.
  final class World {
    let root: FilePath

    init() throws {
      var template = Array("/tmp/hopd-claims-XXXXXX".utf8CString)
      try #require(mkdtemp(&template) != nil)
      root = try LinuxFileSystem().canonical(FilePath(platformString: template))
      for name in ["room", "stores", "stores/below", "stores/below/deep", "stores2", "one", "two"] {
        mkdir(root.appending(name).string, 0o755)
      }
    }

    deinit {
      for file in (try? LinuxFileSystem().names(in: root.appending("room"))) ?? [] {
        unlink(root.appending("room").appending(file).string)
      }
      unlink(root.appending("link").string)
      for name in ["room", "stores/below/deep", "stores/below", "stores", "stores2", "one", "two", ""] {
        rmdir(root.appending(name).string)
      }
    }

    func daemon(_ state: String) -> WatchLocks {
      WatchLocks(stateDirectory: root.appending(state), room: root.appending("room"))
    }

    func watch(_ path: String, recursive: Bool = false) -> WatchedDirectory {
      WatchedDirectory(
        name: "w", root: WatchRoot(root.appending(path)), include: [Glob("*")], exclude: [], recursive: recursive,
        settle: .seconds(1), rescan: .seconds(60))
    }

    var room: [String] { ((try? LinuxFileSystem().names(in: root.appending("room"))) ?? []).map(\.string) }
  }

  private func refusal(_ body: () throws -> Void) -> HopdError? {
    do {
      try body()
      return nil
    } catch { return error as? HopdError }
  }

  @Test func theSecondIsRefusedWithWhoAndWhatToDo() throws {
    let world = try World()
    let (first, second) = (world.daemon("one"), world.daemon("two"))
    try first.claim([world.watch("stores")])
    let error = try #require(refusal { try second.claim([world.watch("stores")]) })
    #expect(error.code == .lockedByOther && error.code.exit == .unavailable)
    #expect(error.message.contains("process \(getpid())") && error.message.contains("/one)"), "\(error)")
    #expect(error.place.file == world.root.appending("stores") && error.place.key == "watch.w.directory")
    #expect(error.hint?.contains("kill \(getpid())") == true)
    // Nothing but the lock counts: with its owner it is gone, and the second may.
    first.release()
    try second.claim([world.watch("stores")])
    second.release()
    #expect(world.room.isEmpty, "\(world.room)")
  }

  @Test func theDirectoryCountsNotItsName() throws {
    let world = try World()
    symlink("stores", world.root.appending("link").string)
    let (first, second) = (world.daemon("one"), world.daemon("two"))
    try first.claim([world.watch("stores")])
    #expect(refusal { try second.claim([world.watch("link")]) }?.code == .lockedByOther)
    try second.claim([world.watch("stores2")])
  }

  @Test(arguments: [
    ("stores", false, "stores/below", false, false), ("stores", true, "stores/below", false, true),
    ("stores/below", false, "stores", true, true), ("stores", true, "stores/below/deep", true, true),
    ("stores/below", false, "stores", false, false), ("stores", true, "stores2", true, false),
    ("stores/below/deep", true, "stores", true, true),
  ])
  func nested(_ a: String, _ aGoesBelow: Bool, _ b: String, _ bGoesBelow: Bool, _ overlap: Bool) throws {
    let world = try World()
    let (first, second) = (world.daemon("one"), world.daemon("two"))
    try first.claim([world.watch(a, recursive: aGoesBelow)])
    let error = refusal { try second.claim([world.watch(b, recursive: bGoesBelow)]) }
    #expect((error?.code == .lockedByOther) == overlap, "\(String(describing: error))")
    // A refused daemon leaves nothing that would refuse others.
    first.release()
    #expect(refusal { try world.daemon("two").claim([world.watch(b, recursive: bGoesBelow)]) } == nil || !overlap)
  }

  @Test func aDaemonDoesNotStandInItsOwnWay() throws {
    let world = try World()
    let daemon = world.daemon("one")
    let watches = [world.watch("stores", recursive: true), world.watch("stores/below"), world.watch("stores")]
    try daemon.claim(watches)
    try daemon.claim(watches.reversed())
    try daemon.require(watches[1])
  }

  @Test func aRefusedReloadKeepsWhatTheDaemonHad() throws {
    let world = try World()
    let (first, second) = (world.daemon("one"), world.daemon("two"))
    try first.claim([world.watch("stores")])
    try second.claim([world.watch("stores2")])
    #expect(refusal { try second.claim([world.watch("stores2"), world.watch("stores")]) }?.code == .lockedByOther)
    #expect(refusal { try first.claim([world.watch("stores2")]) }?.code == .lockedByOther)
    // And what a reload leaves out is free for others.
    try second.claim([])
    try first.claim([world.watch("stores2")])
    try second.claim([world.watch("stores")])
    // To go below is more than was claimed.
    try second.claim([world.watch("stores/below")])
    #expect(refusal { try first.claim([world.watch("stores", recursive: true)]) }?.code == .lockedByOther)
  }

  @Test func aDirectoryThatComesLaterIsClaimedThen() throws {
    let world = try World()
    let (first, second) = (world.daemon("one"), world.daemon("two"))
    rmdir(world.root.appending("stores2").string)
    try first.claim([world.watch("stores2")])
    try first.require(world.watch("stores2"))
    mkdir(world.root.appending("stores2").string, 0o755)
    try second.claim([world.watch("stores2")])
    #expect(refusal { try first.require(world.watch("stores2")) }?.code == .lockedByOther)
    second.release()
    try first.require(world.watch("stores2"))
    #expect(refusal { try second.claim([world.watch("stores2")]) }?.code == .lockedByOther)
  }

  @Test func whatADeadDaemonLeftIsNoClaim() throws {
    let world = try World()
    let identity = try #require(try LinuxFileSystem().status(world.root.appending("stores"))).identity
    let name = "hopd-watch-\(String(identity.device, radix: 16))-\(String(identity.inode, radix: 16))-\(geteuid())"
    try LinuxFileSystem().createFile(
      world.root.appending("room").appending(name), Array("hopd-watch 1\u{0}99\u{0}tree\u{0}/x\u{0}/y\u{0}".utf8),
      mode: 0o600)
    let daemon = world.daemon("one")
    try daemon.claim([world.watch("stores/below"), world.watch("stores")])
    #expect(world.room.count == 2)
  }

  /// Any user can put a file into /dev/shm and lock it: its content proves nothing, whatever the mode of the directory.
  @Test(
    .enabled(if: geteuid() == 0, "only root can stand for another user"), arguments: [0o755, 0o775, 0o777] as [mode_t],
    [("stores", 20_001, 20_001), ("stores", 65_534, 65_534), (".", 0, 20_001), ("stores", 0, 20_001)]
      as [(directory: String, name: Int, owner: uid_t)])
  func strangersAreNotBelieved(_ mode: mode_t, _ claim: (directory: String, name: Int, owner: uid_t)) throws {
    let world = try World()
    let stores = world.root.appending("stores")
    chmod(stores.string, mode)
    // One at a time, because one can hide another: under another user's own number, under an unused one, under root's
    // for the directory above, and under the very name that this daemon wants.
    let claimed = claim.directory == "." ? world.root : world.root.appending(claim.directory)
    let identity = try #require(try LinuxFileSystem().status(claimed)).identity
    let stem = "hopd-watch-\(String(identity.device, radix: 16))-\(String(identity.inode, radix: 16))"
    let path = world.root.appending("room").appending("\(stem)-\(claim.name)")
    try LinuxFileSystem().createFile(
      path, Array("hopd-watch 1\u{0}1\u{0}tree\u{0}\(claimed)\u{0}/y\u{0}".utf8), mode: 0o666)
    chown(path.string, claim.owner, claim.owner)
    let descriptor = open(path.string, O_RDWR | O_CLOEXEC)
    defer { close(descriptor) }
    #expect(flock(descriptor, LOCK_EX | LOCK_NB) == 0)
    guard ClaimFile.lock(descriptor) else {
      Issue.record("the claim of a stranger is not locked")
      return
    }
    #expect(refusal { try world.daemon("one").claim([world.watch("stores")]) } == nil)
    // With root's own hand the same claim keeps the daemon out.
    chown(path.string, 0, 0)
    guard claim.name == 0 else { return }
    #expect(refusal { try world.daemon("one").claim([world.watch("stores")]) }?.code == .lockedByOther)
  }

  /// A user who can read a claim can lock it for reading, and could keep the next daemon out.
  @Test func aReaderKeepsNobodyOut() throws {
    let world = try World()
    let first = world.daemon("one")
    try first.claim([world.watch("stores")])
    let name = try #require(world.room.first)
    let descriptor = open(world.root.appending("room").appending(name).string, O_RDONLY | O_CLOEXEC)
    defer { close(descriptor) }
    // The daemon dies and its file stays.
    first.release()
    try LinuxFileSystem().createFile(world.root.appending("room").appending(name), [1], mode: 0o644)
    let left = open(world.root.appending("room").appending(name).string, O_RDONLY | O_CLOEXEC)
    defer { close(left) }
    var lock = Glibc.flock()
    lock.l_type = Int16(F_RDLCK)
    lock.l_whence = Int16(SEEK_SET)
    #expect(fcntl(left, 37, &lock) == 0)
    #expect(flock(left, LOCK_EX | LOCK_NB) == 0)
    let (second, third) = (world.daemon("two"), world.daemon("one"))
    #expect(refusal { try second.claim([world.watch("stores")]) } == nil)
    // And the claim that was taken so is a claim.
    #expect(refusal { try third.claim([world.watch("stores")]) }?.code == .lockedByOther)
  }

  @Test func aNumberThatIsNoHopdIsNotNamed() throws {
    let world = try World()
    let identity = try #require(try LinuxFileSystem().status(world.root.appending("stores"))).identity
    let name = "hopd-watch-\(String(identity.device, radix: 16))-\(String(identity.inode, radix: 16))-\(geteuid())"
    let path = world.root.appending("room").appending(name)
    // A claim of this user whose process number belongs to another process now: process 1.
    try LinuxFileSystem().createFile(path, Array("hopd-watch 1\u{0}1\u{0}tree\u{0}/x\u{0}/y\u{0}".utf8), mode: 0o644)
    let descriptor = open(path.string, O_RDWR | O_CLOEXEC)
    defer { close(descriptor) }
    guard ClaimFile.lock(descriptor) else {
      Issue.record("not locked")
      return
    }
    let error = try #require(refusal { try world.daemon("one").claim([world.watch("stores")]) })
    #expect(error.code == .lockedByOther)
    #expect(!error.message.contains("process") && error.hint?.contains("kill") == false, "\(error)")
  }

  @Test func claimsOfDeadDaemonsAreRemoved() throws {
    let world = try World()
    for number in 1...3 {
      try LinuxFileSystem().createFile(
        world.root.appending("room").appending("hopd-watch-1-\(number)-\(geteuid())"),
        Array("hopd-watch 1\u{0}99\u{0}tree\u{0}/x\u{0}/y\u{0}".utf8), mode: 0o644)
    }
    let daemon = world.daemon("one")
    try daemon.claim([world.watch("stores")])
    #expect(world.room.count == 1)
    daemon.release()
    #expect(world.room.isEmpty)
  }

  @Test func whereThereIsNoRoomDaemonsRunAsBefore() throws {
    let world = try World()
    let daemon = WatchLocks(stateDirectory: world.root, room: world.root.appending("none"))
    try daemon.claim([world.watch("stores")])
    try daemon.require(world.watch("stores"))
  }

  /// Every user can make files in /dev/shm, also under the name of a claim that this daemon would make.
  @Test(.enabled(if: geteuid() == 0, "only root can stand for another user"), arguments: ["file", "link", "folder"])
  func aFileOfAStrangerDoesNotLetASecondDaemonIn(_ kind: String) throws {
    let world = try World()
    let identity = try #require(try LinuxFileSystem().status(world.root.appending("stores"))).identity
    let name = "hopd-watch-\(String(identity.device, radix: 16))-\(String(identity.inode, radix: 16))-\(geteuid())"
    let path = world.root.appending("room").appending(name)
    switch kind {
    case "file": try LinuxFileSystem().createFile(path, [], mode: 0o666)
    case "link": symlink("nothing", path.string)
    default: mkdir(path.string, 0o700)
    }
    defer { rmdir(path.string) }
    lchown(path.string, 20_001, 20_001)
    let reported = Mutex<[HopdError]>([])
    let first = WatchLocks(stateDirectory: world.root.appending("one"), room: world.root.appending("room")) { error in
      reported.withLock { $0.append(error) }
    }
    try first.claim([world.watch("stores")])
    #expect(refusal { try world.daemon("two").claim([world.watch("stores")]) }?.code == .lockedByOther)
    // The administrator reads of it, once.
    try first.claim([world.watch("stores"), world.watch("stores2")])
    #expect(reported.withLock { $0.map(\.place.file) } == [path])
  }

  @Test func aClaimThatCannotBeMadeIsReported() throws {
    let world = try World()
    let reported = Mutex<[HopdError]>([])
    let daemon = WatchLocks(stateDirectory: world.root, room: world.root.appending("none")) { error in
      reported.withLock { $0.append(error) }
    }
    try daemon.claim([world.watch("stores"), world.watch("stores2")])
    #expect(reported.withLock { $0.map(\.place.file) } == [world.root.appending("stores")])
  }

  @Test func oneDaemonPerStateDirectory() throws {
    let world = try World()
    let lock = try Daemon.own(world.root.appending("one"))
    let error = try #require(refusal { _ = try Daemon.own(world.root.appending("one")) })
    #expect(
      error.code == .lockedByOther
        && error.message == "another hopd is running with this state directory (process \(getpid()))")
    #expect(error.hint?.contains("--state-directory") == true)
    lock.release()
    _ = try Daemon.own(world.root.appending("one"))
    #expect(try LinuxFileSystem().names(in: world.root.appending("one")).isEmpty, "the lock goes with its file")
  }
}
