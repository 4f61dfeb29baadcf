// Backups whose labels cannot be read: by this user, or at all. Whether another backup is newer is unknown then, so
// they are reported to every caller that makes or lists backups.

import Diagnostics
import DurableFiles
import PersistentStore
import SystemPackage

extension BackupSet {
  /// One refusal for each complete generation whose label cannot be read: which, why, and the next step.
  package func unreadableLabels() throws -> [HopdError] { unreadableLabels(among: try folders()) }

  /// The same for these folders.
  func unreadableLabels(among folders: [BackupFolder]) -> [HopdError] {
    folders.filter { !$0.isPart && $0.record == nil && $0.database?.kind == .regular }
      .map { unreadableLabel(in: $0.path) }
  }

  private func unreadableLabel(in folder: FilePath) -> HopdError {
    let label = folder.appending(BackupSet.labelName)
    var cause: (any Error)?
    do { _ = try files.read(label, limit: 65_536) } catch { cause = error }
    let isRefused = (cause as? HopdError)?.code == .noPermission
    return HopdError(
      .recordUnreadable, "the label of a backup cannot be read, so hopd does not know which backups are newer",
      at: Place(store: location.database, file: label), cause: cause,
      hint: isRefused
        ? "chown -R --reference=\(folder.removingLastComponent().quotedForShell) \(folder.quotedForShell)"
        : "hopctl restore \(location.database.quotedForShell) --backup \(folder.quotedForShell) puts this backup back; "
          + "hopctl prune \(folder.quotedForShell) removes it")
  }
}
