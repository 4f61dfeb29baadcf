/// An error of a policy: what it did wrong, or could not do. The manager and objects throw it, and policies may throw
/// it.
///
/// The message is written to the journal and to the operator's terminal, so it should contain no values of users.
public struct PolicyError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The message, in one sentence.
  public var message: String

  /// Creates an error with a message.
  public init(_ message: String) { self.message = message }

  public var description: String { message }
}
