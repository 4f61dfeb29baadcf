// NSPersistenceFrameworkVersion: Core Data's own versions that were seen, and the properties of a file and its metadata
// that follow from the number alone. Layout rules that depend on the number are in `StoreSchemaBuilder`.

import Diagnostics

extension HopdError.Code {
  /// No store of that framework version was ever seen.
  package static let frameworkVersionUnknown = HopdError.Code("framework-version-unknown", severity: .note)
}

/// The known facts about Core Data's own versions.
package enum FrameworkVersion {
  /// The versions with measured stores, one generation each (docs/formats/store-layout.md, "Framework versions").
  static let known: [ClosedRange<Int64>] = [
    241...241, 320...320, 419...419, 479...479, 519...519, 637...641, 752...754, 836...851, 865...866, 977...977,
    1044...1048, 1132...1145, 1251...1251, 1327...1347, 1403...1414, 1448...1448, 1518...1526,
  ]

  /// The newest version that was seen.
  package static var newestKnown: Int64 { known.last?.upperBound ?? 0 }

  /// The known version whose rules apply: the number itself, otherwise the nearest one below, otherwise the first.
  package static func followed(for version: Int64) -> Int64 {
    if known.contains(where: { $0.contains(version) }) { return version }
    return known.last { $0.upperBound < version }?.upperBound ?? known.first?.lowerBound ?? version
  }

  /// The note for a version of which no store was seen; nil for known versions.
  package static func remark(on version: Int64) -> HopdError? {
    let followed = followed(for: version)
    if followed == version { return nil }
    return HopdError(
      .frameworkVersionUnknown,
      "no store of framework version \(version) was ever seen; the rules of \(followed), the nearest known one, are "
        + "followed", hint: "compare the result with a store that the app created before you use it")
  }

  /// Page size of a new store (docs/formats/store-layout.md, "File settings").
  package static func pageSize(of version: Int64) -> Int64 { version < 320 ? 2048 : 4096 }

  /// Whether the file has SQLite's oldest schema format, 1, instead of 4 (docs/formats/store-layout.md, "File
  /// settings").
  package static func hasOldestFileFormat(_ version: Int64) -> Bool { version < 320 }

  /// Whether the store uses a write-ahead log, as nearly every store from fw 519 on; before, a rollback journal
  /// (docs/formats/store-layout.md, "File settings").
  package static func usesWriteAheadLog(_ version: Int64) -> Bool { version >= 519 }

  /// Whether metadata have NSStoreModelVersionHashesDigest (docs/formats/store-layout.md, "Store metadata").
  package static func hasDigest(_ version: Int64) -> Bool { version >= 977 }

  /// Whether metadata have NSStoreModelVersionChecksumKey (docs/formats/store-layout.md, "Store metadata").
  package static func hasChecksum(_ version: Int64) -> Bool { version >= 1327 }

  /// Whether metadata have NSPersistenceMaximumFrameworkVersion (docs/formats/store-layout.md, "Store metadata").
  package static func hasMaximum(_ version: Int64) -> Bool { version >= 1518 }
}
