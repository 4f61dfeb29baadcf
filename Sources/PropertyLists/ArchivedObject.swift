// One object of a keyed archive: its class, its fields by name, and its contents where it is one of Foundation's
// collections. Fields are typed by the one who asks; what is of another type is an error that names object and field.

import Diagnostics

/// An object of a keyed archive. Copying is cheap; two are the same object if their numbers are equal.
package struct ArchivedObject: Sendable {
  private let archive: KeyedArchive
  /// Its number in the archive, by which a reader remembers what it has made already.
  package let number: Int
  /// Its class as archived, with the module for Swift classes.
  package let className: String
  private let lineage: [String]
  private let fields: [String: PropertyListValue]

  init(
    archive: KeyedArchive, number: Int, className: String, lineage: [String], fields: [String: PropertyListValue]
  ) {
    self.archive = archive
    self.number = number
    self.className = className
    self.lineage = lineage
    self.fields = fields
  }

  /// Is it of that class or of a subclass?
  package func isKind(of name: String) -> Bool { lineage.contains(name) }

  /// Does the object have that field, also as null?
  package func has(_ field: String) -> Bool { fields[field] != nil }

  // MARK: Fields

  /// The value of a field; null where it is absent.
  package func value(_ field: String) throws(HopdError) -> ArchivedValue {
    guard let value = fields[field] else { return .null }
    return try archive.resolve(value, of: self, key: field)
  }

  /// The text of a field; nil where it is absent or null.
  package func string(_ field: String) throws(HopdError) -> String? {
    let value = try value(field)
    guard !value.isNull else { return nil }
    guard let text = value.string else { throw wrong(field, value, "text") }
    return text
  }

  /// The integer of a field; nil where it is absent or null.
  package func integer(_ field: String) throws(HopdError) -> Int64? {
    let value = try value(field)
    guard !value.isNull else { return nil }
    guard let number = value.integer else { throw wrong(field, value, "an integer") }
    return number
  }

  /// The boolean of a field; false where it is absent or null. A number counts by being other than 0.
  package func boolean(_ field: String) throws(HopdError) -> Bool {
    let value = try value(field)
    switch value {
    case .null: return false
    case .boolean(let flag): return flag
    case .integer(let number): return number != 0
    default: throw wrong(field, value, "a boolean")
    }
  }

  /// The object of a field; nil where it is absent or null.
  package func object(_ field: String) throws(HopdError) -> ArchivedObject? {
    let value = try value(field)
    guard !value.isNull else { return nil }
    guard let object = value.object else { throw wrong(field, value, "an object") }
    return object
  }

  /// The elements of the array or set in a field; empty where it is absent or null.
  package func elements(_ field: String) throws(HopdError) -> [ArchivedValue] {
    guard let collection = try object(field) else { return [] }
    return try collection.elements()
  }

  /// The entries of the dictionary in a field; empty where it is absent or null.
  package func entries(_ field: String) throws(HopdError) -> [(key: ArchivedValue, value: ArchivedValue)] {
    guard let dictionary = try object(field) else { return [] }
    return try dictionary.entries()
  }

  // MARK: Collections

  /// Is it a dictionary of any kind?
  package var isDictionary: Bool { isKind(of: "NSDictionary") || isKind(of: "NSKnownKeysDictionary1") }

  /// Is it an array or a set of any kind?
  package var isList: Bool { ["NSArray", "NSSet", "NSOrderedSet"].contains { isKind(of: $0) } }

  /// The elements of an array or set, in the order of the archive.
  package func elements() throws(HopdError) -> [ArchivedValue] {
    guard isList else { throw archive.damaged("it is no array and no set", self) }
    return try references("NS.objects")
  }

  /// The entries of a dictionary, in the order of the archive.
  ///
  /// NSKnownKeysDictionary1 holds the values of keys that are kept in another object; a value that is its `emptyToken`
  /// stands for a key that is not there (docs/formats/model-files.md, "Model cache archives").
  package func entries() throws(HopdError) -> [(key: ArchivedValue, value: ArchivedValue)] {
    if isKind(of: "NSKnownKeysDictionary1") { return try knownKeyEntries() }
    guard isKind(of: "NSDictionary") else { throw archive.damaged("it is no dictionary", self) }
    let keys = try references("NS.keys")
    let values = try references("NS.objects")
    guard keys.count == values.count else {
      throw archive.damaged("it has \(keys.count) keys and \(values.count) values", self)
    }
    return zip(keys, values).map { ($0, $1) }
  }

  private func knownKeyEntries() throws(HopdError) -> [(key: ArchivedValue, value: ArchivedValue)] {
    guard let mapping = try object("searchMapping"), mapping.isKind(of: "NSKnownKeysMappingStrategy1") else {
      throw archive.damaged("it has no list of keys", self)
    }
    let keys = try mapping.elements("keys")
    let values = try elements("values")
    guard keys.count == values.count else {
      throw archive.damaged("it has \(keys.count) keys and \(values.count) values", self)
    }
    let empty = try string("emptyToken")
    return zip(keys, values).compactMap { key, value in
      if let empty, value.string == empty { return nil }
      return (key, value)
    }
  }

  private func references(_ field: String) throws(HopdError) -> [ArchivedValue] {
    guard let list = fields[field]?.array else { throw archive.damaged("\(field) is missing or no list", self) }
    var values: [ArchivedValue] = []
    values.reserveCapacity(list.count)
    for element in list { values.append(try archive.resolve(element, of: self, key: field)) }
    return values
  }

  // MARK: Plain values and errors

  /// The value of an object that only wraps text, bytes, a date or nothing; nil for all others.
  func plainValue() throws(HopdError) -> ArchivedValue? {
    switch className {
    case "NSNull": return .null
    case "NSString", "NSMutableString":
      guard let text = fields["NS.string"]?.string else { throw archive.damaged("it has no text", self) }
      return .string(text)
    case "NSData", "NSMutableData":
      guard let content = fields["NS.data"] else { throw archive.damaged("it has no bytes", self) }
      // One step only, to a bare value: a wrapper never leads to another wrapper.
      guard case .data(let bytes) = content else { throw archive.damaged("its value is not data", self) }
      return .data(bytes)
    case "NSDate":
      switch fields["NS.time"] {
      case .real(let seconds)?: return .date(seconds)
      case .integer(let seconds)?: return .date(Double(seconds))
      default: throw archive.damaged("it has no time", self)
      }
    default: return nil
    }
  }

  /// An error for an object of a class that nobody here knows, with what it was wanted for.
  package func unknownClass(for purpose: String) -> HopdError {
    HopdError(
      .unknownArchiveClass,
      "object \(number) of the archive is of class \(className), which is not known as \(purpose)", at: archive.place)
  }

  /// An error for an object whose content does not make sense.
  package func damaged(_ what: String) -> HopdError { archive.damaged(what, self) }

  private func wrong(_ field: String, _ value: ArchivedValue, _ wanted: String) -> HopdError {
    archive.damaged("\(field) is \(value.kind), not \(wanted)", self)
  }
}
