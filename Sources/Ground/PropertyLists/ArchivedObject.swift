// One object of a keyed archive: its class, its fields by name, and its contents if it is one of Foundation's
// collections. The caller states the type of a field; a value of another type is an error that names object and field.

import Diagnostics

/// An object of a keyed archive. Copies are cheap; two are the same object if their numbers are equal.
package struct ArchivedObject: Sendable {
  let archive: KeyedArchive
  /// Its number in the archive, by which a reader recognizes an object that it has already converted.
  package let number: Int
  /// Its class as archived, with the module for Swift classes.
  package let className: String
  /// Names of its class and superclasses.
  let lineage: [String]
  let fields: [String: PropertyListValue]

  /// Whether it is of that class or of a subclass.
  package func isKind(of name: String) -> Bool { lineage.contains(name) }

  /// Whether the object has that field; a null field counts.
  package func has(_ field: String) -> Bool { fields[field] != nil }

  // MARK: Fields

  /// The value of a field; null where it is absent.
  package func value(_ field: String) throws(HopdError) -> ArchivedValue {
    guard let value = fields[field] else { return .null }
    return try archive.resolve(value, of: self, key: field)
  }

  /// The text of a field; nil where it is absent or null.
  package func string(_ field: String) throws(HopdError) -> String? {
    try typed(value(field), field, "text", \.string)
  }

  /// The text of a field; nil where it is absent, null or empty.
  package func text(_ field: String) throws(HopdError) -> String? {
    try string(field).flatMap { $0.isEmpty ? nil : $0 }
  }

  /// The integer of a field; nil where it is absent or null.
  package func integer(_ field: String) throws(HopdError) -> Int64? {
    try typed(value(field), field, "an integer", \.integer)
  }

  /// The boolean of a field; false where it is absent or null. A number other than 0 is true.
  package func boolean(_ field: String) throws(HopdError) -> Bool {
    try typed(value(field), field, "a boolean", \.truth) ?? false
  }

  /// The object of a field; nil where it is absent or null.
  package func object(_ field: String) throws(HopdError) -> ArchivedObject? {
    try typed(value(field), field, "an object", \.object)
  }

  /// The elements of the array or set in a field; empty where it is absent or null.
  package func elements(_ field: String) throws(HopdError) -> [ArchivedValue] {
    try object(field)?.elements() ?? []
  }

  /// The entries of the dictionary in a field; empty where it is absent or null.
  package func entries(_ field: String) throws(HopdError) -> [(key: ArchivedValue, value: ArchivedValue)] {
    try object(field)?.entries() ?? []
  }

  /// Converts a value of the object's field `field` with `read`; nil where it is absent or null.
  package func typed<Value>(
    _ value: ArchivedValue?, _ field: String, _ wanted: String, _ read: (ArchivedValue) -> Value?
  ) throws(HopdError) -> Value? {
    guard let value, !value.isNull else { return nil }
    guard let found = read(value) else { throw archive.damaged("\(field) is \(value.kind), not \(wanted)", self) }
    return found
  }

  // MARK: Collections

  /// Whether it is a dictionary of any kind.
  package var isDictionary: Bool { isKind(of: "NSDictionary") || isKind(of: "NSKnownKeysDictionary1") }

  /// Whether it is an array or a set of any kind.
  package var isList: Bool { ["NSArray", "NSSet", "NSOrderedSet"].contains { isKind(of: $0) } }

  /// The elements of an array or set, in the order of the archive.
  package func elements() throws(HopdError) -> [ArchivedValue] {
    guard isList else { throw archive.damaged("it is neither an array nor a set", self) }
    return try references("NS.objects")
  }

  /// The entries of a dictionary, in the order of the archive.
  ///
  /// NSKnownKeysDictionary1 holds the values of keys that another object lists; its `emptyToken` as value means that
  /// the key is absent (docs/formats/model-files.md, "Model cache archives").
  package func entries() throws(HopdError) -> [(key: ArchivedValue, value: ArchivedValue)] {
    let hasKnownKeys = isKind(of: "NSKnownKeysDictionary1")
    let (keys, values): ([ArchivedValue], [ArchivedValue])
    if hasKnownKeys {
      guard let mapping = try object("searchMapping"), mapping.isKind(of: "NSKnownKeysMappingStrategy1") else {
        throw archive.damaged("it has no list of keys", self)
      }
      (keys, values) = (try mapping.elements("keys"), try elements("values"))
    } else {
      guard isKind(of: "NSDictionary") else { throw archive.damaged("it is not a dictionary", self) }
      (keys, values) = (try references("NS.keys"), try references("NS.objects"))
    }
    guard keys.count == values.count else {
      throw archive.damaged("it has \(keys.count) keys and \(values.count) values", self)
    }
    let pairs = zip(keys, values).map { (key: $0, value: $1) }
    guard hasKnownKeys, let empty = try string("emptyToken") else { return pairs }
    return pairs.filter { $0.value.string != empty }
  }

  private func references(_ field: String) throws(HopdError) -> [ArchivedValue] {
    guard let list = fields[field]?.array else { throw archive.damaged("\(field) is missing or no list", self) }
    var values: [ArchivedValue] = []
    values.reserveCapacity(list.count)
    for element in list { values.append(try archive.resolve(element, of: self, key: field)) }
    return values
  }

  // MARK: Plain values and errors

  /// The value of an object that only wraps text, bytes, a date or nothing; nil for any other object.
  func plainValue() throws(HopdError) -> ArchivedValue? {
    switch className {
    case "NSNull": return .null
    case "NSString", "NSMutableString":
      guard let text = fields["NS.string"]?.string else { throw archive.damaged("it has no text", self) }
      return .string(text)
    case "NSData", "NSMutableData":
      guard let content = fields["NS.data"] else { throw archive.damaged("it has no bytes", self) }
      // One step only, to a bare value: a wrapper never contains another wrapper.
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

  /// The error for an object of a class unknown to hopd; `purpose` is what the object was needed for.
  package func unknownClass(for purpose: String) -> HopdError {
    HopdError(
      .unknownArchiveClass,
      "object \(number) of the archive is of class \(className), which is unknown as \(purpose)", at: archive.place)
  }

  /// The error for an object whose content makes no sense.
  package func damaged(_ what: String) -> HopdError { archive.damaged(what, self) }
}
