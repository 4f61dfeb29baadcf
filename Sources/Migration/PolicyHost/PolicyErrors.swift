// Error codes for policy programs: the hook failed, the program broke the protocol or a limit, or it could not be
// started. In each case the migration of the store ends, and the store stays unchanged.

import Diagnostics

extension HopdError.Code {
  /// A hook failed, or the program died in it (Core Data's 134170).
  package static let policyProgramFailed = HopdError.Code("policy-failed", exit: .dataError)
  /// The program took more time or sent more than it may.
  package static let policyLimit = HopdError.Code("policy-limit", exit: .dataError)
  /// The program's message is not in the protocol.
  package static let policyProtocol = HopdError.Code("policy-protocol", exit: .dataError)
  /// The program cannot be started, or no program is bound to the class, or several are.
  package static let policyUnusable = HopdError.Code("policy-unusable", exit: .configuration)
}
