// The expected binary values, for the verifier.

/// The expected content of a binary column of the result, counted in the source.
package struct ExternalDataExpectation: Sendable, Hashable {
  /// Values in the column itself, and the bytes of their contents without prefixes.
  package var inline: Int64 = 0
  package var inlineBytes: Int64 = 0
  /// References to files that exist, with their bytes, and to files that are already missing in the source.
  package var found: Int64 = 0
  package var foundBytes: Int64 = 0
  package var missing: Int64 = 0

  /// No values.
  package init() {}
}
