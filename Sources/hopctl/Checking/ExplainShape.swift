// What `explain` answers, as JSON and as lines.

import Diagnostics
import MigrationChecking
import MigrationPlanning

/// `explain`.
struct ExplainShape: Encodable {
  let path: String
  /// The state of a store as `identify` tells it, or "model".
  let state: String
  @OrNull var version: String?
  @OrNull var target: String?
  /// The hops of a store that can be migrated.
  var way: [String] = []
  /// The versions that come nearest to a store that fits none.
  var nearest: [Near] = []
  /// Hops of a model that cannot be inferred and have no mapping model.
  var hops: [ModelCheckShape.Hop] = []
  /// What stands in the way, with the ways out.
  var findings: [ModelCheckShape.Finding] = []
  @OrNull var error: ErrorShape?
  /// What to type next.
  var next = ""

  init(path: String, state: String) {
    self.path = path
    self.state = state
  }

  struct Near: Encodable {
    let model: String
    let version: String
    /// Entities of the store that the version has too.
    let alike: Int
    let entities: Int
    let differing: [Differing]
    /// From the version to the model that the store holds, property by property; null where the store holds none.
    @OrNull var difference: ModelDiffShape?
  }

  struct Differing: Encodable {
    let entity: String
    /// "missing" in the store, "extra" in the store, or "different".
    let kind: String

    init(_ difference: VersionComparison.Difference) {
      switch difference {
      case .missing(let name): (entity, kind) = (name, "missing")
      case .extra(let name): (entity, kind) = (name, "extra")
      case .different(let name): (entity, kind) = (name, "different")
      }
    }
  }
}

/// `explain` as lines.
struct ExplainText {
  private let shape: ExplainShape

  init(_ shape: ExplainShape) { self.shape = shape }

  var lines: [String] {
    var lines = ["\(shape.path): \(headline)"]
    if !shape.way.isEmpty { lines.append("  the way: \(shape.way.joined(separator: ", "))") }
    for near in shape.nearest { lines += self.lines(near) }
    for finding in shape.findings { lines += self.lines(finding) }
    for hop in shape.hops where !shape.findings.contains(where: { $0.hop == "\(hop.source) → \(hop.destination)" }) {
      lines.append("  hop \(hop.source) → \(hop.destination): missing")
      lines += hop.reasons.map {
        "    \([$0.entity, $0.property].compactMap(\.self).joined(separator: ".")): \($0.message)"
      }
    }
    if shape.nearest.isEmpty, shape.findings.isEmpty, let error = shape.error {
      lines.append("  \(error.message)")
      lines += (error.reasons ?? []).map { reason in
        "    \([reason.entity, reason.property].compactMap(\.self).joined(separator: ".")): \(reason.message)"
      }
    }
    return lines + ["next: \(shape.next)"]
  }

  private var headline: String {
    switch shape.state {
    case "model":
      shape.hops.isEmpty ? "every hop has a way" : "\(shape.hops.count) hops have no way"
    case "current": "at \(shape.version ?? "?"), nothing to do"
    case "behind":
      shape.findings.isEmpty && shape.error == nil
        ? "at \(shape.version ?? "?"), on its way to \(shape.target ?? "?")"
        : "at \(shape.version ?? "?"), and cannot go to \(shape.target ?? "?")"
    case "unknown": "no version fits"
    default: shape.state
    }
  }

  private func lines(_ near: ExplainShape.Near) -> [String] {
    var lines = ["  near: \(near.version) of \(near.model), \(near.alike) of \(near.entities) entities alike"]
    guard let difference = near.difference else {
      return lines
        + near.differing.map { part in
          switch part.kind {
          case "missing": "    \(part.entity): the version has it, the store does not"
          case "extra": "    \(part.entity): the store has it, the version does not"
          default: "    \(part.entity): differs; the store holds no copy of its model, so the property is not known"
          }
        }
    }
    for entity in difference.entities where entity.hashed {
      switch entity.kind {
      case "added": lines.append("    \(entity.name): the store has it, the version does not")
      case "removed": lines.append("    \(entity.name): the version has it, the store does not")
      default:
        lines += entity.changes.filter(\.hashed).map {
          "    \(entity.name): \($0.words), from the version to the store"
        }
        for property in entity.properties where property.hashed {
          let words = property.changes.filter(\.hashed).map(\.words).joined(separator: "; ")
          switch property.kind {
          case "added":
            lines.append("    \(entity.name).\(property.name): the store has it (\(words)), the version does not")
          case "removed":
            lines.append("    \(entity.name).\(property.name): the version has it (\(words)), the store does not")
          default: lines.append("    \(entity.name).\(property.name): \(words), from the version to the store")
          }
        }
      }
    }
    return lines
  }

  private func lines(_ finding: ModelCheckShape.Finding) -> [String] {
    let part = [finding.entity, finding.property].compactMap(\.self).joined(separator: ".")
    let place = [finding.hop.map { "hop \($0)" }, part.isEmpty ? nil : part].compactMap(\.self)
    var lines = ["  \(place.joined(separator: ", ")): \(finding.message)"]
    for (number, way) in finding.waysOut.enumerated() {
      lines.append("    \(number + 1). \(way.title)" + (way.text.isEmpty ? "" : ":"))
      lines += way.text.split(separator: "\n").map { "         \($0)" }
    }
    if finding.waysOut.isEmpty, let hint = finding.hint { lines.append("    hint: \(hint)") }
    return lines
  }
}
