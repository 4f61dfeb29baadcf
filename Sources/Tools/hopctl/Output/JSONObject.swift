// The JSON values from which commands build their `--json` output. Keys are a contract: new ones may be added, none is
// renamed.

import Diagnostics
import FoundationEssentials
import SystemPackage

/// A value that a `JSONObject` may hold. A path or an enum may not: it would be encoded in Swift's own form.
protocol JSONValue: Encodable {}

extension Bool: JSONValue {}
extension Int: JSONValue {}
extension Int32: JSONValue {}
extension Int64: JSONValue {}
extension UInt64: JSONValue {}
extension Double: JSONValue {}
extension String: JSONValue {}
extension Array: JSONValue where Element: JSONValue {}
extension Dictionary: JSONValue where Key == String, Value: JSONValue {}

/// An object of a command's output. A key whose value is nil is printed with null.
struct JSONObject: JSONValue, ExpressibleByDictionaryLiteral {
  private struct Member: Encodable {
    let value: (any JSONValue)?

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      if let value { try container.encode(value) } else { try container.encodeNil() }
    }
  }

  private var members: [String: Member]

  /// Creates an object of pairs; if a key occurs twice, the first pair is used.
  init(_ pairs: [(String, (any JSONValue)?)]) {
    members = Dictionary(pairs.map { ($0, Member(value: $1)) }) { first, _ in first }
  }

  init(dictionaryLiteral pairs: (String, (any JSONValue)?)...) { self.init(pairs) }

  /// The object without the keys that have no value.
  var withoutNulls: JSONObject {
    var object = self
    object.members = members.filter { $0.value.value != nil }
    return object
  }

  static func + (left: JSONObject, right: JSONObject) -> JSONObject {
    var sum = left
    sum += right
    return sum
  }

  static func += (left: inout JSONObject, right: JSONObject) { left.members.merge(right.members) { $1 } }

  func encode(to encoder: any Encoder) throws { try members.encode(to: encoder) }
}

/// Values as JSON text: one line, keys sorted.
enum JSONText {
  /// Encodes a value; with `isForReview` over several lines, so that two outputs can be compared.
  static func of(_ value: some Encodable, isForReview: Bool = false) throws(HopdError) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if isForReview { encoder.outputFormatting.insert(.prettyPrinted) }
    do {
      return String(decoding: try encoder.encode(value), as: UTF8.self)
    } catch {
      throw HopdError(.internalError, "a result cannot be written as JSON", cause: error)
    }
  }
}

/// A key that is always encoded, with null if there is no value.
@propertyWrapper
struct OrNull<Value: Encodable>: Encodable {
  let wrappedValue: Value?

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    if let wrappedValue { try container.encode(wrappedValue) } else { try container.encodeNil() }
  }
}

extension HopdError {
  /// An error or a warning; unknown parts of its place are omitted.
  var json: JSONObject {
    let known: JSONObject = [
      "cause": cause.map { "\($0)" }, "store": place.store?.string, "file": place.file?.string, "line": place.line,
      "column": place.column, "key": place.key, "hop": place.hop, "entity": place.entity, "property": place.property,
      "row": place.row, "reasons": reasons.isEmpty ? nil : reasons.map(\.json),
    ]
    return known.withoutNulls + ["code": code.name, "message": message, "hint": hint]
  }
}
