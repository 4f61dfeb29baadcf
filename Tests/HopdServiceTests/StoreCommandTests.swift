// The commands of `on_failure` and `on_migrated`: when they run, what they get, and what they cannot do to the daemon.

import Diagnostics
import Glibc
import Logging
import MigrationPlanning
import PolicyHost
import ServiceState
import StoreReplacement
import Synchronization
import SystemPackage
import SystemdSupport
import Testing

@testable import HopdService
@testable import MigrationPipeline

@Suite("Commands about stores") struct StoreCommandTests {
  /// A place whose program `tell` notes the environment of each of its runs in the file `told`.
  private static func place() throws -> DaemonTests.Place {
    let place = try DaemonTests.Place()
    try place.write(
      "tell",
      """
      #!/bin/sh
      echo "noted $1"; echo "not a value" >&2
      { env -0; printf '\\0'; } >>"$1"

      """)
    chmod(place.root.appending("tell").string, 0o755)
    return place
  }

  private static func line(_ key: String, _ place: DaemonTests.Place) -> String {
    "\(key) = [\"\(place.root)/tell\", \"\(place.root)/told\"]"
  }

  /// The environment of each run of `tell`, with the bytes of its values.
  private static func told(_ place: DaemonTests.Place) -> [[String: [UInt8]]] {
    guard let file = fopen(place.root.appending("told").string, "r") else { return [] }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = fread(&bytes, 1, bytes.count, file)
    var runs: [[String: [UInt8]]] = []
    var variables: [String: [UInt8]] = [:]
    for variable in bytes.prefix(count).split(separator: 0, omittingEmptySubsequences: false).dropLast() {
      guard let equals = variable.firstIndex(of: UInt8(ascii: "=")) else {
        runs.append(variables)
        variables = [:]
        continue
      }
      variables[String(decoding: variable[..<equals], as: UTF8.self)] = Array(variable[(equals + 1)...])
    }
    return runs
  }

  private static func text(_ run: [String: [UInt8]], _ name: String) -> String? {
    run[name].map { String(decoding: $0, as: UTF8.self) }
  }

  @Test("A refusal runs on_failure once for each cause, with the fields of its journal entry")
  func failure() async throws {
    let place = try Self.place()
    try place.configure(Self.line("on_failure", place))
    let name = "a b\n$(touch x)'\".sqlite"
    try place.write("stores/\(name)", "x")
    let reason = Mutex("no way")
    let inspections = Mutex(0)
    let work = FakeWork(onInspect: { _ in
      inspections.withLock { $0 += 1 }
      let error = HopdError(.noRoute, reason.withLock { $0 }, hint: "add a version")
      return .failure(MigrationFailure(stage: .identify, error: error, from: "A", storeUUID: "U"))
    })
    let coordinator = try place.coordinator(work)
    try await DaemonTests().running(place, coordinator) {
      try await eventually("told") { Self.told(place).count == 1 }
      coordinator.reload()
      try await eventually("looked at again") { inspections.withLock { $0 } == 2 }
      try await Task.sleep(for: .milliseconds(500))
      #expect(Self.told(place).count == 1)
      reason.withLock { $0 = "another way" }
      coordinator.reload()
      try await eventually("told again") { Self.told(place).count == 2 }
    }
    let run = try #require(Self.told(place).first)
    #expect(Self.text(run, "HOPD_STORE") == place.store(name))
    let expected = [
      "HOPD_WATCH": "w", "HOPD_RESULT": "refused", "HOPD_ERROR": "no-route", "HOPD_HINT": "add a version",
      "HOPD_FROM": "A", "HOPD_STORE_UUID": "U", "HOPD_STATE_DIRECTORY": place.root.appending("state").string,
    ]
    for (field, value) in expected { #expect(Self.text(run, field) == value, "\(field)") }
    #expect(run["HOPD_JOB"]?.isEmpty == false && run["PATH"] != nil && run["HOME"] == nil)
    let output = place.log.all(.commandOutput)
    #expect(output.count { $0.level == .debug && $0.text.contains(": on_failure: noted /") } == 2)
    #expect(output.count { $0.level == .notice && $0.text.hasSuffix(": on_failure: not a value") } == 2)
    #expect(output.allSatisfy { $0[.watch] == "w" && $0[.store]?.contains("\n") == false })
    #expect(place.log.all(.commandFailed).isEmpty)
  }

  @Test("A failure that hopd retries runs on_failure when an operator should look at it, and once")
  func retried() async throws {
    let place = try Self.place()
    try place.configure(Self.line("on_failure", place))
    try place.write("stores/a.sqlite", "x")
    let tries = Mutex(0)
    let work = FakeWork(
      onInspect: { _ in .success(.behind(DaemonTests.facts, target: "A 2")) },
      onMigrate: { _, _, _ in
        tries.withLock { $0 += 1 }
        return .failure(MigrationFailure(stage: .migrate, error: HopdError(.noSpace, "no space on /srv")))
      })
    try await DaemonTests().running(place, try place.coordinator(work)) {
      try await eventually("told") { !Self.told(place).isEmpty }
      let before = tries.withLock { $0 }
      #expect(before >= 2)
      try await eventually("tried on and on") { tries.withLock { $0 } >= before + 3 }
    }
    #expect(Self.told(place).map { Self.text($0, "HOPD_ERROR") } == ["no-space"])
    #expect(Self.told(place).first.flatMap { Self.text($0, "HOPD_ATTEMPT") } == "2")
  }

  @Test("A restart tells no failure again that it has recorded, and a new cause at once")
  func restart() async throws {
    let place = try Self.place()
    try place.configure(Self.line("on_failure", place))
    try place.write("stores/a.sqlite", "x")
    for (run, reason) in ["no way", "no way", "another way"].enumerated() {
      let state = place.root.appending("state")
      let recorder = try StateRecorder(stateDirectory: state, logger: place.log.logger) { Int64(time(nil)) }
      let work = FakeWork(onInspect: { _ in
        .failure(MigrationFailure(stage: .identify, error: HopdError(.noRoute, reason)))
      })
      let source = ConfigurationSource.file(place.configuration)
      let coordinator = DaemonCoordinator(
        DaemonCoordinator.Surroundings(
          source: source, stateDirectory: state, pauseFile: place.root.appending("pause"),
          notifier: ServiceNotifier(socketPath: place.manager.path), work: work, logger: place.log.logger,
          recorder: recorder), setup: try DaemonSetup(source.load()))
      try await DaemonTests().running(place, coordinator) {
        try await eventually("refused") { place.log.all(.storeRefused).count == run + 1 }
      }
      recorder.flush(within: .seconds(10))
      #expect(Self.told(place).count == (run < 2 ? 1 : 2), "run \(run)")
    }
  }

  @Test("A migration runs on_migrated of [daemon] where the watch has none")
  func migrated() async throws {
    let place = try Self.place()
    try place.write(
      "hopd.toml",
      """
      [daemon]
      \(Self.line("on_migrated", place))
      [[watch]]
      name = "w"
      directory = "\(place.root.appending("stores"))"
      models = ["\(place.root.appending("A.xcdatamodel"))"]
      settle = "50ms"
      [[watch]]
      name = "silent"
      directory = "\(place.root.appending("state"))"
      models = ["\(place.root.appending("A.xcdatamodel"))"]
      settle = "50ms"
      on_migrated = []
      """)
    try place.write("stores/a.sqlite", "x")
    try place.write("state/b.sqlite", "x")
    let work = FakeWork(onInspect: { _ in .success(.behind(DaemonTests.facts, target: "A 2")) })
    try await DaemonTests().running(place, try place.coordinator(work)) {
      try await eventually("both") { place.log.all(.storeMigrated).count == 2 }
      try await eventually("told") { !Self.told(place).isEmpty }
    }
    let runs = Self.told(place)
    #expect(runs.map { Self.text($0, "HOPD_STORE") } == [place.store("a.sqlite")])
    let expected = [
      "HOPD_RESULT": "migrated", "HOPD_FROM": "A", "HOPD_TO": "A 2", "HOPD_ROWS": "30", "HOPD_HOPS": "1",
      "HOPD_BACKUP": "/srv/.a.hopd-backups/1/a.sqlite", "HOPD_JOB": "00ff000001", "HOPD_USEC": "1250000",
    ]
    for (field, value) in expected { #expect(runs.first.flatMap { Self.text($0, field) } == value, "\(field)") }
  }

  // MARK: Alone

  private static func command(_ command: [String], _ store: FilePath = "/srv/a.sqlite") -> StoreCommand {
    StoreCommand(key: "on_failure", command: command, store: store, fields: [.watch: "w", .job: "j"])
  }

  /// Waits for the end of all commands, on a thread of its own: the daemons of other tests need those of the pool.
  private static func finish(_ commands: StoreCommands, within limit: Duration) async {
    await withCheckedContinuation { continuation in
      BlockingWork.run("finish") {
        commands.finish(within: limit)
        continuation.resume()
      }
    }
  }

  private static func shell(_ script: String) -> StoreCommand { command(["/bin/sh", "-c", script]) }

  @Test("The path of a store is passed byte for byte")
  func bytes() async throws {
    let place = try Self.place()
    let name: [UInt8] = Array("/srv/".utf8) + [0xff, 0x0a, 0x5c, 0x80, 0x3d] + Array(".sqlite".utf8)
    let store = FilePath(platformString: name.map { CChar(bitPattern: $0) } + [0])
    let commands = StoreCommands(stateDirectory: "/var/lib/hopd", logger: place.log.logger)
    commands.run(Self.command(["\(place.root)/tell", "\(place.root)/told"], store))
    await Self.finish(commands, within: .seconds(60))
    #expect(Self.told(place).first?["HOPD_STORE"] == name)
  }

  @Test("A command that fails, hangs, floods, dies or is missing costs a warning with its status")
  func failing() async throws {
    let place = try Self.place()
    let commands = StoreCommands(
      stateDirectory: "/var/lib/hopd", logger: place.log.logger,
      limits: ProgramOutput.Limits(output: 4096, time: .seconds(5), memory: 256 << 20))
    commands.run(Self.shell("echo why >&2; exit 3"))
    commands.run(Self.shell("sleep 1000"))
    commands.run(Self.shell("yes"))
    commands.run(Self.shell("kill -9 $$"))
    commands.run(Self.command(["/nowhere/tell"]))
    await Self.finish(commands, within: .seconds(120))
    let entries = place.log.all(.commandFailed)
    for text in [
      "/srv/a.sqlite: the command of on_failure exited with status 3", "was stopped after 5s",
      "was stopped because it wrote more than 4 KiB", "was terminated by signal 9", "does not exist: /nowhere/tell",
    ] {
      #expect(entries.count { $0.text.contains(text) } == 1, "\(text): \(entries.map(\.text))")
    }
    #expect(entries.count == 5 && entries.allSatisfy { $0.level == .warning && $0[.hint] != nil && $0[.watch] == "w" })
    #expect(place.log.all(.commandOutput).contains { $0.level == .notice && $0.text.hasSuffix("on_failure: why") })
  }

  @Test("Few commands run at once, few wait, and what is dropped is reported")
  func bounded() async throws {
    let place = try Self.place()
    let told = place.root.appending("told")
    let commands = StoreCommands(stateDirectory: "/var/lib/hopd", logger: place.log.logger, most: 1, mostWaiting: 2)
    // The first waits until the others were ordered.
    commands.run(Self.shell("until [ -e '\(place.root)/go' ]; do sleep 0.05; done; printf x >>'\(told)'"))
    for _ in 0..<5 { commands.run(Self.shell("printf x >>'\(told)'")) }
    try place.write("go", "")
    await Self.finish(commands, within: .seconds(60))
    var status = stat()
    #expect(stat(told.string, &status) == 0 && status.st_size == 3)
    let entries = place.log.all(.commandFailed)
    #expect(entries.count == 2, "\(entries.map(\.text))")
    #expect(entries.first?.text.contains("2 are waiting") == true)
    #expect(entries.last?[.count] == "3" && entries.last?.text.contains("because too many were waiting") == true)
  }

  @Test("The end of hopd does not wait for a command that hangs")
  func end() async throws {
    let place = try Self.place()
    let commands = StoreCommands(
      stateDirectory: "/var/lib/hopd", logger: place.log.logger,
      limits: ProgramOutput.Limits(output: 4096, time: .seconds(900), memory: 256 << 20))
    for _ in 0..<5 { commands.run(Self.shell("sleep 1000")) }
    let began = ContinuousClock.now
    await Self.finish(commands, within: .milliseconds(200))
    #expect(ContinuousClock.now - began < .seconds(600))
    #expect(place.log.all(.commandFailed).last?.text.contains("because hopd is stopping") == true)
    #expect(place.log.all(.commandFailed).last?[.count] == "5")
  }
}
