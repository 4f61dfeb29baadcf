// What an author of a policy subclasses: Core Data's NSEntityMigrationPolicy, hook by hook. The defaults do what Core
// Data's do, so a policy overrides only the hooks that it is about, and calls super where it adds to the default.

/// The hooks of one entity mapping. One instance per entity mapping and migration; it may keep state between hooks.
open class EntityMigrationPolicy {
  /// Makes a policy; called by the program when the mapping's turn comes.
  public required init() {}

  /// beginEntityMapping:manager:error: is called first.
  open func begin(_ mapping: EntityMapping, with manager: MigrationManager) throws {}

  /// createDestinationInstancesForSourceInstance:entityMapping:manager:error:
  ///
  /// The default inserts one object of the destination entity with the values of the mapping's attribute expressions
  /// and associates it with the source. An override that does not call super associates what it makes by
  /// `manager.associate(sourceInstance:withDestinationInstance:for:)`; one that makes nothing leaves the source out.
  open func createDestinationInstances(
    forSource source: ManagedObject, in mapping: EntityMapping, manager: MigrationManager
  ) throws {
    try manager.insertStandardInstance(for: source)
  }

  /// endInstanceCreationForEntityMapping:manager:error: is called when every source was offered.
  open func endInstanceCreation(forMapping mapping: EntityMapping, manager: MigrationManager) throws {}

  /// createRelationshipsForDestinationInstance:entityMapping:manager:error:
  ///
  /// Called after hopd has set the relationships that the mapping has expressions for, so there is no default to call;
  /// what is set here comes on top.
  open func createRelationships(
    forDestination destination: ManagedObject, in mapping: EntityMapping, manager: MigrationManager
  ) throws {}

  /// endRelationshipCreationForEntityMapping:manager:error:
  open func endRelationshipCreation(forMapping mapping: EntityMapping, manager: MigrationManager) throws {}

  /// performCustomValidationForEntityMapping:manager:error: throws where the result is not acceptable; nothing is
  /// replaced then.
  open func performCustomValidation(forMapping mapping: EntityMapping, manager: MigrationManager) throws {}

  /// endEntityMapping:manager:error: is called last.
  open func end(_ mapping: EntityMapping, manager: MigrationManager) throws {}

  /// A method that an expression calls: `FUNCTION($entityPolicy, "selector:…", …)`. It gives the value of an attribute,
  /// or the objects of a relationship, as `PolicyValue(object)`, `PolicyValue(objects)` or `[]`.
  ///
  /// For an attribute it may run before or in the midst of instance creation, and should depend on its arguments alone.
  open func method(_ selector: String, arguments: [PolicyValue], manager: MigrationManager) throws -> PolicyValue {
    throw PolicyError("the policy does not implement \(selector)")
  }
}

/// The entity mapping that a policy belongs to, as the mapping model has it.
public struct EntityMapping: Sendable, Hashable {
  /// What hopd has told of the mapping.
  let introduction: PolicyIntroduction

  /// As in the mapping model, `BookToBook`.
  public var name: String { introduction.mapping }
  /// "copy", "transform", "custom", … as hopd prints it.
  public var mappingType: String { introduction.mappingType }
  /// Nil where the mapping only adds.
  public var sourceEntityName: String? { introduction.source }
  /// Nil where the mapping only removes.
  public var destinationEntityName: String? { introduction.destination }
  /// User info of the mapping.
  public var userInfo: [String: PolicyValue] { introduction.userInfo }
  /// Names of the versions that the migration goes between.
  public var sourceVersion: String { introduction.sourceVersion }
  public var destinationVersion: String { introduction.destinationVersion }
  /// The class that the mapping names, `Module.Class` or `Class`.
  public var policyClassName: String { introduction.policy }

  /// Text of a property's value expression; nil where it has none.
  public func valueExpression(for property: String) -> String? { introduction.expressions[property] ?? nil }
}
