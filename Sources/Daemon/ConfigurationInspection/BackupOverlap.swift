// Old stores look like stores. The watcher and the walks of hopctl leave out the folders of backups by their names, so
// a backup directory in a watched tree does no harm: it is a remark, and a daemon that was set up in this way keeps
// starting. A watch of such a folder itself is refused: hopd would migrate the old stores that a restore needs.

import Diagnostics
import HopdConfiguration
import MigrationPipeline
import StoreReplacement
import SystemPackage

extension HopdError.Code {
  /// Backups are kept in a tree that is watched for stores.
  package static let backupsInWatch = HopdError.Code("backups-in-watch", severity: .warning)
}

/// Compares the places of backups with the places of stores. Links are resolved, as for two watches.
package enum BackupOverlap {
  /// Returns an error for each watch whose directory is a folder of backups, or lies in one.
  package static func mistakes(in loaded: LoadedConfiguration) -> [HopdError] {
    loaded.configuration.watches.compactMap { watch in
      let names = WatchOverlap.resolved(watch.directory).components.map(\.string)
      guard let folder = names.first(where: { $0.hasSuffix(BackupSet.folderSuffix) }) else { return nil }
      return HopdError(
        .configurationInvalid,
        "\(watch.directory.printable) is inside the backup directory \(folder.printableLine): hopd would migrate the "
          + "backups, and a restore needs them unchanged",
        at: loaded.place(of: "watch.\(watch.name).directory"),
        hint: "watch the directory of the stores instead, and restore backups with `hopctl restore`")
    }
  }

  /// Returns a warning for each backup directory that lies in a recursively watched directory, of the same watch or of
  /// another one.
  package static func remarks(in loaded: LoadedConfiguration) -> [HopdError] {
    let trees = loaded.configuration.watches.filter(\.recursive).map { ($0, WatchOverlap.resolved($0.directory)) }
    return loaded.configuration.watches.compactMap { watch in
      guard let backups = watch.migration.backup.directory else { return nil }
      let place = WatchOverlap.resolved(backups)
      // Two watches never overlap, so there is at most one.
      guard let (tree, _) = trees.first(where: { place.starts(with: $0.1) }) else { return nil }
      return HopdError(
        .backupsInWatch,
        "the backup directory \(backups.printable) is in \(tree.directory.printable), which the watch \(tree.name) "
          + "watches recursively; hopd ignores the backups there",
        at: loaded.place(of: "watch.\(watch.name).backup.directory"),
        hint:
          "set a directory outside of it, so that no other program mistakes backups for stores; without `directory` "
          + "backups are stored next to the stores")
    }
  }
}
