// An NSKeyedArchiver property list as a table of objects that refer to each other by number: the form of compiled
// models, compiled mapping models and a store's model cache. The graph may be cyclic and is never unfolded here: each
// object is read on request, one step at a time, so no archive can cause recursion or growth.

import Diagnostics

extension HopdError.Code {
  /// A keyed archive breaks its format.
  package static let damagedArchive = HopdError.Code("archive-damaged", exit: .dataError)
  /// A keyed archive holds an object of an unknown class where the class matters.
  package static let unknownArchiveClass = HopdError.Code("archive-class-unknown", exit: .dataError)
}

extension PropertyListLimits {
  /// Limits of a keyed archive: a large compiled model has some hundred kilobytes and a flat list of many small
  /// objects.
  package static let archive = PropertyListLimits(
    maximumBytes: 8 << 20, maximumDepth: 16, maximumValues: 300_000, maximumValueBytes: 4 << 20)
}

/// A keyed archive, binary or XML.
package struct KeyedArchive: Sendable {
  /// The name of a class with its superclasses, itself first.
  private struct Class: Sendable {
    let name: String
    let lineage: [String]
  }

  private enum Entry: Sendable {
    case value(ArchivedValue)
    /// An object of a class: the class's number and the fields.
    case object(classNumber: Int, fields: [String: PropertyListValue])
    case classDescription(Class)
    /// A bare container, which archivers do not write: an error only where it is read.
    case container
  }

  /// The origin of the archive, for every error.
  package let place: Place
  private let entries: [Entry]
  private let top: [String: PropertyListValue]

  /// Decodes the archive in `bytes`; throws if they are not a keyed archive. The content of its objects is checked on
  /// request.
  package static func decode(
    _ bytes: [UInt8], limits: PropertyListLimits = .archive, at place: Place = Place()
  ) throws(HopdError) -> KeyedArchive {
    try KeyedArchive(try PropertyList.decode(bytes, limits: limits, at: place), at: place)
  }

  /// Creates the archive from its property list.
  package init(_ list: PropertyListValue, at place: Place = Place()) throws(HopdError) {
    guard let list = list.dictionary, let objects = list["$objects"]?.array, let top = list["$top"]?.dictionary else {
      throw HopdError(.damagedArchive, "the property list is not a keyed archive: it lacks $objects or $top", at: place)
    }
    // Every archive seen has NSKeyedArchiver and 100000; a later version could have other rules.
    if let archiver = list["$archiver"]?.string, archiver != "NSKeyedArchiver" {
      throw HopdError(.damagedArchive, "the archive was created by “\(archiver)”, not by NSKeyedArchiver", at: place)
    }
    if let version = list["$version"]?.integer, version != 100_000 {
      throw HopdError(.damagedArchive, "the keyed archive has version \(version); 100000 is known", at: place)
    }
    self.place = place
    self.top = top
    var entries: [Entry] = []
    entries.reserveCapacity(objects.count)
    for object in objects { entries.append(Self.entry(object, isFirst: entries.isEmpty)) }
    self.entries = entries
  }

  private static func entry(_ object: PropertyListValue, isFirst: Bool) -> Entry {
    switch object {
    case .string(let text): .value(isFirst && text == "$null" ? .null : .string(text))
    case .integer(let number): .value(.integer(number))
    case .real(let number): .value(.real(number))
    case .boolean(let flag): .value(.boolean(flag))
    case .date(let seconds): .value(.date(seconds))
    case .data(let content): .value(.data(content))
    case .array, .uid: .container
    case .dictionary(let fields):
      if case .uid(let number)? = fields["$class"], let classNumber = Int(exactly: number) {
        .object(classNumber: classNumber, fields: fields)
      } else if let name = fields["$classname"]?.string {
        .classDescription(
          Class(name: name, lineage: [name] + (fields["$classes"]?.array ?? []).prefix(32).compactMap(\.string)))
      } else {
        .container
      }
    }
  }

  /// Returns the top value, `root`: an object, or a bare value.
  package func rootValue(_ key: String = "root") throws(HopdError) -> ArchivedValue {
    guard let entry = top[key] else {
      throw HopdError(.damagedArchive, "the keyed archive has nothing called “\(key)” on top", at: place)
    }
    return try resolve(entry, of: nil, key: key)
  }

  /// Returns the top object, `root`; throws if there is none.
  package func root(_ key: String = "root") throws(HopdError) -> ArchivedObject {
    guard let entry = top[key], case .object(let object) = try resolve(entry, of: nil, key: key) else {
      throw HopdError(.damagedArchive, "the keyed archive has no object “\(key)” on top", at: place)
    }
    return object
  }

  /// Resolves a value of the list: returns the value itself, or the object that it refers to.
  func resolve(_ value: PropertyListValue, of owner: ArchivedObject?, key: String) throws(HopdError) -> ArchivedValue {
    switch value {
    case .string(let text): return .string(text)
    case .integer(let number): return .integer(number)
    case .real(let number): return .real(number)
    case .boolean(let flag): return .boolean(flag)
    case .date(let seconds): return .date(seconds)
    case .data(let content): return .data(content)
    case .array, .dictionary: throw damaged("\(key) is a bare container", owner)
    case .uid(let reference):
      guard let number = Int(exactly: reference), entries.indices.contains(number) else {
        throw damaged("\(key) refers to object \(reference) of \(entries.count)", owner)
      }
      switch entries[number] {
      case .value(let value): return value
      case .classDescription, .container:
        throw damaged("\(key) refers to object \(number), which is not an object", owner)
      case .object(let classNumber, let fields):
        guard entries.indices.contains(classNumber), case .classDescription(let description) = entries[classNumber]
        else { throw damaged("the class of object \(number) is missing", owner) }
        let object = ArchivedObject(
          archive: self, number: number, className: description.name, lineage: description.lineage, fields: fields)
        return try object.plainValue() ?? .object(object)
      }
    }
  }

  /// The error for damage in the given object.
  func damaged(_ what: String, _ object: ArchivedObject?) -> HopdError {
    let subject = object.map { "object \($0.number), \($0.className): " } ?? ""
    return HopdError(.damagedArchive, "the keyed archive is damaged: \(subject)\(what)", at: place)
  }
}

/// The value of a field of an archived object.
package enum ArchivedValue: Sendable {
  /// `$null`, and NSNull.
  case null
  /// Text, bare or as NSString, NSMutableString.
  case string(String)
  case integer(Int64)
  case real(Double)
  case boolean(Bool)
  /// Seconds since 2001-01-01 00:00 UTC, bare or as NSDate.
  case date(Double)
  /// Bytes, bare or as NSData.
  case data([UInt8])
  /// An object of any other class.
  case object(ArchivedObject)
}

extension ArchivedValue {
  /// The text of a string, or nil.
  package var string: String? { if case .string(let text) = self { text } else { nil } }
  /// The object, or nil.
  package var object: ArchivedObject? { if case .object(let object) = self { object } else { nil } }
  /// Whether the value is null.
  package var isNull: Bool { if case .null = self { true } else { false } }
  /// An integer or a whole real, or nil.
  package var integer: Int64? {
    switch self {
    case .integer(let number): number
    case .real(let number): Int64(exactly: number)
    default: nil
    }
  }
  /// The truth value of a boolean, or of a number (true if it is not 0); otherwise nil.
  package var truth: Bool? {
    switch self {
    case .boolean(let flag): flag
    case .integer(let number): number != 0
    default: nil
    }
  }
  /// The kind of the value, for a message: never the value itself.
  package var kind: String {
    switch self {
    case .null: "nothing"
    case .string: "text"
    case .integer: "an integer"
    case .real: "a real"
    case .boolean: "a boolean"
    case .date: "a date"
    case .data: "bytes"
    case .object(let object): "an object of class \(object.className)"
    }
  }
}
