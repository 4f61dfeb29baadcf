// What the verifier expects of binary values.

/// What a binary column of the result must hold, counted in the source.
package struct ExternalDataExpectation: Sendable, Hashable {
  /// Values in the column itself, and the bytes of their contents without prefixes.
  package var inline: Int64 = 0
  package var inlineBytes: Int64 = 0
  /// References to files that are there, with their bytes, and to files that are missing in the source already.
  package var found: Int64 = 0
  package var foundBytes: Int64 = 0
  package var missing: Int64 = 0

  /// No values.
  package init() {}
}
