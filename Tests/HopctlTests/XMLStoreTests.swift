// Core Data's XML and binary stores: recognized, refused with what to type, and XML stores read.

import BlockingTests
import FoundationEssentials
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct XMLStoreTests {
  private static let objects = """
    <object type="SHELF" id="z102">
      <attribute name="name" type="string">A \\u3c00b\\u3e00 &amp; c</attribute>
      <relationship name="books" type="0/0" destination="BOOK" idrefs="z105 z103"></relationship>
    </object>
    <object type="BOOK" id="z103">
      <attribute name="pagecount" type="int32">12</attribute>
      <attribute name="bought" type="date">445103622.25000000000000000000</attribute>
      <attribute name="isread" type="bool">1</attribute>
      <attribute name="cover" type="binary">AAEC</attribute>
      <relationship name="shelf" type="0/1" destination="SHELF" idrefs="z102"></relationship>
      <relationship name="readers" type="0/0" destination="READER" idrefs="z104"></relationship>
    </object>
    <object type="READER" id="z104">
      <relationship name="books" type="0/0" destination="BOOK" idrefs="z103 z105"></relationship>
    </object>
    <object type="ATLAS" id="z105">
      <attribute name="scale" type="double">0.5</attribute>
      <relationship name="shelf" type="0/1" destination="SHELF" idrefs="z102"></relationship>
      <relationship name="readers" type="0/0" destination="READER" idrefs="z104"></relationship>
    </object>
    """

  /// A model of two versions, and an XML store of the first one.
  private func library(_ objects: String = objects) throws -> (room: Room, store: String, model: String) {
    let room = try Room()
    for (name, more) in [("L", ""), ("L 2", "<attribute name='note' optional='YES' attributeType='String'/>")] {
      try room.file(
        "L.xcdatamodeld/\(name).xcdatamodel/contents",
        """
        <?xml version='1.0'?><model>
        <entity name='Shelf'><attribute name='name' optional='YES' attributeType='String'/>\(more)
        <relationship name='books' optional='YES' toMany='YES' ordered='YES' destinationEntity='Book'
          inverseName='shelf' inverseEntity='Book'/></entity>
        <entity name='Book'><attribute name='pageCount' optional='YES' attributeType='Integer 32'/>
        <attribute name='bought' optional='YES' attributeType='Date'/>
        <attribute name='isRead' optional='YES' attributeType='Boolean'/>
        <attribute name='cover' optional='YES' attributeType='Binary' allowsExternalBinaryDataStorage='YES'/>
        <relationship name='shelf' optional='YES' maxCount='1' destinationEntity='Shelf' inverseName='books'
          inverseEntity='Shelf'/>
        <relationship name='readers' optional='YES' toMany='YES' destinationEntity='Reader' inverseName='books'
          inverseEntity='Reader'/></entity>
        <entity name='Atlas' parentEntity='Book'><attribute name='scale' optional='YES' attributeType='Double'/>
        </entity>
        <entity name='Reader'><relationship name='books' optional='YES' toMany='YES' destinationEntity='Book'
          inverseName='readers' inverseEntity='Book'/></entity></model>
        """)
    }
    try room.file(
      "L.xcdatamodeld/.xccurrentversion",
      """
      <?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict><key>_XCCurrentVersionName</key>
      <string>L 2.xcdatamodel</string></dict></plist>
      """)
    let model = room.path("L.xcdatamodeld")
    let versions = try room.run("model", "hash", model, "--json").json().versions?.list ?? []
    let hashes = versions.first { $0.name?.text == "L" }?.entityVersionHashes
    let entries = try (hashes?.keys.sorted() ?? []).map { name -> String in
      guard case .object(let members)? = hashes, let hex = members[name]?.text else { return "" }
      let bytes = stride(from: 0, to: 64, by: 2).compactMap { UInt8(hex.dropFirst($0).prefix(2), radix: 16) }
      try #require(bytes.count == 32)
      return "<key>\(name)</key><data>\n\t\(Data(bytes).base64EncodedString())\n\t</data>"
    }
    try room.file("stores/old.storedata", Self.document(objects, hashes: entries.joined()))
    return (room, room.path("stores/old.storedata"), model)
  }

  private static func document(_ objects: String, hashes: String) -> String {
    """
    <?xml version="1.0"?>
    <!DOCTYPE database SYSTEM "file:///System/Library/DTDs/CoreData.dtd">

    <database><databaseInfo><version>134481920</version><UUID>8D2A9C31-5B1E-4C36-9A0F-1B2C3D4E5F60</UUID>
    <nextObjectID>106</nextObjectID><metadata><plist version="1.0"><dict>
    <key>NSPersistenceFrameworkVersion</key><integer>641</integer>
    <key>NSStoreModelVersionHashes</key><dict>\(hashes)</dict>
    <key>shelfmark</key><string>kept</string>
    </dict></plist></metadata></databaseInfo>
    \(objects)</database>
    """
  }

  @Test func theKindOfStoreIsNamed() throws {
    let (room, store, model) = try library()
    try room.file("stores/archive.bin", "bplist00 … NSStoreModelVersionHashes …")
    try room.file("stores/page.xml", "<?xml version='1.0'?><!-- <database> --><html><database/></html>")
    for (path, state, hint) in [
      (store, "xml-store", "--output NEW.sqlite"),
      (room.path("stores/archive.bin"), "binary-store", "migratePersistentStore"),
      (room.path("stores/page.xml"), "not-a-store", "right file"),
    ] {
      let found = try room.run("identify", path, "--models", model, "--json")
      #expect(found.status == 65 && found.errors.contains(hint), "\(found)")
      #expect(try found.json().state?.text == state)
    }
    for command in [["verify", store], ["plan", store], ["migrate", store]] {
      let refused = try room.run(words: command + ["--models", model])
      #expect(refused.status == 65 && refused.errors.contains("--output NEW.sqlite"), "\(command): \(refused)")
    }
  }

  @Test func anXMLStoreIsDumped() throws {
    let (room, store, model) = try library()
    let before = try room.snapshot()
    let dumped = try room.run("dump", store, "--models", model)
    #expect(dumped.status == 0, "\(dumped.errors)")
    let objects = try dumped.lines()
    #expect(objects.count == 4)
    func object(_ entity: String) -> JSON? { objects.first { $0.entity?.text == entity } }
    #expect(object("Shelf")?.attributes?.name?.text == "A <b> & c")
    // z103 is the first book, z105, an atlas, the second; the order is the shelf's.
    #expect(object("Shelf")?.relationships?.books?.list == [.string("Atlas/p2"), .string("Book/p1")])
    let book = object("Book")?.attributes
    #expect(book?.pageCount?.int == 12 && book?.isRead == .boolean(true) && book?.cover?.text == "AAEC")
    #expect(book?.bought?.text == "2015-02-08T15:53:42.25Z")
    #expect(object("Atlas")?.attributes?.scale == .number(0.5))
    #expect(object("Reader")?.relationships?.books?.list == [.string("Book/p1"), .string("Atlas/p2")])
    #expect(try room.snapshot() == before)
  }

  @Test func anXMLStoreBecomesASQLiteStore() throws {
    let (room, store, model) = try library()
    let new = room.path("stores/new.sqlite")
    let migrated = try room.run("migrate", store, "--models", model, "--output", new, "--json")
    #expect(migrated.status == 0, "\(migrated.errors)")
    let report = try migrated.json()
    #expect(report.store?.text == store && report.from?.text == "L" && report.to?.text == "L 2")
    #expect(try room.run("verify", new, "--models", model).status == 0)
    #expect(try room.run("identify", new, "--models", model, "--json").json().state?.text == "current")
    #expect(try room.sql(new, "SELECT Z_UUID FROM Z_METADATA") == "8D2A9C31-5B1E-4C36-9A0F-1B2C3D4E5F60")
    #expect(try room.sql(new, "SELECT instr(Z_PLIST, 'shelfmark') > 0 FROM Z_METADATA") == "1")
    #expect(try room.sql(new, "SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'Book'") == "2")
    #expect(try room.run("dump", new, "--models", model).lines().count == 4)
    // A store that is current becomes one, too.
    let same = room.path("stores/same.sqlite")
    let copied = try room.run("migrate", store, "--models", model, "--to", "L", "--output", same)
    #expect(copied.status == 0, "\(copied.errors)")
    #expect(
      try room.run("dump", same, "--models", model).output == (try room.run("dump", store, "--models", model)).output)
  }

  @Test(
    "Nothing is written of a store that cannot be placed exactly",
    arguments: [
      ("type=\"int32\">12<", "type=\"int32\">12.5<"), ("type=\"int32\">12<", "type=\"string\">12<"),
      ("name=\"pagecount\"", "name=\"pages\""), ("idrefs=\"z105 z103\"", "idrefs=\"z105\""),
      ("idrefs=\"z105 z103\"", "idrefs=\"z105 z999\""), ("idrefs=\"z103 z105\"", "idrefs=\"z103\""),
      ("type=\"READER\" id", "type=\"WRITER\" id"), ("id=\"z105\"", "id=\"z103\""),
      ("<attribute name=\"scale\"", "<thing name=\"scale\"/><attribute name=\"scale\""),
      ("type=\"binary\">AAEC", "type=\"binary\">A*EC"), ("type=\"bool\">1", "type=\"bool\">2"),
    ])
  func refused(_ old: String, _ new: String) throws {
    let (room, store, model) = try library(Self.objects.replacing(old, with: new, maxReplacements: 1))
    let outcome = try room.run("migrate", store, "--models", model, "--output", room.path("stores/new.sqlite"))
    #expect(outcome.status == 65 && outcome.errors.contains("hint:"), "\(outcome)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: room.path("stores")) == ["old.storedata"])
    let dumped = try room.run("dump", store, "--models", model)
    #expect(dumped.status == 65 && dumped.output == "", "\(dumped)")
  }

  @Test func aStoreWithoutAVersionIsRefused() throws {
    let (room, store, model) = try library()
    try room.file("stores/old.storedata", Self.document(Self.objects, hashes: ""))
    let outcome = try room.run("dump", store, "--models", model)
    #expect(outcome.status == 65 && outcome.errors.contains("no version hashes"), "\(outcome)")
  }
}
