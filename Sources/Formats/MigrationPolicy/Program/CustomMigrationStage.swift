// The class that an author of a stage subclasses. Its hooks are the handlers of Core Data's NSCustomMigrationStage and
// the closures of SwiftData's MigrationStage.custom.

/// The hooks of one hop. The program runs once for each hook: keep state between hooks in the manager's tables.
open class CustomMigrationStage {
  /// Creates a stage; the program calls it before a hook runs.
  public required init() {}

  /// `willMigrateHandler`: runs before the hop; the manager fetches and changes the objects of the old version.
  open func willMigrate(_ stage: StageDescription, manager: MigrationManager) throws {
    throw PolicyError("\(type(of: self)) does not override willMigrate, which the stage names it for")
  }

  /// `didMigrateHandler`: runs after the hop; the manager fetches and changes the objects of the new version.
  open func didMigrate(_ stage: StageDescription, manager: MigrationManager) throws {
    throw PolicyError("\(type(of: self)) does not override didMigrate, which the stage names it for")
  }
}

/// The stage that is running.
public struct StageDescription: Sendable, Hashable {
  /// The hook that is running.
  public let hook: PolicyStage
  /// The names of the hop's two versions.
  public let sourceVersion: String
  public let destinationVersion: String
}

extension MigrationManager {
  /// The sorted names of the entities without a parent, of the destination or of the stage's one store. Fetching each
  /// of them, subentities included, covers every object.
  public var rootEntityNames: [String] {
    mapping.introduction.destinationEntities.filter { $0.root == $0.name }.map(\.name).sorted()
  }

  /// The path of the database that is migrated; nil if the engine does not pass it.
  public var storePath: String? { mapping.introduction.store?.path }

  /// The store's metadata before the migration: texts, numbers, dates, data, and lists of these.
  public var storeMetadata: [String: PolicyValue] { mapping.introduction.store?.metadata ?? [:] }
}
