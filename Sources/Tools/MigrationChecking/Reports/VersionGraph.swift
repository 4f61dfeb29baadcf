// The versions of a model and the hops between them as a graph, in two forms: Mermaid for pages that draw it
// themselves, SVG for everything else. Names may hold any character: those that change how a line reads are escaped.

import Diagnostics
import ManagedObjectModel
import MappingModel

/// Versions and hops.
package struct VersionGraph: Sendable {
  /// A version.
  package struct Node: Sendable, Hashable {
    package let name: String
    package let isCurrent: Bool
    /// Its result; nil if nothing was tried.
    package var verdict: CheckVerdict?
    /// The number of stores at this version.
    package var stores = 0
  }

  /// A hop.
  package struct Edge: Sendable, Hashable {
    package let source: Int
    package let destination: Int
    package let kind: HopKind
    /// Whether a store failed on it.
    package let isBroken: Bool
    /// Names of the mapping models.
    package let mappings: [String]
  }

  package let name: String
  package var nodes: [Node]
  package let edges: [Edge]
  /// The names of the versions as the boxes show them.
  package let names: ShortNames

  /// Creates the graph of a model that was checked, or only inspected.
  package init(_ model: ModelCheck, isTried: Bool = true) {
    name = model.name
    nodes = model.versions.map {
      Node(name: $0.name, isCurrent: $0.name == model.target, verdict: isTried ? $0.verdict : nil)
    }
    names = ShortNames(model.versions.map(\.name))
    let places = Dictionary(model.versions.enumerated().map { ($0.element.name, $0.offset) }) { first, _ in first }
    edges = model.hops.compactMap { hop in
      guard let source = places[hop.step.source], let destination = places[hop.step.destination] else { return nil }
      return Edge(
        source: source, destination: destination, kind: hop.step.kind, isBroken: hop.isBroken,
        mappings: hop.step.mappings)
    }
  }
}

extension VersionGraph.Edge {
  /// The kind of hop as one word.
  package var word: String { isBroken && [.inferred, .mapping].contains(kind) ? "broken" : kind.word }
}

extension VersionGraph.Node {
  /// The name as it is printed.
  fileprivate var label: String { name.printableLine }
}

extension VersionGraph.Edge {
  /// The kind and the mapping models, as they are printed.
  fileprivate var words: [String] { [word] + mappings.map(\.printableLine) }
}

extension HopKind {
  fileprivate var word: String { self == .mapping ? "mapped" : rawValue }
}

// MARK: Mermaid

extension VersionGraph {
  /// The graph as Mermaid.
  package var mermaid: String {
    var lines = ["flowchart TB"]
    for (index, node) in nodes.enumerated() {
      let text = label(node).map(VersionGraph.inMermaid).joined(separator: "<br/>")
      lines.append("  v\(index)\(node.isCurrent ? "([\"" : "[\"")\(text)\(node.isCurrent ? "\"])" : "\"]")")
    }
    for edge in edges {
      let text = edge.words.map(VersionGraph.inMermaid).joined(separator: "<br/>")
      let arrow =
        edge.kind == .missing
        ? "-. \"\(text)\" .->" : edge.kind == .inferred ? "-- \"\(text)\" -->" : "== \"\(text)\" ==>"
      lines.append("  v\(edge.source) \(arrow) v\(edge.destination)")
    }
    let broken = edges.indices.filter { edges[$0].isBroken || edges[$0].kind == .missing }
    if !broken.isEmpty {
      lines.append("  linkStyle \(broken.map(String.init).joined(separator: ",")) stroke:#b3261e")
    }
    return lines.joined(separator: "\n") + "\n"
  }

  /// Returns the lines of a version's box.
  private func label(_ node: Node) -> [String] {
    [node.label + (node.isCurrent ? " (current)" : "")]
      + (node.stores > 0 ? [node.stores.counted("store")] : [])
  }

  /// Returns a text escaped for quotes in Mermaid, which writes characters by their numbers.
  private static func inMermaid(_ text: String) -> String {
    text.replacing { scalar in
      switch scalar {
      case "\"", "#", "<", ">", "&", ";", "`", "\\": "#\(scalar.value);"
      default: nil
      }
    }
  }
}

// MARK: SVG

extension VersionGraph {
  /// Returns the graph as an SVG image. With `isDocument` it is a complete file, otherwise part of a page.
  package func svg(isDocument: Bool = true) -> String {
    let (row, box, left) = (64, 36, 12)
    let width = 230
    let reaches = edges.map { abs($0.destination - $0.source) }.filter { $0 > 1 }
    let right = reaches.isEmpty ? 96 : min(260, 96 + 14 * ((reaches.max() ?? 1) + 1))
    let height = max(1, nodes.count) * row + 8
    func middle(_ index: Int) -> Int { 8 + index * row + box / 2 }
    var lines = [
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(left + width + right) \(height)\" role=\"img\" "
        + (isDocument ? "width=\"\(left + width + right)\" height=\"\(height)\" " : "class=\"graph\" ")
        + "aria-label=\"\(summary.inXML)\">",
      "<title>\(summary.inXML)</title>",
    ]
    if isDocument { lines.append("<style>\(VersionGraph.style)</style>") }
    lines.append(
      "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "
        + "orient=\"auto-start-reverse\"><path d=\"M0 0L8 4L0 8z\" fill=\"context-stroke\"/></marker></defs>")
    for edge in edges {
      let title = "\(nodes[edge.source].label) → \(nodes[edge.destination].label): \(edge.word)"
      let style = "edge \(edge.word)"
      if edge.destination == edge.source + 1 {
        let x = left + 24
        lines.append(
          "<g class=\"\(style)\"><title>\(title.inXML)</title><path d=\"M\(x) \(middle(edge.source) + box / 2)"
            + "V\(middle(edge.destination) - box / 2 - 1)\" marker-end=\"url(#tip)\"/>"
            + "<text x=\"\(x + 10)\" y=\"\(middle(edge.source) + box / 2 + 18)\">"
            + "\(ShortNames.cut(caption(edge), to: 30).inXML)</text></g>")
      } else {
        let x = left + width
        let reach = min(right - 30, 24 + 14 * abs(edge.destination - edge.source))
        let (from, to) = (middle(edge.source) + 5, middle(edge.destination) - 5)
        lines.append(
          "<g class=\"\(style)\"><title>\(title.inXML)</title>"
            + "<path d=\"M\(x) \(from)C\(x + reach) \(from) \(x + reach) \(to) \(x + 2) \(to)\" "
            + "marker-end=\"url(#tip)\"/>"
            + "<text x=\"\(x + reach * 3 / 4 + 4)\" y=\"\((from + to) / 2 + 4)\">\(edge.word)</text></g>")
      }
    }
    for (index, node) in nodes.enumerated() {
      let state = node.isCurrent ? "current" : node.verdict?.rawValue ?? "plain"
      let text = names.label(node.name)
      let under = node.isCurrent ? "current" : node.verdict.map(VersionGraph.word) ?? ""
      let more = node.stores > 0 ? node.stores.counted("store") : ""
      let second = [under, more].filter { !$0.isEmpty }.joined(separator: ", ")
      lines.append(
        "<g class=\"node \(state)\"><title>\(label(node).joined(separator: ", ").inXML)</title><rect x=\"\(left)\" "
          + "y=\"\(8 + index * row)\" width=\"\(width)\" height=\"\(box)\" rx=\"8\"/>"
          + "<text class=\"name\" x=\"\(left + 12)\" y=\"\(middle(index) + (second.isEmpty ? 5 : -2))\">"
          + "\(text.inXML)</text>"
          + (second.isEmpty ? "" : "<text x=\"\(left + 12)\" y=\"\(middle(index) + 12)\">\(second.inXML)</text>")
          + "</g>")
    }
    return lines.joined(separator: "\n") + "\n</svg>\n"
  }

  /// A description of the image, for screen readers.
  package var summary: String {
    let words = ["inferred", "mapped", "policy", "missing", "broken"].compactMap { word -> String? in
      let count = edges.count { $0.word == word }
      return count == 0 ? nil : "\(count) \(word)"
    }
    return "\(name.printableLine): \(nodes.count.counted("version"))"
      + (words.isEmpty ? "" : "; hops: \(words.joined(separator: ", "))")
      + (names.remark.isEmpty ? "" : "; \(names.remark)")
  }

  private func caption(_ edge: Edge) -> String { edge.words.prefix(2).joined(separator: ": ") }

  private static func word(_ verdict: CheckVerdict) -> String {
    switch verdict {
    case .passed: "reaches the current one"
    case .failed: "FAILED"
    case .untested: "untested"
    case .policy: "needs a policy"
    case .same: "same hashes"
    case .later: "later"
    case .empty: "empty"
    case .current: "current"
    case .skipped: ""
    }
  }

  /// Distinct and readable colors, in light and in dark mode.
  package static let style = """
    svg{font:13px system-ui,sans-serif}.node rect{fill:#fff;stroke:#767676}.node text{fill:#1b1b1b;font-size:11px}\
    .node text.name{font-size:13px;font-weight:600}.node.current rect{stroke:#0b57d0;stroke-width:2}\
    .node.failed rect{stroke:#b3261e;stroke-width:2}.node.passed rect,.node.same rect{stroke:#146c2e}\
    .edge path{fill:none;stroke:#5f6368;stroke-width:1.5}.edge text{fill:#444;font-size:11px}\
    .edge.mapped path{stroke:#0b57d0}.edge.policy path{stroke:#7a4f00}\
    .edge.missing path,.edge.broken path{stroke:#b3261e;stroke-dasharray:5 3}\
    .edge.missing text,.edge.broken text{fill:#b3261e}\
    @media (prefers-color-scheme:dark){.node rect{fill:#1f1f1f;stroke:#9aa0a6}.node text{fill:#eee}\
    .node.current rect{stroke:#a8c7fa}.node.failed rect{stroke:#f2b8b5}\
    .node.passed rect,.node.same rect{stroke:#81c995}\
    .edge path{stroke:#bdc1c6}.edge text{fill:#cfcfcf}.edge.mapped path{stroke:#a8c7fa}\
    .edge.policy path{stroke:#fdd663}\
    .edge.missing path,.edge.broken path{stroke:#f2b8b5}.edge.missing text,.edge.broken text{fill:#f2b8b5}}
    """
}
