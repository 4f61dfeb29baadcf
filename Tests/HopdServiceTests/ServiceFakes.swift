// Stand-ins of the service's tests: a log that remembers, a service manager's socket, work without stores.

import Diagnostics
import DurableFiles
import Glibc
import Logging
import PersistentStore
import Synchronization
import SystemPackage
import SystemdSupport
import Testing

@testable import HopdService
@testable import MigrationPipeline
@testable import StoreReplacement

/// A log that remembers its entries.
final class RecordedLog: Sendable {
  struct Entry: Sendable {
    var level: Logger.Level
    var text: String
    var fields: [String: String]

    var kind: JournalMessage? { fields["MESSAGE_ID"].flatMap { JournalMessage(rawValue: $0) } }
    subscript(_ field: JournalField) -> String? { fields[field.rawValue] }
  }

  private let list = Mutex<[Entry]>([])

  var entries: [Entry] { list.withLock { $0 } }
  func kinds(of store: String) -> [JournalMessage] {
    entries.filter { $0[.store] == store && $0.level > .debug }.compactMap(\.kind)
  }
  func all(_ kind: JournalMessage) -> [Entry] { entries.filter { $0.kind == kind } }

  var logger: Logger { Logger(label: "test") { _ in Handler(log: self) } }

  private struct Handler: LogHandler {
    let log: RecordedLog
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level = .trace
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }
    func log(event: LogEvent) {
      let entry = Entry(
        level: event.level, text: event.message.description, fields: (event.metadata ?? [:]).mapValues { "\($0)" })
      log.list.withLock { $0.append(entry) }
    }
  }
}

/// The service manager's end of the notification socket.
final class ManagerSocket: Sendable {
  let path: String
  private let descriptor: Int32
  private let heard = Mutex<[String]>([])

  init() throws {
    path = "/tmp/hopd-service-\(UInt64.random(in: 0 ... .max))"
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let name = Array(path.utf8)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
    let length = socklen_t(3 + name.count)
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
    }
    try #require(result == 0)
  }

  deinit {
    close(descriptor)
    unlink(path)
  }

  /// Every datagram so far.
  var messages: [String] {
    var buffer = [UInt8](repeating: 0, count: 65536)
    return heard.withLock { heard in
      while case let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT)), count >= 0 {
        heard.append(String(decoding: buffer.prefix(count), as: UTF8.self))
      }
      return heard
    }
  }
}

/// Work that does what a test prescribes.
struct FakeWork: StoreWork {
  var onInspect: @Sendable (MigrationRequest) -> Result<InspectionResult, MigrationFailure> = { _ in
    .success(.current(nil))
  }
  var onMigrate:
    @Sendable (MigrationRequest, StopSignal, (MigrationEvent) -> Void) -> Result<MigrationReport, MigrationFailure> = {
      request, _, _ in .success(.sample(request.location.database))
    }
  var recovered: [RecoveredStore] = []

  func inspect(
    _ request: MigrationRequest, stop: StopSignal, beat: @escaping () -> Void
  ) throws(MigrationFailure) -> InspectionResult { try onInspect(request).get() }

  func migrate(
    _ request: MigrationRequest, stop: StopSignal, observer: @escaping (MigrationEvent) -> Void
  ) throws(MigrationFailure) -> MigrationReport { try onMigrate(request, stop, observer).get() }

  func recover(
    stateDirectory: FilePath, backup: (FilePath) -> BackupRule,
    around: (FilePath, () -> RecoveredStore) -> RecoveredStore?
  ) throws(HopdError) -> [RecoveredStore] {
    recovered.compactMap { store in around(store.store) { store } }
  }
}

extension MigrationReport {
  static func sample(_ store: FilePath, result: MigrationResult = .migrated) -> MigrationReport {
    let hop = HopReport(
      source: "A", destination: "A 2", kind: "inferred", rowsRead: 30, rowsWritten: 30, chunks: 1, seconds: 0.5)
    return MigrationReport(
      job: "00ff000001", store: store, storeUUID: "U-U-I-D", result: result, from: "A", to: "A 2", hops: [hop],
      rows: ["Person": 20, "Book": 10], dropped: [], clearedHistory: [], warnings: [],
      backup: "/srv/.a.hopd-backups/1/a.sqlite",
      seconds: 1.25, peakMemory: 0, checks: [], wasResumed: false)
  }
}

extension FoundStore {
  static func sample(_ name: String, watch: String = "w", size: Int64 = 1, inode: UInt64 = 1) -> FoundStore {
    FoundStore(
      key: FilePath("/srv/\(name)"), path: FilePath("/srv/\(name)"), watch: watch,
      fingerprint: fingerprint(inode: inode, size: size))
  }

  static func fingerprint(inode: UInt64, size: Int64 = 1) -> SourceFingerprint {
    SourceFingerprint(
      database: SourceFingerprint.Stamp(
        FileStatus(
          identity: FileIdentity(device: 1, inode: inode), kind: .regular, size: size, links: 1, owner: 0, group: 0,
          mode: 0o644, modified: 7, isMountPoint: false)), log: nil)
  }
}

/// Waits for something that another thread does.
func eventually(
  _ what: Comment, within seconds: Int = 20, sourceLocation: SourceLocation = #_sourceLocation, _ condition: () -> Bool
) async throws {
  let end = ContinuousClock.now.advanced(by: .seconds(seconds))
  while !condition() {
    try #require(ContinuousClock.now < end, what, sourceLocation: sourceLocation)
    try await Task.sleep(for: .milliseconds(20))
  }
}
