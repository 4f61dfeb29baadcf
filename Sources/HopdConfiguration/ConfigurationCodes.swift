// The kinds of mistakes that a configuration can have.

import Diagnostics

extension HopdError.Code {
  /// The configuration says something that is wrong.
  package static let configurationInvalid = HopdError.Code("configuration-invalid", exit: .configuration)
  /// The configuration holds a key that nobody knows; a warning.
  package static let unknownKey = HopdError.Code("unknown-key", exit: .configuration)
}
