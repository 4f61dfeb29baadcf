// What a reader sees on terminals of several widths: nothing wraps, nothing is left behind.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

@Suite(
  "Terminals of several widths", .blocking, .enabled(if: Program.isBuilt, Program.absence),
  .enabled(if: Terminal.isThere, Terminal.absence))
struct TerminalTests {
  /// A hopd that has the same answers for everybody, on a socket.
  private final class AnsweringDaemon {
    let socket: String
    private let process: pid_t

    private static let program = """
      import json, os, socket, sys, threading, time
      path, answers = sys.argv[1], json.loads(sys.argv[2])
      server = socket.socket(socket.AF_UNIX)
      server.bind(path + ".new")
      server.listen(16)
      os.rename(path + ".new", path)

      def message(value):
          return json.dumps(value).encode() + b"\\0"

      def serve(peer):
          received = b""
          while True:
              while b"\\0" not in received:
                  more = peer.recv(65536)
                  if not more:
                      return
                  received += more
              call, received = received.split(b"\\0", 1)
              name = json.loads(call)["method"].rsplit(".", 1)[1]
              while name == "Monitor":
                  peer.sendall(message({"parameters": answers["GetStatus"], "continues": True}))
                  time.sleep(0.2)
              peer.sendall(message({"parameters": answers[name]}))

      def guarded(peer):
          try:
              serve(peer)
          except OSError:
              pass

      while True:
          threading.Thread(target=guarded, args=(server.accept()[0],), daemon=True).start()
      """

    init(_ room: Room, answers: String) throws {
      socket = room.path("control.sock")
      try room.file("daemon.py", Self.program)
      process = try room.start(program: "/usr/bin/python3", [room.path("daemon.py"), socket, answers]).process
      for _ in 0..<400 where access(socket, F_OK) != 0 { usleep(50_000) }
      try #require(access(socket, F_OK) == 0)
    }

    deinit {
      kill(process, SIGKILL)
      var status: Int32 = 0
      waitpid(process, &status, 0)
    }
  }

  private static let folder = "/srv/library/stores"
  private static let working = ["first-0001.sqlite", "蔵書の写しとても長い名前です-0002.sqlite", "c3.sqlite"]
  private static let waiting = (4...8).map { "customer-with-a-long-name-000\($0).sqlite" }

  private static var answers: String {
    let work = working.map {
      """
      {"job": "ab12", "store": "\(folder)/\($0)", "watch": "library", "from": "Library", "to": "Library 5",
       "activity": "copying", "subject": "RecurringTransaction", "hop": 1, "hops": 3, "rows": 412345,
       "totalRows": 1000000, "fraction": 0.41, "rowsPerSecond": 198702.5, "remaining": 130.0, "requestedBy": "hopd"}
      """
    }
    let stores = waiting.map {
      """
      {"store": "\(folder)/\($0)", "watch": "library", "state": "waiting", "since": "2026-11-27T05:32:40Z",
       "version": "Library", "target": "Library 5", "problem": null}
      """
    }
    return """
      {"GetStatus": {"status": {"version": "1.0", "process": 1, "phase": "ready", "line": "store 1/8", "counts":
      {"stores": 12345, "toInspect": 0, "waiting": 5, "migrating": 3, "retrying": 0, "failed": 2},
      "work": [\(work.joined(separator: ","))], "paused": [], "unavailable": [], "waits": [], "note": null,
      "remaining": 38.0, "settings": {}}}, "ListStores": {"stores": [\(stores.joined(separator: ","))], "next": null}}
      """
  }

  private var program: String { get throws { try #require(Program.path).string } }

  /// The line of a store: one that names the end of it.
  private func has(_ lines: [String], _ store: String) -> Bool {
    lines.count { $0.hasSuffix(store.suffix(8)) } == 1
  }

  @Test(
    "top has one line for each store, follows the size of the window, and leaves the terminal as it was",
    .enabled(if: access("/usr/bin/python3", X_OK) == 0, "python3 is not there"), arguments: [40, 80, 200])
  func top(_ columns: Int) throws {
    let room = try Room()
    let daemon = try AnsweringDaemon(room, answers: Self.answers)
    let terminal = try Terminal(room, columns: columns)
    let command = "\(try program) top --socket \(daemon.socket)"
    func isComplete() throws -> Bool {
      let lines = try terminal.lines()
      // The head, two tables with their headers, and the last line.
      return lines.count == 1 + 1 + 3 + 1 + 5 + 1 && lines.last?.hasPrefix("q: quit") == true
        && (Self.working + Self.waiting).allSatisfy { has(lines, $0) }
    }
    try terminal.run("echo before; \(command)")
    try terminal.waits("the screen", isComplete)
    let lines = try terminal.lines()
    #expect(lines[0].contains("12,345 stores") && lines[1].hasSuffix("STORE"), "\(lines)")
    #expect(lines[2].hasPrefix("41 ") && lines[2].contains("2 min 10 s"), "\(lines)")
    if columns == 200 { #expect(lines[2].contains("198,702") && lines[2].contains("1/3"), "\(lines)") }
    try terminal.resize(columns: 60, rows: 30)
    try terminal.waits("the screen of another size", isComplete)
    #expect(try !terminal.isRestored())
    try terminal.press("q")
    try terminal.waits("the end by q") { try terminal.isRestored() && terminal.lines().last == "$" }
    #expect(try terminal.lines().contains("before") && !terminal.lines().contains { $0.contains("q: quit") })
    // What is typed is shown again.
    try terminal.run("stty -a | tr ' ' '\\n' | grep -cx -e icanon -e echo -e isig")
    try terminal.waits("the settings of the terminal") { try terminal.lines().contains("3") }
    try terminal.run(command)
    try terminal.waits("the screen again", isComplete)
    try terminal.press("C-c")
    // The shell may show its prompt twice.
    try terminal.waits("the end by Ctrl-C") {
      try terminal.isRestored() && terminal.lines().last?.hasSuffix("$") == true
    }
    try terminal.run("timeout --foreground -s TERM 1 \(command); echo ended-$?")
    try terminal.waits("the end by SIGTERM") { try terminal.lines().contains("ended-124") }
    #expect(try terminal.isRestored())
    withExtendedLifetime(daemon) {}
  }

  @Test(
    "top prints its tables once where there is no terminal",
    .enabled(if: access("/usr/bin/python3", X_OK) == 0, "python3 is not there"))
  func topElsewhere() throws {
    let room = try Room()
    let daemon = try AnsweringDaemon(room, answers: Self.answers)
    let printed = try room.run("top", "--socket", daemon.socket)
    #expect(printed.status == 0 && !printed.output.contains("\u{1b}"), "\(printed)")
    for name in Self.working + Self.waiting { #expect(printed.output.contains("\(Self.folder)/\(name)\n")) }
    let json = try room.run("top", "--once", "--socket", daemon.socket, "--json").json()
    #expect(json.work?.list.count == 3 && json.counts?.waiting?.int == 5)
    withExtendedLifetime(daemon) {}
  }

  @Test("The progress line never wraps, and nothing of it stays", arguments: [20, 40, 80, 200])
  func progress(_ columns: Int) throws {
    let room = try Room()
    let store = try room.store("a.sqlite", rows: 60_000)
    let terminal = try Terminal(room, columns: columns, rows: 30)
    try terminal.run("\(try program) migrate \(store) --models \(room.model) >/dev/null; echo ended-$?")
    try terminal.waits("the end") {
      let lines = try terminal.lines()
      #expect(lines.count { $0.contains("%") } <= 1, "\(lines)")
      return lines.contains("ended-0")
    }
    #expect(try !terminal.lines().contains { $0.contains("%") || $0.contains("rows/s") })
  }

  @Test(
    "Each state of the progress line fits the width and has the names of the model",
    .enabled(if: access("/usr/bin/script", X_OK) == 0, "script(1) of util-linux is not there"),
    arguments: [20, 40, 80, 200])
  func frames(_ columns: Int) throws {
    let room = try Room()
    let store = try room.store("a.sqlite", rows: 60_000)
    let command = "stty cols \(columns); '\(try program)' migrate '\(store)' --models '\(room.model)'"
    let seen = try room.wait(
      room.start(program: "/usr/bin/script", ["-qec", command, "/dev/null"], variables: ["TERM=xterm"]))
    #expect(seen.status == 0, "\(seen)")
    let frames = seen.output.split(separator: "\r\u{1b}[K", omittingEmptySubsequences: false).dropFirst().dropLast()
    #expect(!frames.isEmpty && frames.allSatisfy { $0.unicodeScalars.count < columns }, "\(frames)")
    #expect(frames.allSatisfy { frame in !frame.unicodeScalars.contains { $0.value < 0x20 } })
    #expect(frames.contains { $0.contains("%") })
    for words in [" 0 rows/s", "Z_", "ZANIMAL", "ZKEEPER"] {
      #expect(!frames.contains { $0.contains(words) }, "\(words): \(frames)")
    }
  }
}
