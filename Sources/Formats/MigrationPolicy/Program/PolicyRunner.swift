// Calls hooks of one policy with its mapping and its manager.

/// The classes of a program, by the names they are bound to.
package struct PolicyClasses {
  let policies: [String: EntityMigrationPolicy.Type]
  let stages: [String: CustomMigrationStage.Type]

  /// Binds classes to their names.
  package init(policies: [String: EntityMigrationPolicy.Type], stages: [String: CustomMigrationStage.Type]) {
    (self.policies, self.stages) = (policies, stages)
  }

  /// Returns the class of a name with or without its module.
  static func named<Class>(_ name: String, _ kind: String, among classes: [String: Class]) throws -> Class {
    let found =
      classes[name] ?? classes[PolicyClassName.bare(name)]
      ?? classes.first { PolicyClassName.bare($0.key) == name }?.value
    if let found { return found }
    let names = classes.keys.sorted().joined(separator: ", ")
    throw PolicyError("this program has no \(kind) \(name); it has \(names.isEmpty ? "none" : names)")
  }
}

/// Runs the hooks of one policy for one entity mapping, or those of a stage.
package final class PolicyRunner {
  private let policy: EntityMigrationPolicy
  private let stage: CustomMigrationStage?
  private let manager: MigrationManager

  /// Creates the policy, or the stage, that the introduction names.
  package init(_ introduction: PolicyIntroduction, classes: PolicyClasses) throws {
    if introduction.stage != nil {
      stage = try PolicyClasses.named(introduction.policy, "stage", among: classes.stages).init()
      policy = EntityMigrationPolicy()
    } else {
      stage = nil
      policy = try PolicyClasses.named(introduction.policy, "policy", among: classes.policies).init()
    }
    manager = MigrationManager(introduction)
  }

  /// The result of a call.
  package enum Outcome {
    case done([PolicyWireOperation])
    case results([PolicyValue], [PolicyWireOperation])
    case failed(String)
  }

  /// Runs a hook. An error that the hook throws becomes the call's failure.
  package func run(
    _ call: PolicyCall, keys: PolicyKeys, asking ask: @escaping (PolicyWireRequest) throws -> PolicyAnswer
  ) -> Outcome {
    var results: [PolicyValue] = []
    do {
      let changes = try manager.during(keys, asking: ask) { try hook(call, &results) }
      if case .method = call { return .results(results, changes) }
      return .done(changes)
    } catch {
      return .failed("\(error)")
    }
  }

  /// Ends the session. Throws if a change was lost.
  package func close() throws { try manager.close() }

  private func description(_ hook: PolicyStage) -> StageDescription {
    StageDescription(
      hook: hook, sourceVersion: manager.mapping.sourceVersion, destinationVersion: manager.mapping.destinationVersion)
  }

  private func hook(_ call: PolicyCall, _ results: inout [PolicyValue]) throws {
    let mapping = manager.mapping
    switch call {
    case .begin: try policy.begin(mapping, with: manager)
    case .method(let selector, let arguments):
      for list in arguments { results.append(try policy.method(selector, arguments: list, manager: manager)) }
    case .createDestinationInstances(let instances): try create(instances)
    case .endInstanceCreation: try policy.endInstanceCreation(forMapping: mapping, manager: manager)
    case .createRelationships(let ids):
      for id in ids {
        do {
          let destination = try manager.object(with: id)
          try policy.createRelationships(forDestination: destination, in: mapping, manager: manager)
        } catch {
          throw PolicyError("\(id.entity) \(id.key): \(error)")
        }
      }
    case .endRelationshipCreation: try policy.endRelationshipCreation(forMapping: mapping, manager: manager)
    case .performCustomValidation: try policy.performCustomValidation(forMapping: mapping, manager: manager)
    case .end: try policy.end(mapping, manager: manager)
    case .willMigrate: try stage?.willMigrate(description(.willMigrate), manager: manager)
    case .didMigrate: try stage?.didMigrate(description(.didMigrate), manager: manager)
    }
  }

  private func create(_ instances: [PolicySourceInstance]) throws {
    for (index, instance) in instances.enumerated() {
      let source = try manager.offer(instance, index)
      do {
        try policy.createDestinationInstances(forSource: source, in: manager.mapping, manager: manager)
      } catch {
        throw PolicyError("\(source.entityName) \(source.key): \(error)")
      }
      manager.endTurn(of: source)
    }
  }
}

/// Class names in two forms: `Module.Class` and `Class`.
package enum PolicyClassName {
  /// Returns the part after the last point.
  package static func bare(_ name: String) -> String {
    name.split(separator: ".").last.map { String($0) } ?? name
  }
}

extension PolicyOperation {
  /// Returns the changes with default creation written as insertions and associations, in the same order. Operations on
  /// missing instances are left out.
  package static func spelledOut(
    _ operations: [PolicyWireOperation], of instance: (Int) throws -> PolicySourceInstance?
  ) rethrows -> [PolicyOperation] {
    var plain: [PolicyOperation] = []
    plain.reserveCapacity(operations.count)
    for operation in operations {
      switch operation {
      case .plain(let operation): plain.append(operation)
      case .standard(let number, let values):
        guard let instance = try instance(number) else { continue }
        var object = instance.standard
        object.values.merge(values) { $1 }
        plain.append(.insert(object))
        plain.append(.associate(source: instance.source.id, destination: object.id))
      }
    }
    return plain
  }
}
