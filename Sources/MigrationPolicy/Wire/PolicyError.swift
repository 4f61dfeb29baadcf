/// What a policy did wrong, or could not do; thrown by the manager and by objects, and free for policies to throw.
///
/// The text ends up in the journal and on the operator's terminal, so it should name no user's values.
public struct PolicyError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What happened, in one sentence.
  public var message: String

  /// Makes an error.
  public init(_ message: String) { self.message = message }

  public var description: String { message }
}
