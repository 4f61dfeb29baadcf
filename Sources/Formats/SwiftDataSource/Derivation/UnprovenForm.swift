// Forms of source whose model was never compared with Apple's software. Each is refused by name; a version hash of the
// app's own can settle it (calibration), by trying what it could be.

import ManagedObjectModel

/// A form of source that is not proven.
package struct UnprovenForm: Hashable, Sendable {
  /// The name by which a calibration keeps what was found.
  package let name: String
  /// What it could be, the likeliest first; none where nothing can be tried.
  package let alternatives: [String]

  /// What an attribute of an unproven type could be.
  static func type(_ name: String, _ types: [AttributeType]) -> UnprovenForm {
    UnprovenForm(name: name, alternatives: types.map(\.word))
  }

  /// An array, set or dictionary: archived by its transformer, or as JSON text in binary data.
  static func collection(_ name: String, binaryFirst: Bool) -> UnprovenForm {
    .type(name, binaryFirst ? [.binary, .transformable] : [.transformable, .binary])
  }

  /// An option that may count for the version hash.
  static func option(_ name: String) -> UnprovenForm {
    UnprovenForm(name: name, alternatives: [Self.counts, Self.ignored])
  }

  /// Two relationships without a macro that could be inverses.
  static func pair(_ name: String) -> UnprovenForm {
    UnprovenForm(name: name, alternatives: [Self.paired, Self.single])
  }

  static let enumInRequiredStruct = UnprovenForm(
    name: "enum in a required struct", alternatives: [Self.optional, Self.required])

  static let counts = "counts"
  static let ignored = "ignored"
  static let paired = "inverse"
  static let single = "no inverse"
  static let optional = "optional"
  static let required = "required"
}

extension AttributeType {
  /// The name of the type in a calibration, "integer 16".
  var word: String { name.lowercased() }

  /// The type of that name.
  init?(word: String) {
    guard let type = Self.allCases.first(where: { $0.word == word }) else { return nil }
    self = type
  }
}

/// What a calibration found, by the names of forms.
package struct CalibratedForms: Hashable, Sendable {
  package var found: [String: String]
  /// What shows it.
  package var evidence: [String: String] = [:]

  package init(_ found: [String: String] = [:]) { self.found = found }
}
