// Every form of a relationship changed to every other form: to-one or to-many, with or without inverse, ordered or not.
// The models alone allow all of them; the rows decide whether there are too many targets or owners.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import MappingModel
import MigrationPipeline
import MigrationPlanning
import OtherPrograms
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

@Suite struct RelationshipFormTests {
  /// A.r, and B.s as its inverse if there is one.
  private struct Form: CustomStringConvertible {
    let isToMany: Bool
    let isOrdered: Bool
    /// nil without inverse.
    let inverse: (isToMany: Bool, isOrdered: Bool)?

    var hasRoomForOwners: Bool { inverse?.isToMany ?? !isToMany }

    var description: String {
      (isToMany ? isOrdered ? "ordered" : "many" : "one") + "/"
        + (inverse.map { $0.isToMany ? $0.isOrdered ? "ordered" : "many" : "one" } ?? "-")
    }

    func ends(_ index: Int) -> (r: Relationship, s: Relationship?) {
      let names = (r: "r\(index)", s: "s\(index)")
      let r = Relationship(
        name: names.r, destinationEntityName: "B", inverseName: inverse == nil ? nil : names.s, isToMany: isToMany,
        isOrdered: isOrdered)
      let s = inverse.map {
        Relationship(
          name: names.s, destinationEntityName: "A", inverseName: names.r, isToMany: $0.isToMany,
          isOrdered: $0.isOrdered)
      }
      return (r, s)
    }
  }

  private static let forms: [Form] = [
    Form(isToMany: false, isOrdered: false, inverse: nil), Form(isToMany: true, isOrdered: false, inverse: nil),
    Form(isToMany: true, isOrdered: true, inverse: nil),
    Form(isToMany: false, isOrdered: false, inverse: (false, false)),
    Form(isToMany: false, isOrdered: false, inverse: (true, false)),
    Form(isToMany: false, isOrdered: false, inverse: (true, true)),
    Form(isToMany: true, isOrdered: false, inverse: (false, false)),
    Form(isToMany: true, isOrdered: true, inverse: (false, false)),
    Form(isToMany: true, isOrdered: false, inverse: (true, false)),
    Form(isToMany: true, isOrdered: true, inverse: (true, false)),
    Form(isToMany: true, isOrdered: false, inverse: (true, true)),
    Form(isToMany: true, isOrdered: true, inverse: (true, true)),
  ]

  /// Pairs (key in A, key in B), in the order of an ordered end.
  private enum Pairs: CaseIterable {
    case apart, sharedTarget, sharedOwner

    var list: [(Int64, Int64)] {
      switch self {
      case .apart: [(1, 2), (3, 1)]
      case .sharedTarget: [(1, 2), (3, 2)]
      case .sharedOwner: [(1, 3), (1, 2)]
      }
    }

    func fit(_ form: Form) -> Bool {
      switch self {
      case .apart: true
      case .sharedTarget: form.hasRoomForOwners
      case .sharedOwner: form.isToMany
      }
    }
  }

  /// One model has a relationship of each form; each shift changes each of them to another one.
  @Test(arguments: RelationshipFormTests.forms.indices)
  func everyFormBecomesEveryOtherWhereTheRowsAllowIt(shift: Int) throws {
    let after = Self.forms.indices.map { Self.forms[($0 + shift) % Self.forms.count] }
    for wanted in Pairs.allCases {
      // Pairs that the form before or after cannot hold are replaced by separate ones.
      let fitting = zip(Self.forms, after).map { wanted.fit($0) && wanted.fit($1) ? wanted : .apart }
      try migrate(after, fitting, refused: [])
      let broken = Self.forms.map { wanted.fit($0) ? wanted : .apart }
      let refused = after.indices.filter { !broken[$0].fit(after[$0]) }
      if !refused.isEmpty { try migrate(after, broken, refused: Set(refused)) }
    }
  }

  private func model(_ name: String, _ forms: [Form]) -> ManagedObjectModel {
    let ends = forms.enumerated().map { $1.ends($0) }
    func entity(_ entity: String, _ relationships: [Relationship]) -> Entity {
      Entity(
        name: entity, versionHashModifier: name,
        attributes: [Attribute(name: "label" + entity, type: .string, isOptional: true)], relationships: relationships)
    }
    return ManagedObjectModel(name: name, entities: [entity("A", ends.map(\.r)), entity("B", ends.compactMap(\.s))])
  }

  private func migrate(_ after: [Form], _ pairs: [Pairs], refused: Set<Int>) throws {
    let versions = [model("V1", Self.forms), model("V2", after)]
    let catalog = ModelCatalog(bundles: [
      ModelBundle(name: "World", path: "/World.xcdatamodeld", versions: versions, currentVersionName: "V2")
    ])
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-form-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let location = StoreLocation(database: folder.appending("store.sqlite"))
    let schema = StoreSchema(model: versions[0], frameworkVersion: 1344)
    try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 7)).make(at: location.database)
    try fill(location, schema, pairs)
    let objects = try dump(location, model: versions[0])
    let mapping = try MappingInference.infer(from: versions[0], to: versions[1])
    let expected = ObjectOracle(source: versions[0], destination: versions[1], mapping: mapping).migrate(objects)
    let request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
      settings: MigrationSettings(verification: .full),
      stateDirectory: folder.appending("state"), job: "01")
    do {
      _ = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
      #expect(refused.isEmpty)
      let found = try dump(location, model: versions[1])
      for (object, wanted) in zip(found, expected) {
        for (name, value) in object.relationships where value != wanted.relationships[name] {
          let index = Int(name.dropFirst()) ?? 0
          Issue.record(
            "\(Self.forms[index]) → \(after[index]), \(pairs[index]): \(object.id).\(name) is \(value)")
        }
      }
      #expect(found.count == expected.count)
    } catch let failure as MigrationFailure {
      let errors = failure.error.reasons.isEmpty ? [failure.error] : failure.error.reasons
      #expect(errors.allSatisfy { $0.code == .rowsForbidInference }, "\(failure)")
      let properties = Set(errors.compactMap { $0.place.property.flatMap { Int($0.dropFirst()) } })
      #expect(properties == refused)
      #expect(try dump(location, model: versions[0]) == objects)
      try migrate(location, catalog, answering: errors, expected: expected, model: versions[1], refused: refused)
    }
  }

  /// Follows the hints, and the store is migrated: only refused relationships start empty.
  private func migrate(
    _ location: StoreLocation, _ catalog: ModelCatalog, answering refusal: [HopdError],
    expected: [DumpedObject], model: ManagedObjectModel, refused: Set<Int>
  ) throws {
    var answers = RenameRules()
    var errors = refusal
    // The other end of a relationship may be refused once this one is decided.
    for _ in 0..<2 {
      for error in errors {
        let answer = try #require(error.hint?.firstMatch(of: /--rename (\S+)/)?.1, "\(error)")
        let (old, new) = try #require(RenameRules.parse(String(answer)))
        answers.renames[old] = new
      }
      let request = MigrationRequest(
        location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
        settings: MigrationSettings(renames: answers, verification: .full),
        stateDirectory: location.directory.appending("state"), job: "02")
      do {
        _ = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
        errors = []
        break
      } catch {
        errors = error.error.reasons.isEmpty ? [error.error] : error.error.reasons
      }
    }
    #expect(errors.isEmpty, "\(errors)")
    for (object, wanted) in zip(try dump(location, model: model), expected) {
      for (name, value) in object.relationships where Int(name.dropFirst()).map(refused.contains) == false {
        #expect(value == wanted.relationships[name], "\(object.id).\(name)")
      }
    }
  }

  /// Makes three objects of each entity, and the pairs of each relationship wherever the layout keeps them.
  private func fill(_ location: StoreLocation, _ schema: StoreSchema, _ all: [Pairs]) throws {
    let connection = try Connection.ofApp(location.database)
    for key in 1...3 {
      try connection.execute("INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZLABELA) VALUES (\(key), 1, 1, 'a\(key)')")
      try connection.execute("INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT, ZLABELB) VALUES (\(key), 2, 1, 'b\(key)')")
    }
    try connection.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = 3")
    for (index, kind) in all.enumerated() {
      let pairs = try #require(schema.pairs(ofRelationship: "r\(index)", in: "A"))
      for (place, (owner, target)) in kind.list.enumerated() {
        var values: [String: Int64] = [pairs.owner: owner, pairs.target: target]
        for column in [pairs.order, pairs.inverseOrder] {
          if let column { values[column] = 2048 + 1024 * Int64(place) }
        }
        if pairs.row == nil {
          let columns = values.sorted { $0.key < $1.key }
          try connection.execute(
            "INSERT INTO \(pairs.table) (\(columns.map(\.key).joined(separator: ", ")))"
              + " VALUES (\(columns.map { String($0.value) }.joined(separator: ", ")))")
        } else {
          let key = values.removeValue(forKey: "Z_PK") ?? 0
          for (column, value) in values {
            try connection.execute("UPDATE \(pairs.table) SET \(column) = \(value) WHERE Z_PK = \(key)")
          }
          // One to one is stored at both ends.
          if let other = schema.storage(ofRelationship: "s\(index)", in: "B")?.ownColumns,
            pairs.row == .owner, Self.forms[index].inverse?.isToMany == false
          {
            try connection.execute("UPDATE \(other.table) SET \(other.key) = \(owner) WHERE Z_PK = \(target)")
          }
        }
      }
    }
  }
}
