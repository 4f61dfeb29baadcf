// Key paths that stand alone in a value: no document says what they are properties of. hopd reads them as properties of
// the source object where it has them (docs/formats/expressions.md, "Variables"), and makes them `$source.…` once,
// before anything else inspects the expression.

import ManagedObjectModel

/// Gives the bare key paths of values their source object.
package struct BareKeyPaths {
  private let isProperty: (String) -> Bool
  /// The paths that were found, as they were written, each once.
  package private(set) var found: [ExpressionNode] = []

  /// For values of a mapping from the entity `source`.
  package init(model: ManagedObjectModel, source: String?) {
    let lineage = source.flatMap { model.entity(named: $0) }.map { model.lineage(of: $0) } ?? []
    isProperty = { name in lineage.contains { $0.hasProperty(named: name) } }
  }

  /// The expression with `$source` before its bare key paths.
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
