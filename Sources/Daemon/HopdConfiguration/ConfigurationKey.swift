// A key of hopd.toml with its value, for what finds, compares or changes keys by their names.

import TOMLDocuments

/// A key of hopd.toml.
package struct ConfigurationKey: Hashable, Sendable {
  /// Path with dots, without indexes of arrays: `watch.migration.verify`.
  package let path: String
  /// The default, or the value in a configuration, in TOML; nil if the key must be set or has no default.
  package let defaultText: String?
  /// Whether a running daemon can change it.
  let isSettable: Bool

  init(_ path: String, _ text: String?, isSettable: Bool = false) {
    (self.path, defaultText, self.isSettable) = (path, text, isSettable)
  }

  /// All keys, with their defaults.
  package static let all = list(Configuration.keys, of: Configuration(), below: "")

  /// Names of the keys that a running daemon can change.
  package static let settable = all.filter(\.isSettable).map(\.name)

  fileprivate var name: String { path.split(separator: ".").last.map(String.init) ?? path }

  static func list<Root>(_ keys: [Key<Root>], of root: Root, below path: String) -> [ConfigurationKey] {
    keys.flatMap { $0.list(root, path.isEmpty ? $0.name : "\(path).\($0.name)") }
  }
}

extension Configuration {
  private func key(_ name: String) -> ConfigurationKey? {
    ConfigurationKey.list(Configuration.keys, of: self, below: "").first { $0.isSettable && $0.name == name }
  }

  /// The value of a key that a running daemon can change, as `set` takes it, with sizes in bytes; nil for other keys.
  package func setting(_ name: String) -> String? {
    guard let text = key(name)?.defaultText?.replacing("\"", with: "") else { return nil }
    return Quantity.bytes(text).map { "\($0)B" } ?? text
  }

  /// Changes a key that a running daemon can change, to a value without quotes. Returns false, and changes nothing, for
  /// other keys and invalid values.
  package mutating func set(_ name: String, _ value: String) -> Bool {
    guard var path = key(name)?.path.split(separator: ".").map(String.init) else { return false }
    var node = TOMLNode.empty
    node.value = Int64(value).map { .integer($0) } ?? .string(value)
    while let name = path.popLast() { node.value = .table([name: node]) }
    var (changed, reader) = (self, ConfigurationReader())
    reader.read(ConfigurationEntry(node), Configuration.keys, into: &changed)
    if reader.errors.isEmpty { self = changed }
    return reader.errors.isEmpty
  }
}
