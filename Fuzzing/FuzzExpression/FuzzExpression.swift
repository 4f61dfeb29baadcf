// Fuzzes the texts of expressions and predicates within the bounds: a text in, a tree with its types or an error with
// its message out. A text that is read must be printed and read again as the same tree.

import Diagnostics
import Expressions
import FuzzBounds
import ManagedObjectModel

/// A model with a property of every kind, so that the check continues after the first key.
private let checkers: [ExpressionChecker] = {
  let model = ManagedObjectModel(
    name: "Fuzz",
    entities: [
      Entity(
        name: "A",
        attributes: [
          Attribute(name: "s", type: .string), Attribute(name: "n", type: .integer32),
          Attribute(name: "m", type: .decimal), Attribute(name: "d", type: .date), Attribute(name: "b", type: .binary),
          Attribute(name: "t", type: .transformable),
        ],
        relationships: [
          Relationship(name: "o", destinationEntityName: "A"),
          Relationship(name: "r", destinationEntityName: "A", isToMany: true),
          Relationship(name: "q", destinationEntityName: "A", isToMany: true, isOrdered: true),
        ])
    ])
  return [ExpressionScope.Place.sourceFilter, .attribute, .relationship, .key].map {
    ExpressionChecker(ExpressionScope(model: model, sourceEntity: "A", place: $0, hasPolicy: true))
  }
}()

/// One input: never a trap, whatever the bytes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  let text = String(decoding: UnsafeBufferPointer(start: data, count: size), as: UTF8.self)
  let checkers = checkers
  fuzz_bounds_begin()
  defer { fuzz_bounds_end() }
  do throws(HopdError) {
    let predicate = try ExpressionParser.predicate(text, at: Place(line: 1, column: 1))
    for checker in checkers { tryCheck { () throws(HopdError) in try checker.check(predicate) } }
    let printed = predicate.description
    // Escapes may make the printed text longer than the limit of the reader.
    if printed.utf8.count <= ExpressionLimits.textBytes {
      guard let again = try? ExpressionParser.predicate(printed), again.description == printed else {
        fatalError("a predicate that was read and printed is read as another one, or not at all")
      }
    }
  } catch {
    _ = error.description
  }
  do throws(HopdError) {
    let node = try ExpressionParser.expression(text, at: Place(line: 1, column: 1))
    for checker in checkers {
      _ = checker.type(of: node)
      tryCheck { () throws(HopdError) in try checker.check(node, for: Attribute(name: "x", type: .string)) }
      tryCheck { () throws(HopdError) in
        try checker.check(node, forRelationship: Relationship(name: "x", destinationEntityName: "A"))
      }
    }
    let printed = node.description
    if printed.utf8.count <= ExpressionLimits.textBytes {
      guard let again = try? ExpressionParser.expression(printed), again.description == printed else {
        fatalError("an expression that was read and printed is read as another one, or not at all")
      }
    }
  } catch {
    _ = error.description
  }
  return 0
}

private func tryCheck(_ body: () throws(HopdError) -> Void) {
  do throws(HopdError) { try body() } catch { _ = error.description }
}
