// The watcher's thread. It waits for inotify, for a command, or for the next deadline of a file or a rescan. It owns
// all state of the trees; other threads only post commands and wake it.

import CLinux
import Diagnostics
import Glibc
import Synchronization
import SystemPackage

/// Watches directories until it is stopped, and reports the files that settle in them.
///
/// One thread and two descriptors serve all directories. `onEvent` is called on that thread, one call at a time; it
/// should pass the event on and return.
package final class DirectoryWatcher: Sendable {
  /// A thread that was started, until it is joined.
  private struct Running: @unchecked Sendable {
    // A pthread_t is a number that any thread may join; the mutex around it makes sure that only one does.
    var thread: pthread_t
  }

  private let mailbox: Mailbox
  private let ignores: @Sendable (String) -> Bool
  private let watchBudget: Int
  private let onEvent: @Sendable (WatchEvent) -> Void
  private let running = Mutex<Running?>(nil)

  /// Prepares a watcher; `start` starts it.
  ///
  /// `ignores` returns whether to ignore a file whose name matches: hidden and temporary files, side files, hopd's own
  /// files. `watchBudget` is the most directories to watch through the kernel; the rescan serves the rest.
  package init(
    _ watches: [WatchedDirectory], ignores: @escaping @Sendable (String) -> Bool, watchBudget: Int = .max,
    onEvent: @escaping @Sendable (WatchEvent) -> Void
  ) throws(HopdError) {
    guard let mailbox = Mailbox(watches) else {
      throw HopdError(.inputOutput, "no event descriptor: \(Errno(rawValue: errno))")
    }
    self.mailbox = mailbox
    self.ignores = ignores
    self.watchBudget = watchBudget
    self.onEvent = onEvent
  }

  deinit { stop() }

  /// Starts the thread, which first scans each directory. Does nothing if it already runs.
  package func start() throws(HopdError) {
    let failure = running.withLock { running -> Int32 in
      guard running == nil else { return 0 }
      let loop = WatchLoop(mailbox: mailbox, ignores: ignores, watchBudget: watchBudget, onEvent: onEvent)
      let context = Unmanaged.passRetained(loop)
      var thread = pthread_t()
      let code = pthread_create(
        &thread, nil,
        { context in
          if let context { Unmanaged<WatchLoop>.fromOpaque(context).takeRetainedValue().run() }
          return nil
        }, context.toOpaque())
      if code == 0 { running = Running(thread: thread) } else { context.release() }
      return code
    }
    if failure != 0 { throw HopdError(.inputOutput, "no thread for the watcher: \(Errno(rawValue: failure))") }
  }

  /// Replaces the watches. Files of an unchanged watch are not reported again.
  package func update(_ watches: [WatchedDirectory]) { mailbox.post { $0.watches = watches } }

  /// Starts a rescan of everything; a `scanned` event follows for each watch.
  package func rescan() { mailbox.post { $0.rescan = true } }

  /// Ends the thread and waits for it; no event follows. Must not be called from `onEvent`.
  package func stop() {
    let thread = running.withLock { running in
      defer { running = nil }
      return running?.thread
    }
    guard let thread else { return }
    mailbox.post { $0.stop = true }
    pthread_join(thread, nil)
  }
}

/// The commands for the watcher's thread, and the descriptor that wakes it.
final class Mailbox: Sendable {
  struct Commands {
    var watches: [WatchedDirectory]?
    var rescan = false
    var stop = false
  }

  let descriptor: Int32
  private let commands: Mutex<Commands>

  init?(_ watches: [WatchedDirectory]) {
    let descriptor = clinux_eventfd()
    guard descriptor >= 0 else { return nil }
    self.descriptor = descriptor
    commands = Mutex(Commands(watches: watches))
  }

  deinit { close(descriptor) }

  func post(_ change: (inout Commands) -> Void) {
    commands.withLock { change(&$0) }
    var one: UInt64 = 1
    write(descriptor, &one, 8)
  }

  func take() -> Commands {
    var count: UInt64 = 0
    read(descriptor, &count, 8)
    return commands.withLock { commands in
      defer { commands = Commands() }
      return commands
    }
  }
}

/// The loop of the watcher's thread.
private final class WatchLoop {
  private let mailbox: Mailbox
  private let ignores: @Sendable (String) -> Bool
  private let onEvent: @Sendable (WatchEvent) -> Void
  private var table: WatchTable
  private var trees: [String: WatchedTree] = [:]

  init(
    mailbox: Mailbox, ignores: @escaping @Sendable (String) -> Bool, watchBudget: Int,
    onEvent: @escaping @Sendable (WatchEvent) -> Void
  ) {
    self.mailbox = mailbox
    self.ignores = ignores
    self.onEvent = onEvent
    table = WatchTable(budget: watchBudget)
  }

  func run() {
    // Other threads of the service handle signals; here they would only interrupt a callback.
    var all = sigset_t()
    sigfillset(&all)
    pthread_sigmask(SIG_BLOCK, &all, nil)
    while true {
      let commands = mailbox.take()
      if commands.stop { return }
      let now = ContinuousClock.now
      if let watches = commands.watches { apply(watches, now: now) }
      if commands.rescan { for tree in trees.values { tree.demandScan(now: now) } }
      readEvents(now: now)
      for tree in trees.values { tree.work(&table, now: now) }
      wait()
    }
  }

  private func apply(_ watches: [WatchedDirectory], now: ContinuousClock.Instant) {
    let wanted = Dictionary(watches.map { ($0.name, $0) }) { first, _ in first }
    for (name, tree) in trees where wanted[name] != tree.watch {
      tree.close(&table)
      trees[name] = nil
    }
    for (name, watch) in wanted where trees[name] == nil {
      trees[name] = WatchedTree(watch, ignores: ignores, now: now, emit: onEvent)
    }
  }

  private func readEvents(now: ContinuousClock.Instant) {
    // Bounded: a burst of events must not delay deadlines and commands.
    for _ in 0..<64 {
      let events = table.read()
      guard !events.isEmpty else { return }
      for event in events {
        if event.has(IN_Q_OVERFLOW) {
          onEvent(.eventsLost)
          for tree in trees.values { tree.requestScan(now: now) }
          continue
        }
        let owners = table.owners[event.watch] ?? []
        if event.has(IN_IGNORED) { table.dropped(event.watch) }
        for owner in owners {
          trees[owner.tree]?.handle(event, directory: owner.directory, table: &table, now: now)
        }
      }
    }
  }

  private func wait() {
    let timeout = trees.values.map(\.nextDeadline).min().map { deadline in
      // Rounded up, or the loop would spin through the last millisecond; at most a minute, so that the sum stays small.
      let left = min(max(deadline - .now, .zero), .seconds(60)).components
      return Int32(left.seconds) * 1000 + Int32((left.attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
    var descriptors = [pollfd(fd: mailbox.descriptor, events: Int16(POLLIN), revents: 0)]
    if let inotify = table.descriptor {
      descriptors.append(pollfd(fd: inotify, events: Int16(POLLIN), revents: 0))
    }
    _ = poll(&descriptors, nfds_t(descriptors.count), timeout ?? -1)
  }
}
