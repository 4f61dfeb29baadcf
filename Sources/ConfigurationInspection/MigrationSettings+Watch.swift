// The settings of a watch: hopd and hopctl --config read them here, and nowhere else.

import HopdConfiguration
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import StoreReplacement

extension MigrationSettings {
  /// The settings of a watch. `memoryLimit` is what one migration may use, in bytes.
  package init(_ watch: Configuration.Watch, memoryLimit: Int64) {
    let migration = watch.migration
    self.init(
      infer: watch.infer, renames: watch.renames, route: watch.route, history: migration.history,
      cloudKit: migration.cloudKit,
      unmappedEntities: migration.unmappedEntities,
      verification: migration.verify, journalMode: migration.journalMode, replacement: migration.replace,
      backup: BackupRule(watch.backup),
      engine: EngineOptions(
        chunkTime: migration.chunkTime, chunkRowsMax: Int64(clamping: migration.chunkRowsMax), memoryLimit: memoryLimit,
        invalidRows: InvalidRowsRules(standard: migration.invalidRows, byEntity: migration.invalidRowsByEntity),
        fusesHops: migration.fuseHops))
  }
}

extension BackupRule {
  /// The rule for the backups of a watch.
  package init(_ backup: Configuration.Backup) {
    self.init(keep: backup.keep, keepFor: backup.keepFor, directory: backup.directory)
  }
}
