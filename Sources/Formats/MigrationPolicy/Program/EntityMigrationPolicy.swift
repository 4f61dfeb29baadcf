// The class that an author of a policy subclasses: Core Data's NSEntityMigrationPolicy, hook by hook. The defaults do
// what Core Data's do, so a policy overrides only the hooks that it needs, and calls super to add to a default.

/// The hooks of one entity mapping. Each migration makes one instance per entity mapping; it may keep state between
/// hooks.
open class EntityMigrationPolicy {
  /// Creates a policy; the program calls it before the entity mapping's first hook.
  public required init() {}

  /// `beginEntityMapping:manager:error:`: called before every other hook.
  open func begin(_ mapping: EntityMapping, with manager: MigrationManager) throws {}

  /// `createDestinationInstancesForSourceInstance:entityMapping:manager:error:`: called once for each source object.
  ///
  /// The default inserts one object of the destination entity with the values of the mapping's attribute expressions
  /// and associates it with the source. An override that does not call super associates each object that it inserts, by
  /// `manager.associate(sourceInstance:withDestinationInstance:for:)`. To leave a source object out, insert nothing.
  open func createDestinationInstances(
    forSource source: ManagedObject, in mapping: EntityMapping, manager: MigrationManager
  ) throws {
    try manager.insertStandardInstance(for: source)
  }

  /// `endInstanceCreationForEntityMapping:manager:error:`: called after the last source object.
  open func endInstanceCreation(forMapping mapping: EntityMapping, manager: MigrationManager) throws {}

  /// `createRelationshipsForDestinationInstance:entityMapping:manager:error:`: called once for each destination object.
  ///
  /// hopd has already set the relationships that have expressions in the mapping, so there is no default to call.
  /// Changes made here are added to those.
  open func createRelationships(
    forDestination destination: ManagedObject, in mapping: EntityMapping, manager: MigrationManager
  ) throws {}

  /// `endRelationshipCreationForEntityMapping:manager:error:`: called after the relationships of the last object.
  open func endRelationshipCreation(forMapping mapping: EntityMapping, manager: MigrationManager) throws {}

  /// `performCustomValidationForEntityMapping:manager:error:`: throw to reject the result. The user's store then stays
  /// unchanged.
  open func performCustomValidation(forMapping mapping: EntityMapping, manager: MigrationManager) throws {}

  /// `endEntityMapping:manager:error:`: called after every other hook.
  open func end(_ mapping: EntityMapping, manager: MigrationManager) throws {}

  /// Runs a method that an expression calls: `FUNCTION($entityPolicy, "selector:…", …)`.
  ///
  /// For an attribute hopd may call it before or during instance creation, so the result should depend on the arguments
  /// alone.
  ///
  /// - Returns: The value of an attribute, or the objects of a relationship: `PolicyValue(object)`,
  ///   `PolicyValue(objects)` or `[]`.
  open func method(_ selector: String, arguments: [PolicyValue], manager: MigrationManager) throws -> PolicyValue {
    throw PolicyError("the policy does not implement \(selector)")
  }
}

/// The entity mapping that a policy belongs to, as the mapping model describes it.
public struct EntityMapping: Sendable, Hashable {
  /// The message from which the mapping is read.
  let introduction: PolicyIntroduction

  /// The name in the mapping model: `BookToBook`.
  public var name: String { introduction.mapping }
  /// The type as hopd prints it: "copy", "transform", "custom", …
  public var mappingType: String { introduction.mappingType }
  /// The source entity; nil if the mapping only adds objects.
  public var sourceEntityName: String? { introduction.source }
  /// The destination entity; nil if the mapping only removes objects.
  public var destinationEntityName: String? { introduction.destination }
  /// The mapping's user info.
  public var userInfo: [String: PolicyValue] { introduction.userInfo }
  /// The names of the versions that the hop migrates from and to.
  public var sourceVersion: String { introduction.sourceVersion }
  public var destinationVersion: String { introduction.destinationVersion }
  /// The class that the mapping names: `Module.Class` or `Class`.
  public var policyClassName: String { introduction.policy }

  /// Returns the text of a property's value expression; nil if it has none.
  public func valueExpression(for property: String) -> String? { introduction.expressions[property] ?? nil }
}
