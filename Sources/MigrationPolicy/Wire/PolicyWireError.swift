// What is wrong with a message of the policy protocol. This target stands alone (a policy's author links nothing else
// of the project), so it has an error of its own; the host makes a HopdError of it.

/// A message that cannot be read, and where.
public struct PolicyWireError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What is wrong, without any value of the message.
  public var message: String
  /// Byte of the message's JSON, from 0, where it was noticed.
  public var offset: Int?

  /// Describes a fault.
  public init(_ message: String, offset: Int? = nil) {
    self.message = message
    self.offset = offset
  }

  public var description: String { offset.map { "\(message) (byte \($0) of the message)" } ?? message }
}
