// Writes the metrics to a temporary file and renames it, so that a collector reads either the old file or the new one.

import Diagnostics
import DurableFiles
import Glibc
import Logging
import MigrationPipeline
import ServiceState
import StoreReplacement
import StoreWatching
import Synchronization
import SystemPackage
import SystemdSupport

/// Writes the file of `metrics_file`.
package final class MetricsWriter: Sendable {
  private let logger: Logger
  private let isWriting = Atomic<Bool>(false)
  private let hasFailed = Mutex(false)
  private let backups = Mutex<(bytes: Int64, until: ContinuousClock.Instant)?>(nil)

  /// A watched directory whose backups are counted, with or without the directories below, and the rule of its watch.
  typealias Subject = (root: WatchRoot, recursive: Bool, rule: BackupRule)

  /// Creates a writer that logs errors to `logger`.
  package init(logger: Logger) { self.logger = logger }

  /// Writes the file on a thread of its own; does nothing while the last file is still being written.
  func write(
    _ metrics: Metrics, _ gauges: Metrics.Gauges, to file: FilePath, stateDirectory: FilePath,
    backups places: [Subject],
    now: Int64
  ) {
    guard !isWriting.exchange(true, ordering: .relaxed) else { return }
    BlockingWork.run("metrics") { [self] in
      defer { isWriting.store(false, ordering: .relaxed) }
      var gauges = gauges
      if let reader = try? StateReader(stateDirectory: stateDirectory) {
        gauges.stores = ((try? reader.versions()) ?? []).map { ($0.version ?? "", $0.condition.name, $0.count) }
        if let since = try? reader.oldestWaiting() { gauges.oldestWaiting = max(0, now &- since) }
      }
      gauges.backupBytes = backupBytes(places)
      do {
        try Self.replace(file, with: Array(metrics.text(gauges, version: ProgramVersion.number).utf8))
        hasFailed.withLock { $0 = false }
      } catch {
        report(error, file)
      }
    }
  }

  /// Bytes of all backups. There may be as many folders as stores, so counting takes at most one percent of the time,
  /// unless an hour has passed.
  private func backupBytes(_ places: [Subject]) -> Int64 {
    if let known = backups.withLock({ $0 }), known.until > .now { return known.bytes }
    let start = ContinuousClock.now
    var bytes: Int64 = 0
    for place in places {
      let survey = try? BackupSurvey(
        of: CanonicalDirectory(place.root.open()), recursive: place.recursive, rule: place.rule,
        files: LinuxFileSystem())
      try? survey?.forEach(
        { backups in
          for generation in try backups.generations() {
            bytes = bytes.addingReportingOverflow(generation.bytes).partialValue
          }
          return true
        }, problem: { _ in })
    }
    let end = ContinuousClock.now
    backups.withLock { $0 = (bytes, end.advanced(by: min((end - start) * 100, .seconds(3600)))) }
    return bytes
  }

  /// Replaces the file. The folder usually belongs to the collector's user, who may exchange the draft at any moment:
  /// so everything is done to the open draft. `whenWritten` is for tests of that.
  static func replace(_ file: FilePath, with bytes: [UInt8], whenWritten: () -> Void = {}) throws {
    let files = LinuxFileSystem()
    // The collector reads only names that end with .prom.
    let draft = FilePath(file.string + ".tmp")
    _ = try files.unlinkIfPresent(draft)
    do {
      let made = try FileDescriptor.open(
        draft, .writeOnly, options: [.create, .exclusiveCreate, .noFollow, .closeOnExec],
        permissions: [.ownerReadWrite])
      defer { try? made.close() }
      _ = try made.writeAll(bytes)
      whenWritten()
      var status = stat()
      // Another user must be able to read it, whatever the unit's UMask= is.
      guard fchmod(made.rawValue, 0o644) == 0, fstat(made.rawValue, &status) == 0 else { throw Errno(rawValue: errno) }
      let identity = FileIdentity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
      guard try files.status(draft)?.identity == identity else {
        throw HopdError(
          .unsuitableFile, "another program replaced the temporary metrics file", at: Place(file: draft),
          hint: "check who can write there: `ls -ld \(file.removingLastComponent().quotedForShell)`")
      }
      try files.rename(draft, to: file)
    } catch let error as Errno {
      throw HopdError(errno: error.rawValue, "write the metrics", at: draft)
    }
  }

  private func report(_ error: any Error, _ file: FilePath) {
    guard
      !hasFailed.withLock({ failed in
        defer { failed = true }
        return failed
      })
    else { return }
    let error = HopdError.of(error)
    let folder = file.removingLastComponent().printable
    logger.event(
      .metricsUnwritable, "cannot write the metrics: \(error)",
      fields: [
        .error: error.code.name, .directory: folder,
        .hint: error.isReadOnlyFileSystem
          ? "run `hopctl check-config --drop-in --install` to let the unit write to \(folder)"
          : error.firstHint ?? "create the directory and make it writable by hopd",
      ])
  }
}
