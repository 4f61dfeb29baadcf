// The two modes of replacement, and the reasons why a rename is impossible for some stores. All code that plans a
// replacement reads this; the modes themselves are StoreSwap (rename) and InPlaceSwap.

import Diagnostics
import DurableFiles
import PersistentStore
import SystemPackage

/// How the new store takes the old one's place (docs/formats/replacement.md, "Choice of mode").
package enum ReplacementMode: String, Sendable, Codable, Hashable, CaseIterable {
  /// The staged store is renamed over the store: a new inode, and the old one becomes the backup. The default.
  case rename
  /// SQLite writes the staged store into the store's own file, in one transaction. Only on request.
  case inPlace = "in-place"
}

extension ReplacementMode {
  /// The properties of a store that a rename would not keep, as far as its status shows.
  package static func obstaclesToRename(_ status: FileStatus) -> [HopdError] {
    var reasons: [HopdError] = []
    if status.links > 1 {
      reasons.append(
        HopdError(.cannotReplace, "the store has \(status.links) names (hard links); a rename would part them"))
    }
    if status.isMountPoint {
      reasons.append(HopdError(.cannotReplace, "the store is a mount point; nothing can be renamed over it"))
    }
    return reasons
  }

  /// The refusal to rename over the store in its present state, if there is a reason for one; the store is not opened.
  package static func refusalOfRename(
    _ location: CanonicalStoreLocation, files: any DurableFileSystem = LinuxFileSystem()
  ) throws -> HopdError? {
    guard let status = try files.status(location.database) else { return nil }
    let reasons = obstaclesToRename(status)
    return reasons.isEmpty ? nil : renameRefused(location, reasons)
  }

  /// The refusal of a rename, with every reason.
  package static func renameRefused(_ location: CanonicalStoreLocation, _ reasons: [HopdError]) -> HopdError {
    HopdError(
      .cannotReplace, "the store cannot be replaced by a rename", at: Place(store: location.database),
      hint: keepsTheFile, reasons: reasons)
  }

  /// The alternative that is offered to the operator.
  static let keepsTheFile =
    "pass --replace in-place (hopd: replace = \"in-place\"), which preserves all of this; "
    + "docs/OPERATIONS.md describes the cost"

  /// Bytes that the commit needs on the store's file system beside an existing staged store
  /// (docs/formats/replacement.md, "Mode in-place"): the side file, as large as the new store (write-ahead log) or the
  /// old one (rollback journal), and the growth of the store; `backup` is the size of the copied old store where it is
  /// on the same file system.
  package static func bytesToCommit(
    store: Int64, staged: Int64, backup: Int64, journalMode: JournalMode
  ) -> Int64 {
    let side = journalMode == .wal ? staged : store
    return [side, max(0, staged &- store), backup].reduce(Int64(0)) {
      let (sum, overflow) = $0.addingReportingOverflow(max(0, $1))
      return overflow ? .max : sum
    }
  }
}
