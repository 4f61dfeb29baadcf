// The forms of values in an export, where people differ about them.

/// The form of dates.
package enum DateForm: String, Sendable, Hashable, CaseIterable {
  /// RFC 3339 in UTC, as text.
  case iso
  /// Seconds since 1970-01-01 00:00 UTC, as a number.
  case unix
}

/// The form of UUIDs in a database.
package enum UUIDForm: String, Sendable, Hashable, CaseIterable {
  /// 36 characters, in upper case.
  case text
  /// 16 bytes.
  case blob
}

/// The form of texts in CSV that a spreadsheet would take for a formula.
package enum FormulaForm: String, Sendable, Hashable, CaseIterable {
  /// The text itself.
  case keep
  /// The text after an apostrophe.
  case escape
}

/// The forms of values in an export.
package struct ExportOptions: Sendable, Hashable {
  package var dates = DateForm.iso
  package var uuids = UUIDForm.text
  package var formulas = FormulaForm.keep

  /// Creates the default forms.
  package init() {}
}
