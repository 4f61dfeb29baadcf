// A row of the table of configuration keys: the name of a key, its type and range, and the property that gets its
// value. The initial value of the property is the default.

/// A key, or a table of keys, whose values go into a `Root`.
struct Key<Root>: Sendable {
  let name: String
  /// Reads the key, if it is there, from its table.
  let read: @Sendable (inout Root, ConfigurationEntry, inout ConfigurationReader) -> Void
  /// Lists the key, or the keys below it, with their values; the text is the path.
  let list: @Sendable (Root, String) -> [ConfigurationKey]

  init(
    _ name: String, list: @escaping @Sendable (Root, String) -> [ConfigurationKey],
    read: @escaping @Sendable (inout Root, ConfigurationEntry, inout ConfigurationReader) -> Void = { _, _, _ in }
  ) {
    (self.name, self.read, self.list) = (name, read, list)
  }

  /// A key with a value. One with an example must be set; one that is settable can be changed in a running daemon.
  init<Value>(
    _ name: String, _ target: any WritableKeyPath<Root, Value> & Sendable, _ type: KeyType<Value>,
    required example: String? = nil, isSettable: Bool = false
  ) {
    self.init(name) { root, path in
      [ConfigurationKey(path, example == nil ? type.text(root[keyPath: target]) : nil, isSettable: isSettable)]
    } read: { root, table, reader in
      if var entry = table[name] {
        entry.standard = type.text(root[keyPath: target])
        if let value = type.read(entry, &reader) { root[keyPath: target] = value }
      } else if let example {
        reader.report(table.entry(name, table.node), "is not set", write: example)
      }
    }
  }

  /// A table of keys.
  static func table(_ name: String, _ keys: [Key]) -> Key {
    Key(name) { root, path in
      ConfigurationKey.list(keys, of: root, below: path)
    } read: { root, table, reader in
      if let inner = reader.table(name, of: table) { reader.read(inner, keys, into: &root) }
    }
  }
}
