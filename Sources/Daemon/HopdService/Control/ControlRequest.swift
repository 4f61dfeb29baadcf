// Requests from the control socket to the daemon's loop. Queries of records never reach the loop.

import Diagnostics
import HopdControl
import SystemPackage

/// A store as a client names it.
struct NamedStore: Sendable {
  /// The name that the client sent.
  var name: String
  /// Its key, already resolved, because the loop must not wait for the disk.
  var key: FilePath
}

/// An order, or a query of the current state.
enum ControlRequest: Sendable {
  case status
  case monitor
  case retry([NamedStore], failed: Bool)
  case pause(NamedStore?)
  case resume(NamedStore?, global: Bool)
  case pauseNow(NamedStore)
  case retryFirst(NamedStore)
  case reload
  case set(key: String, value: String)

  /// The text for the journal; nil for queries.
  var sentence: String? {
    switch self {
    case .status, .monitor: nil
    case .retry(let stores, let failed):
      failed ? "retry all that failed" : "retry \(stores.map { FilePath($0.name).printable }.joined(separator: ", "))"
    case .pause(let name): "pause \(name.map { FilePath($0.name).printable } ?? "everything")"
    case .resume(let name, let global):
      "resume \(name.map { FilePath($0.name).printable } ?? "everything")" + (global ? " alone" : "")
    case .pauseNow(let store): "pause \(FilePath(store.name).printable) --now"
    case .retryFirst(let store): "retry \(FilePath(store.name).printable) --first"
    case .reload: "reload"
    case .set(let key, let value): "set \(key) \(value)"
    }
  }
}

extension ControlReply {
  /// The error `NotFound` of the interface.
  static func notFound(_ name: String, hint: String) -> ControlReply {
    ControlReply(
      .object(["name": .string(name), "hint": .string(hint)]), error: "\(ControlInterface.name).NotFound")
  }

  /// The error `NotPossible` of the interface.
  static func notPossible(_ code: String, _ reason: String, hint: String?) -> ControlReply {
    ControlReply(
      .object(["code": .string(code), "reason": .string(reason), "hint": .optional(hint)]),
      error: "\(ControlInterface.name).NotPossible")
  }
}
