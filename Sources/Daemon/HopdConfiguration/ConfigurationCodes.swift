// The error codes of a configuration.

import Diagnostics

extension HopdError.Code {
  /// The configuration has a mistake.
  package static let configurationInvalid = HopdError.Code("configuration-invalid", exit: .configuration)
  /// The configuration has an unknown key; a warning.
  package static let unknownKey = HopdError.Code("unknown-key", exit: .configuration)
  /// There is no watch: nothing is configured.
  package static let notConfigured = HopdError.Code("not-configured", exit: .notConfigured)
}
