// A TOML file as a tree of values with their positions, and the merging of the trees of several files.

import Diagnostics
import SystemPackage

/// A place in a text: line and column, both from 1, the column in characters.
package struct SourcePosition: Hashable, Sendable {
  package var line: Int
  package var column: Int
}

/// A value with the place where it was written.
package struct TOMLNode: Sendable {
  /// What was written.
  package enum Value: Sendable {
    /// Entries by key, in no order.
    case table([String: TOMLNode])
    case array([TOMLNode])
    case string(String)
    case integer(Int64)
    case real(Double)
    case boolean(Bool)
    /// A value of a kind that hopd's documents do not use, by the kind's name: "date", "time" or "date-time".
    case other(String)

    /// The name of the kind, as messages use it.
    var kind: String {
      switch self {
      case .table: "table"
      case .array: "array"
      case .string: "string"
      case .integer: "integer"
      case .real: "double"
      case .boolean: "boolean"
      case .other(let name): name
      }
    }
  }

  package var value: Value
  /// The file that contains it.
  package var file: FilePath?
  /// Position in the file: the key of a table's entry, the header of a table, the first character of an array's
  /// element.
  package var position: SourcePosition?

  /// An empty table without a file.
  package static let empty = TOMLNode(value: .table([:]))
}

extension TOMLNode {
  /// Parses a text.
  ///
  /// - Throws: `code` with file, line and column of the first mistake, or of what exceeds a limit of `TOMLReader`.
  package init(toml text: String, file: FilePath, code: HopdError.Code) throws(HopdError) {
    var reader = TOMLReader(text, file: file, code: code)
    self = try reader.document()
  }

  /// The kind of this value with an article, for messages.
  package var kind: String {
    switch value {
    case .array, .integer: "an \(value.kind)"
    default: "a \(value.kind)"
    }
  }

  /// File, line and column, with the key as messages show it.
  package func place(key: String?) -> Place {
    Place(file: file, line: position?.line, column: position?.column, key: key)
  }

  /// Returns this tree overlaid with `other`: tables are merged key by key, other values are replaced.
  package func merged(with other: TOMLNode) -> TOMLNode {
    guard case .table(var entries) = value, case .table(let others) = other.value else { return other }
    for (key, node) in others {
      entries[key] = entries[key].map { $0.merged(with: node) } ?? node
    }
    var result = self
    result.value = .table(entries)
    return result
  }
}
