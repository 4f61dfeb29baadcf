/// Exit statuses of hopd and hopctl, named as `systemd-analyze exit-status` names them.
///
/// They are a contract with schedulers: 65 is not worth retrying, 69 and 75 are.
package enum ExitStatus: Int32, Sendable, CaseIterable {
  /// Done, or nothing to do.
  case success = 0
  /// Some stores of a batch failed.
  case failure = 1
  /// The daemon was started with bad arguments.
  case invalidArgument = 2
  /// No models or no directory configured.
  case notConfigured = 6
  /// The daemon cannot be reached.
  case notRunning = 7
  /// `plan --check`: there is work to do.
  case workToDo = 10
  /// The command line is wrong.
  case usage = 64
  /// The store or the model breaks a rule; retrying does not help.
  case dataError = 65
  /// The store or another input is not there.
  case noInput = 66
  /// The store is busy.
  case unavailable = 69
  /// A bug in hopd; the store is untouched.
  case software = 70
  /// The output cannot be written.
  case cannotCreate = 73
  /// The disk failed.
  case inputOutput = 74
  /// Interrupted, or no space now: retry later.
  case temporaryFailure = 75
  /// Missing permissions.
  case noPermission = 77
  /// Configuration error.
  case configuration = 78
}
