// Key paths without a base in a value: no document says which object they belong to. hopd reads them as properties of
// the source object if it has them (docs/formats/expressions.md, "Variables"), and rewrites them to `$source.…` once,
// before the expression is checked.

import ManagedObjectModel

/// Adds `$source` to the bare key paths of values.
package struct BareKeyPaths {
  private let isProperty: (String) -> Bool
  /// The paths that were found, as written, each once.
  package private(set) var found: [ExpressionNode] = []

  /// For values of a mapping from the entity `source`.
  package init(model: ManagedObjectModel, source: String?) {
    let lineage = source.flatMap { model.entity(named: $0) }.map { model.lineage(of: $0) } ?? []
    isProperty = { name in lineage.contains { $0.hasProperty(named: name) } }
  }

  /// Returns the expression with `$source` before its bare key paths.
  package mutating func named(_ node: ExpressionNode) -> ExpressionNode {
    guard case .keyPath(.selfObject, let steps) = node else { return node.mapping { named($0) } }
    switch steps.first {
    case .key(let name)? where isProperty(name): break
    case .objectPath?: break
    default: return node
    }
    if !found.contains(node) { found.append(node) }
    return .keyPath(.variable("source"), steps)
  }
}
