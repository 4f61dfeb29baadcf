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
    folders.compactMap { folder in
      if folder.hasOtherFile {
        // With another store's label it is a backup from before the store was renamed.
        let name = folder.record?.store.path.lastComponent?.string ?? location.fileName
        return name == location.fileName ? strange(folder.path) : nil
      }
      guard !folder.isPart, folder.record == nil, folder.database?.kind == .regular else { return nil }
      return unreadableLabel(in: folder.path)
    }
  }

  /// The report of a folder with files but no database of the store's name. hopd does not know what they are.
  private func strange(_ folder: FilePath) -> HopdError {
    HopdError(
      .recordUnreadable,
      "the database in this backup has an unexpected name; hopd neither counts nor deletes it",
      at: Place(store: location.database, file: folder),
      hint: "run `ls -la \(folder.quotedForShell)`, or restore a database in it: "
        + "hopctl restore \(location.database.quotedForShell) --backup FILE")
  }

  private func unreadableLabel(in folder: FilePath) -> HopdError {
    let label = folder.appending(BackupSet.labelName)
    var cause: (any Error)?
    do { _ = try files.read(label, limit: 65_536) } catch { cause = error }
    let isRefused = (cause as? HopdError)?.code == .noPermission
    // Elsewhere only the label names the store, and a backup of no known store is not hopctl's to remove.
    let remover = folder.removingLastComponent() == directory ? "hopctl prune" : "rm -r"
    return HopdError(
      .recordUnreadable, "the label of a backup cannot be read, so the age of the backup is unknown",
      at: Place(store: location.database, file: label), cause: cause,
      hint: isRefused
        ? "chown -R --reference=\(folder.removingLastComponent().quotedForShell) \(folder.quotedForShell)"
        : "hopctl restore \(location.database.quotedForShell) --backup \(folder.quotedForShell) puts this backup back; "
          + "\(remover) \(folder.quotedForShell) removes it")
  }
}
