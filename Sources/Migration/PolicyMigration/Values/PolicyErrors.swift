// Errors of policies name the policy, its mapping and the place. A policy's messages are checked like any other input;
// the first invalid value ends the hop.

import Diagnostics
import MappingModel
import MigrationEngine
import MigrationPolicy

extension HopdError.Code {
  /// A policy failed, or requested an invalid change (Core Data 134170; docs/formats/migration-semantics.md, "Error
  /// codes").
  package static let policyFailed = HopdError.Code("policy-failed", exit: .dataError)
}

/// The policy of a conversation; every failure names it.
struct PolicySpeaker: Sendable, Hashable {
  /// The class name in the mapping model.
  let policy: String
  /// The name of the entity mapping.
  let mapping: String
  /// "Model 2 → Model 3".
  let hop: String
  /// The hook of a stage that the program implements; nil for a policy.
  var hook: StageHook? = nil

  private var name: String {
    if let hook { return "program \(policy) of the stage \(hook.stage.title), in \(hook.moment.rawValue)" }
    return "policy \(policy) of entity mapping \(mapping)"
  }

  /// Creates the error for a failure of the policy at a place.
  func failure(
    _ message: String, entity: String? = nil, property: String? = nil, row: Int64? = nil, cause: (any Error)? = nil,
    hint: String? = nil
  ) -> HopdError {
    HopdError(
      .policyFailed, "\(name): \(message) (Core Data 134170)",
      at: Place(hop: hop, entity: entity, property: property, row: row), cause: cause,
      hint: hint
        ?? "correct the \(hook == nil ? "policy" : "program") and migrate again; the store is unchanged")
  }

  /// Creates the error for a failure that concerns an object.
  func failure(_ message: String, at object: PolicyObjectID, property: String? = nil) -> HopdError {
    failure(message, entity: object.entity, property: property, row: object.key)
  }
}

/// The reason why a request is refused, for the author of the policy; the hop continues if the policy does.
struct PolicyRefusal: Error {
  let reason: String
}

extension PolicyValue {
  /// Whether it is an object, or a list that contains one.
  var namesObjects: Bool {
    switch self {
    case .object, .objects: true
    case .list(let values): values.contains(where: \.namesObjects)
    default: false
    }
  }

  /// The kind of the value in words; the value itself belongs to a user and is never shown.
  var kind: String {
    switch self {
    case .null: "nil"
    case .boolean: "a boolean"
    case .integer: "an integer"
    case .double: "a double"
    case .decimal: "a decimal"
    case .string: "a string"
    case .date: "a date"
    case .data: "data"
    case .uuid: "a UUID"
    case .uri: "a URI"
    case .transformable: "transformable bytes"
    case .object: "an object"
    case .objects: "a list of objects"
    case .list: "a list"
    case .variable: "a variable"
    }
  }

  /// The approximate size of the value in a message and in memory, in bytes.
  var weight: Int {
    switch self {
    case .null, .boolean, .integer, .double, .date, .variable: 16
    case .decimal(let text), .string(let text), .uri(let text): 16 &+ text.utf8.count
    case .data(let bytes), .uuid(let bytes), .transformable(let bytes): 16 &+ bytes.count
    case .object: 48
    case .objects(let ids): 48 &* (ids.count &+ 1)
    case .list(let values): values.reduce(16) { $0 &+ $1.weight }
    }
  }
}
