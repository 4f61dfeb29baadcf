// The state that the policies of one hop share while it runs: both sides, keys, associations, lookup tables, and their
// statements, prepared once.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPlanning
import MigrationPolicy
import PersistentStore
import SQLite

/// The shared state of a hop's policies.
final class PolicyWork {
  let source: PolicySide
  let destination: PolicySide
  let keys: PolicyKeyCounters
  let associations: PolicyAssociations
  let links: PolicyLinkWriter
  let writer: PolicyObjectWriter
  let answers: PolicyAnswers
  /// The objects that the current call has inserted so far.
  var inserted: Int64 = 0
  /// The objects of the source, or associations, that the current call has processed.
  var taken: Int64 = 0
  /// The time of the last progress report.
  var lastSign = ContinuousClock.now

  private let sourceTargets: PolicyTargetEntity
  private let sourceMembers: PolicyMembers
  private let external: PolicyExternalContent
  private let expressions: PolicyExpressions

  init(_ context: PolicyStepContext, external directory: ExternalDataDirectory?) throws {
    let (connection, hop) = (context.connection, context.hop)
    let source = PolicySide(.source, schema: hop.sourceSchema, tables: context.source)
    let destination = PolicySide(
      .destination, schema: hop.destinationSchema, tables: .schema(context.destinationSchema), computed: hop.computed)
    // The previous hop's store is hopd's own too, and has no indexes; the user's own store is never written.
    var writable: Set<String> = [context.destinationSchema]
    if hop.index > 0, context.source == .schema(StagedStore.schemaName(ofHop: hop.index - 1)) {
      writable.insert(context.source.schemaName)
    }
    let indexes = PolicyIndexes(connection: connection, writable: writable)
    let external = PolicyExternalContent(directory: directory, limit: context.options.externalValueMax)
    let sourceTargets = PolicyTargetEntity(side: source, connection: connection)
    let targets = PolicyTargetEntity(side: destination, connection: connection)
    let sourceMembers = PolicyMembers(side: source, connection: connection, indexes: indexes)
    let members = PolicyMembers(side: destination, connection: connection, indexes: indexes)
    let expressions = PolicyExpressions(context)
    let memory = PolicyMemory(
      connection: connection, schema: context.destinationSchema, isOfStage: hop.hook != nil)
    try memory.create()
    // The compiled predicates of policies may call these functions.
    try ExpressionFunctions.register(on: connection)
    // Expanding mappings have chosen their keys by now, above all ranges, though their rows may be written later.
    var last = context.layout.reservedKeys
    for range in context.layout.ranges {
      guard case .expanded = range.kind else { continue }
      let highest = try connection.integer(
        "SELECT max(destination) FROM \(destination.qualified(AssociationLayout.expandedTable(range.index)))")
      last[range.destinationTable] = max(last[range.destinationTable] ?? 0, highest ?? 0)
    }
    keys = PolicyKeyCounters(side: destination, connection: connection) { root in
      let taken = hop.destinationSchema.table(of: root).flatMap { last[$0.name] } ?? 0
      return taken == .max ? .max : taken + 1
    }
    links = PolicyLinkWriter(side: destination, connection: connection, indexes: indexes)
    associations = PolicyAssociations(
      connection: connection, source: source, destination: destination, sourceRows: sourceTargets,
      relation: { try expressions.relation(of: $0, source: source, destination: destination) })
    writer = PolicyObjectWriter(
      side: destination, connection: connection, keys: keys, targets: targets, links: links, associations: associations)
    answers = PolicyAnswers(
      connection: connection, sides: [.source: source, .destination: destination],
      targets: [.source: sourceTargets, .destination: targets],
      members: [.source: sourceMembers, .destination: members], associations: associations, memory: memory,
      external: external, options: context.options, expressions: expressions)
    self.source = source
    self.destination = destination
    self.sourceTargets = sourceTargets
    self.sourceMembers = sourceMembers
    self.external = external
    self.expressions = expressions
  }

  /// Returns the reader of a mapping's source objects; nil if it has none.
  func sourceReader(for session: PolicySession, context: PolicyStepContext) throws -> PolicySourceReader? {
    guard let range = context.layout.range(at: session.index), let from = source.shape(of: range.sourceEntity),
      let to = destination.shape(of: range.destinationEntity)
    else { return nil }
    return try PolicySourceReader(
      range: range, source: source, rowForm: rowForm(from), destination: to, members: sourceMembers,
      connection: context.connection, expressions: expressions.forRange(range), options: context.options,
      hop: context.hop.title)
  }

  /// Returns the relationships of a mapping that call a method of its policy; nil if there are none.
  func relationshipMethods(for session: PolicySession, context: PolicyStepContext) throws -> PolicyRelationshipMethods?
  {
    guard let range = context.layout.range(at: session.index), let from = source.shape(of: range.sourceEntity) else {
      return nil
    }
    let calls = range.mapping.relationships.filter {
      if case .expression(.policyMethod)? = $0.value { true } else { false }
    }
    if calls.isEmpty { return nil }
    return try PolicyRelationshipMethods(
      calls, range: range, source: source, rowForm: rowForm(from), members: sourceMembers,
      connection: context.connection, expressions: expressions.forRange(range), options: context.options)
  }

  private func rowForm(_ shape: PolicyShape) -> PolicyRowForm {
    PolicyRowForm(shape, of: source, targets: sourceTargets, external: external)
  }
}
