// An engine of a few hundred lines less: objects in dictionaries, so that a policy program can run through whole hops
// without a store. It keeps the engine's rules for keys, and replies only to the requests of the examples.

import MigrationPolicy
import Testing

/// A hop in memory.
final class FakeEngine {
  var source: [PolicyObjectID: [String: PolicyValue]] = [:]
  private(set) var destination: [PolicyObjectID: [String: PolicyValue]] = [:]
  /// Members of to-manys, in the order of adding.
  private(set) var members: [PolicyObjectID: [String: [PolicyObjectID]]] = [:]
  private(set) var associations: [PolicyObjectID: [PolicyObjectID]] = [:]
  private(set) var tables: [String: [PolicyValue: PolicyValue]] = [:]
  private(set) var log: [String] = []
  private(set) var requests = 0
  var keys = PolicyKeys(next: [:])
  private var standardKeys: Set<PolicyObjectID> = []

  func insert(_ id: PolicyObjectID, _ values: [String: PolicyValue]) { destination[id] = values }

  /// One call with everything around it.
  @discardableResult
  func run(_ conversation: any PolicyConversation, _ call: PolicyCall) throws -> PolicyReply {
    if case .createDestinationInstances(let instances) = call { standardKeys = Set(instances.map(\.standard.id)) }
    let reply = try conversation.call(call, keys: keys) { try self.answer($0) }
    switch reply {
    case .done(let operations), .results(_, let operations): try operations.forEach(apply)
    case .failed: break
    }
    return reply
  }

  private func apply(_ operation: PolicyOperation) throws {
    switch operation {
    case .insert(let object):
      if standardKeys.remove(object.id) == nil {
        #expect(keys.next[object.id.entity] == object.id.key, "keys are taken in order")
        keys.next[object.id.entity] = object.id.key + 1
      }
      #expect(destination.updateValue(object.values, forKey: object.id) == nil)
    case .set(let object):
      try #require(destination[object.id] != nil)
      destination[object.id]?.merge(object.values) { $1 }
    case .add(let id, let relationship, let ids): members[id, default: [:]][relationship, default: []] += ids
    case .remove(let id, let relationship, let ids):
      members[id]?[relationship]?.removeAll { ids.contains($0) }
    case .delete(let id): destination[id] = nil
    case .associate(let source, let destination): associations[source, default: []].append(destination)
    }
  }

  /// The answer to one question.
  func reply(to request: PolicyRequest) throws -> PolicyAnswer { try answer(request) }

  private func answer(_ request: PolicyRequest) throws -> PolicyAnswer {
    requests += 1
    switch request {
    case .apply(let operations):
      try operations.forEach(apply)
      return .done
    case .fetch(let side, let entity, let predicate, let limit, _, _, _):
      let wanted = predicate?.split(separator: " ").last.flatMap { Int64($0) }
      let found = objects(side).filter { id, values in
        id.entity == entity && (wanted == nil || values["userId"] == wanted.map { .integer($0) })
      }.sorted { $0.key.key < $1.key.key }
      return .objects(found.prefix(limit ?? .max).map { PolicyObject(id: $0.key, values: $0.value) })
    case .values(let ids, let properties):
      return .objects(
        try ids.map { id in
          var values = try #require(objects(id.side)[id])
          if id.side == .destination {
            for name in properties { values[name] = .objects(members[id]?[name] ?? []) }
          }
          return PolicyObject(id: id, values: values)
        })
    case .destinationInstances(_, let sources): return .ids((sources ?? []).flatMap { associations[$0] ?? [] })
    case .sourceInstances(_, let destinations):
      return .ids(associations.filter { !$0.value.filter { (destinations ?? []).contains($0) }.isEmpty }.map(\.key))
    case .lookup(let table, let key): return .value(tables[table]?[key] ?? .null)
    case .remember(let table, let key, let value):
      tables[table, default: [:]][key] = value
      return .done
    case .log(let line):
      log.append(line)
      return .done
    }
  }

  private func objects(_ side: PolicyObjectID.Side) -> [PolicyObjectID: [String: PolicyValue]] {
    side == .source ? source : destination
  }
}

extension PolicyIntroduction {
  /// An introduction for books that become books.
  static func books(policy: String, userInfo: [String: PolicyValue] = [:]) -> PolicyIntroduction {
    func entity(_ name: String, _ properties: [String: PolicyProperty]) -> PolicyEntity {
      PolicyEntity(name: name, root: name, isAbstract: false, properties: properties)
    }
    func text(_ kind: String = "String") -> PolicyProperty { PolicyProperty(kind: kind) }
    func toOne(_ name: String) -> PolicyProperty { PolicyProperty(kind: "to-one", destination: name) }
    func toMany(_ name: String) -> PolicyProperty { PolicyProperty(kind: "to-many", destination: name) }
    return PolicyIntroduction(
      policy: policy, mapping: "BookToBook", mappingType: "custom", source: "Book", destination: "Book",
      userInfo: userInfo,
      expressions: ["title": "$source.title"], sourceVersion: "1", destinationVersion: "2",
      sourceEntities: [
        entity(
          "Book", ["authorName": text(), "title": text(), "fileURL": text("Transformable"), "users": toMany("User")]),
        entity("User", ["userId": text("Integer 32")]),
      ],
      destinationEntities: [
        entity(
          "Book",
          [
            "title": text(), "fileURL": text("Transformable"), "authors": toMany("Author"), "files": toMany("File"),
            "author": toOne("Author"),
          ]),
        entity("Author", ["name": text(), "books": toMany("Book")]),
        entity("File", ["fileURL": text("Transformable"), "book": toOne("Book"), "user": toOne("User")]),
        entity("User", ["userId": text("Integer 32")]),
      ])
  }
}
