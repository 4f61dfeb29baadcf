// Suspicious parts of a mapping model that can be followed: parts without effect, and values of the old version that it
// drops. It reads only models, so that an author can check a mapping model without a store; a plan counts the affected
// rows and values.

import ManagedObjectModel

/// The findings on one mapping model.
package struct MappingLint {
  /// The kind of a finding; its raw value is the word in `--json`.
  package enum Kind: String, Sendable, Hashable, CaseIterable {
    /// An entity mapping that has no effect.
    case deadMapping = "dead-mapping"
    /// A property of the source that no entity mapping carries.
    case droppedValue = "dropped-value"
    /// An entity of both versions whose objects no entity mapping takes.
    case unmappedEntity = "unmapped-entity"
    /// A policy that never runs.
    case unusedPolicy = "unused-policy"
    /// A look-up that never finds an object.
    case emptyLookup = "empty-lookup"
    /// A look-up that finds only objects that its relationship cannot hold.
    case unfitLookup = "unfit-lookup"
  }

  /// One finding.
  package struct Finding: Sendable, Hashable {
    package let kind: Kind
    /// Name of the entity mapping.
    package var mapping: String?
    /// Entity of the source for values, of the destination for look-ups.
    package var entity: String?
    /// Attribute or relationship of that entity.
    package var property: String?
    /// A sentence.
    package let message: String
    /// The remedy.
    package let hint: String
  }

  /// In the order of the kinds, then of the mapping model.
  package private(set) var findings: [Finding] = []

  private let mapping: ExplicitMapping
  private let hop: [ExplicitEntityMapping]
  private let source: ManagedObjectModel
  private let destination: ManagedObjectModel

  /// Checks a mapping model as a part of its hop; `others` are the other parts. `policies` are the classes that have
  /// programs.
  package init(
    _ mapping: ExplicitMapping, beside others: [ExplicitMapping] = [], source: ManagedObjectModel,
    destination: ManagedObjectModel, policies: [String] = []
  ) {
    func opened(_ mapping: ExplicitMapping) -> ExplicitMapping {
      mapping.openingComposites(source: source, destination: destination)
    }
    self.mapping = opened(mapping)
    hop = self.mapping.entityMappings + others.flatMap { opened($0).entityMappings }
    self.source = source
    self.destination = destination
    addDeadMappings()
    addDroppedValues()
    addUnmappedEntities()
    addUnusedPolicies(bound: policies)
    addLookups()
  }

  // MARK: Entity mappings

  private mutating func addDeadMappings() {
    for entity in mapping.entityMappings {
      var reason = entity.deadness?.reason
      if let name = entity.source, source.entity(named: name)?.isAbstract == true {
        reason = "it starts at the abstract entity \(name), which has no objects of its own"
      } else if let name = entity.destination, destination.entity(named: name)?.isAbstract == true {
        reason = "it creates objects of the abstract entity \(name), which has none"
      } else if entity.source == nil, entity.deadness == nil, entity.policy == nil {
        reason = "it has no source, so it creates no objects"
      }
      guard let reason else { continue }
      findings.append(
        Finding(
          kind: .deadMapping, mapping: entity.name, entity: entity.destination ?? entity.source,
          message: "the entity mapping has no effect: \(reason)",
          hint: "remove it, or use entities of these versions"))
    }
  }

  private mutating func addUnmappedEntities() {
    let taken = Set(hop.compactMap(\.source))
    for entity in source.entities.sorted(by: { $0.name < $1.name }) where !entity.isAbstract {
      let next =
        destination.entity(named: entity.name)?.name
        ?? destination.entities.first { $0.renamingIdentifier == entity.renamingIdentifier }?.name
      guard !taken.contains(entity.name), let next else { continue }
      findings.append(
        Finding(
          kind: .unmappedEntity, entity: entity.name,
          message: "no entity mapping takes the objects of this entity, which \(destination.name) "
            + (next == entity.name ? "has too" : "calls \(next)"),
          hint: "add an entity mapping, pass the other mapping models of the hop (--mappings), or drop the objects "
            + "with --unmapped-entities drop"))
    }
  }

  private mutating func addUnusedPolicies(bound: [String]) {
    for entity in mapping.entityMappings {
      var reason: String?
      if entity.deadness?.policy != nil {
        reason = "its entity mapping has no effect"
      } else if let name = entity.source, entity.policy != nil, source.entity(named: name)?.isAbstract == true {
        reason = "the abstract entity \(name) has no objects of its own"
      }
      guard let reason, let policy = entity.policy ?? entity.deadness?.policy else { continue }
      findings.append(
        Finding(
          kind: .unusedPolicy, mapping: entity.name, entity: entity.destination,
          message: "the policy \(policy) runs for no object: \(reason)", hint: "remove the policy"))
    }
    let named = Set(hop.compactMap(\.policy))
    // A class may be named with or without its module.
    let plain = Set(named.map { $0.split(separator: ".").last.map(String.init) ?? $0 })
    for policy in bound.sorted() where !named.contains(policy) && !plain.contains(policy) {
      findings.append(
        Finding(
          kind: .unusedPolicy, message: "no entity mapping names the policy \(policy), for which there is a program",
          hint: named.isEmpty
            ? "remove it; the mapping model has no policy" : "use one of: \(named.sorted().joined(separator: ", "))"))
    }
  }

  // MARK: Values

  private mutating func addDroppedValues() {
    var read = ReadProperties(model: source)
    let reach = LookupReach(mappings: hop, source: source, destination: destination)
    for mapping in hop where mapping.destination != nil {
      // A look-up that finds nothing carries nothing.
      read.add(mapping) { reach.finding($0, of: mapping) != nil }
    }
    var reported: Set<String> = []
    // An entity mapping without a destination drops its objects deliberately.
    for name in mapping.entityMappings.compactMap({ $0.destination == nil ? nil : $0.source })
    where reported.insert(name).inserted {
      guard let entity = source.entity(named: name), !entity.isAbstract else { continue }
      let policies = hop.filter { $0.source == name }.compactMap(\.policy)
      for attribute in source.storedAttributes(of: entity) where !read.reads(attribute.name, of: entity) {
        add(dropped: attribute.name, of: name, policies)
      }
      for relationship in source.storedRelationships(of: entity) where !read.reads(relationship.name, of: entity) {
        // The pairs continue if either end is read.
        if let inverse = source.inverse(of: relationship), read.reads(inverse.relationship.name, of: inverse.entity) {
          continue
        }
        add(dropped: relationship.name, of: name, policies)
      }
    }
  }

  private mutating func add(dropped property: String, of entity: String, _ policies: [String]) {
    findings.append(
      Finding(
        kind: .droppedValue, entity: entity, property: property,
        message: policies.isEmpty
          ? "no expression reads it, so its values are dropped"
          : "no expression reads it, so its values are dropped unless the policy "
            + "\(policies.joined(separator: " or ")) carries them",
        hint: policies.isEmpty
          ? "set a property of the destination to $source.\(property) to preserve it"
          : "check the policy's program"))
  }

  // MARK: Lookups

  private mutating func addLookups() {
    let reach = LookupReach(mappings: hop, source: source, destination: destination)
    for entity in mapping.entityMappings where entity.deadness == nil {
      for property in entity.relationships {
        guard let finding = reach.finding(property, of: entity) else { continue }
        let isEmpty = if case .nothing = finding { true } else { false }
        findings.append(
          Finding(
            kind: isEmpty ? .emptyLookup : .unfitLookup, mapping: entity.name, entity: entity.destination,
            property: property.name, message: finding.sentence,
            hint: isEmpty
              ? "fetch the objects of another entity mapping, or set nil"
              : "fetch the objects of an entity mapping that creates objects of the relationship's destination"))
      }
    }
  }
}
