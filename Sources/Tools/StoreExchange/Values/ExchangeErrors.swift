// The codes of exports and imports.

import Diagnostics

extension HopdError.Code {
  /// Archives of an export are plain values.
  package static let archivesExtracted = HopdError.Code("archives-extracted", severity: .note)
  /// A constraint of the model is not in an export, because objects of the store break it.
  package static let constraintLeftOut = HopdError.Code("constraint-left-out", severity: .warning)
  /// Values of an export are nil, because their external files are missing.
  package static let externalFilesLeftOut = HopdError.Code("external-files-left-out", severity: .warning)
  /// The history of a store begins after the transaction that was named.
  package static let historyTruncated = HopdError.Code("history-truncated", severity: .warning)
  /// References of exported objects to others are nil.
  package static let referencesLeftOut = HopdError.Code("references-left-out", severity: .warning)
  /// Texts of an export have another form than in the store.
  package static let textsChanged = HopdError.Code("texts-changed", severity: .warning)
}
