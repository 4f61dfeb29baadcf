// What the rows decide of mapping models, and what of one has no effect: parts of one entity, look-ups that find
// nothing that fits, entity mappings of entities that are gone, and `mapping lint`, which tells all of it beforehand.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

@Suite(
  .blocking, .enabled(if: Program.isBuilt, Program.absence),
  .enabled(if: access("/usr/bin/sqlite3", X_OK) == 0, "sqlite3 is not there"))
struct MappingDecisionTests {
  /// A model of items in groups that have friends, owners, and what one version only has; and a store of four items.
  private func items(_ room: Room) throws -> (model: String, store: String) {
    func version(_ more: String) -> String {
      """
      <?xml version="1.0"?><model>
      <entity name='Item'><attribute name='uid' attributeType='Integer 32'/>
      <attribute name='group' optional='YES' attributeType='Integer 32'/>
      <attribute name='note' optional='YES' attributeType='String'/>
      <relationship name='friend' optional='YES' maxCount='1' destinationEntity='Item' inverseName='friends'
        inverseEntity='Item'/>
      <relationship name='friends' optional='YES' toMany='YES' destinationEntity='Item' inverseName='friend'
        inverseEntity='Item'/>
      <relationship name='owner' optional='YES' maxCount='1' destinationEntity='Owner' inverseName='items'
        inverseEntity='Owner'/></entity>
      <entity name='Owner'><attribute name='name' optional='YES' attributeType='String'/>
      <relationship name='items' optional='YES' toMany='YES' destinationEntity='Item' inverseName='owner'
        inverseEntity='Item'/></entity>\(more)</model>
      """
    }
    try room.file("Items.xcdatamodeld/Items.xcdatamodel/contents", version("<entity name='Old'/>"))
    try room.file(
      "Items.xcdatamodeld/Items 2.xcdatamodel/contents",
      version("<entity name='New'/>").replacing("'note' optional='YES'", with: "'\(note)' optional='YES'"))
    try room.file(
      "Items.xcdatamodeld/.xccurrentversion",
      "<?xml version=\"1.0\"?><plist version=\"1.0\"><dict><key>_XCCurrentVersionName</key>"
        + "<string>Items 2.xcdatamodel</string></dict></plist>")
    let (model, store) = (room.path("Items.xcdatamodeld"), room.path("items.sqlite"))
    let made = try room.run("create", store, "--models", model, "--model-version", "Items", "--rows", "0")
    try #require(made.status == 0, "\(made.errors)")
    // Items 1 to 4 of the groups nil, 0, 1 and 2; each is the friend of the next, and the last of the first.
    try room.sql(
      store,
      "INSERT INTO ZOWNER (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT 1, Z_ENT, 1, 'o' FROM Z_PRIMARYKEY WHERE Z_NAME = 'Owner';"
        + (1...4).map { key in
          "INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZUID, ZGROUP, ZFRIEND, ZOWNER) SELECT \(key), Z_ENT, 1, \(key), "
            + "\(key == 1 ? "NULL" : "\(key - 2)"), \(key == 4 ? 1 : key + 1), 1 FROM Z_PRIMARYKEY "
            + "WHERE Z_NAME = 'Item';"
        }.joined()
        + "UPDATE Z_PRIMARYKEY SET Z_MAX = 4 WHERE Z_NAME = 'Item'; "
        + "UPDATE Z_PRIMARYKEY SET Z_MAX = 1 WHERE Z_NAME = 'Owner'"
    )
    return (model, store)
  }

  /// The second version calls the note a remark, which no inference knows.
  private let note = "remark"

  /// One XDDEVENTITYMAPPING.
  private struct Part {
    var from = "Item"
    var to = "Item"
    var filter = ""
    var policy = ""
    var attributes = ["uid", "group"]
    /// Name, mapping, key path; both may be empty.
    var relationships: [(String, String, String)] = [("friend", "", ""), ("owner", "", "")]
  }

  private func xcode(_ room: Room, _ name: String, _ parts: [Part]) throws -> String {
    func text(_ name: String, _ value: String) -> String {
      let escaped = value.replacing("<", with: "\\u3c00").replacing(">", with: "\\u3e00")
      return value.isEmpty ? "" : "<attribute name=\"\(name)\" type=\"string\">\(escaped)</attribute>"
    }
    var objects = ""
    for (index, part) in parts.enumerated() {
      let attributes = part.attributes.indices.map { "a\(index)x\($0)" }
      let relationships = part.relationships.indices.map { "r\(index)x\($0)" }
      objects +=
        "<object type=\"XDDEVENTITYMAPPING\" id=\"e\(index)\">\(text("sourcename", part.from))"
        + "\(text("destinationname", part.to))\(text("sourcefilterpredicatestring", part.filter))"
        + "\(text("migrationpolicyclassname", part.policy))"
        + "<attribute name=\"mappingnumber\" type=\"int16\">\(index + 1)</attribute>"
        + "<relationship name=\"attributemappings\" idrefs=\"\(attributes.joined(separator: " "))\"></relationship>"
        + "<relationship name=\"relationshipmappings\" idrefs=\"\(relationships.joined(separator: " "))\">"
        + "</relationship></object>"
      for (id, name) in zip(attributes, part.attributes) {
        objects += "<object type=\"XDDEVATTRIBUTEMAPPING\" id=\"\(id)\">\(text("name", name))</object>"
      }
      for (id, property) in zip(relationships, part.relationships) {
        objects +=
          "<object type=\"XDDEVRELATIONSHIPMAPPING\" id=\"\(id)\">\(text("name", property.0))"
          + "\(text("sourcemappingname", property.1))\(text("sourcekeypath", property.2))"
          + "<attribute name=\"autogenerateexpression\" type=\"bool\">1</attribute></object>"
      }
    }
    try room.file(
      "\(name).xcmappingmodel/xcmapping.xml",
      """
      <?xml version="1.0"?><database>\(objects)<object type="XDDEVMAPPINGMODEL" id="m">
      <attribute name="sourcemodelpath" type="string">Items.xcdatamodeld/Items.xcdatamodel</attribute>
      <attribute name="destinationmodelpath" type="string">Items.xcdatamodeld/Items 2.xcdatamodel</attribute>
      <relationship name="entitymappings" idrefs="\(parts.indices.map { "e\($0)" }.joined(separator: " "))">\
      </relationship>
      </object></database>
      """)
    return room.path("\(name).xcmappingmodel")
  }

  private let owners = Part(from: "Owner", to: "Owner", attributes: ["name"], relationships: [])

  private func migrate(_ room: Room, _ model: String, _ store: String, _ maps: [String]) throws -> Outcome {
    try room.run(
      words: ["migrate", store, "--models", model, "--output", room.path("out.sqlite"), "--json"]
        + maps.flatMap { ["--mappings", $0] })
  }

  /// uid of each item and of its friend.
  private func friends(_ room: Room) throws -> [String] {
    try room.sql(
      room.path("out.sqlite"),
      "SELECT a.ZUID || '-' || ifnull(b.ZUID, '') FROM ZITEM a LEFT JOIN ZITEM b ON b.Z_PK = a.ZFRIEND ORDER BY a.ZUID"
    )
    .split(separator: "\n").map(String.init)
  }

  @Test("Parts of an entity in several mapping models: each object is taken once, or the objects are named")
  func partsAreDisjointOrRefused() throws {
    let filters: [(String, (Int?) -> Bool)] = [
      ("group == 0", { $0 == 0 }), ("group == 1", { $0 == 1 }), ("group > 0", { ($0 ?? 0) > 0 }),
      ("group != 0", { $0 != 0 }), ("group == nil", { $0 == nil }),
    ]
    let groups: [Int?] = [nil, 0, 1, 2]
    for isText in [false, true] {
      for (first, one) in filters {
        for (second, other) in filters {
          let room = try Room()
          let (model, store) = try items(room)
          var maps: [String] = []
          if isText {
            for (name, filter) in [("a", first), ("b", second)] {
              try room.file(
                "\(name).hopmap.toml",
                "[mapping]\nsource = \"Items\"\ndestination = \"Items 2\"\n[[entity]]\nsource = \"Item\"\n"
                  + "destination = \"Item\"\nfilter = \"\(filter)\"\n"
                  + (name == "a" ? "[[entity]]\nsource = \"Owner\"\ndestination = \"Owner\"\n" : ""))
              maps.append(room.path("\(name).hopmap.toml"))
            }
          } else {
            maps = [
              try xcode(room, "a", [Part(filter: first), owners]), try xcode(room, "b", [Part(filter: second)]),
            ]
          }
          let outcome = try migrate(room, model, store, maps)
          let both = groups.indices.filter { one(groups[$0]) && other(groups[$0]) }
          if let low = both.first, let high = both.last {
            #expect(outcome.status == 65, "\(first), \(second)")
            #expect(try outcome.json().error?.code?.text == "mapping-overlap", "\(outcome.errors)")
            #expect(
              outcome.errors.contains("\(both.count) of the objects")
                && outcome.errors.contains("key \(low + 1), the last the key \(high + 1)"), "\(outcome.errors)")
          } else {
            #expect(outcome.status == 0, "\(first), \(second): \(outcome.errors)")
            let taken = groups.indices.filter { one(groups[$0]) || other(groups[$0]) }
            let wanted = taken.map { index in
              let friend = index == 3 ? 0 : index + 1
              return "\(index + 1)-" + (taken.contains(friend) ? "\(friend + 1)" : "")
            }
            #expect(try friends(room) == wanted, "\(isText) \(first), \(second)")
          }
        }
      }
    }
  }

  @Test("A look-up for objects that the relationship cannot hold matters where it finds one")
  func unfitLookupsAreDecidedByRows() throws {
    for (mapping, path, hasRows) in [
      ("ItemToItem", "$source.friend", true), ("ItemToItem", "$source.friend", false),
      // Never any object: owners are no items.
      ("ItemToItem", "$source.owner", true), ("OldToNew", "$source.friend", true),
    ] {
      let room = try Room()
      let (model, store) = try items(room)
      if !hasRows { try room.sql(store, "UPDATE ZITEM SET ZFRIEND = NULL") }
      let map = try xcode(
        room, "a",
        [
          Part(relationships: [("friend", "", ""), ("owner", mapping, path)]), owners,
          Part(from: "Old", to: "New", attributes: [], relationships: []),
        ])
      let lint = try room.run("mapping", "lint", map, "--models", model, "--json")
      #expect(lint.status == 0, "\(lint.errors)")
      let finding = try lint.json().findings?.list.first { $0.kind?.text?.hasSuffix("-lookup") == true }
      let isUnfit = mapping == "ItemToItem" && path == "$source.friend"
      #expect(finding?.kind?.text == (isUnfit ? "unfit-lookup" : "empty-lookup"), "\(lint.output)")
      let plan = try room.run("plan", store, "--models", model, "--mappings", map)
      let outcome = try migrate(room, model, store, [map])
      if isUnfit, hasRows {
        #expect(outcome.status == 65)
        #expect(
          outcome.errors.contains("the object with key 1 would get the object of Item with key 2"), "\(outcome.errors)")
        #expect(plan.status == 65)
      } else {
        #expect(plan.status == 0, "\(plan.errors)")
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(try room.sql(room.path("out.sqlite"), "SELECT count(*), count(ZOWNER) FROM ZITEM") == "4|0")
      }
    }
  }

  @Test("An entity mapping of an entity that is gone has no effect, and the others serve")
  func deadMappingsAreReported() throws {
    let room = try Room()
    let (model, store) = try items(room)
    let map = try xcode(
      room, "a",
      [
        Part(relationships: [("friend", "", ""), ("owner", "OwnerToPerson", "$source.owner")]), owners,
        Part(from: "Owner", to: "Person", policy: "PersonPolicy"), Part(from: "Ghost", to: "New"),
      ])
    let shown = try room.run("mapping", "show", map, "--models", model)
    #expect(shown.status == 0)
    #expect(shown.output.contains("OwnerToPerson  dead") && shown.output.contains("GhostToNew  dead"))
    let text = try room.run("mapping", "show", map, "--models", model, "--text")
    #expect(text.status == 0 && !text.output.contains("Ghost"))
    let plan = try room.run("plan", store, "--models", model, "--mappings", map, "--json")
    #expect(plan.status == 0, "\(plan.errors)")
    let warnings = try plan.json().warnings?.list.filter { $0.code?.text == "mapping-dead" }
    #expect(warnings?.count == 2, "\(plan.output)")
    let outcome = try migrate(room, model, store, [map])
    #expect(outcome.status == 0, "\(outcome.errors)")
    // Nothing is made for persons, so nobody has an owner; the owners themselves are there.
    let counts = "SELECT (SELECT count(*) FROM ZOWNER), (SELECT count(ZOWNER) FROM ZITEM), (SELECT count(*) FROM ZITEM)"
    #expect(try room.sql(room.path("out.sqlite"), counts) == "1|0|4")
    // The text says the same.
    try room.file("b.hopmap.toml", text.output)
    try FileManager.default.removeItem(atPath: room.path("out.sqlite"))
    #expect(try migrate(room, model, store, [room.path("b.hopmap.toml")]).status == 0)
    #expect(try room.sql(room.path("out.sqlite"), counts) == "1|0|4")
  }

  @Test("Objects of a dead entity mapping are not lost: the refusal names it")
  func rowsOfDeadMappingsAreRefused() throws {
    let room = try Room()
    let (model, store) = try items(room)
    let map = try xcode(room, "a", [Part(), Part(from: "Owner", to: "Person")])
    let options = ["plan", store, "--models", model, "--mappings", map]
    let refused = try room.run(words: options)
    #expect(refused.status == 65)
    #expect(
      refused.errors.contains("1 row of this entity") && refused.errors.contains("“OwnerToPerson”, which names it"))
    let dropped = try room.run(words: options + ["--unmapped-entities", "drop"])
    #expect(dropped.status == 0 && dropped.output.contains("OwnerToPerson  dead"), "\(dropped.output)")
  }

  @Test func lintTellsWhatIsLeftBehindAndWhatDoesNothing() throws {
    let room = try Room()
    let (model, _) = try items(room)
    let map = try xcode(
      room, "a",
      [
        Part(relationships: [("friend", "", ""), ("owner", "GhostToNew", "$source.owner")]),
        Part(from: "Ghost", to: "New", policy: "GhostPolicy"),
      ])
    let lint = try room.run("mapping", "lint", map, "--models", model, "--policy", "Nobody=true", "--json")
    #expect(lint.status == 0, "\(lint.errors)")
    let json = try lint.json()
    #expect(json.keys == ["name", "path", "sourceVersion", "destinationVersion", "inUse", "findings", "errors"])
    let findings = json.findings?.list ?? []
    #expect(
      findings.map { [$0.kind?.text, $0.mapping?.text, $0.entity?.text, $0.property?.text] } == [
        ["dead-mapping", "GhostToNew", nil, nil], ["dropped-value", nil, "Item", "note"],
        ["dropped-value", nil, "Item", "owner"],
        ["unmapped-entity", nil, "Owner", nil], ["unused-policy", "GhostToNew", nil, nil],
        ["unused-policy", nil, nil, nil], ["empty-lookup", "ItemToItem", "Item", "owner"],
      ])
    #expect(findings.allSatisfy { $0.message?.text?.isEmpty == false && $0.hint?.text?.isEmpty == false })
    let strict = try room.run("mapping", "lint", map, "--models", model, "--strict")
    #expect(strict.status == 65)
    #expect(strict.output.contains("a: Items → Items 2, 6 findings\n"))
    #expect(strict.output.contains("dropped-value  Item, note"))
    // With a policy its program may carry what no expression reads; a filter carries nothing.
    let hooked = try xcode(room, "b", [Part(filter: "note != nil", policy: "ItemPolicy"), owners])
    let left = try room.run("mapping", "lint", hooked, "--models", model, "--policy", "ItemPolicy", "--json").json()
    #expect(left.findings?.list.map(\.kind?.text) == ["dropped-value"])
    #expect(left.findings?.list.first?.message?.text?.contains("unless the policy ItemPolicy carries them") == true)
    // One that carries everything.
    try room.file(
      "c.hopmap.toml",
      "[mapping]\nsource = \"Items\"\ndestination = \"Items 2\"\n[[entity]]\n"
        + "source = \"Item\"\ndestination = \"Item\"\n"
        + "attributes.\(note) = \"$source.note\"\n[[entity]]\nsource = \"Owner\"\ndestination = \"Owner\"\n")
    let good = try room.run("mapping", "lint", room.path("c.hopmap.toml"), "--models", model, "--strict")
    #expect(good.status == 0)
    #expect(good.output == "c: Items → Items 2, no findings\n")
    // One that cannot be followed.
    let wrong = try xcode(room, "d", [Part(attributes: ["uid", "size"]), owners])
    let refused = try room.run("mapping", "lint", wrong, "--models", model, "--json")
    #expect(refused.status == 65)
    #expect(try refused.json().errors?.list.first?.property?.text == "size")
  }
}
