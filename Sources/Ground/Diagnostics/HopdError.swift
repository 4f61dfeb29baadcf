// The one error value of the project. Every stage throws it with a code to branch on, a message for people, the place,
// the cause and the next thing to type; the two programs print it and derive the exit status and the retry from its
// code. An error may be printed anywhere, so it never contains values of users' attributes.

/// What went wrong, where, why, and what to do next.
package struct HopdError: Error, Sendable {
  /// The kind of failure. Programs branch on it, never on the text.
  package var code: Code
  /// What happened, in one sentence without the place.
  package var message: String
  /// Store, file, hop, entity, property and row the message refers to, as far as known.
  package var place: Place
  /// The error below this one, if another part reported it.
  package var cause: (any Error)?
  /// What the reader should do or type next.
  package var hint: String?
  /// The single findings of a refusal that has several reasons: all of them, not only the first.
  package var reasons: [HopdError]

  /// Creates an error; `place`, `cause`, `hint` and `reasons` are optional.
  package init(
    _ code: Code, _ message: String, at place: Place = Place(), cause: (any Error)? = nil, hint: String? = nil,
    reasons: [HopdError] = []
  ) {
    self.code = code
    self.message = message
    self.place = place
    self.cause = cause
    self.hint = hint
    self.reasons = reasons
  }

  /// Returns the same error; parts of its place that are unknown are taken from `place`.
  package func located(_ place: Place) -> HopdError {
    var copy = self
    copy.place = self.place.filled(from: place)
    copy.reasons = reasons.map { $0.located(place) }
    return copy
  }

  /// Returns the same error with `hint`, unless it already has one.
  package func hinted(_ hint: String) -> HopdError {
    var copy = self
    copy.hint = self.hint ?? hint
    return copy
  }
}

extension HopdError {
  /// How serious it is for the reader.
  package enum Severity: String, Sendable, Hashable {
    /// Nothing is done: the work is refused, or failed.
    case error
    /// The work is done; the reader should know what it cost, or what is not certain.
    case warning
    /// The work is done, and nothing is lost; the reader may want to know how.
    case note
  }

  /// A kind of failure: a stable name, its exit status, and whether a retry can help.
  ///
  /// Each target declares its own codes as static members in an extension.
  package struct Code: Hashable, Sendable, CustomStringConvertible {
    /// Stable, lower case with hyphens, as it appears in JSON and in the journal: "store-busy".
    package let name: String
    /// How serious it is.
    package let severity: Severity
    /// Exit status of a program that ends because of it; `.success` if it ends no program.
    package let exit: ExitStatus
    /// Whether a later attempt can succeed without a change by the user.
    package let isRetryable: Bool

    /// Declares the code of an error; `exit` is any status but `.success`.
    package init(_ name: String, exit: ExitStatus, isRetryable: Bool = false) {
      self.name = name
      severity = .error
      self.exit = exit
      self.isRetryable = isRetryable
    }

    /// Declares the code of a warning or a note, which ends no program.
    package init(_ name: String, severity: Severity) {
      self.name = name
      self.severity = severity
      exit = .success
      isRetryable = false
    }

    package var description: String { name }

    /// A bug in hopd: an assumption did not hold. The store is untouched.
    package static let internalError = Code("internal-error", exit: .software)
    /// Stopped on request before the end; the next run continues.
    package static let interrupted = Code("interrupted", exit: .temporaryFailure, isRetryable: true)
    /// The disk or the file system refused: no space.
    package static let noSpace = Code("no-space", exit: .temporaryFailure, isRetryable: true)
    /// Missing permissions on a file or directory.
    package static let noPermission = Code("no-permission", exit: .noPermission)
    /// A read, write or sync failed.
    package static let inputOutput = Code("io-error", exit: .inputOutput, isRetryable: true)
    /// A named file or directory does not exist.
    package static let notFound = Code("not-found", exit: .noInput)
    /// The command line requests something impossible or not yet supported.
    package static let usage = Code("usage", exit: .usage)
  }
}

extension HopdError {
  /// The hint for a damaged store.
  package static let damageHint =
    "restore a backup: with `hopctl restore` if `hopctl backups STORE` lists one, or one of your own"
}

extension HopdError: CustomStringConvertible {
  /// Place and message in one line, whatever names of models and stores are in it.
  package var headline: String {
    let text = message.printableLine
    return place.isEmpty ? text : "\(place): \(text)"
  }

  /// Several lines: message and place, each reason, the cause, the hint. Fit for a terminal and for MESSAGE=.
  package var description: String {
    var lines = [headline]
    for reason in reasons {
      lines.append("  - " + reason.description.replacingNewlines(with: "\n    "))
    }
    // The error of a system call has the text of its cause in its message.
    if let cause, !message.contains("\(cause)") {
      // The cause may be an error with lines of its own, and never begins one of hopd's.
      let text = "\(cause)".clipped().escapingControls(keepingNewlines: true)
      lines.append("  because: " + text.replacingNewlines(with: "\n    "))
    }
    if let hint {
      lines.append("  hint: \(hint.printableHint)")
    }
    return lines.joined(separator: "\n")
  }
}

extension String {
  fileprivate func replacingNewlines(with replacement: String) -> String {
    split(separator: "\n", omittingEmptySubsequences: false).joined(separator: replacement)
  }
}
