// Object graphs as keyed archives: numbers in the archiver's order, shared and cyclic references, equal bytes for equal
// graphs.

import PropertyLists
import Testing

@Suite struct KeyedArchiveWriterTests {
  private typealias Writer = KeyedArchiveWriter

  private func objects(_ list: PropertyListValue) -> [PropertyListValue] { list.dictionary?["$objects"]?.array ?? [] }

  /// Two objects that refer to each other, a text both use, and the class record after the contents of each.
  @Test func cyclesAndSharedTextsHaveOneNumber() {
    var writer = Writer()
    let parent = writer.makeObject(Writer.ClassName("Parent"))
    let child = writer.makeObject(
      Writer.ClassName("Child", "Thing"),
      [("name", .reference(.text("same"))), ("parent", .reference(.conditional(parent))), ("age", .value(.integer(7)))])
    writer.setFields(
      of: parent,
      [("name", .reference(.text("same"))), ("children", .references([.object(child), .object(child), .null]))])
    let list = writer.archive(root: parent)
    #expect(
      list
        == .dictionary([
          "$archiver": .string("NSKeyedArchiver"), "$version": .integer(100_000),
          "$top": .dictionary(["root": .uid(1)]),
          "$objects": .array([
            .string("$null"),
            .dictionary(["$class": .uid(5), "name": .uid(2), "children": .array([.uid(3), .uid(3), .uid(0)])]),
            .string("same"),
            .dictionary(["$class": .uid(4), "name": .uid(2), "parent": .uid(1), "age": .integer(7)]),
            .dictionary([
              "$classname": .string("Child"),
              "$classes": .array([.string("Child"), .string("Thing"), .string("NSObject")]),
            ]),
            .dictionary([
              "$classname": .string("Parent"), "$classes": .array([.string("Parent"), .string("NSObject")]),
            ]),
          ]),
        ]))
  }

  /// An object that is written after its first reference keeps the number from that reference.
  @Test func conditionalReferencesAreWrittenByTheirOwner() {
    var writer = Writer()
    let late = writer.makeObject(Writer.ClassName("Late"), [("x", .value(.integer(1)))])
    let early = writer.makeList([.conditional(late), .text("between")])
    let root = writer.makeList([.object(early), .object(late)])
    let found = objects(writer.archive(root: root))
    #expect(found[2].dictionary?["NS.objects"] == .array([.uid(3), .uid(4)]))
    #expect(found[3].dictionary?["x"] == .integer(1))
  }

  @Test func whatNobodyOwnsIsNil() {
    var writer = Writer()
    let orphan = writer.makeObject(Writer.ClassName("Orphan"))
    let root = writer.makeList([.conditional(orphan)])
    let found = objects(writer.archive(root: root))
    #expect(found[2] == .string("$null"))
  }

  /// Swift treats composed and decomposed accents as equal; names in a model are different.
  @Test func textsCountByTheirBytes() {
    var writer = Writer()
    let root = writer.makeList([.text("\u{e9}"), .text("e\u{301}"), .text("\u{e9}")])
    let list = writer.archive(root: root)
    #expect(objects(list)[1].dictionary?["NS.objects"] == .array([.uid(2), .uid(3), .uid(2)]))
  }

  /// A chain as long as a hostile model could make it: no recursion.
  @Test func longChainsAreWritten() {
    var writer = Writer()
    var top = writer.makeList([])
    for _ in 0..<100_000 { top = writer.makeList([.object(top)]) }
    #expect(objects(writer.archive(root: top)).count == 100_003)
  }
}
