// Changes between number types: which values fit according to the rows, compared with a plain check of each value.

import Diagnostics
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite
import SystemPackage
import Testing

@testable import MigrationPlanning

@Suite struct NumberInspectionTests {
  private static let numbers: [AttributeType] = [
    .boolean, .integer16, .integer32, .integer64, .decimal, .double, .float,
  ]
  /// SQL literals at the limits of the types.
  private static let values = [
    "0", "1", "2", "-1", "32767", "32768", "-32768", "-32769", "2147483647", "2147483648", "-2147483648",
    "-2147483649", "9007199254740992", "9007199254740993", "9223372036854775807", "-9223372036854775808", "0.5", "1.0",
    "-3.0", "1e18", "1e19", "-1e300", "9e999", "3.4028234663852886e38", "3.5e38", "NULL",
  ]

  /// Whether a value fits, computed again without SQL.
  private func fits(_ literal: String, _ type: AttributeType) -> Bool {
    if literal == "NULL" { return true }
    if let integer = Int64(literal) {
      return switch type {
      case .boolean: integer == 0 || integer == 1
      case .integer16: Int16(exactly: integer) != nil
      case .integer32: Int32(exactly: integer) != nil
      case .float, .double: Double(exactly: integer) != nil
      default: true
      }
    }
    guard let real = Double(literal == "9e999" ? "inf" : literal) else { return false }
    return switch type {
    case .boolean: real == 0 || real == 1
    case .integer16: Int16(exactly: real) != nil
    case .integer32: Int32(exactly: real) != nil
    case .integer64: Int64(exactly: real) != nil
    case .float: real.isInfinite || abs(real) <= Double(Float.greatestFiniteMagnitude)
    case .decimal: abs(real) < 1e127
    default: true
    }
  }

  @Test func everyValueIntoEveryType() throws {
    let connection = try Connection(path: ":memory:", access: .create)
    var refused = 0
    for old in Self.numbers {
      let model = ManagedObjectModel(name: "V1", entities: [entity("A", [attribute("x", old)])])
      let table = try #require(StoreSchema(model: model, frameworkVersion: 1344).tables.first)
      try connection.execute("DROP TABLE IF EXISTS ZA; \(table.createStatement)")
      for (key, value) in Self.values.enumerated() {
        try connection.execute("INSERT INTO ZA (Z_PK, Z_ENT, ZX) VALUES (\(key), 1, \(value))")
      }
      for new in Self.numbers {
        guard let conversion = NumberConversion(from: old, to: new) else {
          #expect(old == new)
          continue
        }
        let misfits = try connection.rows(
          "SELECT Z_PK FROM ZA WHERE \(conversion.misfit("ZX"))"
        ) { Int($0.integer(at: 0)) }
        for (key, value) in Self.values.enumerated() {
          // Integers in a column of reals are reals.
          let isReal = [.double, .float].contains(old)
          let held = isReal ? Int64(value).map { "\(Double($0))" } ?? value : value
          #expect(misfits.contains(key) != fits(held, new), "\(value) of \(old) as \(new)")
        }
        refused += misfits.count
      }
    }
    #expect(refused > 100)
  }

  @Test func theFirstRowThatDoesNotFitIsNamed() throws {
    let catalog = catalog([entity("A", [attribute("x", .integer32)])], [entity("A", [attribute("x", .integer16)])])
    let store = try SmallStore(
      try catalog.model("V1"),
      "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZX) VALUES (7, 1, 1, 5), (8, 1, 1, 40000), (9, 1, 1, 50000)")
    let error = #expect(throws: HopdError.self) { try store.plan(catalog) }
    #expect(error?.code == .numberDoesNotFit && error?.place.row == 8 && error?.place.property == "x")
    #expect(error?.message.contains("2 rows") == true && error?.message.contains("40000") == false)
  }

  /// A column of decimals may contain text that SQLite could not read as a number.
  @Test func textIsNoNumber() throws {
    let catalog = catalog([entity("A", [attribute("x", .decimal)])], [entity("A", [attribute("x", .double)])])
    let store = try SmallStore(
      try catalog.model("V1"), "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZX) VALUES (3, 1, 1, 'many')")
    let error = #expect(throws: HopdError.self) { try store.plan(catalog) }
    #expect(error?.code == .numberDoesNotFit && error?.place.row == 3)
  }

  /// A default that one version wrote into every row must fit the type of a later one.
  @Test func defaultsOfVersionsBetween() throws {
    for (value, isAllowed) in [(2.0, true), (2.5, false), (40_000.0, false)] {
      let catalog = catalog(
        [entity("A")], [entity("A", [attribute("x", .double, value: .double(value))])],
        [entity("A", [attribute("x", .integer16)])])
      let store = try SmallStore(try catalog.model("V1"), "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1)")
      // The alternative chain is direct, and uses no default of a version between.
      let plan = try store.plan(catalog)
      #expect(plan.hops.count == (isAllowed ? 2 : 1))
      #expect(plan.warnings.contains { $0.code == .versionsSkipped } == !isAllowed)
    }
  }
}
