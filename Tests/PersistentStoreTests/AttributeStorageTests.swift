import ManagedObjectModel
import SQLite
import SystemPackage
import Testing

@testable import PersistentStore

/// The values in columns, for every type and every difficult number.
@Suite struct AttributeStorageTests {
  @Test func onlyBinaryHasTheByteOfExternalStorage() {
    for type in AttributeType.allCases {
      for isExternal in [false, true] {
        let attribute = Attribute(name: "a", type: type, allowsExternalStorage: isExternal)
        let hasByte = isExternal && type == .binary
        #expect(attribute.hasExternalForm == hasByte, "\(type)")
        #expect(attribute.stored([7]) == .blob(hasByte ? [1, 7] : [7]), "\(type)")
        #expect(attribute.stored(default: .binary([])) == .blob(hasByte ? [1] : []), "\(type)")
      }
    }
  }

  /// A number written to a column is read back, and one that the column cannot hold is not written.
  @Test func numbersComeBackFromTheirColumns() throws {
    let connection = try Connection(path: "/unused", access: .memory)
    let numbers: [Double] = [
      0, -0.0, 0.1, -1.5, 1e38, 3.5e38, -1e300, .greatestFiniteMagnitude, .leastNonzeroMagnitude, .infinity, -.infinity,
      .nan,
    ]
    for type in [AttributeType.double, .float, .date] {
      let column = try #require(type.traits.column).declaredType
      for number in numbers {
        guard let real = type.real(number) else {
          #expect(number.isNaN || type == .float && abs(number) > 3.4e38, "\(type) \(number)")
          continue
        }
        #expect(real == (type == .float ? Double(Float(number)) : number))
        try connection.execute("DROP TABLE IF EXISTS t; CREATE TABLE t (a \(column))")
        try connection.run("INSERT INTO t VALUES (?)", [.real(real)])
        switch try connection.value("SELECT a FROM t") {
        case .real(let back): #expect(back == real)
        case .integer(let back): #expect(Double(back) == real)
        case let back: Issue.record("\(type) \(number) came back as \(String(describing: back))")
        }
      }
    }
  }

  @Test func orderKeysOfSQLAreThoseOfSwift() throws {
    let connection = try Connection(path: "/unused", access: .memory)
    try connection.execute("CREATE TABLE t (o, k); INSERT INTO t VALUES (1, 3), (1, 1), (2, 9), (1, 2)")
    let rows = try connection.prepare(
      "SELECT o, k, \(OrderKey.numbering(partition: "o", order: "k").text) FROM t ORDER BY o, k")
    var last: [Int64: Int64] = [:]
    while try rows.step() {
      let owner = rows.integer(at: 0)
      let next = OrderKey.next(after: last[owner] ?? OrderKey.zero)
      #expect(rows.integer(at: 2) == next)
      last[owner] = next
    }
    #expect(last == [1: 4096, 2: 2048])
    #expect(OrderKey.next(after: .max) == .max)
  }

  /// Seen from its two ends, a relationship has the same pairs.
  @Test func bothEndsOfARelationshipShareTheirColumns() throws {
    func end(_ name: String, _ target: String, _ inverse: String, _ isMany: Bool, _ isOrdered: Bool) -> Relationship {
      Relationship(
        name: name, destinationEntityName: target, inverseName: inverse, isToMany: isMany, isOrdered: isOrdered)
    }
    var forms = 0
    for (far, hasSubentity) in [("B", false), ("B", true), ("A", false)] {
      for shape in 0..<16 {
        let (isMany, isOrdered) = (shape & 1 != 0, shape & 2 != 0)
        let (inverseIsMany, inverseIsOrdered) = (shape & 4 != 0, shape & 8 != 0)
        guard isMany || !isOrdered, inverseIsMany || !inverseIsOrdered else { continue }
        let there = end("there", far, "back", isMany, isOrdered)
        let back = end("back", "A", "there", inverseIsMany, inverseIsOrdered)
        var entities =
          far == "A"
          ? [Entity(name: "A", relationships: [there, back])]
          : [Entity(name: "A", relationships: [there]), Entity(name: "B", relationships: [back])]
        if hasSubentity { entities.append(Entity(name: "C", parentName: "B")) }
        let schema = StoreSchema(model: ManagedObjectModel(name: "M", entities: entities), frameworkVersion: 1344)
        let own = try #require(schema.storage(ofRelationship: "there", in: "A"))
        let other = try #require(schema.storage(ofRelationship: "back", in: far))
        forms += 1
        switch (own, other) {
        case (.toOne(let a, let b), .toOne(let c, let d)): #expect(a == d && b == c && a != c)
        case (.toOne(let a, let b), .members(let c)), (.members(let a), .toOne(let c, let b)):
          #expect(a == c && b == nil)
        case (.join(let a), .join(let b)):
          #expect(a.join == b.join && a.isOwner != b.isOwner)
          #expect(a.owner == b.target && a.target == b.owner && a.order == b.inverseOrder && b.order == a.inverseOrder)
        default: Issue.record("\(own) and \(other)")
        }
        if isMany || inverseIsMany {
          #expect(
            schema.pairs(ofRelationship: "there", in: "A")?.inverted == schema.pairs(ofRelationship: "back", in: far))
        }
      }
    }
    #expect(forms == 27)
  }
}
