// The types of configuration keys: how hopd.toml writes their values. A type knows no key.

import MappingModel
import MigrationPlanning
import SystemPackage
import TOMLDocuments

/// The type of a key's values.
struct KeyType<Value>: Sendable {
  typealias Read = @Sendable (ConfigurationEntry, inout ConfigurationReader) -> Value?

  /// Reads the value of an entry; nil after a mistake, which the reader gets.
  let read: Read
  /// A value as hopd.toml writes it.
  let text: @Sendable (Value) -> String

  init(_ text: @escaping @Sendable (Value) -> String, read: @escaping Read) { (self.text, self.read) = (text, read) }

  /// The same type, where one text means no value.
  func or(_ none: String) -> KeyType<Value?> {
    KeyType<Value?> {
      $0.map(text) ?? quoted(none)
    } read: { entry, reader in
      if case .string(none) = entry.node.value { .some(nil) } else { read(entry, &reader).map { .some($0) } }
    }
  }

  /// The same type with a rule, which reports what breaks it.
  func checked(
    _ check: @escaping @Sendable (Value, ConfigurationEntry, inout ConfigurationReader) -> Void
  ) -> KeyType {
    KeyType(text) { entry, reader in
      let value = read(entry, &reader)
      if let value { check(value, entry, &reader) }
      return value
    }
  }

  /// The same type, where an array must not be empty.
  func notEmpty(_ message: String, write text: String) -> KeyType {
    checked { _, entry, reader in
      if case .array(let elements) = entry.node.value, elements.isEmpty { reader.report(entry, message, write: text) }
    }
  }

  /// An array of strings that are not empty, of which `value` makes the value.
  fileprivate static func array(
    _ text: @escaping @Sendable (Value) -> String,
    value: @escaping @Sendable ([String], ConfigurationEntry, inout ConfigurationReader) -> Value
  ) -> KeyType {
    KeyType(text) { entry, reader in
      guard case .array(let elements) = entry.node.value else {
        return reader.wrong(entry, "must be an array of strings, not \(entry.node.kind)", write: "[\"…\"]")
      }
      var (texts, place) = ([] as [String], entry)
      for element in elements {
        place.node = element
        if case .string(let text) = element.value, !text.isEmpty {
          texts.append(text)
        } else {
          reader.report(place, "contains something that is not a string, or an empty string", write: "[\"…\"]")
        }
      }
      return value(texts, entry, &reader)
    }
  }
}

/// A value as hopd.toml writes strings.
private func quoted(_ value: some Any) -> String { "\"\(value)\"" }

extension KeyType<Bool> {
  static let boolean = KeyType(\.description) { entry, reader in
    if case .boolean(let flag) = entry.node.value { return flag }
    return reader.wrong(
      entry, "must be true or false, not \(entry.node.kind)", write: "\(entry.standard), without quotes")
  }
}

extension KeyType where Value: FixedWidthInteger & Sendable {
  static func integer(_ range: ClosedRange<Value>) -> KeyType {
    KeyType(\.description) { entry, reader in
      guard case .integer(let number) = entry.node.value else {
        return reader.wrong(entry, "must be an integer, not \(entry.node.kind)")
      }
      if let number = Value(exactly: number), range.contains(number) { return number }
      return reader.wrong(entry, "must be between \(range.lowerBound) and \(range.upperBound)")
    }
  }
}

extension KeyType<Int64> {
  /// A size in bytes.
  static func size(_ range: ClosedRange<Int64>) -> KeyType {
    KeyType {
      quoted(Quantity.text($0))
    } read: { entry, reader in
      let example = "\(entry.standard) (units: B, KiB, MiB, GiB, TiB)"
      guard case .string(let text) = entry.node.value, let number = Quantity.bytes(text) else {
        return reader.wrong(entry, "is not a size", write: example)
      }
      if range.contains(number) { return number }
      let bounds = "\(Quantity.text(range.lowerBound)) and \(Quantity.text(range.upperBound))"
      return reader.wrong(entry, "must be between \(bounds)", write: example)
    }
  }
}

extension KeyType<Duration> {
  static func duration(_ range: ClosedRange<Duration>) -> KeyType {
    KeyType {
      quoted(Quantity.text($0))
    } read: { entry, reader in
      let example = "\(entry.standard) (units: ms, s, min, h, d, w)"
      guard case .string(let text) = entry.node.value, let time = Quantity.duration(text) else {
        return reader.wrong(entry, "is not a duration", write: example)
      }
      if range.contains(time) { return time }
      return reader.wrong(entry, "must be between \(range.lowerBound) and \(range.upperBound)", write: example)
    }
  }
}

extension KeyType where Value: RawRepresentable<String> & CaseIterable & SendableMetatype {
  static var choice: KeyType { choice(of: []) }

  /// A choice; its message names more texts, which `or` reads.
  static func choice(of more: [String]) -> KeyType {
    let names = (more + Value.allCases.map(\.rawValue)).joined(separator: ", ")
    return KeyType {
      quoted($0.rawValue)
    } read: { entry, reader in
      if case .string(let text) = entry.node.value, let choice = Value(rawValue: text) { return choice }
      return reader.wrong(entry, "must be one of \(names)")
    }
  }
}

extension KeyType<String> {
  static let string = KeyType(quoted) { entry, reader in
    if case .string(let text) = entry.node.value { return text }
    return reader.wrong(entry, "must be a string, not \(entry.node.kind)")
  }

  /// The name of a version.
  static let version = string.checked { name, entry, reader in
    if name.isEmpty { reader.report(entry, "is empty", hint: "write \"current\" or the name of a version") }
  }
}

extension KeyType<FilePath> {
  /// An absolute path.
  static let path = KeyType(quoted) { entry, reader in
    if case .string(let text) = entry.node.value { return reader.path(text, entry) }
    return reader.wrong(entry, "must be a string, not \(entry.node.kind)", write: "\"/srv/stores\"")
  }
}

extension KeyType<[FilePath]> {
  static let paths = array(\.description) { texts, entry, reader in texts.map { reader.path($0, entry) } }
}

extension KeyType<[String]> {
  static let strings = array(\.description) { texts, _, _ in texts }

  /// A program and its arguments; empty for none. A plain name is looked up in PATH; a relative path would depend on
  /// the working directory.
  static let command = strings.checked { command, entry, reader in
    if command.contains(where: { $0.utf8.contains(0) }) { reader.report(entry, "contains a NUL", write: "[\"…\"]") }
    guard let program = command.first, program.contains("/"), !FilePath(program).isAbsolute else { return }
    reader.report(entry, "must start with an absolute path or a plain name", write: "[\"/usr/local/bin/NAME\"]")
  }

  /// Patterns for file names. They are compared with names, so a pattern with a slash would never match.
  static let patterns = strings.checked { patterns, entry, reader in
    guard let slashed = patterns.first(where: { $0.utf8.contains(UInt8(ascii: "/")) }) else { return }
    reader.report(
      entry, "\"\(slashed)\" has a slash; patterns are compared with file names",
      hint: "write the part after the slash, and recursive = true for the directories below")
  }

  /// Relationships as "Entity.relationship".
  static let relationships = strings.checked { names, entry, reader in
    for name in names
    where name.split(separator: ".").count != 2 || name.utf8.count(where: { $0 == UInt8(ascii: ".") }) != 1 {
      reader.report(
        entry, "\"\(name)\" is not a relationship of an entity", write: "[\"Entity.relationship\"]")
    }
  }
}

extension KeyType<[String: String]> {
  /// Renamings of entities and properties.
  static let renames = array(\.keys.description) { texts, entry, reader in
    var renames: [String: String] = [:]
    for text in texts {
      if let (old, new) = RenameRules.parse(text) {
        renames[old] = new
      } else {
        reader.report(
          entry, "\"\(text)\" is not a renaming", write: "[\"Entity.old=new\"], or \"Old=New\" for an entity")
      }
    }
    return renames
  }
}

extension KeyType<InvalidRowsRules> {
  /// One rule for all entities, or a table of entities in which "*" means all others.
  static let invalidRows = KeyType {
    quoted($0.standard.rawValue)
  } read: { entry, reader in
    let rule = KeyType<InvalidRowsRule>.choice
    guard case .table = entry.node.value else {
      return rule.read(entry, &reader).map { InvalidRowsRules(standard: $0) }
    }
    var rules: [String: InvalidRowsRule] = [:]
    for var inner in entry.all {
      inner.standard = entry.standard
      rules[inner.name] = rule.read(inner, &reader)
    }
    return InvalidRowsRules(standard: rules.removeValue(forKey: "*") ?? .fail, byEntity: rules)
  }
}
