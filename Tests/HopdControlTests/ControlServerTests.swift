// The socket with honest and hostile clients: who breaks a bound is put out, and everybody else is served.

import BlockingTests
import Diagnostics
import Glibc
import Synchronization
import SystemPackage
import Testing

@testable import HopdControl

@Suite(.blocking) struct ControlServerTests {
  /// A server that answers `Echo` with its parameters, `Never` not at all, `Count` with three answers and `Flood` with
  /// more than a client may leave unread.
  final class Service: Sendable {
    let path: FilePath
    let server: ControlServer
    let problems = Mutex<[ControlProblem]>([])
    let waiting = Mutex<[ControlAnswer]>([])

    init(_ change: (inout ControlServer.Limits) -> Void = { _ in }) throws {
      path = FilePath("/tmp/hopd-control-\(UInt64.random(in: 0 ... .max))")
      var limits = ControlServer.Limits()
      change(&limits)
      server = try ControlServer(path: path, limits: limits)
      server.start(
        handler: { [self] call, _, answer in
          switch call.method {
          case "io.hopd.Control.Never": waiting.withLock { $0.append(answer) }
          case "io.hopd.Control.Count":
            for number in 1...3 { answer.reply(.object(["n": .integer(Int64(number))]), continues: number < 3) }
          case "io.hopd.Control.Flood":
            let much = ControlValue.object(["x": .string(String(repeating: "x", count: 100_000))])
            for _ in 0..<40 { answer.reply(much, continues: true) }
          default: answer.reply(call.parameters)
          }
        },
        problem: { [self] problem, _ in problems.withLock { $0.append(problem) } })
    }

    deinit {
      server.stop()
      unlink(path.string)
    }

    func raw() throws -> Int32 { try UnixSocket.connected(to: path) }

    /// Sends bytes and gives what comes back until the server closes, or `limit` is over.
    func exchange(_ bytes: [UInt8], within limit: Duration = .seconds(3)) throws -> (answer: [UInt8], closed: Bool) {
      let descriptor = try raw()
      defer { close(descriptor) }
      _ = send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
      return Self.read(descriptor, within: limit)
    }

    static func read(_ descriptor: Int32, within limit: Duration) -> (answer: [UInt8], closed: Bool) {
      let end = ContinuousClock.now.advanced(by: limit)
      var answer: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 65536)
      while ContinuousClock.now < end {
        var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard Glibc.poll(&poll, 1, 50) > 0 else { continue }
        let count = recv(descriptor, &buffer, buffer.count, 0)
        if count <= 0 { return (answer, true) }
        answer += buffer[..<count]
      }
      return (answer, false)
    }

    func echoes() throws -> Bool {
      try ControlClient(path).call("Echo", ["a": .string("b")]) == .object(["a": .string("b")])
    }

    func had(_ problem: ControlProblem) -> Bool { problems.withLock { $0.contains(problem) } }
  }

  @Test func callsAreAnsweredOneAfterTheOther() throws {
    let service = try Service()
    let client = try ControlClient(service.path)
    for number in 0..<100 {
      #expect(try client.call("Echo", ["n": .integer(Int64(number))])["n"]?.whole == Int64(number))
    }
    var numbers: [Int64] = []
    try client.stream("Count", timeout: .seconds(5)) { answer in
      numbers.append(answer["n"]?.whole ?? 0)
      return true
    }
    #expect(numbers == [1, 2, 3])
    // Two calls at once are answered in their order.
    let calls = ["1", "2"].flatMap {
      ControlCall(method: "io.hopd.Control.Echo", parameters: .object(["n": .string($0)])).bytes
    }
    let (answer, _) = try service.exchange(calls, within: .milliseconds(500))
    let replies = answer.split(separator: 0).compactMap { ControlReply(Array($0)) }
    #expect(replies.map { $0.parameters["n"]?.text } == ["1", "2"])
    #expect(service.problems.withLock { $0 }.isEmpty)
  }

  @Test func aClientDoesNotWaitForADaemonThatSaysNothing() throws {
    let service = try Service()
    // One that reads the call and never answers, and one that does not even accept the connection.
    let deaf = FilePath("/tmp/hopd-control-\(UInt64.random(in: 0 ... .max))")
    let listener = try UnixSocket.listening(at: deaf)
    defer {
      close(listener)
      unlink(deaf.string)
    }
    for path in [service.path, deaf] {
      let error = #expect(throws: HopdError.self) {
        try ControlClient(path).call("Never", timeout: .milliseconds(200))
      }
      #expect(error?.code == .notAnswering && error?.code.exit == .temporaryFailure)
      #expect(error?.message == "hopd does not respond" && error?.hint?.contains("`systemctl status hopd`") == true)
      #expect(throws: HopdError.self) {
        try ControlClient(path).stream("Never", timeout: .milliseconds(200)) { _ in true }
      }
    }
  }

  @Test func oneWayCallsGetNoAnswer() throws {
    let service = try Service()
    let (answer, closed) = try service.exchange(
      ControlCall(method: "io.hopd.Control.Echo", oneway: true).bytes, within: .milliseconds(300))
    #expect(answer.isEmpty && !closed)
  }

  @Test(arguments: ["hello\0", "\0", "{\"method\":\0", "[1,2]\0", "\u{7f}\u{1}\0"])
  func garbageCostsItsSenderTheConnection(text: String) throws {
    let service = try Service()
    let (answer, closed) = try service.exchange(Array(text.utf8))
    #expect(answer.isEmpty && closed && service.had(.garbage))
    #expect(try service.echoes())
  }

  @Test func messagesAreBounded() throws {
    let service = try Service()
    let (answer, closed) = try service.exchange([UInt8](repeating: UInt8(ascii: " "), count: 70_000))
    #expect(answer.isEmpty && closed && service.had(.tooLong))
    let longest = ControlCall(
      method: "io.hopd.Control.Echo", parameters: .object(["x": .string(String(repeating: "x", count: 60_000))]))
    #expect(try service.exchange(longest.bytes, within: .milliseconds(500)).answer.count > 60_000)
    #expect(try service.echoes())
  }

  @Test func halfAMessageHasADeadline() throws {
    let service = try Service { $0.reading = .milliseconds(200) }
    for bytes in [Array("{\"method\":\"io".utf8), []] {
      #expect(try service.exchange(bytes).closed)
    }
    #expect(service.had(.tooSlow))
    #expect(try service.echoes())
  }

  @Test func restingAfterACallIsNoOffence() throws {
    let service = try Service { $0.idle = .milliseconds(200) }
    let (answer, closed) = try service.exchange(ControlCall(method: "io.hopd.Control.Echo").bytes)
    #expect(!answer.isEmpty && closed)
    #expect(service.problems.withLock { $0 }.isEmpty)
  }

  @Test func whoDoesNotReadIsPutOut() throws {
    let service = try Service { $0.writing = .milliseconds(300) }
    let descriptor = try service.raw()
    defer { close(descriptor) }
    let bytes = ControlCall(method: "io.hopd.Control.Flood", more: true).bytes
    _ = send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    usleep(1_000_000)
    #expect(service.had(.unread))
    #expect(try service.echoes())
  }

  @Test func clientsAreBoundedAndRootHasAPlace() throws {
    let service = try Service { $0.clients = 4 }
    let held = try (0..<4).map { _ in try service.raw() }
    usleep(100_000)
    let (answer, closed) = try service.exchange(ControlCall(method: "io.hopd.Control.Echo").bytes)
    #expect(closed && service.had(.tooMany))
    #expect(String(decoding: answer, as: UTF8.self).contains("io.hopd.Control.Busy"))
    for descriptor in held { close(descriptor) }
    usleep(100_000)
    #expect(try service.echoes())
  }

  @Test func tenThousandConnectionsChangeNothing() throws {
    let service = try Service { $0.clients = 8 }
    for _ in 0..<10_000 {
      if let descriptor = try? service.raw() { close(descriptor) }
    }
    var isServed = false
    for _ in 0..<100 where !isServed {
      isServed = (try? service.echoes()) ?? false
      if !isServed { usleep(20_000) }
    }
    #expect(isServed)
  }

  @Test func clientsThatGoInTheMiddleCostNoTime() throws {
    let service = try Service()
    for _ in 0..<20 {
      let descriptor = try service.raw()
      let bytes = ControlCall(method: "io.hopd.Control.Never").bytes
      _ = send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
      usleep(2000)
      close(descriptor)
    }
    // The thread of the socket sleeps while nothing is to be done.
    usleep(100_000)
    let before = service.server.turns
    usleep(500_000)
    #expect(service.server.turns - before < 20)
    for answer in service.waiting.withLock({ $0 }) { answer.reply(.object([:])) }
    #expect(try service.echoes())
  }

  @Test func aSocketThatNobodyListensOnIsReplacedAndNothingElse() throws {
    let service = try Service()
    #expect(throws: HopdError.self) { try ControlServer(path: service.path) }
    let path = FilePath("/tmp/hopd-control-\(UInt64.random(in: 0 ... .max))")
    defer { unlink(path.string) }
    let stale = try UnixSocket.listening(at: path)
    close(stale)
    let server = try ControlServer(path: path)
    var status = stat()
    #expect(stat(path.string, &status) == 0 && status.st_mode & 0o777 == 0o660)
    _ = server
    let file = FilePath("/tmp/hopd-control-\(UInt64.random(in: 0 ... .max))")
    close(open(file.string, O_CREAT | O_WRONLY, 0o600))
    defer { unlink(file.string) }
    let error = #expect(throws: HopdError.self) { try ControlServer(path: file) }
    #expect(error?.code == .controlUnavailable && access(file.string, F_OK) == 0)
    let missing = #expect(throws: HopdError.self) { try ControlClient("/tmp/hopd-control-nowhere/x") }
    #expect(missing?.code == .notRunning)
  }
}
