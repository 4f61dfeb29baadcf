// What an author of a stage subclasses: the handlers of Core Data's NSCustomMigrationStage, which SwiftData's
// MigrationStage.custom has as closures.

/// The hooks of one hop. The program runs once for each hook: state between them is kept in tables of the manager.
open class CustomMigrationStage {
  /// Makes a stage; called by the program when a hook's turn comes.
  public required init() {}

  /// willMigrateHandler: the manager fetches and changes the objects of the old version.
  open func willMigrate(_ stage: StageDescription, manager: MigrationManager) throws {
    throw PolicyError("\(type(of: self)) does not override willMigrate, which the stage names it for")
  }

  /// didMigrateHandler: the manager fetches and changes the objects of the new version.
  open func didMigrate(_ stage: StageDescription, manager: MigrationManager) throws {
    throw PolicyError("\(type(of: self)) does not override didMigrate, which the stage names it for")
  }
}

/// The stage at work.
public struct StageDescription: Sendable, Hashable {
  /// Which hook runs.
  public let hook: PolicyStage
  /// Names of the versions that the hop goes between.
  public let sourceVersion: String
  public let destinationVersion: String
}

extension MigrationManager {
  /// Names of the entities without parent in the destination, or the one store of a stage, sorted: with those below
  /// them they are all objects.
  public var rootEntityNames: [String] {
    mapping.introduction.destinationEntities.filter { $0.root == $0.name }.map(\.name).sorted()
  }

  /// Path of the database that is migrated; nil where the engine does not tell.
  public var storePath: String? { mapping.introduction.store?.path }

  /// The store's metadata as they were before the migration: texts, numbers, dates and data, and lists of these.
  public var storeMetadata: [String: PolicyValue] { mapping.introduction.store?.metadata ?? [:] }
}
