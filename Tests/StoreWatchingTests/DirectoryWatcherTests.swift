// A real directory, real inotify. Each test waits for the event it wants, with a bound; "nothing happens" is shown by
// letting something later happen first.

import Diagnostics
import DurableFiles
import Glibc
import Synchronization
import SystemPackage
import Testing

@testable import StoreWatching

@Suite struct DirectoryWatcherTests {
  @Test func aFileThatIsThereAndOneThatComesAreReportedOnce() throws {
    let folder = try Folder()
    try folder.write("old.sqlite", "1")
    let log = try EventLog(folder.watch())
    #expect(log.waits(for: "settled old.sqlite 1"))
    try folder.write("new.sqlite", "22")
    #expect(log.waits(for: "settled new.sqlite 2"))
    try folder.write("last.sqlite", "333")
    #expect(log.waits(for: "settled last.sqlite 3"))
    #expect(log.lines == ["scanned 1", "settled old.sqlite 1", "settled new.sqlite 2", "settled last.sqlite 3"])
  }

  @Test func aFileIsReportedAgainOnlyWhenItOrItsLogChanges() throws {
    let folder = try Folder()
    try folder.write("a.sqlite", "1")
    let log = try EventLog(folder.watch())
    #expect(log.waits(for: "settled a.sqlite 1"))
    try folder.write("a.sqlite-shm", "a reader was here")
    utimensat(AT_FDCWD, folder.path("b").string, nil, 0)
    try folder.write("mark1.sqlite", "1")
    #expect(log.waits(for: "settled mark1.sqlite 1"))
    #expect(log.count(of: "settled a.sqlite 1") == 1)
    try folder.write("a.sqlite-wal", "frames")
    #expect(log.waits(for: "settled a.sqlite 1", times: 2))
    try folder.write("a.sqlite", "22")
    #expect(log.waits(for: "settled a.sqlite 2"))
    #expect(rename(folder.path("mark1.sqlite").string, folder.path("a.sqlite").string) == 0)
    #expect(log.waits(for: "settled a.sqlite 1", times: 3))
    #expect(log.waits(for: "vanished mark1.sqlite"))
  }

  @Test func aChangeOfRightsWakesNoFile() throws {
    let folder = try Folder()
    try folder.write("a.sqlite", "1")
    let log = try EventLog(folder.watch())
    #expect(log.waits(for: "settled a.sqlite 1"))
    chmod(folder.path("a.sqlite").string, 0o600)
    chmod(folder.root.string, 0o700)
    try folder.write("last.sqlite", "333")
    #expect(log.waits(for: "settled last.sqlite 3"))
    #expect(log.count(of: "settled a.sqlite 1") == 1)
  }

  @Test func filesAtRestTakeNoDescriptorAndNoThread() throws {
    let folder = try Folder()
    for number in 0..<2000 { try folder.write("\(number).sqlite", "1") }
    func entries(_ path: String) -> Int {
      guard let stream = opendir(path) else { return 0 }
      defer { closedir(stream) }
      var count = 0
      while readdir(stream) != nil { count += 1 }
      return count
    }
    let before = (threads: entries("/proc/self/task"), descriptors: entries("/proc/self/fd"))
    let log = try EventLog(folder.watch())
    #expect(log.waits(for: "settled 1999.sqlite 1"))
    try folder.write("last.sqlite", "22")
    #expect(log.waits(for: "settled last.sqlite 2"))
    #expect(log.count(of: "settled", prefix: true) == 2001)
    // Other tests run in this process, so a few more are none of the watcher's.
    #expect(entries("/proc/self/task") < before.threads + 200)
    #expect(entries("/proc/self/fd") < before.descriptors + 200)
  }

  @Test func aLogThatIsThereOnlyForTheScanIsSeen() throws {
    let folder = try Folder()
    try folder.write("a.sqlite", "1")
    try folder.write("a.sqlite-wal", "frames")
    try folder.write("b.sqlite", "1")
    // Without inotify, so that only scans look.
    var watch = folder.watch()
    watch.rescan = .milliseconds(50)
    let log = try EventLog(watch, watchBudget: 0)
    #expect(log.waits(for: "settled a.sqlite 1"))
    #expect(log.waits(for: "settled b.sqlite 1"))
    try folder.write("b.sqlite-wal", "frames")
    #expect(log.waits(for: "settled b.sqlite 1", times: 2))
    #expect(unlink(folder.path("a.sqlite-wal").string) == 0)
    #expect(log.waits(for: "settled a.sqlite 1", times: 2))
  }

  @Test func aFileThatKeepsChangingIsNotReported() throws {
    let folder = try Folder()
    let log = try EventLog(folder.watch(settle: .seconds(4)))
    for size in 1...15 {
      try folder.write("a.sqlite", String(repeating: "x", count: size))
      usleep(60_000)
    }
    #expect(log.count(of: "settled", prefix: true) == 0)
    #expect(log.waits(for: "settled a.sqlite 15"))
    #expect(log.count(of: "settled", prefix: true) == 1)
  }

  @Test func onlyRegularFilesWithTheRightNamesCount() throws {
    let folder = try Folder()
    try folder.write("real.sqlite", "1")
    try folder.write("real.sqlite-wal", "1")
    try folder.write("old-real.sqlite", "1")
    try folder.write(".hidden.sqlite", "1")
    try folder.write("other.txt", "1")
    #expect(symlink("real.sqlite", folder.path("link.sqlite").string) == 0)
    #expect(symlink("/nonexistent", folder.path("dangling.sqlite").string) == 0)
    #expect(mkfifo(folder.path("pipe.sqlite").string, 0o600) == 0)
    #expect(mkdir(folder.path("directory.sqlite").string, 0o700) == 0)
    try folder.write("directory.sqlite/inside.sqlite", "1")
    var watch = folder.watch()
    watch.exclude = [Glob("old-*")]
    let log = try EventLog(watch)
    #expect(log.waits(for: "settled real.sqlite 1"))
    #expect(symlink("real.sqlite", folder.path("link2.sqlite").string) == 0)
    try folder.write("last.sqlite", "1")
    #expect(log.waits(for: "settled last.sqlite 1"))
    #expect(log.waits(for: "links 3 dangling.sqlite"))
    // Told once for each number of them.
    #expect(log.count(of: "links", prefix: true) == 2)
    #expect(
      log.lines.filter { !$0.hasPrefix("links") } == ["scanned 1", "settled real.sqlite 1", "settled last.sqlite 1"])
  }

  /// rsync has renamed the database already and is still sending its log: whoever migrates now loses the rows of the
  /// log.
  @Test(
    arguments: [
      ".a.sqlite-wal.Xy12Zw", ".a.sqlite.Xy12Zw", ".a.sqlite-shm.abcdef", "a.sqlite-wal.filepart", "a.sqlite.part",
      "a.sqlite-journal.partial", "a.sqlite-wal.0a1b2c3d.partial", ".in.a.sqlite-wal.", ".syncthing.a.sqlite.tmp",
    ])
  func aStoreWaitsForWhatIsStillBeingSent(_ transfer: String) throws {
    let folder = try Folder()
    try folder.write("there.sqlite", "1")
    let there = transfer.replacing("a.sqlite", with: "there.sqlite")
    try folder.write(there, "half")
    let log = try EventLog(folder.watch())
    // Found by the scan, and by an event.
    #expect(log.waits(for: "incomplete there.sqlite \(there)"))
    try folder.write("a.sqlite", "1")
    try folder.write(transfer, "half")
    #expect(log.waits(for: "incomplete a.sqlite \(transfer)"))
    try folder.write("other.sqlite", "1")
    #expect(log.waits(for: "settled other.sqlite 1"))
    usleep(300_000)
    #expect(log.count(of: "settled a.sqlite 1") == 0 && log.count(of: "settled there.sqlite 1") == 0)
    #expect(rename(folder.path(transfer).string, folder.path("a.sqlite-wal").string) == 0)
    #expect(unlink(folder.path(there).string) == 0)
    #expect(log.waits(for: "settled a.sqlite 1"))
    #expect(log.waits(for: "settled there.sqlite 1"))
    #expect(log.count(of: "incomplete", prefix: true) == 2)
  }

  @Test func namesOfOtherFilesAreNoTransfers() {
    for name in [
      "a.sqlite", ".hidden", ".a.sqlite_SUPPORT", ".a.sqlite.hop-ab12-0.tmp", "a.sqlite-wal", ".x.abcde", ".part",
    ] {
      #expect(TransferName.destinations(of: Array(name.utf8)).isEmpty, "\(name)")
    }
  }

  @Test func aTransferThatWasGivenUpDoesNotHoldAStoreBackForEver() {
    var transfers = Transfers()
    transfers.insert([1], of: [9])
    transfers.insert([2], of: [9])
    #expect(transfers.obstacle(for: [9]) { $0 == [1] ? nil : 10 } == [2])
    #expect(transfers.obstacle(for: [9]) { _ in Transfers.patience } == nil)
    #expect(transfers.obstacle(for: [8]) { _ in 0 } == nil)
  }

  @Test func anExhaustedKernelIsReportedAsThat() throws {
    let folder = try Folder()
    var table = WatchTable(budget: 10, opening: { .failure(.tooManyOpenFiles) })
    let directory = try OpenDirectory(canonical: folder.root)
    let added = table.add(directory, owner: WatchTable.Owner(tree: "t", directory: []))
    guard case .failure(let code) = added else {
      Issue.record("no failure")
      return
    }
    #expect(code == .tooManyOpenFiles)
    let error = KernelLimit.error(code, watch: folder.watch(), armed: 0)
    #expect(error.message.contains("inotify limit max_user_instances"))
  }

  @Test func namesThatAreNoTextAreHandledAsBytes() throws {
    let folder = try Folder()
    let names: [[UInt8]] = [
      [0xff, 0x80] + Array(".sqlite".utf8), Array("a\nb%3f?.sqlite".utf8),
      [UInt8](repeating: UInt8(ascii: "x"), count: 248) + Array(".sqlite".utf8),
    ]
    let log = try EventLog(folder.watch())
    #expect(log.waits(for: "scanned 0"))
    for name in names {
      let descriptor = withCString(Array((folder.root.string + "/").utf8) + name) { creat($0, 0o600) }
      #expect(descriptor >= 0)
      close(descriptor)
    }
    for name in names {
      let path = withCString(Array((folder.root.string + "/").utf8) + name) { FilePath(platformString: $0) }
      #expect(log.waits(for: "settled \(path.lastComponent?.string ?? "") 0"))
    }
  }

  @Test func directoriesBelowAreFollowedAsTheyComeAndGo() throws {
    let folder = try Folder()
    #expect(mkdir(folder.path("one").string, 0o700) == 0)
    try folder.write("one/a.sqlite", "1")
    #expect(mkdir(folder.path(".support").string, 0o700) == 0)
    try folder.write(".support/data.sqlite", "1")
    #expect(symlink("one", folder.path("link").string) == 0)
    let log = try EventLog(folder.watch(recursive: true))
    #expect(log.waits(for: "settled one/a.sqlite 1"))
    #expect(mkdir(folder.path("two").string, 0o700) == 0)
    #expect(mkdir(folder.path("two/deep").string, 0o700) == 0)
    try folder.write("two/deep/b.sqlite", "22")
    #expect(log.waits(for: "settled two/deep/b.sqlite 2"))
    try folder.write("two/deep/b.sqlite", "333")
    #expect(log.waits(for: "settled two/deep/b.sqlite 3"))
    #expect(rename(folder.path("two").string, folder.path("three").string) == 0)
    #expect(log.waits(for: "vanished two/deep/b.sqlite"))
    #expect(log.waits(for: "settled three/deep/b.sqlite 3"))
    try folder.write("three/deep/b.sqlite", "4444")
    #expect(log.waits(for: "settled three/deep/b.sqlite 4"))
    #expect(log.count(of: "settled .support", prefix: true) == 0)
    #expect(log.count(of: "settled link", prefix: true) == 0)
  }

  /// The folders of backups in a configured place have names without a leading dot, and what is in them looks like
  /// stores.
  @Test func foldersThatAreExcludedAreNotEntered() throws {
    let folder = try Folder()
    #expect(mkdir(folder.path("kept").string, 0o700) == 0)
    try folder.write("kept/a-1.backups/old.sqlite", "1", making: "kept/a-1.backups")
    var watch = folder.watch(recursive: true)
    watch.excludedFolders = [Glob("*.backups")]
    let log = try EventLog(watch)
    #expect(log.waits(for: "scanned 0"))
    // By events too: a new folder, and one that is given such a name.
    try folder.write("kept/b-2.backups/old.sqlite", "1", making: "kept/b-2.backups")
    try folder.write("kept/now/a.sqlite", "22", making: "kept/now")
    #expect(log.waits(for: "settled kept/now/a.sqlite 2"))
    #expect(rename(folder.path("kept/now").string, folder.path("kept/now.backups").string) == 0)
    #expect(log.waits(for: "vanished kept/now/a.sqlite"))
    try folder.write("last.sqlite", "333")
    #expect(log.waits(for: "settled last.sqlite 3"))
    #expect(log.count(of: "settled", prefix: true) == 2)
    // The watched directory itself is served whatever its name.
    var named = folder.watch("kept/a-1.backups", recursive: true)
    named.excludedFolders = watch.excludedFolders
    let other = try EventLog(named)
    #expect(other.waits(for: "settled old.sqlite 1"))
  }

  @Test func aDirectoryThatGoesAwayIsReportedAndArmedAgain() throws {
    let folder = try Folder()
    try folder.write("stores/a.sqlite", "1", making: "stores")
    let log = try EventLog(folder.watch("stores"))
    #expect(log.waits(for: "settled a.sqlite 1"))
    #expect(rename(folder.path("stores").string, folder.path("elsewhere").string) == 0)
    #expect(log.waits(for: "degraded watch-unavailable"))
    #expect(log.waits(for: "vanished a.sqlite"))
    try folder.write("elsewhere/ghost.sqlite", "1")
    try folder.write("stores/b.sqlite", "22", making: "stores")
    #expect(log.waits(for: "restored"))
    #expect(log.waits(for: "settled b.sqlite 2"))
    try folder.write("stores/c.sqlite", "333")
    #expect(log.waits(for: "settled c.sqlite 3"))
    #expect(log.count(of: "settled ghost", prefix: true) == 0)
    #expect(log.count(of: "degraded", prefix: true) == 1)
  }

  @Test("A watched directory whose path leads elsewhere is not served until it leads back")
  func rootAsLink() throws {
    let folder = try Folder()
    try folder.write("in/a.sqlite", "a", making: "in")
    try folder.write("bob/b.sqlite", "b", making: "bob")
    let log = try EventLog(folder.watch("in"))
    #expect(log.waits(for: "settled a.sqlite 1"))
    try #require(rename(folder.path("in").string, folder.path("real").string) == 0)
    try #require(symlink("bob", folder.path("in").string) == 0)
    #expect(log.waits(for: "vanished a.sqlite"))
    #expect(log.waits(for: "degraded watch-unavailable"))
    usleep(2_000_000)
    #expect(log.count(of: "settled b.sqlite", prefix: true) == 0)
    try #require(unlink(folder.path("in").string) == 0)
    try #require(rename(folder.path("real").string, folder.path("in").string) == 0)
    #expect(log.waits(for: "restored"))
  }

  @Test("A folder below that is exchanged for a link is left alone")
  func folderAsLink() throws {
    let folder = try Folder()
    try folder.write("in/a.sqlite", "a", making: "in")
    try folder.write("bob/b.sqlite", "b", making: "bob")
    mkdir(folder.path("in/sub").string, 0o700)
    try folder.write("in/sub/c.sqlite", "c")
    let log = try EventLog(folder.watch("in", recursive: true))
    #expect(log.waits(for: "settled sub/c.sqlite 1"))
    try #require(rename(folder.path("in/sub").string, folder.path("in/.sub").string) == 0)
    try #require(symlink("../bob", folder.path("in/sub").string) == 0)
    #expect(log.waits(for: "vanished sub/c.sqlite"))
    usleep(2_000_000)
    #expect(!log.lines.contains { $0.hasPrefix("settled") && $0.contains("b.sqlite") })
  }

  @Test func aDirectoryThatIsMissingAtTheStartIsWaitedFor() throws {
    let folder = try Folder()
    let log = try EventLog(folder.watch("later"))
    #expect(log.waits(for: "degraded watch-unavailable"))
    try folder.write("later/a.sqlite", "1", making: "later")
    #expect(log.waits(for: "restored"))
    #expect(log.waits(for: "settled a.sqlite 1"))
  }

  @Test func withoutWatchesTheRescanFindsEverything() throws {
    let folder = try Folder()
    #expect(mkdir(folder.path("sub").string, 0o700) == 0)
    let log = try EventLog(folder.watch(recursive: true), watchBudget: 1)
    #expect(log.waits(for: "limit"))
    let error = try #require(log.limitError)
    #expect(error.message.contains("inotify limit max_user_watches"))
    #expect(error.hint?.contains("sysctl fs.inotify.max_user_watches=") == true)
    // The root is armed, the directory below is not: only the rescan sees this.
    try folder.write("sub/a.sqlite", "1")
    #expect(log.waits(for: "settled sub/a.sqlite 1"))
    #expect(log.count(of: "limit") == 1)
  }

  @Test func whenTheKernelsQueueRunsOverNothingIsMissed() throws {
    let folder = try Folder()
    try folder.write("first.sqlite", "1")
    var watch = folder.watch()
    watch.rescan = .seconds(3600)  // Only the overflow itself may lead to a scan.
    let log = try EventLog(watch, holdingAt: "settled first.sqlite 1")
    #expect(log.waits(for: "settled first.sqlite 1"))
    // The watcher's thread is held up: three events for each round, more than the queue holds.
    for _ in 0..<(queueLimit() / 2) {
      close(creat(folder.path("noise").string, 0o600))
      unlink(folder.path("noise").string)
    }
    try folder.write("late.sqlite", "22")
    log.release()
    #expect(log.waits(for: "lost"))
    #expect(log.waits(for: "settled late.sqlite 2"))
    #expect(log.count(of: "settled first.sqlite 1") == 1)
  }

  private func queueLimit() -> Int {
    var buffer = [UInt8](repeating: 0, count: 32)
    let descriptor = open("/proc/sys/fs/inotify/max_queued_events", O_RDONLY)
    defer { close(descriptor) }
    let count = read(descriptor, &buffer, buffer.count)
    return Int(String(decoding: buffer.prefix(max(0, count)).prefix { $0 > 0x20 }, as: UTF8.self)) ?? 16_384
  }

  @Test func twoWatchesOfOneDirectoryEachGetTheirFiles() throws {
    let folder = try Folder()
    var first = folder.watch()
    first.include = [Glob("a*")]
    var second = folder.watch()
    second.name = "second"
    second.include = [Glob("b*")]
    let log = try EventLog(first, second)
    #expect(log.waits(for: "scanned 0", times: 2))
    try folder.write("a1", "1")
    try folder.write("b1", "1")
    #expect(log.waits(for: "settled a1 1"))
    #expect(log.waits(for: "settled b1 1"))
    // One of them goes: the kernel's watch must stay for the other.
    log.watcher.update([second])
    try folder.write("a2", "1")
    try folder.write("b2", "1")
    #expect(log.waits(for: "settled b2 1"))
    #expect(log.count(of: "settled a2 1") == 0)
    #expect(log.count(of: "settled b1 1") == 1)
  }

  @Test func stoppingEndsTheThreadAndGivesTheDescriptorsBack() throws {
    let folder = try Folder()
    let log = try EventLog(folder.watch())
    #expect(log.waits(for: "scanned 0"))
    log.watcher.stop()
    log.watcher.stop()
    try folder.write("a.sqlite", "1")
    usleep(300_000)
    #expect(log.lines == ["scanned 0"])
  }
}

/// A directory that is removed with its contents.
private final class Folder {
  let root: FilePath

  init() throws {
    var template = Array("/tmp/hopd-watch-XXXXXX".utf8CString)
    let made = try #require(mkdtemp(&template))
    root = FilePath(platformString: made)
  }

  deinit { Self.remove(Array(root.string.utf8)) }

  private static func remove(_ path: [UInt8]) {
    var status = stat()
    guard withCString(path, { lstat($0, &status) }) == 0 else { return }
    guard status.st_mode & S_IFMT == S_IFDIR else {
      _ = withCString(path) { unlink($0) }
      return
    }
    var names: [[UInt8]] = []
    if let stream = withCString(path, { opendir($0) }) {
      while let entry = readdir(stream) {
        names.append(withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) })
      }
      closedir(stream)
    }
    for name in names where name != Array(".".utf8) && name != Array("..".utf8) {
      remove(path + Array("/".utf8) + name)
    }
    _ = withCString(path) { rmdir($0) }
  }

  func path(_ name: String) -> FilePath { root.appending(name) }

  func write(_ name: String, _ text: String, making directory: String? = nil) throws {
    if let directory { mkdir(path(directory).string, 0o700) }
    let descriptor = try FileDescriptor.open(
      path(name), .writeOnly, options: [.create, .truncate], permissions: .ownerReadWrite)
    _ = try descriptor.closeAfter { try descriptor.writeAll(text.utf8) }
  }

  func watch(
    _ directory: String = "", recursive: Bool = false, settle: Duration = .milliseconds(100)
  ) -> WatchedDirectory {
    WatchedDirectory(
      name: "test", root: WatchRoot(directory.isEmpty ? root : path(directory)), include: [Glob("*.sqlite")],
      recursive: recursive, settle: settle, rescan: .seconds(1))
  }
}

/// The events of a watcher as lines; repeated scans are left out.
private final class EventLog {
  private struct State {
    var lines: [String] = []
    var limit: HopdError?
    var isReleased = false
  }

  let watcher: DirectoryWatcher
  private let state: Log

  private final class Log: Sendable {
    let value = Mutex(State())
  }

  init(_ watches: WatchedDirectory..., watchBudget: Int = .max, holdingAt hold: String? = nil) throws {
    let log = Log()
    state = log
    let roots = Dictionary(watches.map { ($0.name, $0.path.string + "/") }) { first, _ in first }
    let take: @Sendable (WatchEvent) -> Void = { event in
      let line: String
      switch event {
      case .settled(let file):
        line = "settled \(file.path.string.dropFirst(roots[file.watch]?.count ?? 0)) \(file.size)"
      case .vanished(let watch, let path, _): line = "vanished \(path.string.dropFirst(roots[watch]?.count ?? 0))"
      case .scanned(_, let files): line = "scanned \(files)"
      case .degraded(_, let error): line = "degraded \(error.code)"
      case .restored: line = "restored"
      case .watchLimitReached(_, let error):
        log.value.withLock { $0.limit = error }
        line = "limit"
      case .eventsLost: line = "lost"
      case .incomplete(let watch, let path, let transfer):
        let root = roots[watch]?.count ?? 0
        line = "incomplete \(path.string.dropFirst(root)) \(transfer.string.dropFirst(root))"
      case .linksIgnored(let watch, let count, let first):
        line = "links \(count) \(first?.string.dropFirst(roots[watch]?.count ?? 0) ?? "none")"
      }
      log.value.withLock { state in
        let scans = state.lines.count(where: { $0.hasPrefix("scanned") })
        if !line.hasPrefix("scanned") || scans < watches.count { state.lines.append(line) }
      }
      while line == hold, !log.value.withLock({ $0.isReleased }) { usleep(5000) }
    }
    watcher = try DirectoryWatcher(
      watches, ignores: { $0.hasPrefix(".") }, watchBudget: watchBudget, onEvent: take)
    try watcher.start()
  }

  deinit {
    release()
    watcher.stop()
  }

  /// Lets the watcher's thread go on that was held up.
  func release() { state.value.withLock { $0.isReleased = true } }

  var lines: [String] { state.value.withLock { $0.lines } }
  var limitError: HopdError? { state.value.withLock { $0.limit } }

  func count(of line: String, prefix: Bool = false) -> Int {
    lines.count(where: { prefix ? $0.hasPrefix(line) : $0 == line })
  }

  /// Waits until the line is there as often as wanted, at most 20 s.
  func waits(for line: String, times: Int = 1) -> Bool {
    for _ in 0..<1000 {
      if count(of: line) >= times { return true }
      usleep(20_000)
    }
    return false
  }
}
