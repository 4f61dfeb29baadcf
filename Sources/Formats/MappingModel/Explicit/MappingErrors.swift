// The kinds of mistakes in a mapping model that a program may want to distinguish.

import Diagnostics

extension HopdError.Code {
  /// A mapping model breaks its format, or uses an unsupported feature.
  package static let invalidMapping = HopdError.Code("mapping-invalid", exit: .dataError)
  /// A mapping model is larger than any real one.
  package static let mappingTooLarge = HopdError.Code("mapping-too-large", exit: .dataError)
  /// A mapping model was made for another state of a version than the given one.
  package static let staleMapping = HopdError.Code("mapping-stale", exit: .dataError)
  /// Several mapping models serve the same hop, and no rule chooses among them.
  package static let ambiguousMapping = HopdError.Code("mapping-ambiguous", exit: .configuration)
  /// An entity mapping, or a whole mapping model, has no effect between the given versions; the rest is followed.
  package static let deadMapping = HopdError.Code("mapping-dead", severity: .warning)
  /// A remark on a mapping model that can still be followed.
  package static let mappingRemark = HopdError.Code("mapping-remark", severity: .note)
  /// A mapping model names a version that is not there, and is taken for the only one that it can mean.
  package static let mappingGuess = HopdError.Code("mapping-guess", severity: .warning)
}

extension HopdError {
  /// Returns a copy with the hint, unless it already has one.
  func hinting(_ hint: String) -> HopdError {
    var copy = self
    copy.hint = copy.hint ?? hint
    return copy
  }
}

/// The limits of a mapping model; a hostile one fails with an error in less than a second.
package enum MappingLimits {
  /// Entity mappings of one mapping model.
  package static let entityMappings = 5_000
  /// Property mappings of all entity mappings of one mapping model.
  package static let propertyMappings = 50_000
  /// Archived expressions and user infos of one source file; the most seen are 29.
  package static let archives = 5_000
  /// Bytes of one archive inside a source file, as base64; a long expression has a few thousand.
  package static let archiveTextBytes = 256 << 10
  /// Bytes of a name, a predicate or a key path.
  package static let textBytes = 64 << 10
  /// Entries of one user info, nested ones included.
  package static let userInfoEntries = 1_000
  /// Findings that are reported for one mapping model; further ones are only counted.
  package static let findings = 100
}
