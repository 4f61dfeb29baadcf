// The interface description in Varlink's language, and the methods that every Varlink service has. The description is a
// contract: methods, types and fields may be added, none is changed.

import Diagnostics

/// The interface of the control socket.
package enum ControlInterface {
  /// Its name.
  package static let name = "io.hopd.Control"
  /// Version of the description; each addition increases it.
  package static let version: Int64 = 3

  /// The output of `varlinkctl introspect`.
  package static let description = """
    # Control of hopd, which migrates Core Data stores. Times are RFC 3339 in UTC. Readers ignore fields that they do
    # not know.
    interface io.hopd.Control

    # Why a store is not where it should be, and what to type next.
    type Trouble (code: string, reason: string, since: string, hint: ?string, command: ?string, attempts: int,
      nextAttempt: ?string)

    # A store. State: current, waiting, migrating, busy, retrying, failed, held-back, paused. Waits: how long its
    # migration waits for the window of its watch, such as "until 22:00".
    type Store (store: string, watch: string, state: string, since: string, version: ?string, target: ?string,
      waits: ?string, trouble: ?Trouble)

    # A job that has ended.
    type Job (job: string, store: string, watch: string, result: string, from: ?string, to: ?string, rows: int,
      began: string, ended: string, seconds: float, askedBy: string, code: ?string, reason: ?string, backup: ?string)

    # A migration at work. Fraction is 0 to 1. Activity: planning, copying, indexing,
    # verifying, replacing, halted. Fraction and remaining count all of it.
    type Work (job: string, store: string, watch: string, from: ?string, to: ?string, activity: string, subject: string,
      hop: int, hops: int, rows: int, totalRows: int, fraction: float, rowsPerSecond: float, remaining: ?float,
      askedBy: string)

    type Counts (stores: int, toLookAt: int, waiting: int, migrating: int, deferred: int, attention: int,
      heldBack: int)

    type Status (version: string, process: int, phase: string, line: string, counts: Counts, work: []Work,
      paused: []string, unserved: []string, waits: []string, note: ?string, remaining: ?float,
      settings: [string]string)

    # Read-only methods. They change nothing.

    method GetStatus() -> (status: Status)

    # A status each second, for as long as the client reads. Needs "more".
    method Monitor() -> (status: Status)

    method GetStore(store: string) -> (store: Store, jobs: []Job)

    # At most 200 stores a call, in the order of their paths. "next" is the "after" of the next call.
    method ListStores(states: ?[]string, watch: ?string, after: ?string, limit: ?int) ->
      (stores: []Store, next: ?string)

    # The newest first, at most 200.
    method ListJobs(store: ?string, limit: ?int) -> (jobs: []Job)

    # Acting methods. Each answers when what was asked for is under way.

    # What an order finds: a store that is current, running, waiting, paused, or in trouble and tried again. Waits:
    # how long its migration then waits for the window of its watch.
    type Found (store: string, found: string, waits: ?string)

    # Tries stores again at once: those named, or all that failed or are tried again later. "stores" are those in
    # trouble; a store that is current is only looked at.
    method Retry(stores: ?[]string, failed: ?bool) -> (stores: []string, results: []Found)

    # Halts migrations: of all stores, of a watch, or of a store. None begins, and those at work halt between two
    # chunks. It outlives the daemon. "paused" is all that is paused now, "changed" what this order paused.
    method Pause(name: ?string) -> (paused: []string, changed: []string)

    # Ends a pause; without a name, all of them, or with "global" that of all stores alone. "changed" is what it ended.
    method Resume(name: ?string, global: ?bool) -> (paused: []string, changed: []string)

    # Stops the migration of a store at its next checkpoint, and pauses the store.
    method Cancel(store: string) -> (running: bool)

    # Puts a store in front of the queue. State: running, waiting, paused, or current where there is nothing to do.
    # Waits: how long its migration still waits for the window of its watch.
    method Next(store: string) -> (state: string, waits: ?string)

    # Reads the configuration again. Answers when the new one is in force, with what was noticed: unknown keys, watches
    # that hopd may not write, programs that are missing.
    method Reload() -> (files: []string, warnings: []string)

    # Changes a limit of the running daemon, until it restarts: the keys of Status.settings.
    method Set(key: string, value: string) -> (key: string, value: string, before: string)

    # No such store or watch.
    error NotFound (name: string, hint: string)

    # It cannot be done now, or at all.
    error NotPossible (code: string, reason: string, hint: ?string)

    # Too many clients, or too many calls at once.
    error Busy ()
    """

  /// Replies to the methods of every Varlink service and to invalid calls; nil for a call of an existing method of
  /// hopd's interface.
  package static func standardReply(_ call: ControlCall, methods: [String]) -> ControlReply? {
    guard let dot = call.method.lastIndex(of: ".") else { return notFound(interface: call.method) }
    let interface = String(call.method[..<dot])
    let method = String(call.method[call.method.index(after: dot)...])
    switch (interface, method) {
    case ("org.varlink.service", "GetInfo"):
      return ControlReply(
        .object([
          "vendor": .string("hopd"), "product": .string("hopd"), "version": .string(ProgramVersion.number),
          "url": .string("file:///usr/share/doc/hopd/README.md"),
          "interfaces": .array([.string("org.varlink.service"), .string(name)]),
        ]))
    case ("org.varlink.service", "GetInterfaceDescription"):
      guard let wanted = call.parameters["interface"]?.text else { return invalid(parameter: "interface") }
      switch wanted {
      case name: return ControlReply(.object(["description": .string(description)]))
      case "org.varlink.service": return ControlReply(.object(["description": .string(serviceDescription)]))
      default: return notFound(interface: wanted)
      }
    case (name, _) where methods.contains(method): return nil
    case (name, _), ("org.varlink.service", _):
      return ControlReply(
        .object(["method": .string(call.method)]), error: "org.varlink.service.MethodNotFound")
    default: return notFound(interface: interface)
    }
  }

  private static func notFound(interface: String) -> ControlReply {
    ControlReply(.object(["interface": .string(interface)]), error: "org.varlink.service.InterfaceNotFound")
  }

  /// The reply to a call with a missing parameter, or one of a wrong type.
  package static func invalid(parameter: String) -> ControlReply {
    ControlReply(.object(["parameter": .string(parameter)]), error: "org.varlink.service.InvalidParameter")
  }

  /// The interface of every Varlink service, as varlink.org defines it.
  private static let serviceDescription = """
    interface org.varlink.service

    method GetInfo() -> (vendor: string, product: string, version: string, url: string, interfaces: []string)

    method GetInterfaceDescription(interface: string) -> (description: string)

    error InterfaceNotFound (interface: string)

    error MethodNotFound (method: string)

    error MethodNotImplemented (method: string)

    error InvalidParameter (parameter: string)
    """
}
