// A TOML file as a tree of values that know where they stand, and how the trees of several files become one.

import Diagnostics
import SystemPackage
import TOMLKit

/// A value with the place it was written at.
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
    /// A kind of value that no document of ours takes, by its name.
    case other(String)
  }

  package var value: Value
  /// The file it stands in.
  package var file: FilePath?
  /// Where in the file.
  package var position: SourcePosition?

  /// An empty table that stands in no file.
  package static let empty = TOMLNode(value: .table([:]))

  /// Parses a text; throws `code` with file, line and column of what is no TOML.
  package init(toml text: String, file: FilePath, code: HopdError.Code) throws(HopdError) {
    let places = KeyPositions(text)
    if let stopper = places.stopper {
      throw HopdError(
        code, "no valid TOML: expected \(stopper.expected)",
        at: Place(file: file, line: stopper.position.line, column: stopper.position.column))
    }
    let table: TOMLTable
    do {
      table = try TOMLTable(string: text)
    } catch let error as TOMLParseError {
      throw HopdError(
        code, "no valid TOML: \(error.description)",
        at: Place(file: file, line: error.source.begin.line, column: error.source.begin.column))
    } catch {
      throw HopdError(code, "no valid TOML", at: Place(file: file), cause: error)
    }
    self.init(table: table, file: file, positions: places.positions, path: [])
  }

  private init(value: Value, file: FilePath? = nil, position: SourcePosition? = nil) {
    self.value = value
    self.file = file
    self.position = position
  }

  private init(table: TOMLTable, file: FilePath, positions: [[KeyStep]: SourcePosition], path: [KeyStep]) {
    var entries: [String: TOMLNode] = [:]
    for key in table.keys {
      // A key with a NUL in it is cut by the parser's C interface and then not found; it cannot be one of ours.
      guard let value = table[key] else { continue }
      entries[key] = TOMLNode(value, file: file, positions: positions, path: path + [.key(key)])
    }
    self.init(value: .table(entries), file: file, position: positions[path])
  }

  private init(
    _ node: any TOMLValueConvertible, file: FilePath, positions: [[KeyStep]: SourcePosition], path: [KeyStep]
  ) {
    if let table = node.table {
      self.init(table: table, file: file, positions: positions, path: path)
      return
    }
    let value: Value
    if let array = node.array {
      var elements: [TOMLNode] = []
      for element in array {
        elements.append(
          TOMLNode(element, file: file, positions: positions, path: path + [.index(elements.count)]))
      }
      value = .array(elements)
    } else if let text = node.string {
      value = .string(text)
    } else if let flag = node.bool {
      value = .boolean(flag)
    } else if let number = node.int {
      value = .integer(Int64(number))
    } else if let number = node.double {
      value = .real(number)
    } else {
      value = .other(node.type.description)
    }
    self.init(value: value, file: file, position: positions[path])
  }

  /// What kind of value this is, for messages.
  package var kind: String {
    switch value {
    case .table: "a table"
    case .array: "an array"
    case .string: "a string"
    case .integer: "an integer"
    case .real: "a double"
    case .boolean: "a boolean"
    case .other(let name): "a \(name)"
    }
  }

  /// File, line and column, with the key as the reader should see it.
  package func place(key: String?) -> Place {
    Place(file: file, line: position?.line, column: position?.column, key: key)
  }

  /// This tree with everything that `other` says over it: tables key by key, other values as a whole.
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
