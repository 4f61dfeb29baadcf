import BlockingTests
import ManagedObjectModel
import MigrationPolicy
import PersistentStore
import SQLite
import SeededRandom
import SystemPackage
import Testing

@testable import MigrationEngine
@testable import PolicyMigration

@Suite(.blocking) struct PolicyPieceTests {
  /// One value of each kind, and the extremes of each type.
  static let values: [PolicyValue] = [
    .null, .boolean(true), .boolean(false), .integer(0), .integer(1), .integer(-32_769), .integer(40_000),
    .integer(.min), .integer(.max), .double(0.5), .double(.infinity), .double(.nan), .decimal("10.110"),
    .decimal("no number"), .decimal("-0.000001"), .string(""), .string("a\u{0}ü🙂"), .date(-1.25), .date(.nan),
    .data([]), .data([1, 2, 3]), .uuid(Array(0..<16)), .uuid([1]), .uri("https://example.org/ä"),
    .transformable([9, 8]), .object(PolicyObjectID(side: .source, entity: "A", key: -3)),
    .objects([PolicyObjectID(side: .destination, entity: "Ä", key: 7)]), .list([.integer(1), .list([.null])]),
  ]

  /// A value that a type accepts is read back unchanged; any other is refused, never converted.
  @Test func everyTypeTakesItsOwnValuesAndGivesThemBack() throws {
    let connection = try Connection(path: "/unused", access: .memory)
    var taken: [AttributeType: [PolicyValue]] = [:]
    for type in AttributeType.allCases {
      for external in [false, true] {
        let form = PolicyAttributeForm(
          attribute: Attribute(name: "a", type: type, isOptional: true, allowsExternalStorage: external))
        for value in Self.values {
          guard let stored = form.stored(value) else { continue }
          if !external { taken[type, default: []].append(value) }
          // Through a column with the affinity of the type's columns.
          try connection.execute("DROP TABLE IF EXISTS t; CREATE TABLE t (a \(Self.column(type)))")
          try connection.run("INSERT INTO t VALUES (?)", [stored])
          let read = try #require(try connection.value("SELECT a FROM t"))
          let back = try form.value(read) { _ in [] }
          #expect(try #require(back) == Self.normal(value, type), "\(type) \(value)")
        }
      }
    }
    let numbers: [PolicyValue] = [.integer(0), .integer(1)]
    #expect(taken[.boolean] == [.null, .boolean(true), .boolean(false)] + numbers)
    #expect(taken[.integer16] == [.null, .boolean(true), .boolean(false)] + numbers)
    #expect(
      taken[.integer32] == [.null, .boolean(true), .boolean(false)] + numbers + [.integer(-32_769), .integer(40_000)])
    #expect(taken[.integer64]?.count == 9)
    #expect(taken[.string] == [.null, .string(""), .string("a\u{0}ü🙂")])
    #expect(taken[.date] == [.null, .date(-1.25)])
    #expect(taken[.uuid] == [.null, .uuid(Array(0..<16))])
    #expect(taken[.uri] == [.null, .uri("https://example.org/ä")])
    #expect(taken[.binary] == [.null, .data([]), .data([1, 2, 3])])
    #expect(taken[.transformable] == [.null, .transformable([9, 8])])
    #expect(taken[.double]?.contains(.double(.nan)) == false)
    #expect(taken[.decimal]?.contains(.decimal("no number")) == false)
    #expect(taken[.decimal]?.contains(.decimal("10.110")) == true)
    for type in [AttributeType.undefined, .objectID, .composite] { #expect(taken[type] == [.null]) }
  }

  private static func column(_ type: AttributeType) -> String {
    switch type {
    case .integer16, .integer32, .integer64, .boolean: "INTEGER"
    case .decimal: "DECIMAL"
    case .double, .float: "FLOAT"
    case .date: "TIMESTAMP"
    case .string, .uri: "VARCHAR"
    default: "BLOB"
    }
  }

  /// Returns the value in the type's own kind.
  private static func normal(_ value: PolicyValue, _ type: AttributeType) -> PolicyValue {
    switch (type, value) {
    case (.boolean, .integer(let number)): .boolean(number != 0)
    case (.integer16, .boolean(let flag)), (.integer32, .boolean(let flag)), (.integer64, .boolean(let flag)):
      .integer(flag ? 1 : 0)
    case (.double, .integer(let number)), (.float, .integer(let number)): .double(Double(number))
    case (.decimal, .integer(let number)): .decimal(String(number))
    case (.decimal, .double(let number)): .decimal(String(number))
    case (.decimal, .decimal("10.110")): .decimal("10.11")
    default: value
    }
  }

  @Test func valuesOfTheWrongStorageAreNotGuessed() throws {
    for type in AttributeType.allCases {
      let form = PolicyAttributeForm(attribute: Attribute(name: "a", type: type))
      let stored: [SQLiteValue] = [.integer(1), .real(1.5), .text("1"), .blob([1])]
      for value in stored {
        let isOwn =
          switch (type, value) {
          case (.integer16, .integer), (.integer32, .integer), (.integer64, .integer), (.boolean, .integer): true
          case (.double, .integer), (.double, .real), (.float, .integer), (.float, .real): true
          case (.date, .integer), (.date, .real): true
          case (.decimal, .integer), (.decimal, .real), (.decimal, .text): true
          case (.string, .text), (.uri, .text), (.binary, .blob), (.transformable, .blob): true
          default: false
          }
        #expect(try (form.value(value) { _ in [] } != nil) == isOwn, "\(type) \(value)")
      }
    }
  }

  @Test func rememberedValuesAreBytesThatReadBack() {
    for value in Self.values {
      switch value {
      case .double(let number) where number.isNaN: continue
      case .date(let number) where number.isNaN: continue
      // No message has these.
      case .decimal("no number"), .uuid([1]): #expect(PolicyValue(json: value.json) == nil)
      default: #expect(PolicyValue(json: value.json) == value)
      }
    }
    #expect(Set(Self.values.map { $0.json }).count == Self.values.count)
    #expect(PolicyValue.double(-0.0).json == PolicyValue.double(0).json)
  }

  @Test func anythingButAValueIsNoValue() {
    var generator = Dice(seed: 20_261_121)
    for _ in 0..<20_000 {
      let bytes = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
        "[]{},:\"$dateuri0123.- ".utf8.randomElement(using: &generator) ?? 0
      }
      if let value = PolicyValue(json: bytes) {
        #expect(PolicyValue(json: value.json) == value)
      }
    }
    #expect(PolicyValue(json: [UInt8](repeating: UInt8(ascii: "["), count: 100_000)) == nil)
  }

  @Test func callsGrowToTheTimeAndShrinkWithIt() {
    var pace = PolicyPace(options: EngineOptions())
    #expect(pace.rows == 50)
    for _ in 0..<10 { pace.record(.microseconds(10 * pace.rows)) }
    #expect(pace.rows == 2_000)
    for _ in 0..<10 { pace.record(.milliseconds(10 * pace.rows)) }
    #expect((20...30).contains(pace.rows))
    for _ in 0..<10 { pace.record(.seconds(10)) }
    #expect(pace.rows == 1)
  }
}
