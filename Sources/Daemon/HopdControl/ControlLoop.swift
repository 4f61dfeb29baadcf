// The loop of the server's thread: each turn reads calls, writes replies, and disconnects clients that exceed a limit.

import CLinux
import Glibc

/// A connected client.
struct ControlConnection {
  let descriptor: Int32
  let peer: ControlPeer
  var incoming: [UInt8] = []
  var outgoing: [UInt8] = []
  /// Whether a call is in progress; the next one waits.
  var isAnswering = false
  var isStreaming = false
  /// Whether the client has closed its sending side.
  var hasEnded = false
  /// Whether the client has made a call yet.
  var hasCalled = false
  /// The time by which the client must send or read something.
  var deadline: ContinuousClock.Instant
}

/// The state of the server's thread. Only that thread uses it.
struct ControlLoop {
  let server: ControlServer
  let listener: Int32
  let wake: Int32
  let handler: ControlServer.Handler
  let problem: @Sendable (ControlProblem, ControlPeer?) -> Void

  private var clients: [UInt64: ControlConnection] = [:]
  private var last: UInt64 = 0
  private var buffer = [UInt8](repeating: 0, count: 16 << 10)
  /// No connection is accepted until then, because too many clients came at once or no descriptor is left.
  private var closedUntil: ContinuousClock.Instant?
  private var turnedAway = 0

  init(
    server: ControlServer, listener: Int32, wake: Int32, handler: @escaping ControlServer.Handler,
    problem: @escaping @Sendable (ControlProblem, ControlPeer?) -> Void
  ) {
    (self.server, self.listener, self.wake, self.handler, self.problem) = (server, listener, wake, handler, problem)
  }

  /// Waits for an event and handles it.
  mutating func turn() {
    let ids = clients.keys.sorted()
    var polls = [pollfd(fd: wake, events: Int16(POLLIN), revents: 0)]
    polls.append(pollfd(fd: closedUntil == nil ? listener : -1, events: Int16(POLLIN), revents: 0))
    for id in ids {
      guard let client = clients[id] else { continue }
      var events: Int16 = 0
      // A client that waits for its reply may send one more call, which waits; no more is read.
      if !client.hasEnded, client.incoming.count <= server.limits.message { events |= Int16(POLLIN) }
      if !client.outgoing.isEmpty { events |= Int16(POLLOUT) }
      // `poll` returns at once for a closed client, so it is not polled until there is something to write.
      let isSilent = client.hasEnded && client.outgoing.isEmpty
      polls.append(pollfd(fd: isSilent ? -1 : client.descriptor, events: events, revents: 0))
    }
    let ready = poll(&polls, nfds_t(polls.count), timeout())
    if ready < 0, errno != EINTR { usleep(10_000) }
    if polls[0].revents != 0 {
      var count: UInt64 = 0
      _ = read(wake, &count, 8)
    }
    let now = ContinuousClock.now
    if let until = closedUntil, until <= now { (closedUntil, turnedAway) = (nil, 0) }
    if polls[1].revents & Int16(POLLIN) != 0 { acceptAll(now) }
    for (id, poll) in zip(ids, polls.dropFirst(2)) {
      if poll.revents & Int16(POLLIN | POLLHUP | POLLERR) != 0 { receive(id, now) }
    }
    for (id, reply, isWanted) in server.takeOutbox() { deliver(reply, to: id, isWanted: isWanted, now) }
    for id in clients.keys.sorted() {
      write(id, now)
      advance(id, now)
    }
    putOutLate(now)
  }

  /// Closes every connection.
  mutating func end() {
    for (id, reply, isWanted) in server.takeOutbox() { deliver(reply, to: id, isWanted: isWanted, .now) }
    for id in clients.keys.sorted() {
      write(id, .now)
      putOut(id)
    }
  }

  /// Milliseconds until the next deadline; -1 for none.
  private func timeout() -> Int32 {
    let next =
      (clients.values.filter { !$0.isAnswering || !$0.outgoing.isEmpty }.map(\.deadline)
      + [closedUntil].compactMap { $0 }).min()
    guard let next else { return -1 }
    let left = (next - .now).components
    return Int32(clamping: max(0, left.seconds &* 1000 &+ left.attoseconds / 1_000_000_000_000_000 &+ 1))
  }

  // MARK: Input

  private mutating func acceptAll(_ now: ContinuousClock.Instant) {
    // At most 16 in one turn, so that connected clients are served too.
    for _ in 0..<16 {
      let descriptor = clinux_accept(listener)
      guard descriptor >= 0 else {
        if errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM {
          closedUntil = now.advanced(by: .seconds(1))
        }
        return
      }
      let peer = UnixSocket.peer(of: descriptor)
      let isOwn = peer.map { $0.user == 0 || $0.user == geteuid() } ?? false
      let places = server.limits.clients - (isOwn ? 0 : server.limits.reserved)
      guard let peer, clients.count < places else {
        let bytes = ControlReply(.object([:]), error: "\(ControlInterface.name).Busy").bytes
        _ = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
        problem(.tooMany, peer)
        close(descriptor)
        turnedAway += 1
        if turnedAway >= 200 { closedUntil = now.advanced(by: .milliseconds(250)) }
        continue
      }
      last &+= 1
      clients[last] = ControlConnection(
        descriptor: descriptor, peer: peer, deadline: now.advanced(by: server.limits.reading))
      server.note(unread: 0, of: last)
    }
  }

  private mutating func receive(_ id: UInt64, _ now: ContinuousClock.Instant) {
    guard var client = clients[id] else { return }
    let count = recv(client.descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
    if count > 0 {
      if client.incoming.isEmpty, !client.isAnswering { client.deadline = now.advanced(by: server.limits.reading) }
      client.incoming += buffer[..<count]
      clients[id] = client
    } else if count == 0 || (errno != EAGAIN && errno != EINTR) {
      // The client sends no more; its calls still get replies if it may read them.
      client.hasEnded = true
      clients[id] = client
      if count < 0 || client.outgoing.isEmpty && !client.isAnswering && client.incoming.firstIndex(of: 0) == nil
        || client.isStreaming
      {
        putOut(id)
      }
    }
  }

  /// Starts the next call of a client that has no call in progress.
  private mutating func advance(_ id: UInt64, _ now: ContinuousClock.Instant) {
    guard var client = clients[id], !client.isAnswering, client.outgoing.isEmpty else { return }
    guard let end = client.incoming.firstIndex(of: 0) else {
      if client.incoming.count > server.limits.message { putOut(id, .tooLong) }
      if client.hasEnded { putOut(id) }
      return
    }
    guard end <= server.limits.message else { return putOut(id, .tooLong) }
    guard let call = ControlCall(Array(client.incoming[..<end])) else { return putOut(id, .garbage) }
    client.incoming.removeFirst(end + 1)
    client.isAnswering = true
    client.hasCalled = true
    client.isStreaming = call.more
    client.deadline = now.advanced(by: server.limits.idle)
    clients[id] = client
    handler(call, client.peer, ControlAnswer(server: server, client: id, isWanted: !call.oneway))
  }

  // MARK: Output

  private mutating func deliver(
    _ reply: ControlReply, to id: UInt64, isWanted: Bool, _ now: ContinuousClock.Instant
  ) {
    guard var client = clients[id] else { return }
    if isWanted {
      if client.outgoing.isEmpty { client.deadline = now.advanced(by: server.limits.writing) }
      client.outgoing += reply.bytes
    }
    if !reply.continues {
      client.isAnswering = false
      client.isStreaming = false
      if client.outgoing.isEmpty { client.deadline = now.advanced(by: server.limits.idle) }
    }
    clients[id] = client
    server.note(unread: client.outgoing.count, of: id)
    if client.outgoing.count > server.limits.unread { putOut(id, .unread) }
  }

  private mutating func write(_ id: UInt64, _ now: ContinuousClock.Instant) {
    guard var client = clients[id], !client.outgoing.isEmpty else { return }
    let count = Glibc.send(
      client.descriptor, client.outgoing, client.outgoing.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
    if count > 0 {
      client.outgoing.removeFirst(count)
      client.deadline = now.advanced(by: client.outgoing.isEmpty ? server.limits.idle : server.limits.writing)
      clients[id] = client
      server.note(unread: client.outgoing.count, of: id)
    } else if count < 0, errno != EAGAIN, errno != EINTR {
      putOut(id)
    }
  }

  private mutating func putOutLate(_ now: ContinuousClock.Instant) {
    for (id, client) in clients where client.deadline <= now {
      if !client.outgoing.isEmpty {
        putOut(id, .unread)
      } else if !client.isAnswering {
        // A client that is idle after its calls is disconnected without a problem.
        putOut(id, client.incoming.isEmpty && client.hasCalled ? nil : .tooSlow)
      }
    }
  }

  private mutating func putOut(_ id: UInt64, _ reason: ControlProblem? = nil) {
    guard let client = clients.removeValue(forKey: id) else { return }
    if let reason { problem(reason, client.peer) }
    server.note(unread: nil, of: id)
    close(client.descriptor)
  }
}
