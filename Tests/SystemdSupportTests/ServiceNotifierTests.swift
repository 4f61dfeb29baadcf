// Against a real datagram socket: what arrives is what systemd would read.

import Glibc
import Testing

@testable import SystemdSupport

@Suite struct ServiceNotifierTests {
  @Test func tellsTheWholeLifeOfAService() throws {
    let manager = try Manager()
    let notifier = ServiceNotifier(socketPath: manager.path)
    notifier.ready("watching 3 stores")
    notifier.watchdogPing()
    notifier.extendTimeout(microseconds: 60_000_000)
    notifier.failure(errno: ENOSPC, status: "no space on /srv")
    notifier.stopping("finishing chunk")
    #expect(
      manager.received() == [
        "READY=1\nSTATUS=watching 3 stores", "WATCHDOG=1", "EXTEND_TIMEOUT_USEC=60000000",
        "ERRNO=28\nSTATUS=no space on /srv", "STOPPING=1\nSTATUS=finishing chunk",
      ])
  }

  @Test func reloadCarriesTheMonotonicTime() throws {
    let manager = try Manager()
    var before = timespec()
    clock_gettime(CLOCK_MONOTONIC, &before)
    ServiceNotifier(socketPath: manager.path).reloading()
    let lines = manager.received().flatMap { $0.split(separator: "\n").map(String.init) }
    #expect(lines.first == "RELOADING=1")
    let time = lines.last.flatMap { $0.hasPrefix("MONOTONIC_USEC=") ? Int($0.dropFirst(15)) : nil } ?? 0
    #expect(time >= before.tv_sec * 1_000_000 + before.tv_nsec / 1000)
    #expect(time < before.tv_sec * 1_000_000 + 60_000_000)
  }

  @Test func sendsOneStatusASecondAndTheNewestLater() throws {
    let manager = try Manager()
    let notifier = ServiceNotifier(socketPath: manager.path)
    let start = ContinuousClock.now
    for (offset, text) in [(0, "a"), (10, "b"), (900, "c"), (950, "d")] {
      notifier.status(text, now: start.advanced(by: .milliseconds(offset)))
    }
    #expect(manager.received() == ["STATUS=a"])
    #expect(notifier.nextStatus == start.advanced(by: .seconds(1)))
    notifier.flushStatus(now: start.advanced(by: .milliseconds(999)))
    #expect(manager.received() == [])
    notifier.flushStatus(now: start.advanced(by: .milliseconds(1000)))
    notifier.flushStatus(now: start.advanced(by: .milliseconds(5000)))
    #expect(manager.received() == ["STATUS=d"])
    #expect(notifier.nextStatus == nil)
    // The same text again is no news.
    notifier.status("d", now: start.advanced(by: .milliseconds(9000)))
    #expect(manager.received() == [])
  }

  @Test func aFileNameCannotForgeAnAssignment() throws {
    let manager = try Manager()
    ServiceNotifier(socketPath: manager.path).status("store a\nREADY=1\u{2028}b\u{1b}c")
    #expect(manager.received() == ["STATUS=store a READY=1 b c"])
  }

  @Test func anAbstractSocketIsReached() throws {
    let manager = try Manager(abstract: true)
    ServiceNotifier(socketPath: manager.path).watchdogPing()
    #expect(manager.received() == ["WATCHDOG=1"])
  }

  @Test(arguments: [nil, "", "/", "@", "relative", "/nonexistent/socket", String(repeating: "/x", count: 200)])
  func anAddressThatLeadsNowhereIsNoFailure(_ path: String?) {
    let notifier = ServiceNotifier(socketPath: path)
    notifier.ready("x")
    notifier.status("y")
    notifier.stopping("z")
  }

  @Test func aFullSocketHoldsNothingUp() throws {
    let manager = try Manager()
    let notifier = ServiceNotifier(socketPath: manager.path)
    let clock = ContinuousClock()
    // Nobody reads: the queue fills, and still every call comes back.
    let pings = clock.measure { for _ in 0..<5000 { notifier.watchdogPing() } }
    #expect(pings < .seconds(10))
    #expect(clock.measure { notifier.ready("late") } < .seconds(5))
    let received = manager.received()
    #expect(!received.isEmpty && received.count < 5000)
    notifier.ready("after")
    #expect(manager.received() == ["READY=1\nSTATUS=after"])
  }
}

/// A service manager's end of the socket.
private final class Manager {
  let path: String
  private let descriptor: Int32

  init(abstract: Bool = false) throws {
    let number = UInt64.random(in: 0 ... .max)
    path = (abstract ? "@" : "/tmp/") + "hopd-notify-\(number)"
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let name = Array(path.utf8)
    withUnsafeMutableBytes(of: &address.sun_path) { bytes in
      bytes.copyBytes(from: name)
      if abstract { bytes.storeBytes(of: 0, as: UInt8.self) }
    }
    let length = socklen_t(2 + name.count + (abstract ? 0 : 1))
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
    }
    try #require(result == 0)
  }

  deinit {
    close(descriptor)
    if path.hasPrefix("/") { unlink(path) }
  }

  /// Everything that has arrived; a datagram of a local socket is there as soon as it is sent.
  func received() -> [String] {
    var messages: [String] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while case let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT)), count >= 0 {
      messages.append(String(decoding: buffer.prefix(count), as: UTF8.self))
    }
    return messages
  }
}
