// The difference of two models as plain text for terminals, and as Markdown for reviews.

import Diagnostics

/// Writes differences.
package struct DifferenceText {
  private let difference: ModelDifference

  /// Creates the text of a difference.
  package init(_ difference: ModelDifference) { self.difference = difference }

  /// Lines of plain text, with unescaped names.
  package var lines: [String] {
    var lines = ["\(difference.from) → \(difference.to)"]
    if difference.isEmpty { lines.append("  no entity differs") }
    for entity in difference.entities {
      lines.append("  \(Self.title(entity)): \(entity.outcome)")
      lines += entity.changes.map { "    \($0.words)\(Self.remark($0))" }
      lines += entity.properties.map { property in
        "    \(Self.sign(property.kind)) \(Self.title(property))"
          + (property.changes.isEmpty ? "" : "  (\(Self.words(property)))") + "  \(property.outcome)"
      }
    }
    if difference.unchanged > 0, !difference.isEmpty {
      lines.append(
        "  \(difference.unchanged) other \(difference.unchanged == 1 ? "entity" : "entities") unchanged")
    }
    return lines + difference.suspicions.map { "  suspected rename: \($0.sentence)" }
  }

  /// A section of Markdown.
  package var markdown: String {
    var lines = ["### \(Self.inMarkdown("\(difference.from) → \(difference.to)"))", ""]
    if difference.isEmpty { lines += ["No entity differs.", ""] }
    for entity in difference.entities {
      lines += ["**\(Self.inMarkdown(Self.title(entity)))**: \(Self.inMarkdown(entity.outcome))", ""]
      lines += entity.changes.map { "- \(Self.inMarkdown($0.words + Self.remark($0)))" }
      if !entity.changes.isEmpty { lines.append("") }
      guard !entity.properties.isEmpty else { continue }
      lines += ["| | Property | Change | Rows |", "|---|---|---|---|"]
      lines += entity.properties.map { property in
        let outcome = Self.inMarkdown(property.outcome)
        let isBad = [.dropped, .needsMapping].contains(property.effect)
        return "| \(Self.sign(property.kind)) | \(Self.inMarkdown(Self.title(property))) | "
          + "\(Self.inMarkdown(Self.words(property))) | \(isBad ? "**\(outcome)**" : outcome) |"
      }
      lines.append("")
    }
    if !difference.suspicions.isEmpty {
      lines += difference.suspicions.map { "> **Suspected rename:** \(Self.inMarkdown($0.sentence))" } + [""]
    }
    return lines.joined(separator: "\n")
  }

  // MARK: Parts

  /// Returns the name of an entity with its kind of change.
  static func title(_ entity: EntityDifference) -> String {
    switch entity.kind {
    case .added: "+ \(entity.name)"
    case .removed: "- \(entity.name)"
    case .renamed: "~ \(entity.name), before \(entity.oldName ?? "?")"
    case .changed: "~ \(entity.name)"
    }
  }

  static func title(_ property: PropertyDifference) -> String {
    property.oldName.map { "\(property.name), before \($0)" } ?? property.name
  }

  static func sign(_ kind: ChangeKind) -> String {
    switch kind {
    case .added: "+"
    case .removed: "-"
    case .renamed, .changed: "~"
    }
  }

  static func words(_ property: PropertyDifference) -> String {
    property.changes.map { $0.words + remark($0) }.joined(separator: "; ")
  }

  static func remark(_ change: DefinitionChange) -> String { change.isHashed ? "" : ", not part of the hash" }

  /// Returns the text on one line, escaped for Markdown and HTML.
  package static func inMarkdown(_ text: String) -> String {
    text.printableLine.replacing { scalar in
      switch scalar {
      case "&": "&amp;"
      case "<": "&lt;"
      case ">": "&gt;"
      case "|", "*", "_", "`", "[", "]", "\\", "#", "~", "@": "&#\(scalar.value);"
      default: nil
      }
    }
  }
}
