// Every rule of a model, violated once, under every rule for invalid rows: the report, the remaining objects, and that
// no reference to a removed object remains.

import BlockingTests
import Diagnostics
import Glibc
import ManagedObjectModel
import MigrationPlanning
import OtherPrograms
import PersistentStore
import SQLite
import SystemPackage
import Testing

@testable import MigrationEngine

/// A store of a model with rules. Tests write its rows with SQL.
private final class RuledStore {
  let connection: Connection
  let layout: StoreSchema
  let folder: FilePath

  static let model = """
    <?xml version="1.0"?><model>
    <entity name="Person">
      <attribute name="name" attributeType="String" minValueString="2" maxValueString="5" \
      regularExpressionString="[A-Z].*"/>
      <attribute name="age" optional="YES" attributeType="Integer 16" minValueString="0" maxValueString="120" \
      defaultValueString="18"/>
      <attribute name="born" optional="YES" attributeType="Date" minDateTimeInterval="0" maxDateTimeInterval="1000"/>
      <attribute name="code" attributeType="String" defaultValueString="none"/>
      <relationship name="home" maxCount="1" destinationEntity="House" inverseName="people" inverseEntity="House"/>
      <relationship name="friends" optional="YES" toMany="YES" minCount="2" destinationEntity="Person" \
      inverseName="friendOf" inverseEntity="Person"/>
      <relationship name="friendOf" optional="YES" toMany="YES" destinationEntity="Person" inverseName="friends" \
      inverseEntity="Person"/>
      <uniquenessConstraints><uniquenessConstraint><constraint value="code"/></uniquenessConstraint>\
      </uniquenessConstraints>
    </entity>
    <entity name="Pupil" parentEntity="Person"/>
    <entity name="House">
      <attribute name="street" optional="YES" attributeType="String"/>
      <relationship name="people" optional="YES" toMany="YES" maxCount="4" destinationEntity="Person" \
      inverseName="home" inverseEntity="Person"/>
      <relationship name="keeper" optional="YES" maxCount="1" destinationEntity="Person"/>
    </entity></model>
    """

  init() throws {
    var template = Array("/tmp/hopd-test-XXXXXX".utf8CString)
    let made: String? = template.withUnsafeMutableBufferPointer { buffer in
      guard let start = buffer.baseAddress, mkdtemp(start) != nil else { return nil }
      return String(cString: start)
    }
    folder = FilePath(try #require(made))
    let model = try ModelReader.read(contents: Array(Self.model.utf8), name: "Ruled").model
    layout = StoreSchema(model: model, frameworkVersion: 1344)
    connection = try Connection(path: folder.appending("main.sqlite"), access: .create)
    try makeFile("staged.sqlite")
    try connection.attach(folder.appending("staged.sqlite"), as: "hop0")
    try StoreWriter(connection: connection, schema: "hop0").createTables(layout)
    try run("INSERT INTO ZHOUSE (Z_PK, Z_ENT, Z_OPT, ZSTREET) VALUES (1, \(number("House")), 1, 'x')")
    // Valid people: 1 is a person, 2 a pupil.
    try add(1, "Person", name: "Anna", code: "a")
    try add(2, "Pupil", name: "Ben", code: "b")
  }

  deinit {
    for name in ["main.sqlite", "staged.sqlite", "side.sqlite"] {
      _ = folder.appending(name).withPlatformString { unlink($0) }
    }
    _ = folder.withPlatformString { rmdir($0) }
  }

  /// Makes an empty file, as the pipeline does.
  func makeFile(_ name: String) throws {
    let descriptor = folder.appending(name).withPlatformString { open($0, O_CREAT | O_RDWR, 0o600) }
    #expect(descriptor >= 0)
    close(descriptor)
  }

  func number(_ entity: String) -> Int64 { layout.number(of: entity) ?? 0 }

  /// Runs a statement on the tables of the staged store.
  func run(_ sql: String) throws { try connection.run(sql) }

  func add(_ key: Int64, _ entity: String, name: String?, code: String?, home: Int64? = 1, extra: String = "") throws {
    try connection.run(
      "INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZNAME, ZCODE, ZHOME) VALUES (?, ?, 1, ?, ?, ?)",
      [
        .integer(key), .integer(number(entity)), name.map(SQLiteValue.text) ?? .null,
        code.map(SQLiteValue.text) ?? .null, home.map(SQLiteValue.integer) ?? .null,
      ])
    if !extra.isEmpty { try run("UPDATE ZPERSON SET \(extra) WHERE Z_PK = \(key)") }
  }

  var people: [Int64] {
    get throws { try connection.rows("SELECT Z_PK FROM ZPERSON ORDER BY Z_PK") { $0.integer(at: 0) } }
  }

  func validate(_ rules: InvalidRowsRules) throws -> [InvalidRows] {
    try connection.transaction {
      try MappedHopValidation(
        connection: connection, layout: layout, tables: .schema("hop0"), rules: rules, hop: "A → Ruled"
      ).run()
    }
  }
}

/// One violation of the model, by the person with key 3.
private struct Breach: CustomTestStringConvertible {
  let property: String
  let code: ValidationErrorCode
  let make: @Sendable (RuledStore) throws -> Void
  var testDescription: String { "\(property) \(code)" }

  init(_ property: String, _ code: ValidationErrorCode, _ make: @escaping @Sendable (RuledStore) throws -> Void) {
    self.property = property
    self.code = code
    self.make = make
  }

  static let all = [
    Breach("name", .missingValue) { try $0.add(3, "Person", name: nil, code: "c") },
    Breach("name", .stringTooShort) { try $0.add(3, "Person", name: "A", code: "c") },
    // Six UTF-16 units in three characters.
    Breach("name", .stringTooLong) { try $0.add(3, "Person", name: "A🙂🙂🙂", code: "c") },
    Breach("name", .patternMismatch) { try $0.add(3, "Person", name: "anna", code: "c") },
    Breach("age", .numberTooLarge) { try $0.add(3, "Person", name: "Cleo", code: "c", extra: "ZAGE = 121") },
    Breach("age", .numberTooSmall) { try $0.add(3, "Person", name: "Cleo", code: "c", extra: "ZAGE = -1") },
    Breach("born", .dateTooLate) { try $0.add(3, "Person", name: "Cleo", code: "c", extra: "ZBORN = 1000.5") },
    Breach("born", .dateTooSoon) { try $0.add(3, "Person", name: "Cleo", code: "c", extra: "ZBORN = -1") },
    Breach("code", .missingValue) { try $0.add(3, "Person", name: "Cleo", code: nil) },
    Breach("code", .uniqueness) { try $0.add(3, "Pupil", name: "Cleo", code: "a") },
    Breach("home", .missingValue) { try $0.add(3, "Person", name: "Cleo", code: "c", home: nil) },
    Breach("friends", .tooFew) {
      try $0.add(3, "Person", name: "Cleo", code: "c")
      guard let join = $0.layout.joinTables.first else { return }
      let (own, other) =
        join.relationship == "friends"
        ? (join.ownerColumn, join.targetColumn)
        : (join.targetColumn, join.ownerColumn)
      try $0.run("INSERT INTO \(join.name) (\(own), \(other)) VALUES (3, 1)")
    },
  ]
}

@Suite(.blocking) struct MappedHopValidationTests {
  @Test func soundObjectsAreLeftAlone() throws {
    let store = try RuledStore()
    #expect(try store.validate(InvalidRowsRules()).isEmpty)
    #expect(try store.people == [1, 2])
  }

  @Test(arguments: Breach.all) fileprivate func failsWithEntityPropertyRowAndCode(_ breach: Breach) throws {
    let store = try RuledStore()
    try breach.make(store)
    let error = try #require(throws: HopdError.self) { try store.validate(InvalidRowsRules()) }
    #expect(error.code == .invalidRows)
    #expect(error.reasons.count == 1, "\(error)")
    let reason = try #require(error.reasons.first)
    #expect(["Person", "Pupil"].contains(reason.place.entity ?? ""))
    #expect(reason.place.property == breach.property)
    #expect(reason.place.row == 3)
    #expect(reason.message.contains("Core Data \(breach.code.rawValue)"), "\(reason.message)")
    #expect(!"\(error)".contains("Cleo") && !"\(error)".contains("🙂"), "values never appear")
    #expect(try store.people == [1, 2, 3])
  }

  @Test(arguments: Breach.all) fileprivate func skipsTheObjectAndEveryReferenceToIt(_ breach: Breach) throws {
    let store = try RuledStore()
    try breach.make(store)
    let settled = try store.validate(InvalidRowsRules(standard: .skip))
    #expect(settled.map(\.property) == [breach.property])
    #expect(settled.map(\.code) == [breach.code])
    #expect(settled.map(\.keys) == [[3]])
    #expect(try store.people == [1, 2])
    let join = try #require(store.layout.joinTables.first)
    #expect(try store.connection.integer("SELECT count(*) FROM \(join.name)") == 0)
    let ours = try store.connection.integer("SELECT count(*) FROM hop0.sqlite_master WHERE name LIKE 'HOPD%'")
    #expect(ours == 0, "a skipped object leaves no table behind")
  }

  @Test func clearedReferencesOfObjectsThatStayAreCounted() throws {
    let store = try RuledStore()
    try store.add(3, "Person", name: nil, code: "c")
    try store.run("UPDATE ZHOUSE SET ZKEEPER = 3")
    let settled = try store.validate(InvalidRowsRules(standard: .skip))
    #expect(settled.map(\.clearedReferences) == [["House.keeper": 1]])
    #expect(try store.connection.value("SELECT ZKEEPER FROM ZHOUSE") == .null)
  }

  @Test func aDefaultIsOnlyOfferedWhereThereIsOne() throws {
    let store = try RuledStore()
    try store.add(3, "Person", name: nil, code: "c")
    let error = #expect(throws: HopdError.self) { try store.validate(InvalidRowsRules(standard: .default)) }
    #expect(error?.reasons.first?.message.contains("name has no default") == true)
    #expect(error?.hint?.contains("\"default\"") == false)
  }

  @Test(arguments: Breach.all) fileprivate func theDefaultMendsWhatItCan(_ breach: Breach) throws {
    let store = try RuledStore()
    try breach.make(store)
    let rules = InvalidRowsRules(standard: .default)
    if breach.property == "age" || (breach.property == "code" && breach.code == .missingValue) {
      #expect(try store.validate(rules).map(\.rule) == [.default])
      #expect(try store.people == [1, 2, 3])
      let value = try store.connection.value(
        "SELECT \(breach.property == "age" ? "ZAGE" : "ZCODE") FROM ZPERSON WHERE Z_PK = 3")
      #expect(value == (breach.property == "age" ? .integer(18) : .text("none")))
    } else {
      #expect(throws: HopdError.self) { try store.validate(rules) }
    }
  }

  @Test func aDefaultThatBreaksAnotherRuleFails() throws {
    let store = try RuledStore()
    try store.add(3, "Person", name: "Cleo", code: nil)
    try store.add(4, "Person", name: "Dora", code: nil)
    let error = try #require(throws: HopdError.self) { try store.validate(InvalidRowsRules(standard: .default)) }
    #expect(error.reasons.map(\.place.property) == ["code"])
    #expect("\(error)".contains("1551"))
  }

  @Test func leavingOutGoesOnUntilNothingIsBroken() throws {
    let store = try RuledStore()
    // House 2 has five people, one too many. When it is removed, they have no home and are removed too.
    try store.run("INSERT INTO ZHOUSE (Z_PK, Z_ENT, Z_OPT) VALUES (2, \(store.number("House")), 1)")
    for key in Int64(3)...7 { try store.add(key, "Pupil", name: "Cleo", code: "c\(key)", home: 2) }
    let rules = InvalidRowsRules(standard: .fail, byEntity: ["House": .skip, "Pupil": .skip])
    let settled = try store.validate(rules)
    #expect(settled.map(\.entity) == ["House", "Pupil"])
    #expect(settled.map(\.count) == [1, 5])
    #expect(try store.people == [1, 2])
  }

  @Test func theRuleOfTheEntityWins() throws {
    let store = try RuledStore()
    try store.add(3, "Pupil", name: nil, code: "c")
    try store.add(4, "Person", name: nil, code: "d")
    let error = try #require(throws: HopdError.self) {
      try store.validate(InvalidRowsRules(byEntity: ["Pupil": .skip]))
    }
    #expect(error.reasons.map(\.place.row) == [4])
  }

  @Test func quarantinedObjectsAreKeptWholeInASideFile() throws {
    let store = try RuledStore()
    try store.add(3, "Pupil", name: nil, code: "c", extra: "ZAGE = 130, ZBORN = 5")
    try store.add(4, "Person", name: "Dora", code: "d")
    #expect(try store.validate(InvalidRowsRules(standard: .quarantine)).map(\.count) == [1, 1])
    #expect(try store.people == [1, 2, 4])
    let side = store.folder.appending("side.sqlite")
    try store.makeFile("side.sqlite")
    let tables = QuarantineTables(connection: store.connection, schema: "hop0")
    // Twice, as after a crash between the calls.
    #expect(try tables.export(hop: 1, to: side) == 1)
    #expect(try tables.export(hop: 1, to: side) == 1)
    let kept = try Connection.ofApp(side, .readOnly)
    let row = try kept.rows("SELECT Z_PK, ZCODE, ZAGE, typeof(ZBORN), ZNAME FROM \"hop 2 ZPERSON\"") { row in
      (0..<5).map { row.value(at: $0) }
    }
    #expect(row == [[.integer(3), .text("c"), .integer(130), .text("integer"), .null]])
    let violations = try kept.rows("SELECT property, code FROM \"hop 2 VIOLATIONS\" ORDER BY code") { row in
      [row.value(at: 0), row.value(at: 1)]
    }
    #expect(violations == [[.text("name"), .integer(1570)], [.text("age"), .integer(1610)]])
  }
}
