// Keyed archives built by hand: the content of valid ones, and an error for hostile ones.

import Diagnostics
import PropertyLists
import Testing

/// An archive of the given objects; object 0 is `$null` and the root is object 1.
private func archive(_ objects: [PropertyListValue], root: UInt64 = 1) -> PropertyListValue {
  .dictionary([
    "$archiver": .string("NSKeyedArchiver"), "$version": .integer(100_000),
    "$top": .dictionary(["root": .uid(root)]), "$objects": .array([.string("$null")] + objects),
  ])
}

private func description(_ names: String...) -> PropertyListValue {
  .dictionary(["$classname": .string(names[0]), "$classes": .array(names.map { .string($0) })])
}

private func object(_ classNumber: UInt64, _ fields: [String: PropertyListValue]) -> PropertyListValue {
  .dictionary(fields.merging(["$class": .uid(classNumber)]) { _, new in new })
}

@Suite struct KeyedArchiveTests {
  @Test func fieldsOfEveryKindAlsoThroughBytes() throws {
    let list = archive([
      object(
        2,
        [
          "text": .uid(3), "mutable": .uid(4), "nothing": .uid(0), "number": .integer(7), "flag": .boolean(true),
          "date": .uid(6), "bytes": .uid(8), "self": .uid(1), "whole": .real(3),
        ]),
      description("Thing", "NSObject"), .string("a"), object(5, ["NS.string": .string("b")]),
      description("NSMutableString", "NSString", "NSObject"), object(7, ["NS.time": .real(1.5)]),
      description("NSDate"), object(9, ["NS.data": .data([1, 2])]), description("NSData"),
    ])
    let root = try KeyedArchive.decode(PropertyList.encodeBinary(list)).root()
    #expect(root.className == "Thing" && root.isKind(of: "NSObject") && !root.isKind(of: "NSString"))
    #expect(try root.string("text") == "a" && root.string("mutable") == "b" && root.string("nothing") == nil)
    #expect(try root.string("absent") == nil && !root.has("absent") && root.has("nothing"))
    #expect(try root.integer("number") == 7 && root.integer("whole") == 3 && root.boolean("flag"))
    guard case .date(1.5) = try root.value("date"), case .data([1, 2]) = try root.value("bytes") else {
      Issue.record("date and bytes are not unwrapped")
      return
    }
    // A cycle is followed step by step, as far as the caller goes.
    #expect(try root.object("self")?.object("self")?.object("self")?.number == 1)
    let error = #expect(throws: HopdError.self) { try root.integer("text") }
    #expect(error?.message.contains("object 1, Thing: text is text, not an integer") == true)
  }

  @Test func xmlArchives() throws {
    let xml = """
      <?xml version="1.0"?><plist version="1.0"><dict><key>$archiver</key><string>NSKeyedArchiver</string>
      <key>$version</key><integer>100000</integer>
      <key>$top</key><dict><key>root</key><dict><key>CF$UID</key><integer>1</integer></dict></dict>
      <key>$objects</key><array><string>$null</string>
      <dict><key>$class</key><dict><key>CF$UID</key><integer>2</integer></dict>
      <key>NS.objects</key><array><dict><key>CF$UID</key><integer>3</integer></dict></array></dict>
      <dict><key>$classname</key><string>NSSet</string></dict><string>x</string></array></dict></plist>
      """
    #expect(try KeyedArchive.decode(Array(xml.utf8)).root().elements().map(\.string) == ["x"])
  }

  @Test func collectionsOfEveryKind() throws {
    let list = archive([
      object(2, ["map": .uid(3), "known": .uid(5), "set": .uid(9), "unequal": .uid(14)]), description("Thing"),
      object(4, ["NS.keys": .array([.uid(11)]), "NS.objects": .array([.uid(12)])]),
      description("NSMutableDictionary", "NSDictionary"),
      object(6, ["emptyToken": .uid(13), "searchMapping": .uid(7), "values": .uid(10)]),
      description("NSKnownKeysDictionary1"), object(8, ["keys": .uid(9), "length": .integer(2)]),
      description("NSKnownKeysMappingStrategy1"), object(15, ["NS.objects": .array([.uid(11), .uid(12)])]),
      object(15, ["NS.objects": .array([.uid(13), .uid(12)])]), .string("a"), .string("b"), .string("none"),
      object(4, ["NS.keys": .array([.uid(11)]), "NS.objects": .array([])]), description("NSMutableArray", "NSArray"),
    ])
    let root = try KeyedArchive(list).root()
    #expect(try root.entries("map").map { [$0.key.string, $0.value.string] } == [["a", "b"]])
    #expect(try root.elements("set").map(\.string) == ["a", "b"])
    // A key whose value is the empty token is absent.
    #expect(try root.entries("known").map { [$0.key.string, $0.value.string] } == [["b", "b"]])
    #expect(try root.elements("absent").isEmpty && root.entries("absent").isEmpty)
    let unequal = #expect(throws: HopdError.self) { try root.entries("unequal") }
    #expect(unequal?.message.contains("1 keys and 0 values") == true)
    #expect(throws: HopdError.self) { try root.elements("map") }
    #expect(throws: HopdError.self) { try root.entries("set") }
  }

  @Test func whatIsNoArchiveIsRefused() {
    let place = Place(key: "archive")
    let good = archive([object(2, [:]), description("Thing")])
    guard case .dictionary(let entries) = good else { return }
    for change: (String, PropertyListValue?) in [
      ("$objects", nil), ("$top", nil), ("$archiver", .string("Other")), ("$version", .integer(1)),
      ("$top", .dictionary([:])), ("$top", .dictionary(["root": .uid(99)])), ("$top", .dictionary(["root": .uid(0)])),
      ("$top", .dictionary(["root": .uid(2)])), ("$top", .dictionary(["root": .uid(.max)])),
      ("$objects", .array([.string("$null"), .array([]), .uid(1)])),
      ("$objects", .array([.string("$null"), object(1, [:])])),
      ("$objects", .array([.string("$null"), object(.max, [:])])),
      ("$objects", .array([.string("$null"), object(2, [:]), description("NSMutableString")])),
    ] {
      var list = entries
      list[change.0] = change.1
      let error = #expect(throws: HopdError.self, "\(change)") {
        try KeyedArchive(.dictionary(list), at: place).root()
      }
      #expect(error?.place.key == "archive" && error?.code == .damagedArchive, "\(change)")
    }
    #expect(throws: HopdError.self) { try KeyedArchive.decode(Array("bplist00".utf8)) }
  }

  @Test func wrappersAroundWrappersDoNotRecurse() throws {
    let wrapped = archive([object(2, ["NS.data": .uid(1)]), description("NSData")])
    #expect(throws: HopdError.self) { try KeyedArchive(wrapped).root() }
  }

  @Test func aLongChainOfObjectsIsReadStepByStep() throws {
    let count = 50_000
    let chain = (0..<count).map { object(UInt64(count + 1), ["next": .uid(UInt64($0 + 2))]) }
    var current = try KeyedArchive(archive(chain + [description("Link")])).root()
    var steps = 1
    while steps < count, let next = try current.object("next") {
      current = next
      steps += 1
    }
    #expect(steps == count)
    // The last link leads to the class description, which is not an object.
    #expect(throws: HopdError.self) { try current.object("next") }
  }

  @Test func tooManyObjectsAreRefused() {
    let flood = archive((0..<300_001).map { _ in .integer(1) })
    let error = #expect(throws: HopdError.self) { try KeyedArchive.decode(PropertyList.encodeBinary(flood)) }
    #expect(error?.code == .propertyListTooLarge)
  }
}
