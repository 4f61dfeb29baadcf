// A place in the tree of configuration files: the whole tree, a table, or the value of a key.

import TOMLDocuments

/// A table or value that is being read.
struct ConfigurationEntry {
  let name: String
  /// Path in the list of keys: `watch.migration`.
  let path: String
  /// Path in messages: `watch.library.migration`.
  let shown: String
  var node: TOMLNode
  /// The default of the key, as hopd.toml writes it.
  var standard = ""
  /// The tables around it, except the whole tree, with the names of their keys.
  var outer: [(path: String, keys: [String])] = []

  init(_ node: TOMLNode, name: String = "", path: String = "", shown: String = "") {
    (self.node, self.name, self.path, self.shown) = (node, name, path, shown)
  }

  private var entries: [String: TOMLNode] { if case .table(let entries) = node.value { entries } else { [:] } }

  /// The entries of a table, by name.
  var all: [ConfigurationEntry] { entries.sorted { $0.key < $1.key }.map { entry($0.key, $0.value) } }

  /// The entry of that name; nil if there is none.
  subscript(_ name: String) -> ConfigurationEntry? { entries[name].map { entry(name, $0) } }

  /// An entry of this table with a node.
  func entry(_ name: String, _ node: TOMLNode) -> ConfigurationEntry {
    func below(_ path: String) -> String { path.isEmpty ? name : "\(path).\(name)" }
    var entry = ConfigurationEntry(node, name: name, path: below(path), shown: below(shown))
    entry.outer = outer
    return entry
  }
}
