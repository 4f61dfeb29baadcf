// The output of `check --json`. Keys are a contract: new ones may be added, none is renamed.

import Diagnostics
import ManagedObjectModel
import MigrationChecking
import SystemPackage

extension CheckReport {
  /// `check`. The result is "policy" if nothing is red and a policy has no program, and "untested" if no store of a
  /// version could be tried.
  var json: JSONObject {
    [
      "result": isRed ? "red" : needsPolicies ? "policy" : provesNothing ? "untested" : "green",
      "models": models.map(\.json),
      "stores": stores.map(\.json), "warnings": warnings.map(\.json), "seconds": seconds, "peakMemory": peakMemory,
    ]
  }
}

extension ModelCheck {
  /// `target` is null if the model names none. `findings` are all errors, each once; `warnings` stop no migration but
  /// may be mistakes; `notes` stop only rare rows; `drops` are what hops drop and the lock does not allow. With
  /// `--fail-on-drop` the drops are findings.
  fileprivate var json: JSONObject {
    [
      "name": name, "path": path.string, "target": target, "order": order.rawValue, "versions": versions.map(\.json),
      "hops": hops.map(\.json), "findings": (problems + findings).map(\.json), "warnings": warnings.map(\.json),
      "notes": extremes.map(\.json), "drops": drops.map(\.json),
    ]
  }
}

extension VersionCheck {
  /// `tags` are those of the releases that have the version. `directHop` is null if a direct hop was not tested;
  /// `directDifferences` are the entities and properties whose rows differ from those that the chain through the
  /// versions makes.
  fileprivate var json: JSONObject {
    [
      "name": name, "verdict": verdict.rawValue, "note": note, "tags": tags, "route": steps.map(\.json),
      "objects": objects,
      "bytes": bytes, "seconds": seconds, "dropped": drops.map(\.json), "directHop": hasDirectHop,
      "directDifferences": directDifferences.map {
        ["entity": $0.entity, "property": $0.property, "count": $0.count] as JSONObject
      }, "findings": findings.map(\.json), "warnings": warnings.map(\.json),
    ]
  }
}

extension HopStep {
  fileprivate var json: JSONObject {
    ["source": source, "destination": destination, "kind": kind.rawValue, "mappings": mappings]
  }
}

extension HopCheck {
  /// `consecutive`: whether the two versions follow each other. `broken`: whether a store failed on the hop.
  var json: JSONObject {
    step.json + [
      "consecutive": isConsecutive, "broken": isBroken, "reasons": reasons.map(\.json), "difference": difference.json,
    ]
  }
}

extension CheckFinding {
  /// `file`, `line` and `column` are known of source. `rowsDecide`: whether only stores with such rows are stopped.
  /// `stops`: the versions of these stores.
  var json: JSONObject {
    [
      "code": error.code.name, "message": error.message, "hint": error.hint, "file": error.place.file?.string,
      "line": error.place.line, "column": error.place.column, "hop": error.place.hop,
      "entity": error.place.entity, "property": error.place.property, "rowsDecide": isOfRows, "stops": stopped,
      "remedies": remedies.map { ["kind": $0.kind.rawValue, "title": $0.title, "text": $0.text] as JSONObject },
    ]
  }
}

extension CheckDrop {
  /// `property` is null if the entity goes with all its rows; `count` is null if no store was tried.
  fileprivate var json: JSONObject {
    ["hop": hop, "entity": entity, "property": property, "count": count, "allowed": isAllowed]
  }
}

extension StoreCheck {
  fileprivate var json: JSONObject {
    [
      "path": path.string, "version": version, "verdict": verdict.rawValue, "objects": objects, "bytes": bytes,
      "seconds": seconds, "dropped": drops.map(\.json), "findings": findings.map(\.json),
    ]
  }
}
