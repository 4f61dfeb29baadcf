// FUNCTION(…) in texts and archives: two methods of the migration manager, and any method of the policy. Also the
// constants that are written as a CAST of a literal, because the language has no literal for them.

import Diagnostics
import ManagedObjectModel

/// Makes nodes of method calls.
enum MethodCall {
  /// NSString's method, the one call on a value: the same as `concat:`.
  static let appendSelector = "stringByAppendingString:"

  /// The reason why a call is not valid or not supported.
  struct Problem: Error {
    let message: String
    var hint: String?
    var isUnsupported = true
  }

  /// Returns the node for a call of a variable's method.
  static func node(
    receiver: String, selector: String, arguments: [ExpressionNode]
  ) throws(Problem) -> ExpressionNode {
    let colons = selector.utf8.count { $0 == UInt8(ascii: ":") }
    switch receiver {
    case "manager":
      guard [InstanceLookup.entityMappingSelector, InstanceLookup.sourceRelationshipSelector].contains(selector) else {
        throw Problem(
          message: "the method \(selector) of $manager is not supported",
          hint: "use \(InstanceLookup.entityMappingSelector) or \(InstanceLookup.sourceRelationshipSelector)")
      }
      guard arguments.count == 2, case .constant(.string(let name)) = arguments[0],
        let lookup = InstanceLookup(selector: selector, name: name)
      else {
        throw Problem(
          message: "\(selector) takes a name in quotes and the source objects", isUnsupported: false)
      }
      return .destinationInstances(lookup, arguments[1])
    case "entityPolicy":
      guard !selector.isEmpty, selector.unicodeScalars.allSatisfy({ KeyPathSteps.isNamePart($0) || $0 == ":" }) else {
        throw Problem(message: "the method's name is not a selector", isUnsupported: false)
      }
      guard colons == arguments.count else {
        throw Problem(
          message: "the method \(selector) takes \(colons) arguments, not \(arguments.count)",
          hint: "write one colon for each argument", isUnsupported: false)
      }
      return .policyMethod(selector: selector, arguments)
    default: throw Problem(message: "methods of $\(receiver) are not supported")
    }
  }
}

/// Constants written as `CAST("…", "type")`.
enum ConstantLiteral {
  /// Returns the constant of a literal text in that type; nil if it is not a constant, or the CAST is a conversion.
  static func value(_ text: String, type: String) -> ConstantValue? {
    switch type {
    case "NSDecimalNumber": isDecimal(text) ? .decimal(text) : nil
    case "NSUUID": UUIDText.bytes(of: text).map { .uuid($0) }
    case "NSData": [UInt8](hexadecimal: text).map { .data($0) }
    default: nil
    }
  }

  /// Whether the text is digits with at most one point between them, and an optional minus.
  static func isDecimal(_ text: String) -> Bool {
    let digits = text.utf8.first == UInt8(ascii: "-") ? text.utf8.dropFirst() : text.utf8[...]
    let parts = digits.split(separator: UInt8(ascii: "."), maxSplits: 2, omittingEmptySubsequences: false)
    return (1...2).contains(parts.count)
      && parts.allSatisfy { !$0.isEmpty && $0.allSatisfy { (0x30...0x39).contains($0) } }
  }
}
