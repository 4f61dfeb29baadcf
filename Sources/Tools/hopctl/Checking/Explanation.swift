// The result of `explain`, as JSON and as lines.

import Diagnostics
import ManagedObjectModel
import MigrationChecking
import MigrationPlanning

/// The result of `explain`.
struct Explanation {
  let path: String
  /// The state of a store as `identify` prints it, or "model".
  let state: String
  var version: String?
  /// Whether no given version is the store's, and the model that the store itself holds is used.
  var isFromStoreItself = false
  var target: String?
  /// The hops of a store that can be migrated.
  var way: [String] = []
  /// The nearest versions for a store that matches none of those given.
  var nearest: [Near] = []
  /// Hops of a model that cannot be inferred and have no mapping model.
  var hops: [HopCheck] = []
  /// The findings that stop the migration, each with its remedies.
  var findings: [CheckFinding] = []
  var error: HopdError?
  /// What only a person can do before the next command helps.
  var hint: String?
  /// The command to type next.
  var next = ""

  /// Whether the file is not a store that can be explained: there is no version to compare.
  var isRefusal: Bool {
    switch StoreState(rawValue: state) {
    case .notAStore, .damaged, .encrypted, .xmlStore, .binaryStore: true
    case .current, .behind, .newer, .unknown, nil: false
    }
  }

  struct Near {
    let model: String
    let version: String
    /// Number of entities that the store and the version share.
    let alike: Int
    let entities: Int
    let differing: [VersionComparison.Difference]
    /// The difference from the version to the model in the store, property by property; nil if the store has no model.
    let difference: ModelDifference?

    fileprivate var json: JSONObject {
      [
        "model": model, "version": version, "matching": alike, "entities": entities, "differing": differing.map(\.json),
        "difference": difference?.json,
      ]
    }
  }

  var json: JSONObject {
    [
      "path": path, "state": state, "version": version, "target": target, "route": way, "nearest": nearest.map(\.json),
      "hops": hops.map(\.json), "findings": findings.map(\.json), "error": error?.json, "hint": hint, "next": next,
    ]
  }

  // MARK: Lines

  var lines: [String] {
    var lines = ["\(path): \(headline)"]
    if isFromStoreItself {
      lines.append(
        "  no given version has the hashes of the store, so hopd uses the model in the store. The "
          + "app fails (134130) until it has that version again or the store is migrated")
    }
    if !way.isEmpty { lines.append("  route: \(way.joined(separator: ", "))") }
    lines += nearest.flatMap(Self.lines)
    if !nearest.isEmpty, nearest.allSatisfy({ $0.difference == nil }) {
      lines.append("  the store contains no copy of its model, so the differing properties are unknown")
    }
    lines += findings.flatMap(Self.lines)
    for hop in hops where !findings.contains(where: { $0.error.place.hop == hop.title }) {
      lines.append("  hop \(hop.title): missing")
      lines += hop.reasons.map(Self.line)
    }
    if nearest.isEmpty || isFromStoreItself, findings.isEmpty, let error {
      lines.append("  \(error.message)")
      lines += error.reasons.map(Self.line)
    }
    if let hint { lines.append("hint: \(hint)") }
    return lines + ["next: \(next)"]
  }

  private var headline: String {
    switch state {
    case "model":
      hops.isEmpty
        ? "every hop can be inferred or has a mapping model"
        : "\(hops.count) hops cannot be inferred and have no mapping model"
    case "current": "at \(version ?? "?"), nothing to do"
    case "behind":
      findings.isEmpty && error == nil
        ? "at \(version ?? "?"), can be migrated to \(target ?? "?")"
        : "at \(version ?? "?"), cannot be migrated to \(target ?? "?")"
    case "unknown":
      error?.code == .perhapsNewer ? "matches no version; possibly newer than the models" : "matches no version"
    default: state
    }
  }

  private static func line(_ reason: HopdError) -> String { "    \(part(of: reason)): \(reason.message)" }

  /// "Entity.property", as far as known.
  private static func part(of error: HopdError) -> String {
    [error.place.entity, error.place.property].compactMap(\.self).joined(separator: ".")
  }

  private static func lines(_ near: Near) -> [String] {
    var lines = ["  closest: \(near.version) of \(near.model), \(near.alike) of \(near.entities) entities match"]
    guard let difference = near.difference else {
      return lines
        + near.differing.map { part in
          switch part {
          case .missing(let entity): "    \(entity): only in the version"
          case .extra(let entity): "    \(entity): only in the store"
          case .different(let entity): "    \(entity): differs"
          }
        }
    }
    for entity in difference.entities where entity.isHashed {
      switch entity.kind {
      case .added: lines.append("    \(entity.name): only in the store")
      case .removed: lines.append("    \(entity.name): only in the version")
      case .renamed, .changed:
        lines += entity.changes.filter(\.isHashed).map {
          "    \(entity.name): \($0.words), in the store"
        }
        for property in entity.properties where property.isHashed {
          let words = property.changes.filter(\.isHashed).map(\.words).joined(separator: "; ")
          switch property.kind {
          case .added:
            lines.append("    \(entity.name).\(property.name): only in the store (\(words))")
          case .removed:
            lines.append("    \(entity.name).\(property.name): only in the version (\(words))")
          case .renamed, .changed:
            lines.append("    \(entity.name).\(property.name): \(words), in the store")
          }
        }
      }
    }
    return lines
  }

  private static func lines(_ finding: CheckFinding) -> [String] {
    let part = part(of: finding.error)
    let place = [finding.error.place.hop.map { "hop \($0)" }, part.isEmpty ? nil : part].compactMap(\.self)
    var lines = [
      place.isEmpty ? "  \(finding.error.headline)" : "  \(place.joined(separator: ", ")): \(finding.error.message)"
    ]
    for (number, way) in finding.remedies.enumerated() {
      lines.append("    \(number + 1). \(way.title)" + (way.text.isEmpty ? "" : ":"))
      lines += way.text.split(separator: "\n").map { "         \($0)" }
    }
    if finding.remedies.isEmpty, let hint = finding.error.hint { lines.append("    hint: \(hint)") }
    return lines
  }
}

extension VersionComparison.Difference {
  fileprivate var json: JSONObject {
    switch self {
    case .missing(let name): ["entity": name, "kind": "missing"]
    case .extra(let name): ["entity": name, "kind": "extra"]
    case .different(let name): ["entity": name, "kind": "different"]
    }
  }
}
