// What a daemon records of its stores, as another program reads it.

import Diagnostics
import DurableFiles
import Glibc
import MigrationPlanning
import PersistentStore
import ServiceState
import StoreReplacement
import Synchronization
import SystemPackage
import SystemdSupport
import Testing

@testable import HopdService
@testable import MigrationPipeline

@Suite struct RecordedStateTests {
  private typealias Place = DaemonTests.Place

  /// A daemon that records, on the place of `DaemonTests`.
  private func coordinator(_ place: Place, _ work: any StoreWork) throws -> DaemonCoordinator {
    let source = ConfigurationSource.file(place.configuration)
    let state = place.root.appending("state")
    return DaemonCoordinator(
      DaemonCoordinator.Surroundings(
        source: source, stateDirectory: state, pauseFile: place.root.appending("pause"),
        notifier: ServiceNotifier(socketPath: place.manager.path), work: work, logger: place.log.logger,
        recorder: try StateRecorder(stateDirectory: state, logger: place.log.logger) { Int64(time(nil)) }),
      setup: try DaemonSetup(source.load()))
  }

  private func stores(_ place: Place) -> [String: StoreRecord] {
    guard let reader = try? StateReader(stateDirectory: place.root.appending("state")),
      let stores = try? reader.stores()
    else { return [:] }
    return Dictionary(stores.map { (FilePath($0.path).lastComponent?.string ?? "", $0) }) { first, _ in first }
  }

  private func reader(_ place: Place) throws -> StateReader {
    try StateReader(stateDirectory: place.root.appending("state"))
  }

  /// Work whose result depends on the name of the store.
  private static func work(mayEnd: @escaping @Sendable () -> Bool = { true }) -> FakeWork {
    FakeWork(
      onInspect: { request in
        func failed(_ code: HopdError.Code, _ message: String) -> Result<InspectionResult, MigrationFailure> {
          .failure(
            MigrationFailure(stage: .identify, error: HopdError(code, message, hint: "do this"), from: "A", to: "A 2"))
        }
        return switch request.location.database.lastComponent?.string {
        case "current.sqlite": .success(.current(DaemonTests.facts))
        case "busy.sqlite": failed(.lockedByOther, "somebody has it")
        case "refused.sqlite": failed(.noRoute, "no way")
        case "full.sqlite": failed(.noSpace, "no space")
        default: .success(.behind(DaemonTests.facts, target: "A 2"))
        }
      },
      onMigrate: { request, _, _ in
        while !mayEnd() { usleep(1000) }
        return .success(.sample(request.location.database))
      })
  }

  @Test func everyStoreStandsThereWithReasonNextAttemptAndCommand() async throws {
    let place = try Place(rescan: "1h")
    for name in ["current", "busy", "refused", "full", "old"] { try place.write("stores/\(name).sqlite", "x") }
    let mayEnd = Mutex(false)
    let daemon = try coordinator(place, Self.work { mayEnd.withLock { $0 } })
    try await DaemonTests().running(place, daemon) {
      try await eventually("all conditions") {
        let found = stores(place)
        return found["current.sqlite"]?.condition == .current && found["busy.sqlite"]?.condition == .busy
          && found["refused.sqlite"]?.condition == .failed && found["full.sqlite"]?.condition == .retrying
          && found["old.sqlite"]?.condition == .migrating
      }
      mayEnd.withLock { $0 = true }
      try await eventually("migrated") { stores(place)["old.sqlite"]?.condition == .current }
    }
    let found = stores(place)
    let refused = try #require(found["refused.sqlite"]?.failure)
    #expect(refused.code == "no-route" && refused.reason == "no way" && refused.hint == "do this")
    #expect(refused.nextAttempt == nil)
    #expect(
      refused.command
        == "hopctl plan \(place.store("refused.sqlite")) --config \(place.configuration) --watch w")
    let busy = try #require(found["busy.sqlite"]?.failure)
    #expect(busy.nextAttempt != nil && busy.command.hasPrefix("fuser -v "))
    let full = try #require(found["full.sqlite"]?.failure)
    #expect(full.attempts > 0 && full.command.hasPrefix("df -h "))
    #expect(found["old.sqlite"]?.version == "A 2")
    let jobs = try reader(place).jobs(of: place.store("old.sqlite"))
    #expect(jobs.count == 1)
    #expect(jobs.first?.result == "migrated" && jobs.first?.rows == 30 && jobs.first?.requester == "hopd")
    #expect(jobs.first?.backup == "/srv/.a.hopd-backups/1/a.sqlite")
    #expect(try reader(place).jobs(of: place.store("refused.sqlite")).map(\.result) == ["refused"])
    // A store that is full again and again is one line, not one for each attempt.
    #expect(try reader(place).jobs(of: place.store("full.sqlite")).count <= 2)
  }

  @Test func whatIsGoneIsForgottenAlsoAcrossARestart() async throws {
    let place = try Place()
    for name in ["current", "refused"] { try place.write("stores/\(name).sqlite", "x") }
    try await DaemonTests().running(place, try coordinator(place, Self.work())) {
      try await eventually("both") { stores(place).count == 2 }
    }
    try await eventually("the end is recorded") {
      guard let facts = try? reader(place).service() else { return false }
      return facts[.process] == nil && facts[.stopped] != nil && facts[.started] != nil
    }
    unlink(place.store("current.sqlite"))
    try await DaemonTests().running(place, try coordinator(place, Self.work())) {
      try await eventually("one, refused by this hopd too") {
        guard Set(stores(place).keys) == ["refused.sqlite"] else { return false }
        return (try? reader(place).jobs(of: place.store("refused.sqlite")).count) == 2
      }
      unlink(place.store("refused.sqlite"))
      try await eventually("none") { stores(place).isEmpty }
    }
    // A store that was refused once is not reported as a job again.
    #expect(try reader(place).jobs(of: place.store("refused.sqlite")).count == 2)
  }

  @Test func aRecordThatIsLostIsMadeAnewAndReportedOnceWhileMigrationsGoOn() async throws {
    let place = try Place()
    for name in ["current", "refused"] { try place.write("stores/\(name).sqlite", "x") }
    let file = place.root.appending("state").appending("state.sqlite")
    try await DaemonTests().running(place, try coordinator(place, Self.work())) {
      try await eventually("both") { stores(place).count == 2 }
      unlink(file.string)
      try place.write("stores/old.sqlite", "x")
      try await eventually("all again") {
        stores(place).mapValues(\.condition.name).values.sorted() == [
          "current", "current", "failed",
        ]
      }
    }
    #expect(place.log.all(.stateReplaced).count == 1)
    #expect(!place.log.all(.storeMigrated).isEmpty)
    // Written with the next batch.
    try await eventually("facts") { (try? reader(place).service())?[.program]?.hasPrefix("hopd ") == true }
  }

  @Test func aRecordThatCannotBeWrittenStopsNoMigration() async throws {
    let place = try Place()
    try place.write("stores/old.sqlite", "x")
    // A directory in the place of the file.
    mkdir(place.root.appending("state/state.sqlite").string, 0o755)
    mkdir(place.root.appending("state/state.sqlite/x").string, 0o755)
    mkdir(place.root.appending("state/state.sqlite.damaged").string, 0o755)
    mkdir(place.root.appending("state/state.sqlite.damaged/x").string, 0o755)
    try await DaemonTests().running(place, try coordinator(place, Self.work())) {
      try await eventually("migrated") { place.log.all(.storeMigrated).count == 1 }
      try await Task.sleep(for: .milliseconds(500))
    }
    #expect(place.log.all(.stateUnwritable).count == 1)
  }

  @Test func wordsOfAShellAreQuoted() {
    for (path, quoted) in [
      ("/srv/a.sqlite", "/srv/a.sqlite"), ("/srv/with space.sqlite", "'/srv/with space.sqlite'"),
      ("/srv/it's", "'/srv/it'\\''s'"), ("/srv/$(reboot)", "'/srv/$(reboot)'"), ("", "''"),
      // Neither a terminal nor the line below gets a control character.
      ("/srv/a\nb", "$'/srv/a\\012b'"), ("/srv/\u{1b}[31m it's\\!", "$'/srv/\\033[31m it\\047s\\134\\041'"),
      ("/srv/\u{202e}ü", "$'/srv/\\342\\200\\256\\303\\274'"),
    ] {
      #expect(path.quotedForShell == quoted)
      if !path.isEmpty { #expect(FilePath(path).quotedForShell == quoted) }
    }
    // A command takes no path for an option.
    #expect(FilePath("-a b.sqlite").quotedForShell == "'./-a b.sqlite'")
    let bytes: [CChar] = [0x2f, 0x61, CChar(bitPattern: 0xff), 0x62, 0]
    #expect(FilePath(platformString: bytes).quotedForShell == "$'/a\\377b'")
  }

  @Test func aLongHintIsCutAtItsEnd() {
    let path = "/" + String(repeating: "x'", count: 1000) + "; touch PWNED #"
    let text = HopdError(.usage, "no", hint: "chmod go-w \(path.quotedForShell)").description
    #expect(text.contains("hint: chmod go-w '/x") && text.hasSuffix("characters omitted)"))
    #expect(!text.contains("PWNED"))
  }
}
