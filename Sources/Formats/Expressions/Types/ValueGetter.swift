// The getters of Foundation's classes that KVC allows at the end of a key path: `$source.price.stringValue`
// (docs/formats/expressions.md, "Getters").

import ManagedObjectModel

/// A getter of NSString, NSNumber, NSDate, NSURL, NSUUID or NSData, by its name.
package enum ValueGetter: String, Sendable, Hashable, CaseIterable {
  case itself = "self"
  case description
  case stringValue
  case intValue
  case integerValue
  case longValue
  case longLongValue
  case shortValue
  case charValue
  case unsignedIntValue
  case unsignedIntegerValue
  case unsignedLongValue
  case unsignedLongLongValue
  case unsignedShortValue
  case unsignedCharValue
  case floatValue
  case doubleValue
  case boolValue
  case length
  case uppercaseString
  case lowercaseString
  case absoluteString
  case relativeString
  case uuidString = "UUIDString"
  case timeIntervalSinceReferenceDate
  case timeIntervalSince1970

  /// Returns the type of the getter; nil if values of that type have no such getter.
  package func type(of value: AttributeType) -> AttributeType? {
    let kind = value.kind
    switch (self, kind) {
    case (_, .transformable), (_, .other): return nil
    case (.itself, _): return value
    case (.description, .binary): return nil
    case (.description, _), (.stringValue, .number): return .string
    case (.length, .string), (.length, .binary): return .integer64
    case (.uppercaseString, .string), (.lowercaseString, .string): return .string
    case (.absoluteString, .uri), (.relativeString, .uri), (.uuidString, .uuid): return .string
    case (.timeIntervalSinceReferenceDate, .date), (.timeIntervalSince1970, .date): return .double
    case (.floatValue, .number), (.floatValue, .string): return .float
    case (.doubleValue, .number), (.doubleValue, .string): return .double
    case (.boolValue, .number), (.boolValue, .string): return .boolean
    case (.intValue, .string), (.integerValue, .string), (.longLongValue, .string), (_, .number):
      return integers.map(\.type)
    default: return nil
    }
  }

  /// The range of a getter of integers, and the type that holds it; nil for other getters.
  package var integers: (range: ClosedRange<Int64>, type: AttributeType)? {
    switch self {
    case .intValue: (Int64(Int32.min)...Int64(Int32.max), .integer32)
    case .integerValue, .longValue, .longLongValue: (.min ... .max, .integer64)
    case .shortValue: (Int64(Int16.min)...Int64(Int16.max), .integer16)
    case .charValue: (Int64(Int8.min)...Int64(Int8.max), .integer16)
    case .unsignedIntValue: (0...Int64(UInt32.max), .integer64)
    case .unsignedIntegerValue, .unsignedLongValue, .unsignedLongLongValue: (0...Int64.max, .integer64)
    case .unsignedShortValue: (0...Int64(UInt16.max), .integer32)
    case .unsignedCharValue: (0...Int64(UInt8.max), .integer16)
    default: nil
    }
  }

  /// Whether the getter of that name writes a number as text.
  static func isWritten(_ name: String) -> Bool { name == stringValue.rawValue || name == description.rawValue }

  /// Returns the names of a type's getters, for messages.
  static func names(of type: AttributeType) -> String {
    allCases.filter { $0.type(of: type) != nil }.map(\.rawValue).joined(separator: ", ")
  }
}
