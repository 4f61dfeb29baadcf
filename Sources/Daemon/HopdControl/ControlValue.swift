// JSON values, and the messages made of them. The length and depth of a client's message are checked before it is
// parsed.

import FoundationEssentials

/// Any JSON value.
package enum ControlValue: Sendable, Hashable, Codable {
  case null
  case boolean(Bool)
  case integer(Int64)
  case number(Double)
  case string(String)
  case array([ControlValue])
  case object([String: ControlValue])

  package init(from decoder: any Decoder) throws {
    let value = try decoder.singleValueContainer()
    if value.decodeNil() {
      self = .null
    } else if let found = try? value.decode(Bool.self) {
      self = .boolean(found)
    } else if let found = try? value.decode(Int64.self) {
      self = .integer(found)
    } else if let found = try? value.decode(Double.self) {
      self = .number(found)
    } else if let found = try? value.decode(String.self) {
      self = .string(found)
    } else if let found = try? value.decode([ControlValue].self) {
      self = .array(found)
    } else {
      self = .object(try value.decode([String: ControlValue].self))
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var value = encoder.singleValueContainer()
    switch self {
    case .null: try value.encodeNil()
    case .boolean(let content): try value.encode(content)
    case .integer(let content): try value.encode(content)
    case .number(let content): try value.encode(content.isFinite ? content : 0)
    case .string(let content): try value.encode(content)
    case .array(let content): try value.encode(content)
    case .object(let content): try value.encode(content)
    }
  }

  /// A member of an object; nil if it is missing or null.
  package subscript(_ name: String) -> ControlValue? {
    guard case .object(let members) = self, let found = members[name], found != .null else { return nil }
    return found
  }

  /// The text; nil for anything else.
  package var text: String? { if case .string(let text) = self { text } else { nil } }
  /// The Boolean; nil for anything else.
  package var truth: Bool? { if case .boolean(let truth) = self { truth } else { nil } }
  /// The elements; nil for anything else.
  package var list: [ControlValue]? { if case .array(let list) = self { list } else { nil } }
  /// The whole number; nil for anything else.
  package var whole: Int64? {
    switch self {
    case .integer(let number): number
    case .number(let number): Int64(exactly: number)
    default: nil
    }
  }
  /// The number; nil for anything else.
  package var real: Double? {
    switch self {
    case .integer(let number): Double(number)
    case .number(let number): number
    default: nil
    }
  }

  /// A list of texts.
  package static func strings(_ texts: some Sequence<String>) -> ControlValue { .array(texts.map { .string($0) }) }
  /// A text, or null.
  package static func optional(_ text: String?) -> ControlValue { text.map { .string($0) } ?? .null }
  /// A whole number, or null.
  package static func optional(_ number: Int64?) -> ControlValue { number.map { .integer($0) } ?? .null }
  /// A number, or null.
  package static func optional(_ number: Double?) -> ControlValue { number.map { .number($0) } ?? .null }
}

/// A client's call.
package struct ControlCall: Sendable, Hashable {
  /// Interface and method, such as `io.hopd.Control.GetStatus`.
  package var method: String
  /// Its parameters; an object.
  package var parameters: ControlValue
  /// Whether several replies may follow.
  package var more: Bool
  /// Whether the client wants no reply.
  package var oneway: Bool

  /// Creates a call.
  package init(method: String, parameters: ControlValue = .object([:]), more: Bool = false, oneway: Bool = false) {
    self.method = method
    self.parameters = parameters
    self.more = more
    self.oneway = oneway
  }

  /// Parses a message without its NUL; nil if it is invalid.
  package init?(_ bytes: [UInt8]) {
    guard let message = ControlMessage.parse(bytes), case .object = message, let method = message["method"]?.text else {
      return nil
    }
    let parameters = message["parameters"] ?? .object([:])
    guard case .object = parameters else { return nil }
    self.init(
      method: method, parameters: parameters, more: message["more"]?.truth ?? false,
      oneway: message["oneway"]?.truth ?? false)
  }

  /// The message, with its NUL.
  package var bytes: [UInt8] {
    var members: [String: ControlValue] = ["method": .string(method), "parameters": parameters]
    if more { members["more"] = .boolean(true) }
    if oneway { members["oneway"] = .boolean(true) }
    return ControlMessage.bytes(.object(members))
  }
}

/// The service's reply.
package struct ControlReply: Sendable, Hashable {
  /// The result, or the parameters of the error; an object.
  package var parameters: ControlValue
  /// Name of the error; nil if the call succeeded.
  package var error: String?
  /// Whether another reply follows.
  package var continues: Bool

  /// Creates a reply.
  package init(_ parameters: ControlValue, error: String? = nil, continues: Bool = false) {
    self.parameters = parameters
    self.error = error
    self.continues = continues
  }

  /// Parses a message without its NUL; nil if it is invalid.
  package init?(_ bytes: [UInt8]) {
    guard let message = ControlMessage.parse(bytes), case .object = message else { return nil }
    self.init(
      message["parameters"] ?? .object([:]), error: message["error"]?.text,
      continues: message["continues"]?.truth ?? false)
  }

  /// The message, with its NUL.
  package var bytes: [UInt8] {
    var members: [String: ControlValue] = ["parameters": parameters]
    if let error { members["error"] = .string(error) }
    if continues { members["continues"] = .boolean(true) }
    return ControlMessage.bytes(.object(members))
  }
}

/// Encodes and decodes messages.
enum ControlMessage {
  /// Deepest nesting of arrays and objects: parsing recurses, and a thread's stack is small.
  static let maxDepth = 16

  static func bytes(_ value: ControlValue) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let text = (try? encoder.encode(value)).map { [UInt8]($0) } ?? Array("{}".utf8)
    return text + [0]
  }

  static func parse(_ bytes: [UInt8]) -> ControlValue? {
    guard isShallow(bytes) else { return nil }
    return try? JSONDecoder().decode(ControlValue.self, from: Data(bytes))
  }

  /// Whether the nesting is at most `maxDepth`.
  static func isShallow(_ bytes: [UInt8]) -> Bool {
    var depth = 0
    var (isText, isEscaped) = (false, false)
    for byte in bytes {
      if isText {
        if isEscaped {
          isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
          isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
          isText = false
        }
        continue
      }
      switch byte {
      case UInt8(ascii: "\""): isText = true
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        depth += 1
        if depth > maxDepth { return false }
      case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
      default: break
      }
    }
    return true
  }
}
