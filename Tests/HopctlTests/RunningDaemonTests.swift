// What an operator is answered by a running hopd: a real one, on a socket and a state directory of its own, without
// systemd.

import BlockingTests
import Glibc
import ServiceState
import SystemPackage
import Testing

@Suite("Answers of a running hopd", .blocking, .enabled(if: Program.isBuilt, Program.absence))
struct RunningDaemonTests {
  /// A hopd that runs while it is held.
  private final class Running {
    let room: Room
    let process: pid_t
    var stores: String { room.path("stores") }
    /// Options of the commands that ask it.
    var asked: [String] { ["--state-directory", room.path("state")] }

    /// Starts hopd; `copy` runs a copy of the program, which a test may replace.
    init(_ more: String = "", copy: String? = nil, prepare: (Room) throws -> Void = { _ in }) throws {
      room = try Room()
      try room.file("stores/none", "")
      try room.file("state/none", "")
      try prepare(room)
      try room.file("hopd.toml", Self.configuration(room) + more)
      var hopd = try #require(Program.path).removingLastComponent().appending("hopd")
      if let copy {
        let other = room.path.appending(copy)
        try #require(try room.wait(room.start(program: "/bin/cp", [hopd.string, other.string])).status == 0)
        hopd = other
      }
      process = try room.start(
        program: hopd, ["--config", room.path("hopd.toml"), "--state-directory", room.path("state")]
      ).process
      try waits { try room.run(words: ["status"] + asked).status == 0 }
    }

    deinit {
      kill(process, SIGTERM)
      kill(process, SIGCONT)
      var status: Int32 = 0
      waitpid(process, &status, 0)
    }

    static func configuration(_ room: Room) -> String {
      """
      [daemon]
      jobs = 2
      [control]
      socket = "\(room.path("control.sock"))"
      [[watch]]
      name = "zoo"
      directory = "\(room.path("stores"))"
      models = ["\(room.model)"]
      settle = "50ms"

      """
    }

    func run(_ words: String...) throws -> Outcome { try room.run(words: words + asked) }

    func waits(_ condition: () throws -> Bool) throws {
      for _ in 0..<400 {
        if try condition() { return }
        usleep(50_000)
      }
      Issue.record("it did not come to that within 20 s")
    }

    func state(of store: String) throws -> String? {
      try run("status", store, "--json").json().store?.state?.text
    }
  }

  @Test("What was set until a restart stands in status, doctor and check-config --print")
  func set() throws {
    let daemon = try Running()
    #expect(try daemon.run("set", "jobs", "4").output.contains("jobs = 4 until hopd restarts (was 2)"))
    #expect(try daemon.run("set", "memory_limit", "96MiB").status == 0)
    #expect(try daemon.run("set", "throttle", "off").status == 0)
    let status = try daemon.run("status")
    #expect(status.output.contains("set until hopd restarts: jobs = 4 (configured: 2)"), "\(status.output)")
    #expect(status.output.contains("memory_limit = 96MiB (configured: ") && status.output.contains("throttle = off"))
    let json = try daemon.run("status", "--json").json().daemon?.changed?.list ?? []
    #expect(json.compactMap { $0.key?.text } == ["jobs", "memory_limit", "throttle"])
    let files = try daemon.run("check-config", "--print", daemon.room.path("hopd.toml"))
    #expect(files.output.contains("# jobs = 4 (configured: 2)"), "\(files.output)")
    #expect(try daemon.run("doctor").output.contains("jobs = 4, configured 2"))
    // A reload keeps what was set; what is set back is no change any more.
    #expect(try daemon.run("reload").status == 0)
    #expect(try daemon.run("status").output.contains("jobs = 4 (configured: 2)"))
    #expect(try daemon.run("set", "jobs", "2").status == 0)
    #expect(try daemon.run("set", "throttle", "on").status == 0)
    let after = try daemon.run("status").output
    #expect(!after.contains("jobs =") && !after.contains("throttle =") && after.contains("memory_limit"), "\(after)")
  }

  @Test("A file without a record is told why it has none, and links are listed as skipped")
  func unknownStores() throws {
    let daemon = try Running { room in
      try room.file("elsewhere.sqlite", "x")
      try room.file("stores/notes.txt", "x")
      #expect(symlink(room.path("elsewhere.sqlite"), room.path("stores/link.sqlite")) == 0)
    }
    let room = daemon.room
    for (name, words) in [
      ("stores/link.sqlite", "it is a symbolic link"), ("stores/notes.txt", "its name must match *.sqlite, *.store"),
      ("elsewhere.sqlite", "no watch includes its directory"), ("stores/gone.sqlite", "no such file"),
      ("stores", "it is a directory"),
    ] {
      let told = try daemon.run("status", room.path(name))
      #expect(told.status == 66 && told.errors.contains(words), "\(name): \(told)")
    }
    try daemon.waits { try daemon.run("list").output.contains("skipped: a symbolic link of the watch zoo") }
    #expect(try daemon.run("list", "--json").json().skipped?.list.count == 1)
    #expect(try daemon.run("status").output.contains("skipped: "))
  }

  @Test("A pause and its end say what they changed, and the pause of everything ends alone")
  func pauses() throws {
    let daemon = try Running()
    let all = try daemon.run("pause")
    #expect(all.output.hasPrefix("paused: everything\n") && all.output.contains("hopctl resume --global"), "\(all)")
    let watch = try daemon.run("pause", "zoo")
    #expect(watch.output.hasPrefix("paused: zoo\nalso paused: everything\n"), "\(watch.output)")
    #expect(watch.output.contains("hopctl resume zoo --state-directory"), "\(watch.output)")
    #expect(try daemon.run("pause", "zoo").output.hasPrefix("already paused: zoo\n"))
    #expect(try daemon.run("resume", "zoo", "--global").status == 64)
    let global = try daemon.run("resume", "--global")
    #expect(global.output == "resumed: everything\nstill paused: zoo\n", "\(global)")
    let none = try daemon.run("resume", "--global")
    #expect(none.status == 64 && none.errors.contains("no global pause"), "\(none)")
    let last = try daemon.run("resume", "zoo")
    #expect(last.output == "resumed: zoo\nnothing is paused\n", "\(last)")
    let json = try daemon.run("pause", "zoo", "--json").json()
    #expect(json.changed?.list.compactMap(\.text) == ["zoo"] && json.paused?.list.compactMap(\.text) == ["zoo"])
  }

  @Test("Orders for a store that is current say that there is nothing to do")
  func current() throws {
    let daemon = try Running { room in
      for name in ["new.sqlite", "other.sqlite"] { try room.store(name, version: "Zoo 10") }
    }
    let store = daemon.room.path("stores/new.sqlite")
    let other = daemon.room.path("stores/other.sqlite")
    for path in [store, other] { try daemon.waits { try daemon.state(of: path) == "current" } }
    let retry = try daemon.run("retry", store)
    #expect(retry.status == 0 && retry.output.contains("already at the target version"), "\(retry)")
    #expect(!retry.output.contains("retrying"))
    // Not the one that hopd looks at again just now.
    let next = try daemon.run("retry", other, "--first")
    #expect(next.status == 0 && next.output.contains("already at the target version"), "\(next)")
    #expect(try daemon.run("retry", store, "--json").json().stores?.list == [])
    try daemon.waits { try daemon.state(of: store) == "current" }
    let none = try daemon.run("retry", "--failed")
    #expect(none.output.contains("nothing to retry"), "\(none)")
  }

  @Test("resume of a store that is pinned and paused ends both and says so")
  func pinAndPause() throws {
    let daemon = try Running { room in
      let held = try room.store("held.sqlite")
      try #require(try room.run("migrate", held, "--models", room.model).status == 0)
      try #require(try room.run("restore", held, "--yes").status == 0)
    }
    let held = daemon.room.path("stores/held.sqlite")
    try daemon.waits { try daemon.state(of: held) == "pinned" }
    #expect(try daemon.run("pause", held).status == 0)
    let both = try daemon.run("resume", held)
    #expect(both.status == 0 && both.output.hasPrefix("unpinned: \(held) (restored to Zoo at "), "\(both)")
    #expect(both.output.contains("resumed: \(held)\nnothing is paused\n"), "\(both)")
    let neither = try daemon.run("resume", held)
    #expect(neither.status == 64 && neither.errors.contains("is not paused"), "\(neither)")
    #expect(try daemon.run("retry", held).status == 0)
    try daemon.waits { try daemon.state(of: held) == "current" }
    // Without a pause, the pin alone is what resume ends.
    try #require(try daemon.run("restore", held, "--yes").status == 0)
    let pin = try daemon.run("resume", held, "--json")
    #expect(pin.status == 0, "\(pin)")
    #expect(try pin.json().unpinned == .boolean(true) && pin.json().changed?.list == [])
  }

  @Test("pause --now and retry --first take one store")
  func oneStore() throws {
    let daemon = try Running { try $0.store("old.sqlite", version: "Zoo 10") }
    let store = daemon.room.path("stores/old.sqlite")
    try daemon.waits { try daemon.state(of: store) == "current" }
    let stopped = try daemon.run("pause", store, "--now")
    #expect(stopped.status == 0, "\(stopped)")
    #expect(stopped.output.hasPrefix("paused; no migration was running: \(store)"), "\(stopped)")
    #expect(try daemon.run("pause", "--now").status == 64)
    #expect(try daemon.run("pause", "zoo", "--now").status == 66)
    #expect(try daemon.run("retry", "--failed", "--first").status == 64)
    #expect(try daemon.run("retry", store, store, "--first").status == 64)
    let json = try daemon.run("retry", store, "--first", "--json").json()
    #expect(json.command?.text == "retry" && json.stores?.list == [.string(store)])
  }

  @Test("A hopd that stands still is told in five seconds, by status too")
  func silent() throws {
    let daemon = try Running()
    #expect(try daemon.run("status", "--json").json().daemon?.answering == .boolean(true))
    #expect(kill(daemon.process, SIGSTOP) == 0)
    for words in [["pause"], ["reload"], ["top", "--once"]] {
      let began = ContinuousClock.now
      let told = try daemon.room.run(words: words + daemon.asked)
      #expect(told.status == 75 && told.errors.contains("hopd does not respond"), "\(words): \(told)")
      #expect(told.errors.contains("systemctl status hopd"), "\(told.errors)")
      #expect(ContinuousClock.now - began < .seconds(60))
    }
    let status = try daemon.run("status")
    #expect(
      status.status == 75 && status.output.contains("; hopd does not respond (systemctl status hopd)"), "\(status)")
    #expect(kill(daemon.process, SIGCONT) == 0)
    try daemon.waits { try daemon.run("resume").status == 0 }
    #expect(try !daemon.run("status").output.contains("does not respond"))
  }

  @Test("A paused store that is retried is told as paused")
  func pausedRetry() throws {
    let daemon = try Running()
    #expect(try daemon.run("pause", "zoo").status == 0)
    let store = try daemon.room.store("old.sqlite")
    try daemon.waits { try daemon.state(of: store) == "paused" }
    let retry = try daemon.run("retry", store)
    #expect(retry.output.contains("paused; to resume: `hopctl resume"), "\(retry)")
  }

  @Test("A store that waits for the window of its watch is told so by status, list, next and retry")
  func window() throws {
    var (now, local) = (time(nil), tm())
    localtime_r(&now, &local)
    func clock(_ hours: Int32) -> String {
      let hour = (local.tm_hour + hours) % 24
      return (hour < 10 ? "0" : "") + "\(hour):00"
    }
    let daemon = try Running("window = \"\(clock(6))-\(clock(7))\"\n") { try $0.store("old.sqlite") }
    let (store, until) = (daemon.room.path("stores/old.sqlite"), "until \(clock(6))")
    try daemon.waits { try daemon.run("status", store, "--json").json().store?.waits?.text == until }
    let status = try daemon.run("status", store).output
    #expect(status.contains("its migration waits \(until), when the window of the watch zoo opens"), "\(status)")
    let list = try daemon.run("list")
    #expect(list.output.contains(" \(until) "), "\(list)")
    #expect(try daemon.run("list", "--json").json().stores?.list.first?.waits?.text == until)
    let next = try daemon.run("retry", "--first", store)
    #expect(next.output.contains("at the front of the queue, but its migration waits \(until)"), "\(next)")
    #expect(try daemon.run("retry", "--first", store, "--json").json().waits?.text == until)
    let retry = try daemon.run("retry", store)
    #expect(retry.output.contains("\(store): its migration waits \(until)"), "\(retry)")
  }

  @Test("A refusal that is retried is counted, and reported once")
  func refusedAgain() throws {
    let daemon = try Running { try $0.file("stores/noise.sqlite", String(repeating: "no store at all ", count: 900)) }
    let noise = daemon.room.path("stores/noise.sqlite")
    func attempts() throws -> Int? { try daemon.run("status", noise, "--json").json().store?.problem?.attempts?.int }
    try daemon.waits { try attempts() == 1 }
    #expect(try daemon.run("retry", noise).status == 0)
    try daemon.waits { try attempts() == 2 }
    let status = try daemon.run("status", noise).output
    #expect(status.contains(", 2 attempts; no retry until the store"), "\(status)")
  }

  @Test("A refused reload ends as a mistake of the configuration, by its code")
  func reload() throws {
    let daemon = try Running()
    try daemon.room.file("hopd.toml", Running.configuration(daemon.room) + "settle = 7\n")
    let refused = try daemon.run("reload", "--json")
    #expect(refused.status == 78 && refused.errors.contains("hopd.toml:"), "\(refused)")
    #expect(try refused.json().error?.code?.text == "configuration-refused")
    #expect(refused.errors.contains("the old configuration remains in use"), "\(refused.errors)")
    try daemon.room.file("hopd.toml", Running.configuration(daemon.room))
    #expect(try daemon.run("reload").status == 0)
  }

  @Test("A reload prints its warnings")
  func reloadWarnings() throws {
    let daemon = try Running()
    let before = try #require(try daemon.run("reload", "--json").json().warnings?.list.count)
    try daemon.room.file("hopd.toml", Running.configuration(daemon.room) + "windo = \"22:00-06:00\"\n")
    let told = try daemon.run("reload")
    #expect(told.status == 0 && told.output.hasPrefix("in use: "), "\(told)")
    #expect(told.errors.contains("warning: ") && told.errors.contains("hopd.toml:10"), "\(told.errors)")
    #expect(told.errors.contains("unknown key, ignored") && told.errors.contains("use `window`"))
    #expect(try daemon.run("reload", "--quiet").errors.isEmpty)
    #expect(try daemon.run("reload", "--json").json().warnings?.list.count == before + 1)
  }

  @Test("What is typed next works on this hopd: its state directory stands in it")
  func nextCommands() throws {
    let daemon = try Running { room in
      try room.file("stores/noise.sqlite", String(repeating: "no store at all ", count: 900))
      let held = try room.store("held.sqlite")
      try #require(try room.run("migrate", held, "--models", room.model).status == 0)
      try #require(try room.run("restore", held, "--yes").status == 0)
    }
    let held = daemon.room.path("stores/held.sqlite")
    try daemon.waits { try daemon.state(of: held) == "pinned" }
    let trouble = try daemon.run("status", held, "--json").json().store?.problem
    #expect(trouble?.nextAttempt == .null && trouble?.attempts?.int == 0, "\(String(describing: trouble))")
    let reported = try daemon.run("status", held).output
    #expect(reported.contains("next: hopctl resume \(held)"), "\(reported)")
    #expect(!reported.contains("pinned: "), "\(reported)")
    #expect(try daemon.room.run("resume", held).status == 0)
    let released = try daemon.run("status", held).output
    #expect(
      released.contains("next: hopctl retry \(held) --state-directory \(daemon.room.path("state"))"), "\(released)")
    let noise = daemon.room.path("stores/noise.sqlite")
    try daemon.waits { try daemon.state(of: noise) == "failed" }
    let failed = try daemon.run("status", noise, "--json").json().store?.problem?.command?.text
    #expect(
      failed == "hopctl identify \(noise) --config \(daemon.room.path("hopd.toml")) --watch zoo", "\(failed ?? "")")
    // Every word of it can be pasted.
    let words = (failed ?? "").split(separator: " ").dropFirst().map { String($0) }
    #expect(try daemon.room.run(words: words).status == 65)
  }

  @Test("Stores that were restored as a set are one entry of status, and are released as one")
  func group() throws {
    let daemon = try Running { room in
      for name in ["a.sqlite", "b.sqlite", "c.sqlite"] {
        try #require(try room.run("migrate", try room.store(name), "--models", room.model).status == 0)
      }
      try #require(try room.run("restore", "--watch", room.path("stores"), "--since", "-1h", "--yes").status == 0)
    }
    let stores = ["a.sqlite", "b.sqlite", "c.sqlite"].map { daemon.room.path("stores/\($0)") }
    for store in stores { try daemon.waits { try daemon.state(of: store) == "pinned" } }
    let listed = try daemon.run("list", "--json").json().stores?.list ?? []
    let groups = Set(listed.map { $0.group?.text })
    let group = try #require(groups.first ?? nil)
    #expect(groups.count == 1 && group.hasPrefix("stores-"), "\(groups)")
    let status = try daemon.run("status").output
    #expect(status.contains("pinned  3 stores of the group \(group)"), "\(status)")
    #expect(status.contains("next: hopctl resume --group \(group)"), "\(status)")
    #expect(!status.contains(stores[0]), "\(status)")
    #expect(try daemon.run("list").output.contains("(group \(group))"))
    let released = try daemon.room.run("resume", "--group", group, "--config", daemon.room.path("hopd.toml"))
    #expect(released.status == 0 && released.output.contains("3 stores unpinned"), "\(released)")
    #expect(try daemon.run("retry", "--failed").status == 0)
    for store in stores { try daemon.waits { try daemon.state(of: store) == "current" } }
  }

  @Test("A line break in the name of a store breaks no line")
  func lineBreak() throws {
    let daemon = try Running { try $0.file("stores/a\nb.sqlite", String(repeating: "no store at all ", count: 900)) }
    try daemon.waits { try daemon.run("list", "--failed").output.contains("b.sqlite") }
    let list = try daemon.run("list", "--failed").output
    #expect(list.contains("a\\x0ab.sqlite") && !list.contains("a\nb.sqlite"), "\(list)")
  }

  @Test("A program that was replaced under a running hopd is told")
  func outdated() throws {
    let daemon = try Running(copy: "hopd-copy")
    #expect(try !daemon.run("status").output.contains("older than"))
    try daemon.room.file("other", "another program")
    #expect(rename(daemon.room.path("other"), daemon.room.path("hopd-copy")) == 0)
    let reported = try daemon.run("status").output
    #expect(
      reported.contains("the running hopd is older than the installed one: systemctl restart hopd"), "\(reported)")
    let doctor = try daemon.run("doctor")
    #expect(doctor.status == 1 && doctor.output.contains("! program"), "\(doctor.output)")
  }

  @Test("Names of watches and values of keys are completed")
  func completion() throws {
    let daemon = try Running { try $0.store("new.sqlite", version: "Zoo 10") }
    try daemon.waits { try daemon.state(of: daemon.room.path("stores/new.sqlite")) == "current" }
    func offered(_ words: String...) throws -> [String] {
      try daemon.room.run(words: ["---completion"] + words).output.split(separator: "\n").map { String($0) }
    }
    #expect(try offered("list", "--", "--watch", "3", "0", "hopctl", "list", "--watch", "") == ["zoo"])
    #expect(
      try offered("set", "--", "positional@1", "3", "0", "hopctl", "set", "throttle", "") == ["on", "off"])
    let stores = "\(daemon.stores)/n"
    let paused = try offered("pause", "--", "positional@0", "2", "\(stores.count)", "hopctl", "pause", stores)
    #expect(paused == ["zoo", "\(daemon.stores)/new.sqlite"], "\(paused)")
    let configuration = daemon.room.path("hopd.toml")
    let watch = try offered(
      "plan", "--", "--watch", "6", "0", "hopctl", "plan", "a", "--config", configuration, "--watch", "")
    #expect(watch == ["zoo"], "\(watch)")
  }

  @Test("explain takes models and rules from a configuration")
  func explain() throws {
    let room = try Room()
    let store = try room.store("old.sqlite")
    try room.file(
      "hopd.toml",
      """
      [[watch]]
      name = "zoo"
      directory = "\(room.path("stores"))"
      models = ["\(room.model)"]
      target = "Zoo 2"
      """)
    let reported = try room.run("explain", store, "--config", room.path("hopd.toml"))
    #expect(
      reported.status == 0 && reported.output.contains("Zoo 2") && !reported.output.contains("Zoo 10"), "\(reported)")
    #expect(reported.output.contains("--config \(room.path("hopd.toml"))"), "\(reported.output)")
    let model = try room.run("explain", room.model, "--config", room.path("hopd.toml"))
    #expect(model.status == 64, "\(model)")
    #expect(try room.run("explain", store).errors.contains("pass --models"))
  }

  @Test("identify says what it did not read")
  func identify() throws {
    let room = try Room()
    let store = try room.store("old.sqlite")
    let reported = try room.run("identify", store, "--models", room.model)
    #expect(
      reported.output.contains("pages and rows not checked (hopctl verify \(store) --models"), "\(reported.output)"
    )
    let json = try room.run("identify", store, "--models", room.model, "--json").json()
    #expect(json.notChecked?.list.compactMap(\.text) == ["pages", "rows"])
  }

  @Test("A configuration without a watch is told with the status that hopd would end with")
  func nothingConfigured() throws {
    let room = try Room()
    try room.file("hopd.toml", "[daemon]\njobs = 1\n")
    let hopd = try #require(Program.path).removingLastComponent().appending("hopd")
    for option in ["--check", "--check-reload"] {
      let checked = try room.wait(room.start(program: hopd, [option, "--config", room.path("hopd.toml")]))
      #expect(checked.status == 6 && checked.errors.contains("no directory is configured"), "\(checked)")
    }
    let checked = try room.run("check-config", room.path("hopd.toml"))
    #expect(checked.status == 6 && checked.errors.contains("add a [[watch]]"), "\(checked)")
  }
}
