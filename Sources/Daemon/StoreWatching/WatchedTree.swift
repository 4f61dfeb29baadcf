// One watched directory with everything below it: its inotify watches, the states of its files, and the time of the
// next scan. Used on the watcher's thread only; it reports events through `emit`.

import Diagnostics
import DurableFiles
import Glibc
import SystemPackage

/// The inotify instance that all trees share, with the tree and directory of each watch number.
///
/// Two watches of the configuration may name the same directory; the kernel gives both the same number.
struct WatchTable: ~Copyable {
  struct Owner: Hashable {
    var tree: String
    var directory: [UInt8]
  }

  private let inotify: Inotify?
  /// The descriptor for poll(2); nil if the kernel refused an instance.
  let descriptor: Int32?
  /// Why the kernel refused an instance.
  let failure: Errno?
  /// The maximum number of watches to add; beyond it, `add` fails as if the kernel had refused.
  let budget: Int
  private(set) var owners: [Int32: [Owner]] = [:]

  init(budget: Int, opening: () -> Result<Int32, Errno> = Inotify.open) {
    self.budget = budget
    switch opening() {
    case .success(let number):
      descriptor = number
      failure = nil
      inotify = Inotify(number)
    case .failure(let code):
      failure = code
      descriptor = nil
      inotify = nil
    }
  }

  /// Reads the pending events, at most one full buffer.
  func read() -> [Inotify.Event] { inotify?.read() ?? [] }

  /// Watches a directory of a tree; returns the watch number, or the error (`noSpace` at the limit).
  mutating func add(_ directory: OpenDirectory, owner: Owner) -> Result<Int32, Errno> {
    guard let watch = inotify?.add(directory) else {
      return .failure(failure ?? Errno(rawValue: errno))
    }
    if owners[watch] == nil, owners.count >= budget {
      inotify?.remove(watch)
      return .failure(.noSpace)
    }
    if owners[watch]?.contains(owner) != true { owners[watch, default: []].append(owner) }
    return .success(watch)
  }

  /// Removes a tree's watch, and the kernel's watch with its last owner.
  mutating func remove(_ watch: Int32, owner: Owner) {
    owners[watch]?.removeAll { $0 == owner }
    if owners[watch]?.isEmpty == true {
      owners[watch] = nil
      inotify?.remove(watch)
    }
  }

  /// Notes that the kernel dropped the watch.
  mutating func dropped(_ watch: Int32) { owners[watch] = nil }
}

/// A watched directory and its state.
final class WatchedTree {
  let watch: WatchedDirectory
  private let scan: DirectoryScan
  private let emit: (WatchEvent) -> Void
  private var machine: SettleMachine<[UInt8]>
  /// Watched directories below (the empty name is the root) and their watch numbers.
  private var armed: [[UInt8]: Int32] = [:]
  /// Device and inode of the root at the last scan: another file system may have been mounted over it.
  private var identity: FileIdentity?
  /// The reported reason why the directory is not watched; nil while it is.
  private var degradation: String?
  private var retry = WatchedTree.retries.first
  private var limitIsReported = false
  private var transfers = Transfers()
  /// Symbolic links that the last scan found, and how many were last reported.
  private var links: [[UInt8]] = []
  private var reportedLinks = 0
  private var lastScan: ContinuousClock.Instant?
  private var nextScan: ContinuousClock.Instant

  /// The deepest level of directories: a chain of bind mounts can be endless.
  private static let deepest = 64
  /// The first and the longest pause between retries of a directory that is missing.
  private static let retries: (first: Duration, most: Duration) = (.seconds(1), .seconds(30))

  init(
    _ watch: WatchedDirectory, ignores: @escaping @Sendable (String) -> Bool, now: ContinuousClock.Instant,
    emit: @escaping (WatchEvent) -> Void
  ) {
    self.watch = watch
    self.emit = emit
    scan = DirectoryScan(watch, ignores: ignores)
    machine = SettleMachine(settle: watch.settle)
    nextScan = now
  }

  /// When this tree next has something to do.
  var nextDeadline: ContinuousClock.Instant { min(nextScan, machine.nextDeadline ?? nextScan) }

  /// Schedules a scan, at most one per second.
  func requestScan(now: ContinuousClock.Instant) {
    nextScan = min(nextScan, max(now, lastScan?.advanced(by: .seconds(1)) ?? now))
  }

  /// Schedules a scan at once, on a command.
  func demandScan(now: ContinuousClock.Instant) { nextScan = min(nextScan, now) }

  /// Does what is due: a scan, and the inspection of files that have been quiet for the settle time.
  func work(_ table: inout WatchTable, now: ContinuousClock.Instant) {
    if nextScan <= now { scanAll(&table, now: now) }
    // Bounded, so that events are read in between when 100 000 files settle at once.
    for name in machine.due(now: now, limit: 4096) {
      if let transfer = transfers.obstacle(for: name, changed: scan.secondsSinceChange) {
        machine.touched(name, now: now)
        if transfers.isNews(name) {
          emit(.incomplete(watch: watch.name, path: scan.filePath(name), transfer: scan.filePath(transfer)))
        }
        continue
      }
      transfers.arrived(name)
      let place = (try? watch.root.open()).flatMap { scan.place(of: name, in: $0) }
      let observation = place.flatMap { scan.inspect(at: $0.name, in: $0.folder) }
      switch machine.inspected(name, observation, now: now) {
      case .settled:
        emit(
          .settled(
            SettledFile(
              watch: watch.name, path: scan.filePath(name), key: scan.key(name), size: observation?.size ?? 0,
              folder: place?.folder)))
      case .vanished: reportVanished(name)
      case .moving, .unchanged, .forgotten: break
      }
    }
  }

  /// Handles an event of the directory `directory` of this tree.
  func handle(
    _ event: Inotify.Event, directory: [UInt8], table: inout WatchTable, now: ContinuousClock.Instant
  ) {
    if event.has(IN_IGNORED) || event.has(IN_UNMOUNT) || event.has(IN_DELETE_SELF) || event.has(IN_MOVE_SELF) {
      if directory.isEmpty {
        lose(&table, .errno(.noSuchFileOrDirectory), now: now)
      } else {
        if event.has(IN_IGNORED) { armed[directory] = nil }
        requestScan(now: now)
      }
      return
    }
    guard !event.name.isEmpty else { return }
    let relative = DirectoryScan.join(directory, event.name)
    if event.has(IN_ISDIR) {
      guard scan.descends(into: event.name) else { return }
      if event.has(IN_CREATE) || event.has(IN_MOVED_TO) {
        var problem: HopdError?
        var seen: Set<[UInt8]> = []
        if let root = try? watch.root.open() {
          let depth = relative.count(where: { $0 == UInt8(ascii: "/") })
          walk(relative, in: root, depth: depth, &table, &seen, &problem, now: now)
        }
        if limitIsHit != nil { reportLimit() }
      } else {
        requestScan(now: now)  // Finds the files that are gone with it.
      }
      return
    }
    switch scan.kind(event.name) {
    case .side(let main, let isNoisy):
      let name = DirectoryScan.join(directory, main)
      if isNoisy { machine.sideFileChanged(name, now: now) } else { machine.touched(name, now: now) }
    case .candidate:
      let isGone = event.has(IN_DELETE) || event.has(IN_MOVED_FROM)
      // A deleted file may exist again by the time its event is read, so lstat(2) decides.
      if isGone || event.has(IN_CREATE) || event.has(IN_MOVED_TO) || !machine.knows(relative) {
        if machine.observed(relative, scan.inspect(at: relative), now: now) { reportVanished(relative) }
      }
      machine.touched(relative, now: now)
    case .transfer(let main):
      let store = DirectoryScan.join(directory, main)
      if event.has(IN_DELETE) || event.has(IN_MOVED_FROM) {
        transfers.remove(relative, of: store)
      } else {
        transfers.insert(relative, of: store)
      }
      machine.touched(store, now: now)
    case .other: break
    }
  }

  private func reportVanished(_ name: [UInt8]) {
    emit(.vanished(watch: watch.name, path: scan.filePath(name), key: scan.key(name)))
  }

  /// Removes every watch of the tree.
  func close(_ table: inout WatchTable) {
    for (directory, number) in armed { table.remove(number, owner: owner(directory)) }
    armed = [:]
  }

  // MARK: Scanning

  private func scanAll(_ table: inout WatchTable, now: ContinuousClock.Instant) {
    lastScan = now
    nextScan = now.advanced(by: watch.rescan)
    let root: OpenDirectory
    do throws(WatchRoot.Failure) { root = try watch.root.open() } catch { return lose(&table, error, now: now) }
    if let identity, identity != root.identity { close(&table) }
    identity = root.identity
    limitIsHit = nil
    var problem: HopdError?
    var seen: Set<[UInt8]> = []
    machine.beginScan()
    transfers.removeAll()
    links = []
    walk([], in: root, depth: 0, &table, &seen, &problem, now: now)
    if let problem {
      // After an incomplete scan nothing is forgotten: files that it did not see may still exist.
      degrade(problem, now: now)
    } else {
      machine.endScan().forEach(reportVanished)
      for (directory, number) in armed where !seen.contains(directory) {
        table.remove(number, owner: owner(directory))
        armed[directory] = nil
      }
      retry = Self.retries.first
      if degradation != nil {
        degradation = nil
        emit(.restored(watch: watch.name))
      }
    }
    reportLimit()
    reportLinks()
    emit(.scanned(watch: watch.name, files: machine.count))
  }

  /// Why this scan could not watch every directory.
  private var limitIsHit: Errno?

  private func walk(
    _ directory: [UInt8], in root: OpenDirectory, depth: Int, _ table: inout WatchTable, _ seen: inout Set<[UInt8]>,
    _ problem: inout HopdError?, now: ContinuousClock.Instant
  ) {
    let folder: OpenDirectory
    do { folder = try root.directory(DirectoryScan.filePath(directory)) } catch {
      let code = (error as? HopdError)?.errno ?? .ioError
      if !Self.isRace(code, directory) { problem = problem ?? unavailable(code, directory) }
      return
    }
    // Adds the watch before listing: a file created in between is found twice rather than never.
    switch table.add(folder, owner: owner(directory)) {
    case .success(let number):
      if let old = armed[directory], old != number { table.remove(old, owner: owner(directory)) }
      armed[directory] = number
      seen.insert(directory)
    case .failure(let code):
      if code == .noSpace || code == .tooManyOpenFiles || code == .tooManyOpenFilesInSystem {
        limitIsHit = code
      } else if !Self.isRace(code, directory) {
        problem = problem ?? unavailable(code, directory)
      }
    }
    switch scan.list(folder) {
    case .failure(let code):
      if !Self.isRace(code, directory) { problem = problem ?? unavailable(code, directory) }
    case .success(let listing):
      for name in listing.files {
        let relative = DirectoryScan.join(directory, name)
        // Files that are not regular or are gone by now are left to endScan, which forgets what was not seen.
        let hasSides = listing.withSides.contains(name)
        if let observation = scan.inspect(at: name, in: folder, hasSides: hasSides) {
          machine.observed(relative, observation, now: now)
        }
      }
      for (store, name) in listing.transfers {
        transfers.insert(DirectoryScan.join(directory, name), of: DirectoryScan.join(directory, store))
      }
      links += listing.links.map { DirectoryScan.join(directory, $0) }
      guard depth < Self.deepest else { return }
      for name in listing.directories {
        walk(DirectoryScan.join(directory, name), in: root, depth: depth + 1, &table, &seen, &problem, now: now)
      }
    }
  }

  /// Whether the error only means that a subdirectory was removed or replaced by a link during the scan. For the root
  /// it is a problem.
  private static func isRace(_ code: Errno, _ directory: [UInt8]) -> Bool {
    !directory.isEmpty && [.noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels].contains(code)
  }

  private func owner(_ directory: [UInt8]) -> WatchTable.Owner {
    WatchTable.Owner(tree: watch.name, directory: directory)
  }

  // MARK: Errors

  /// Handles the loss of the directory itself: its files are lost too, and count as new when it returns.
  private func lose(_ table: inout WatchTable, _ failure: WatchRoot.Failure, now: ContinuousClock.Instant) {
    close(&table)
    identity = nil
    machine.forgetAll().forEach(reportVanished)
    degrade(failure.error(scan.filePath([]), watch: watch.name), now: now)
  }

  private func degrade(_ error: HopdError, now: ContinuousClock.Instant) {
    nextScan = now.advanced(by: min(watch.rescan, retry))
    retry = min(retry * 2, Self.retries.most)
    guard degradation != error.message else { return }
    degradation = error.message
    emit(.degraded(watch: watch.name, error))
  }

  private func unavailable(_ code: Errno, _ directory: [UInt8]) -> HopdError {
    WatchRoot.Failure.errno(code).error(scan.filePath(directory), watch: watch.name)
  }

  private func reportLinks() {
    defer { reportedLinks = links.count }
    let first = links.min { $0.lexicographicallyPrecedes($1) }
    guard links.count != reportedLinks else { return }
    emit(.linksIgnored(watch: watch.name, count: links.count, first: first.map { scan.filePath($0) }))
  }

  private func reportLimit() {
    guard let code = limitIsHit else {
      limitIsReported = false
      return
    }
    guard !limitIsReported else { return }
    limitIsReported = true
    emit(.watchLimitReached(watch: watch.name, KernelLimit.error(code, watch: watch, armed: armed.count)))
  }
}
