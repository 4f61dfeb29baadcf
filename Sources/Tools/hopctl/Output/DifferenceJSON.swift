// The output of `model diff --json`, and of `check --json` for each hop. Keys are a contract: new ones may be added,
// none is renamed.

import MigrationChecking

extension ModelDifference {
  /// The difference of two models.
  var json: JSONObject {
    [
      "from": from, "to": to, "unchangedEntities": unchanged, "entities": entities.map(\.json),
      "suspicions": suspicions.map {
        ["entity": $0.entity, "old": $0.old, "new": $0.new, "message": $0.sentence] as JSONObject
      },
    ]
  }
}

extension EntityDifference {
  /// `hashed`: whether the difference changes the version hash.
  fileprivate var json: JSONObject {
    [
      "name": name, "oldName": oldName, "kind": kind.rawValue, "changes": changes.map(\.json),
      "properties": properties.map(\.json), "effect": effect.rawValue, "outcome": outcome, "hashed": isHashed,
    ]
  }
}

extension PropertyDifference {
  fileprivate var json: JSONObject {
    [
      "name": name, "oldName": oldName, "kind": kind.rawValue, "relationship": isRelationship,
      "changes": changes.map(\.json), "effect": effect.rawValue, "outcome": outcome, "hashed": isHashed,
    ]
  }
}

extension DefinitionChange {
  fileprivate var json: JSONObject { ["description": words, "hashed": isHashed] }
}
