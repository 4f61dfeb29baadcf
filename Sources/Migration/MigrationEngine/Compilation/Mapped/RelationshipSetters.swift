// Decides pass 2 of a hop with mapping models: which relationships of each mapping are set, from which associations,
// whether they can be written with the rows in pass 1, and whether another setter has set the same pairs already.
//
// Core Data sets one relationship of one object after the other, and updates the other end each time. Setting whole
// mappings at once gives the same result, because a store keeps the two ends of a relationship in one column or table
// (except for one-to-one, where both columns are written): only the order of the setters that write it matters.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

/// The source of a setter's objects.
enum SetterSource {
  /// The objects that a mapping made for those that an expression reaches.
  case lookup(AssociationRange, ExpressionNode)
  /// The object that a grouping mapping made for values of its keys.
  case group(AssociationRange, [ExpressionNode])
  /// The destination objects with a value.
  case matching(entity: String, attribute: String, ExpressionNode)
}

/// A relationship mapping that sets objects or clears them.
struct RelationshipSetter {
  let range: AssociationRange
  let relationship: Relationship
  /// The destination entity that declares it, and the relationship at the other end.
  let declaring: Entity
  let inverse: (entity: Entity, relationship: Relationship)?
  let storage: RelationshipStorage
  /// Empty for the constant nil, which only clears.
  let sources: [SetterSource]
  /// Whether a text mapping copies it by default.
  let isCopied: Bool
  /// The look-ups that must find nothing, with the meaning of an object that they find.
  var mustBeEmpty: [(source: SetterSource, refusal: HopProgram.Action.Refusal)] = []

  /// The name of this end of the relationship in the destination.
  var end: String { "\(declaring.name).\(relationship.name)" }
  var otherEnd: String? { inverse.map { "\($0.entity.name).\($0.relationship.name)" } }
  /// The name of the relationship, the same for both its ends.
  var place: String { otherEnd.map { min(end, $0) } ?? end }
  var isOneToOne: Bool { !relationship.isToMany && inverse?.relationship.isToMany == false }
}

/// All setters of a hop.
struct RelationshipSetters {
  let compiler: MappedHopCompiler
  /// In the order of mappings, then names, but those of `runsFirst` at the beginning; without setters that repeat
  /// another.
  private(set) var setters: [RelationshipSetter] = []
  /// The positions in `setters` of those that are written in pass 1.
  private(set) var inline: Set<Int> = []
  /// The setters with look-ups that must find nothing, whether or not they are in `setters`.
  private(set) var doubtful: [RelationshipSetter] = []
  /// The relationships of which a mapping gives an end, as `RelationshipSetter.place`.
  private var given: Set<String> = []

  var hop: Hop { compiler.hop }
  var layout: AssociationLayout { compiler.layout }
  var expressions: MappedExpressions { compiler.expressions }
  var associations: AssociationSQL { compiler.associations }

  init(compiler: MappedHopCompiler) throws(HopdError) {
    self.compiler = compiler
    var all: [RelationshipSetter] = []
    for range in compiler.layout.ranges {
      for mapping in range.mapping.relationships {
        if let setter = try setter(range, mapping) { all.append(setter) }
      }
    }
    given = Set(all.filter { !$0.isCopied }.map(\.place))
    all = all.filter(runsFirst) + all.filter { !runsFirst($0) }
    doubtful = all.filter { !$0.mustBeEmpty.isEmpty }
    setters = withoutRepeats(all + mirrors(of: all))
    inline = inlinePositions()
  }

  /// Compiles the look-ups of one mapping.
  static func tryOut(_ range: AssociationRange, compiler: MappedHopCompiler) throws(HopdError) {
    let setters = RelationshipSetters(empty: compiler)
    let rows = try compiler.associations.rows(range)
    for mapping in range.mapping.relationships {
      guard let setter = try setters.setter(range, mapping) else { continue }
      for source in setter.sources + setter.mustBeEmpty.map(\.source) {
        _ = try setters.objects(source, of: setter, row: rows.row, prefix: "p")
      }
    }
  }

  private init(empty compiler: MappedHopCompiler) { self.compiler = compiler }

  /// Whether a setter runs before those of all mappings: what a text mapping copies must not overwrite what it gives
  /// for the same relationship, at either end.
  func runsFirst(_ setter: RelationshipSetter) -> Bool { setter.isCopied && given.contains(setter.place) }

  // MARK: Reading a mapping

  func setter(
    _ range: AssociationRange, _ mapping: ExplicitPropertyMapping
  ) throws(HopdError) -> RelationshipSetter? {
    guard let value = mapping.value, let entity = hop.destination.entity(named: range.destinationEntity) else {
      return nil
    }
    guard let relationship = hop.destination.allRelationships(of: entity)[mapping.name],
      let declaring = hop.destination.declaringEntity(of: mapping.name, in: entity)
    else {
      throw unsupported("\(range.destinationEntity) has no relationship of that name", range, mapping.name)
    }
    guard let storage = hop.destinationSchema.storage(ofRelationship: mapping.name, in: entity.name) else { return nil }
    var sources: [SetterSource] = []
    var mustBeEmpty: [(source: SetterSource, refusal: HopProgram.Action.Refusal)] = []
    switch value {
    // Only the policy can evaluate its methods; its own pass does.
    case .expression(.policyMethod): return nil
    case .expression(.constant(.null)): break
    case .expression(.destinationInstances(let lookup, let node)):
      (sources, mustBeEmpty) = try lookups(lookup, node, range: range, relationship: relationship)
    case .expression:
      throw expressions.unsupported(
        "an expression that is not a lookup of destination objects", range: range, property: relationship.name)
    case .grouped(let name, let keys):
      guard let group = layout.range(named: name), group.kind == .grouped,
        case .distinctBy(let own, _) = group.mapping.grouping, own.count == keys.count
      else {
        throw unsupported("the mapping \(name) does not group its sources by \(keys.count) keys", range, mapping.name)
      }
      sources = [.group(group, keys)]
    case .matching(let target, let attribute, let key):
      sources = [.matching(entity: target, attribute: attribute, key)]
    }
    for source in sources { try check(source, range: range, relationship: relationship) }
    return RelationshipSetter(
      range: range, relationship: relationship, declaring: declaring,
      inverse: hop.destination.inverse(of: relationship),
      storage: storage, sources: sources, isCopied: mapping.isCopied, mustBeEmpty: mustBeEmpty)
  }

  private func lookups(
    _ lookup: InstanceLookup, _ node: ExpressionNode, range: AssociationRange, relationship: Relationship
  ) throws(HopdError) -> (
    found: [SetterSource], mustBeEmpty: [(source: SetterSource, refusal: HopProgram.Action.Refusal)]
  ) {
    switch lookup {
    case .entityMapping(let name):
      if let target = layout.range(named: name) {
        let parts = (hop.mapped?.parts(beside: name) ?? []).compactMap { layout.range(named: $0.name) }
        let found = ([target] + parts).filter { $0.kind == .policy || isKind($0.destinationEntity, of: relationship) }
        // The relationship cannot hold these objects: its value is empty, which is checked.
        let unfit = found.contains { $0.index == target.index } ? [] : [target]
        return (
          found.map { .lookup($0, node) },
          unfit.map { (.lookup($0, node), refusal(of: $0, range: range, relationship: relationship)) }
        )
      }
      // A mapping that makes no objects gives none; a name without a mapping is a mistake.
      if hop.mapped?.entityMappings.contains(where: { $0.name == name }) == true { return ([], []) }
      throw unsupported(
        "no entity mapping has the name \(name)", range, relationship.name,
        hint: "write the name of an entity mapping of this hop")
    case .sourceRelationship:
      // Each object is looked up under the mappings of its own entity (docs/formats/expressions.md, "Relationship
      // functions").
      let reached = try reachedEntity(node, range: range, property: relationship.name)
      var sources: [SetterSource] = []
      var mustBeEmpty: [(source: SetterSource, refusal: HopProgram.Action.Refusal)] = []
      for possible in hop.source.entity(named: reached).map(hop.source.subtree) ?? [] {
        let found = layout.ranges(from: possible.name).filter { isKind($0.destinationEntity, of: relationship) }
        // With filters, an object usually belongs to one mapping only; this is checked per object.
        if found.count > 1, let whole = found.first(where: { $0.mapping.filter == nil }) {
          let names = found.map(\.mapping.name).joined(separator: ", ")
          mustBeEmpty.append(
            (
              .lookup(whole, node),
              HopProgram.Action.Refusal(
                message: """
                  the object with key \(column: 0) would get objects made of one of \(possible.name), which several \
                  mappings make: \(names)
                  """, entity: range.mapping.name, property: relationship.name,
                hint: "specify the mapping of these objects in the mapping model", code: .mappingUnsupported)
            ))
          continue
        }
        sources += found.map { .lookup($0, node) }
      }
      return (sources, mustBeEmpty)
    }
  }

  private func refusal(
    of target: AssociationRange, range: AssociationRange, relationship: Relationship
  ) -> HopProgram.Action.Refusal {
    HopProgram.Action.Refusal(
      message: """
        the object with key \(column: 0) would get the object of \(target.destinationEntity) with key \(column: 1), \
        and the destination of the relationship is \(relationship.destinationEntityName)
        """, entity: range.mapping.name,
      property: relationship.name,
      hint: "use a mapping that creates objects of \(relationship.destinationEntityName)", code: .mappingUnsupported)
  }

  private func reachedEntity(
    _ node: ExpressionNode, range: AssociationRange, property: String
  ) throws(HopdError) -> String {
    try expressions.objects(node, row: range.row, prefix: "r", range: range, property: property).entity
  }

  private func isKind(_ entity: String, of relationship: Relationship) -> Bool {
    hop.destination.entity(named: entity).map {
      hop.destination.lineage(of: $0).contains { $0.name == relationship.destinationEntityName }
    } ?? false
  }

  private func check(
    _ source: SetterSource, range: AssociationRange, relationship: Relationship
  ) throws(HopdError) {
    let entity: String
    switch source {
    // A policy may make objects of other entities than its mapping names.
    case .lookup(let target, _) where target.kind == .policy: return
    case .lookup(let target, _), .group(let target, _): entity = target.destinationEntity
    case .matching(let name, _, _): entity = name
    }
    guard isKind(entity, of: relationship) else {
      throw unsupported(
        "it would get objects of \(entity), and its destination is \(relationship.destinationEntityName)", range,
        relationship.name,
        hint: "use a mapping that creates objects of \(relationship.destinationEntityName)")
    }
  }

  private func unsupported(
    _ message: String, _ range: AssociationRange, _ property: String, hint: String? = nil
  ) -> HopdError {
    HopdError(
      .mappingUnsupported, message, at: Place(hop: hop.title, entity: range.mapping.name, property: property),
      hint: hint
    )
  }

  // MARK: Mirrors

  /// Returns the other ends of one-to-ones that are set from one end only, between objects which two mappings made of
  /// the same source object: the source row determines both ends, so both are written with their rows.
  private func mirrors(of all: [RelationshipSetter]) -> [RelationshipSetter] {
    guard hop.mapped?.policies.isEmpty == true else { return [] }
    var result: [RelationshipSetter] = []
    for (_, setters) in Dictionary(grouping: all, by: \.place).sorted(by: { $0.key < $1.key }) {
      guard let first = setters.first, let inverse = first.inverse, first.isOneToOne, first.end != first.otherEnd,
        setters.allSatisfy({ $0.end == first.end })
      else { continue }
      var targets: Set<Int> = []
      let mirrored = setters.compactMap { setter -> RelationshipSetter? in
        guard setter.sources.count == 1, case .lookup(let target, .variable("source"))? = setter.sources.first,
          setter.range.isArithmetic, target.isArithmetic, target.sourceEntity == setter.range.sourceEntity,
          targets.insert(target.index).inserted,
          let storage = hop.destinationSchema.storage(
            ofRelationship: inverse.relationship.name, in: target.destinationEntity)
        else { return nil }
        return RelationshipSetter(
          range: target, relationship: inverse.relationship, declaring: inverse.entity,
          inverse: (setter.declaring, setter.relationship), storage: storage,
          sources: [.lookup(setter.range, .variable("source"))], isCopied: setter.isCopied)
      }
      if mirrored.count == setters.count { result += mirrored }
    }
    return result
  }

  // MARK: Repeats

  /// A source relationship between the objects of two mappings, the same from either end.
  struct Rule: Hashable {
    let relationship: String
    let first: Int
    let second: Int

    init(_ name: String, from range: AssociationRange, to target: AssociationRange, isForward: Bool) {
      relationship = name
      (first, second) = isForward ? (range.index, target.index) : (target.index, range.index)
    }
  }

  /// Returns the rules that a setter follows; nil if it follows no plain relationship of the source between plain
  /// mappings.
  func rules(of setter: RelationshipSetter) -> Set<Rule>? {
    guard setter.range.isArithmetic else { return nil }
    var rules: Set<Rule> = []
    for source in setter.sources {
      if case .lookup(let target, .variable("source")) = source, target.isArithmetic, let otherEnd = setter.otherEnd,
        target.sourceEntity == setter.range.sourceEntity, setter.end != otherEnd
      {
        // A rule of the object itself: the direction is given by which mapping's object has which end.
        rules.insert(Rule("", from: setter.range, to: target, isForward: setter.end < otherEnd))
        continue
      }
      guard case .lookup(let target, let node) = source, target.isArithmetic,
        let (declaring, relationship) = expressions.singleRelationship(node, of: setter.range.sourceEntity),
        let inverse = hop.source.inverse(of: relationship),
        let reached = hop.source.entity(named: relationship.destinationEntityName)
      else { return nil }
      let (own, other) = (
        "\(declaring.name).\(relationship.name)", "\(inverse.entity.name).\(inverse.relationship.name)"
      )
      guard own != other else { return nil }
      // Objects that the relationship cannot reach give no pairs.
      guard hop.source.subtree(of: reached).contains(where: { $0.name == target.sourceEntity }) else { continue }
      // Nor do objects without the inverse.
      rules.insert(Rule(min(own, other), from: setter.range, to: target, isForward: own < other))
    }
    return rules
  }

  /// Returns the setters without those of an end that follows the same rules as the other end: its pairs are already
  /// set.
  private func withoutRepeats(_ all: [RelationshipSetter]) -> [RelationshipSetter] {
    var left: Set<String> = []
    for (_, setters) in Dictionary(grouping: all, by: \.place) {
      guard let setter = setters.first, let other = setter.otherEnd, setter.end != other else { continue }
      let ends = [setter.end, other].sorted().map { end in setters.filter { $0.end == end } }
      guard let first = ends[0].first, let second = ends[1].first, let rules = rules(of: ends[0]),
        rules == self.rules(of: ends[1])
      else { continue }
      // Two columns are both written, unless one end needs a look-up.
      if first.isOneToOne, ends.joined().allSatisfy(isPlainToOne) { continue }
      // The end that is a column of its own row costs nothing.
      left.insert(!second.relationship.isToMany && first.relationship.isToMany ? first.end : second.end)
    }
    return all.filter { !left.contains($0.end) }
  }

  func rules(of setters: [RelationshipSetter]) -> Set<Rule>? {
    var all: Set<Rule> = []
    for setter in setters {
      guard let rules = rules(of: setter) else { return nil }
      all.formUnion(rules)
    }
    return all
  }
}
