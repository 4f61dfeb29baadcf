// What is wrong with a message of the policy protocol. This target depends on no other target (a policy's author links
// nothing else of the project), so it has an error of its own, which the host converts to a HopdError.

/// A message that cannot be decoded, and the position of the fault.
public struct PolicyWireError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What is wrong, without any value of the message.
  public var message: String
  /// The byte at which the fault was noticed, counted from 0 in the message's JSON.
  public var offset: Int?

  /// Describes a fault.
  public init(_ message: String, offset: Int? = nil) {
    self.message = message
    self.offset = offset
  }

  public var description: String { offset.map { "\(message) (byte \($0) of the message)" } ?? message }
}
