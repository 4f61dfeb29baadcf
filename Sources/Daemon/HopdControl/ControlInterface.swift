// The interface description in Varlink's language, and the methods that every Varlink service has. The description is a
// contract: methods, types and fields may be added, none is changed.

import Diagnostics

/// The interface of the control socket.
package enum ControlInterface {
  /// Its name.
  package static let name = "io.hopd.Control"
  /// Version of the description; each addition increases it.
  package static let version: Int64 = 4

  /// The output of `varlinkctl introspect`.
  package static let description = """
    # Control of hopd, which migrates Core Data stores. Times are RFC 3339 in UTC. Readers ignore fields that they do
    # not know.
    interface io.hopd.Control

    # Why a store is not at its target, and the command to run next.
    type Problem (code: string, reason: string, since: string, hint: ?string, command: ?string, attempts: int,
      nextAttempt: ?string)

    # A store. State: current, waiting, migrating, busy, retrying, failed, pinned, paused. Waits: how long its
    # migration waits for the window of its watch, such as "until 22:00".
    type Store (store: string, watch: string, state: string, since: string, version: ?string, target: ?string,
      waits: ?string, problem: ?Problem)

    # A job that has ended.
    type Job (job: string, store: string, watch: string, result: string, from: ?string, to: ?string, rows: int,
      started: string, ended: string, seconds: float, requestedBy: string, code: ?string, reason: ?string,
      backup: ?string)

    # A running migration. Fraction is 0 to 1. Activity: planning, copying, indexing,
    # verifying, replacing, paused. Fraction and remaining cover the whole migration.
    type Work (job: string, store: string, watch: string, from: ?string, to: ?string, activity: string, subject: string,
      hop: int, hops: int, rows: int, totalRows: int, fraction: float, rowsPerSecond: float, remaining: ?float,
      requestedBy: string)

    type Counts (stores: int, toInspect: int, waiting: int, migrating: int, retrying: int, failed: int, pinned: int)

    type Status (version: string, process: int, phase: string, line: string, counts: Counts, work: []Work,
      paused: []string, unavailable: []string, waits: []string, note: ?string, remaining: ?float,
      settings: [string]string)

    # Read-only methods.

    method GetStatus() -> (status: Status)

    # A status each second, for as long as the client reads. Needs "more".
    method Monitor() -> (status: Status)

    method GetStore(store: string) -> (store: Store, jobs: []Job)

    # At most 200 stores a call, in the order of their paths. "next" is the "after" of the next call.
    method ListStores(states: ?[]string, watch: ?string, after: ?string, limit: ?int) ->
      (stores: []Store, next: ?string)

    # The newest first, at most 200.
    method ListJobs(store: ?string, limit: ?int) -> (jobs: []Job)

    # Commands. The reply is sent once the command has taken effect.

    # The state in which a command finds a store: current, migrating, waiting, paused, or retrying for one that had
    # failed. Waits: how long its migration then waits for the window of its watch.
    type Found (store: string, found: string, waits: ?string)

    # Retries stores now: those listed, or all that failed or wait for their next attempt. "stores" are the stores
    # that are retried; a store that is current is only inspected.
    method Retry(stores: ?[]string, failed: ?bool) -> (stores: []string, results: []Found)

    # Pauses the migrations of all stores, of a watch, or of a store. None starts, and running ones pause after the
    # current chunk. A pause survives a restart. "paused" lists all pauses, "changed" those that this call added.
    method Pause(name: ?string) -> (paused: []string, changed: []string)

    # Ends a pause; without a name, all of them, or with "global" only the pause of all stores. "changed" lists the
    # pauses that this call ended.
    method Resume(name: ?string, global: ?bool) -> (paused: []string, changed: []string)

    # Stops the migration of a store at its next checkpoint, and pauses the store.
    method PauseNow(store: string) -> (running: bool)

    # Moves a store to the front of the queue. State: migrating, waiting, paused, or current if there is nothing to
    # do. Waits: how long its migration still waits for the window of its watch.
    method RetryFirst(store: string) -> (state: string, waits: ?string)

    # Reloads the configuration. The reply is sent once the new one is in use. Warnings: unknown keys, watches that hopd
    # cannot write, missing programs.
    method Reload() -> (files: []string, warnings: []string)

    # Changes a setting until the daemon restarts. Keys: those of Status.settings.
    method Set(key: string, value: string) -> (key: string, value: string, before: string)

    # No such store or watch.
    error NotFound (name: string, hint: string)

    # The command is not possible, now or at all.
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
