// Signals that do not come from a person: the end of a session, and a limit on the size of files.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct SignalTests {
  private func hasScratch(_ room: Room) throws -> Bool {
    try FileManager.default.contentsOfDirectory(atPath: room.path.string).contains { $0.hasPrefix("hopd-scratch-") }
  }

  /// The end of a session stops a command like SIGTERM: nothing stays. Under nohup the command continues.
  @Test(arguments: [false, true])
  func theEndOfASessionStopsWhatDoesNotIgnoreIt(_ isIgnored: Bool) throws {
    let room = try Room()
    let store = try room.store("a.sqlite", rows: 100_000)
    let started = try room.start(
      program: "/usr/bin/env",
      [
        "--\(isIgnored ? "ignore" : "default")-signal=HUP", try #require(Program.path).string, "rehearse", store,
        "--models", room.model, "--scratch", room.path.string,
      ])
    // From here on the command waits for signals.
    for _ in 0..<10_000 where try !hasScratch(room) { usleep(1000) }
    // The terminal and the shell both send it.
    kill(started.process, SIGHUP)
    usleep(20_000)
    kill(started.process, SIGHUP)
    let outcome = try room.wait(started)
    // A machine that is fast enough has done all before.
    #expect(outcome.status == 0 || (!isIgnored && outcome.status == 75), "\(outcome.status): \(outcome.errors)")
    #expect(try !hasScratch(room))
  }

  @Test(arguments: ["create", "migrate"])
  func aLimitOnTheSizeOfFilesIsAnError(_ command: String) throws {
    let room = try Room()
    let store = try room.store("a.sqlite", rows: 20_000)
    let before = try room.snapshot()
    let words =
      command == "create"
      ? [room.path("stores/b.sqlite"), "--model-version", "Zoo", "--rows", "20000"] : [store]
    let outcome = try room.wait(
      room.start(
        program: "/bin/sh",
        ["-c", "ulimit -f 200 && exec \"$0\" \"$@\"", try #require(Program.path).string, command] + words
          + ["--models", room.model]))
    #expect([73, 74, 75].contains(outcome.status), "\(outcome.status): \(outcome.errors)")
    #expect(outcome.errors.contains("ulimit -f"), "\(outcome.errors)")
    #expect(try room.snapshot() == before)
  }
}
