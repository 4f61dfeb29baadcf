// Handles the calls of the control socket: queries of records are read from the state database, every other call is a
// message to the loop. Both run off the socket's thread, and no order waits for a query.

import Diagnostics
import Dispatch
import Glibc
import HopdConfiguration
import HopdControl
import Logging
import MigrationPipeline
import ServiceState
import Synchronization
import SystemPackage
import SystemdSupport

/// Handles the calls of the control socket.
struct ControlRequestHandler: Sendable {
  let coordinator: DaemonCoordinator
  let stateDirectory: FilePath
  let logger: Logger
  /// Each handles one call at a time, for all clients.
  private let orders = DispatchQueue(label: "hopd.orders")
  private let queries = DispatchQueue(label: "hopd.queries")
  private let names = RequesterNames()

  /// The maximum number of stores or jobs in one reply.
  static let page: Int64 = 200

  /// Methods that read the record.
  private static let ofRecords = ["GetStore", "ListStores", "ListJobs"]
  /// Methods that change nothing.
  static let reading = ["GetStatus", "Monitor", "GetStore", "ListStores", "ListJobs"]
  /// Methods that change something.
  static let acting = ["Retry", "Pause", "PauseNow", "Resume", "RetryFirst", "Reload", "Set"]

  /// Starts to listen on the socket. Returns nil if none is configured, or if it cannot be created, which is logged.
  func serve(_ configured: FilePath?, runtime: FilePath?, recorder: StateRecorder) -> ControlServer? {
    recorder.note(.service(.socket, nil))
    let activated = ActivatedSockets.take(named: "control")
    guard configured != nil || activated != nil else { return nil }
    var path = configured ?? Configuration.Control.standard
    // If the unit has another runtime directory, the socket is in it.
    if path == Configuration.Control.standard, let runtime { path = runtime.appending("control.sock") }
    do {
      let server = try ControlServer(path: path, activated: activated)
      server.start(
        handler: { call, peer, answer in take(call, peer, answer) },
        problem: RateLimitedLogger(logger: logger, names: names).log)
      recorder.note(.service(.socket, path.printable))
      return server
    } catch {
      let error = HopdError.of(error)
      logger.event(
        .controlProblem, "control socket unavailable: \(error); migrations are not affected",
        fields: [.error: error.code.name, .hint: error.firstHint].compactMapValues { $0 })
      return nil
    }
  }

  // MARK: Calls

  private func take(_ call: ControlCall, _ peer: ControlPeer, _ answer: ControlAnswer) {
    if let reply = ControlInterface.standardReply(call, methods: Self.reading + Self.acting) {
      return answer.send(reply)
    }
    let method = String(call.method.dropFirst(ControlInterface.name.utf8.count + 1))
    (Self.ofRecords.contains(method) ? queries : orders).async {
      do throws(BadCall) {
        if let reply = try read(method, call.parameters) { return answer.send(reply) }
        guard let request = try request(method, call) else { return }
        let requester = request.sentence == nil ? "" : names.requester(peer.user)
        coordinator.post(.control(request, by: requester, answer))
      } catch {
        answer.send(error.reply)
      }
    }
  }

  private struct BadCall: Error {
    let reply: ControlReply

    init(_ parameter: String) { reply = ControlInterface.invalid(parameter: parameter) }
  }

  private func text(_ name: String, _ parameters: ControlValue) throws(BadCall) -> String? {
    guard let value = parameters[name] else { return nil }
    // No name, path or value has a NUL: the calls of the kernel end a path there.
    guard let text = value.text, !text.utf8.contains(0) else { throw BadCall(name) }
    return text
  }

  private func required(_ name: String, _ parameters: ControlValue) throws(BadCall) -> String {
    guard let text = try text(name, parameters), !text.isEmpty else { throw BadCall(name) }
    return text
  }

  private func limit(_ parameters: ControlValue) throws(BadCall) -> Int64 {
    guard let value = parameters["limit"] else { return Self.page }
    guard let number = value.whole, number > 0 else { throw BadCall("limit") }
    return min(number, Self.page)
  }

  /// Returns the reply to a query of records; nil for any other method.
  private func read(_ method: String, _ parameters: ControlValue) throws(BadCall) -> ControlReply? {
    guard Self.ofRecords.contains(method) else { return nil }
    do {
      let reader = try StateReader(stateDirectory: stateDirectory)
      switch method {
      case "GetStore":
        let name = try required("store", parameters)
        guard let store = try reader.store(FilePath(name).printable) else {
          return .notFound(name, hint: "pass the name in the configuration; ListStores lists all")
        }
        let jobs = try reader.jobs(of: store.path, limit: 20)
        return ControlReply(
          .object([
            "store": ControlValue(store, windows: try reader.service()[.windows]),
            "jobs": .array(jobs.map { ControlValue($0) }),
          ]))
      case "ListStores":
        let stores = try reader.stores(try filter(parameters))
        let windows = try reader.service()[.windows]
        let isFull = Int64(stores.count) >= (try limit(parameters))
        return ControlReply(
          .object([
            "stores": .array(stores.map { ControlValue($0, windows: windows) }),
            "next": .optional(isFull ? stores.last?.path : nil),
          ]))
      default:
        let jobs = try reader.jobs(of: try text("store", parameters), limit: try limit(parameters))
        return ControlReply(.object(["jobs": .array(jobs.map { ControlValue($0) })]))
      }
    } catch let error as BadCall {
      throw error
    } catch {
      let error = HopdError.of(error)
      return .notPossible(error.code.name, error.headline, hint: error.firstHint)
    }
  }

  private func filter(_ parameters: ControlValue) throws(BadCall) -> StateReader.Filter {
    var conditions: [StoreCondition] = []
    if let states = parameters["states"] {
      for state in states.list ?? [.null] {
        guard let condition = state.text.flatMap({ StoreCondition(name: $0) }) else { throw BadCall("states") }
        conditions.append(condition)
      }
    }
    return StateReader.Filter(
      conditions: conditions, watch: try text("watch", parameters), after: try text("after", parameters),
      limit: try limit(parameters))
  }

  /// The request for the loop; nil for an unknown method.
  private func request(_ method: String, _ call: ControlCall) throws(BadCall) -> ControlRequest? {
    let parameters = call.parameters
    func named(_ name: String) -> NamedStore { NamedStore(name: name, key: FoundStore.key(of: FilePath(name))) }
    switch method {
    case "GetStatus": return .status
    case "Monitor": return call.more ? .monitor : .status
    case "Retry":
      var stores: [NamedStore] = []
      for store in parameters["stores"]?.list ?? [] {
        guard let name = store.text, !name.isEmpty, !name.utf8.contains(0) else { throw BadCall("stores") }
        stores.append(named(name))
      }
      let failed = parameters["failed"]?.truth ?? false
      guard failed != !stores.isEmpty else { throw BadCall("stores") }
      return .retry(stores, failed: failed)
    case "Pause": return .pause(try text("name", parameters).map(named))
    case "Resume":
      let name = try text("name", parameters).map(named)
      let global = parameters["global"]?.truth ?? false
      guard name == nil || !global else { throw BadCall("global") }
      return .resume(name, global: global)
    case "PauseNow": return .pauseNow(named(try required("store", parameters)))
    case "RetryFirst": return .retryFirst(named(try required("store", parameters)))
    case "Reload": return .reload
    case "Set": return .set(key: try required("key", parameters), value: try required("value", parameters))
    default: return nil
    }
  }
}

/// Logs the mistakes of clients, each kind once an hour: endless invalid input from a client must not fill the journal.
private final class RateLimitedLogger: Sendable {
  private let logger: Logger
  private let names: RequesterNames
  private let logged = Mutex<[ControlProblem: ContinuousClock.Instant]>([:])

  init(logger: Logger, names: RequesterNames) { (self.logger, self.names) = (logger, names) }

  func log(_ problem: ControlProblem, _ peer: ControlPeer?) {
    let isNews = logged.withLock { logged -> Bool in
      if let last = logged[problem], last.advanced(by: .seconds(3600)) > .now { return false }
      logged[problem] = .now
      return true
    }
    guard isNews else { return }
    // Not on the socket's thread, because a name may take a second.
    BlockingWork.run("control-problem") { [self] in write(problem, peer) }
  }

  private func write(_ problem: ControlProblem, _ peer: ControlPeer?) {
    let user = peer.map { names.requester($0.user) }
    let who = user.map { $0 + (peer.map { $0.process > 0 ? ", process \($0.process)" : "" } ?? "") } ?? "unknown user"
    logger.event(
      .controlProblem,
      "closed the connection of control client \(who), which \(problem.rawValue) (reported at most once an hour)",
      fields: user.map { [.requester: $0] } ?? [:])
  }
}
