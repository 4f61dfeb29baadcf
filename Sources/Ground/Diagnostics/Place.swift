import Glibc
import SystemPackage

/// Where something was found, as far as known; printed from the outside in.
package struct Place: Hashable, Sendable, CustomStringConvertible {
  /// The store's database file.
  package var store: FilePath?
  /// Another file: a model, a configuration file, a mapping.
  package var file: FilePath?
  /// Line in `file`, from 1.
  package var line: Int?
  /// Column in `line`, from 1.
  package var column: Int?
  /// Configuration key, as `watch.library.settle`.
  package var key: String?
  /// Hop, as "Model 2 → Model 3".
  package var hop: String?
  /// Entity name.
  package var entity: String?
  /// Property name of `entity`.
  package var property: String?
  /// Primary key (Z_PK) of the row, in `entity`'s table.
  package var row: Int64?

  /// Creates a place from the known parts.
  package init(
    store: FilePath? = nil, file: FilePath? = nil, line: Int? = nil, column: Int? = nil, key: String? = nil,
    hop: String? = nil, entity: String? = nil, property: String? = nil, row: Int64? = nil
  ) {
    self.store = store
    self.file = file
    self.line = line
    self.column = column
    self.key = key
    self.hop = hop
    self.entity = entity
    self.property = property
    self.row = row
  }

  /// Whether nothing is known.
  package var isEmpty: Bool { self == Place() }

  /// Returns this place with its gaps filled from `other`.
  package func filled(from other: Place) -> Place {
    Place(
      store: store ?? other.store, file: file ?? other.file, line: line ?? other.line, column: column ?? other.column,
      key: key ?? other.key, hop: hop ?? other.hop, entity: entity ?? other.entity,
      property: property ?? other.property, row: row ?? other.row)
  }

  package var description: String {
    var parts: [String] = []
    if let store { parts.append(store.printable) }
    if let file, file != store || line != nil {
      var text = file.printable
      if let line { text += ":\(line)" }
      if let column { text += ":\(column)" }
      parts.append(text)
    }
    if let key { parts.append(key.printableLine) }
    if let hop { parts.append("hop \(hop.printableLine)") }
    if let entity {
      parts.append(property.map { "\(entity.printableLine).\($0.printableLine)" } ?? entity.printableLine)
    } else if let property {
      parts.append(property.printableLine)
    }
    if let row { parts.append("row \(row)") }
    return parts.joined(separator: ", ")
  }
}

extension FilePath {
  /// The path as text that is safe in a log line or on a terminal: bytes that are not printable are shown as `\xNN`.
  ///
  /// File names come from strangers; a newline in one must not forge a journal entry.
  package var printable: String {
    if let text = String(validating: self) { return text.escapingControls(keepingNewlines: false) }
    return withPlatformString { pointer in
      UnsafeRawBufferPointer(start: pointer, count: strlen(pointer)).map { byte in
        (0x20..<0x7f).contains(byte) ? String(Unicode.Scalar(byte)) : "\\x" + [byte].hexadecimal
      }.joined()
    }
  }

  /// The path as one word for a shell, byte for byte, for a command in a hint.
  package var quotedForShell: String {
    if let text = String(validating: self) {
      // A command would take the name for an option.
      return (text.hasPrefix("-") ? "./\(text)" : text).quotedForShell
    }
    return withPlatformString { pointer in
      UnsafeRawBufferPointer(start: pointer, count: strlen(pointer)).withDigitsForShell
    }
  }
}
