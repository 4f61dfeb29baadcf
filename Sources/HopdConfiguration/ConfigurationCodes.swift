// The kinds of mistakes that a configuration can have.

import Diagnostics

extension HopdError.Code {
  /// The configuration says something that is wrong.
  package static let configurationInvalid = HopdError.Code("configuration-invalid", exit: .configuration)
  /// The configuration holds a key that nobody knows; a warning.
  package static let unknownKey = HopdError.Code("unknown-key", exit: .configuration)
  /// There is no watch: nothing is configured.
  package static let notConfigured = HopdError.Code("not-configured", exit: .notConfigured)
}
