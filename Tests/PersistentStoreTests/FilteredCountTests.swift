// Filtered counts: the condition, the order, the triggers and the values. Tests/RealStoreTests compares the texts with
// those of Photos.

import BlockingTests
import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import OtherPrograms
import SQLite
import SystemPackage
import Testing

@testable import PersistentStore

@Suite(.blocking) struct FilteredCountTests {
  private func model(
    _ condition: String = "(faces.hidden == NO) &amp;&amp; (faces.visible == YES)", destination: String = "Person"
  ) throws -> ManagedObjectModel {
    try sampleModel(
      """
      <entity name='Asset'>
        <attribute name='state' optional='YES' attributeType='Integer 16'/>
        <relationship name='faces' optional='YES' toMany='YES' destinationEntity='Face' inverseName='asset'
          inverseEntity='Face'/>
      </entity>
      <entity name='Face'>
        <attribute name='hidden' optional='YES' attributeType='Boolean'/>
        <attribute name='visible' optional='YES' attributeType='Integer 32'>
          <userInfo><entry key='NSTriggerKey' value='(asset.state != 0)'/></userInfo>
        </attribute>
        <relationship name='asset' optional='YES' maxCount='1' destinationEntity='Asset' inverseName='faces'
          inverseEntity='Asset'/>
        <relationship name='person' optional='YES' maxCount='1' destinationEntity='\(destination)' inverseName='faces'
          inverseEntity='\(destination)'/>
      </entity>
      <entity name='Person'>
        <attribute name='count' optional='YES' attributeType='Integer 32'>
          <userInfo><entry key='NSTriggerKey' value='\(condition)'/></userInfo>
        </attribute>
        <relationship name='faces' optional='YES' toMany='YES' destinationEntity='Face' inverseName='person'
          inverseEntity='Face'/>
      </entity>
      """)
  }

  /// A count comes after the one that its condition reads, and both have seven triggers.
  @Test func countsAreInTheOrderOfTheirReading() throws {
    let schema = StoreSchema(model: try model(), frameworkVersion: 1044)
    #expect(schema.filteredCounts.map(\.attribute) == ["visible", "count"])
    #expect(schema.triggers.count == 14)
    #expect(schema.unsupported.isEmpty)
    let texts = Dictionary(schema.triggers.map { ($0.name, $0.text) }, uniquingKeysWith: { first, _ in first })
    #expect(
      texts["ZT_ZPERSON_ZCOUNT_ZFACE_INSERT_INCREMENT"]
        == "CREATE TRIGGER ZT_ZPERSON_ZCOUNT_ZFACE_INSERT_INCREMENT AFTER INSERT ON ZFACE FOR EACH ROW WHEN"
        + " NEW.ZHIDDEN == 0 AND NEW.ZVISIBLE == 1 BEGIN UPDATE ZPERSON SET ZCOUNT = IFNULL(ZCOUNT,0) + 1 WHERE"
        + " NEW.ZPERSON = Z_PK; SELECT NSCoreDataTriggerUpdateAffectedObjectValue('ZPERSON', Z_ENT, Z_PK, 'ZCOUNT',"
        + " ZCOUNT) FROM ZPERSON WHERE Z_PK = NEW.ZPERSON; END")
  }

  @Test(arguments: [
    "", "faces.hidden == NO", "(faces.hidden == NO", "(faces.hidden == NO) || (faces.visible == YES)",
    "(faces.hidden &gt; 1)", "(hidden == NO)", "(faces.hidden == NO) &amp;&amp; (others.visible == YES)",
    "(faces.nothing == NO)", "(faces.hidden == 1.5)", "(faces.hidden == NO) &amp;&amp;", "(nobody.hidden == NO)",
  ])
  func conditionsOfOtherFormsGiveNoTriggers(_ condition: String) throws {
    let schema = StoreSchema(model: try model(condition), frameworkVersion: 1044)
    #expect(schema.filteredCounts.map(\.attribute) == ["visible"])
    #expect(schema.triggers.count == 7)
  }

  /// A new store has the right counts, and its triggers keep them when rows are inserted, changed, moved and deleted.
  @Test func madeStoresCountAndGoOnCounting() throws {
    let schema = StoreSchema(model: try model(), frameworkVersion: 1044)
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-filtered-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let path = folder.appending("store.sqlite")
    try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 5)).make(at: path, rows: 400, seed: 5)
    let connection = try Connection.ofApp(path)
    let wrong = """
      SELECT (SELECT count(*) FROM ZFACE f WHERE ZVISIBLE IS NOT
          (SELECT count(*) FROM ZASSET WHERE Z_PK = f.ZASSET AND ZSTATE <> 0))
        + (SELECT count(*) FROM ZPERSON p WHERE ZCOUNT IS NOT
          (SELECT count(*) FROM ZFACE WHERE ZPERSON = p.Z_PK AND ZHIDDEN = 0 AND ZVISIBLE = 1))
      """
    #expect(try connection.integer(wrong) == 0)
    #expect(try connection.integer("SELECT sum(ZVISIBLE) > 5 FROM ZFACE") == 1)
    #expect(try connection.integer("SELECT sum(ZCOUNT) > 5 FROM ZPERSON") == 1)
    for count in schema.filteredCounts {
      let answers = try connection.rows(count.comparison { SQLiteIdentifier.quoted($0) }) {
        ($0.integer(at: 0), $0.integer(at: 1))
      }
      #expect(answers.first?.0 ?? 0 > 50)
      #expect(answers.first?.1 == 0)
    }
    let insert = "INSERT INTO ZFACE (Z_PK, Z_ENT, Z_OPT, ZHIDDEN, ZPERSON, ZASSET) VALUES (9001, 2, 1, 0, 1, 1)"
    #expect(throws: SQLiteError.self) { try connection.execute(insert) }
    try SchemaTrigger.registerFunctions(on: connection)
    try connection.execute("UPDATE ZASSET SET ZSTATE = 3 WHERE Z_PK = 1; \(insert)")
    #expect(try connection.integer("SELECT ZVISIBLE FROM ZFACE WHERE Z_PK = 9001") == 1)
    for change in [
      "UPDATE ZASSET SET ZSTATE = 0 WHERE Z_PK = 1", "UPDATE ZASSET SET ZSTATE = 7 WHERE Z_PK = 1",
      "UPDATE ZFACE SET ZPERSON = 2 WHERE Z_PK = 9001", "UPDATE ZFACE SET ZHIDDEN = 1 WHERE Z_PK = 9001",
      "UPDATE ZFACE SET ZHIDDEN = 0 WHERE Z_PK = 9001", "UPDATE ZFACE SET ZPERSON = NULL WHERE Z_PK = 9001",
      "UPDATE ZFACE SET ZPERSON = 3 WHERE Z_PK = 9001", "UPDATE ZFACE SET ZASSET = NULL WHERE Z_PK = 9001",
      "UPDATE ZFACE SET ZASSET = 1 WHERE Z_PK = 9001", "DELETE FROM ZFACE WHERE Z_PK = 9001",
      "INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT) VALUES (9001, 3, 1)",
    ] {
      try connection.execute(change)
      #expect(try connection.integer(wrong) == 0, "\(change)")
    }
  }
}
