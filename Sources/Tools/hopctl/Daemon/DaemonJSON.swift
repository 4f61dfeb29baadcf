// The `--json` output for the daemon's stores and jobs. Keys are a contract: new ones may be added, none is renamed.

import Diagnostics
import ServiceState
import StoreReplacement

extension StoreRecord {
  /// A store in hopd's record.
  func json(_ state: RecordedState) -> JSONObject {
    [
      "store": path, "watch": watch, "state": condition.name, "since": BackupRecord.time(since), "version": version,
      "target": target, "waits": state.waits(self)?.until, "group": group?.name, "problem": failure?.json,
    ]
  }
}

extension StoreRecord {
  /// The restore of a set that pinned the store; nil if none did.
  var group: PinGroup? { condition == .pinned ? failure.flatMap { PinGroup(command: $0.command) } : nil }
}

extension StoreFailure {
  /// Why a store is not at its target, and the command to type next.
  fileprivate var json: JSONObject {
    [
      "code": code, "reason": reason, "since": BackupRecord.time(since), "hint": hint.isEmpty ? nil : hint,
      "command": command.isEmpty ? nil : command, "attempts": attempts,
      "nextAttempt": nextAttempt.map { BackupRecord.time($0) },
    ]
  }
}

extension StateReader.Cause {
  /// A cause of one or more stores, with one of them.
  func json(example: StoreRecord) -> JSONObject {
    [
      "state": condition.name, "code": code, "stores": stores, "example": example.path,
      "reason": example.failure?.reason,
    ]
  }
}

extension JobRecord {
  /// A job that has ended.
  var json: JSONObject {
    [
      "job": job, "store": path, "watch": watch, "result": result, "from": from, "to": to, "rows": rows,
      "started": BackupRecord.time(began), "ended": BackupRecord.time(ended), "seconds": Double(microseconds) / 1e6,
      "requestedBy": requester, "code": code, "reason": reason, "backup": backup,
    ]
  }
}

extension RecordedState {
  /// The daemon itself, in `status`.
  var json: JSONObject {
    [
      "running": process != nil, "answering": isAnswering, "process": process, "program": facts[.program],
      "started": Self.time(facts[.started]), "stopped": Self.time(facts[.stopped]), "paused": facts[.paused],
      "note": facts[.note], "waits": lines(.waits), "unavailable": lines(.unavailable),
      "unavailableReasons": JSONObject(unavailable.map { ($0.watch, $0.reason) }), "skipped": lines(.skipped),
      "outdated": outdated,
      "configuration": lines(.configuration), "changed": changes.map(\.json),
    ]
  }
}

extension RecordedState.Change {
  var json: JSONObject { ["key": key, "value": value, "configured": configured] }
}
