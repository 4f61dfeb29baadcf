// The source expression of an entity mapping. Core Data allows any expression that fetches; Apple's compiler writes one
// form, and hopd follows only this one: all objects of the source entity, or those that fulfil a predicate
// (docs/formats/mapping-models.md, "Compiling a source", rule 3).

import Diagnostics
import PropertyLists

/// Recognizes `FETCH(FUNCTION($manager, "fetchRequestForSourceEntityNamed:predicateString:", "<entity>",
/// "<predicate>"), $manager.sourceContext, NO)`.
struct SourceFetch {
  /// The entity that is fetched.
  let entity: String
  /// Predicate text; nil fetches all objects.
  let predicate: String?

  /// Reads an archived source expression; throws for any other expression and names its kind.
  init(_ object: ArchivedObject) throws(HopdError) {
    guard object.isKind(of: "NSFetchRequestExpression") else {
      throw Self.refused("it is of class \(object.className)")
    }
    guard try !Self.countsOnly(object) else { throw Self.refused("it counts objects") }
    guard try Self.isSourceContext(try object.object("NSMOCExpression")) else {
      throw Self.refused("it does not fetch in $manager.sourceContext")
    }
    guard let call = try object.object("NSFRExpression"), call.isKind(of: "NSFunctionExpression"),
      try Self.isManager(try call.object("NSOperand"))
    else { throw Self.refused("its fetch request is not made by $manager") }
    let selector = try call.string("NSSelectorName") ?? ""
    let arguments = try call.elements("NSArguments")
    let wanted =
      switch selector {
      case "fetchRequestForSourceEntityNamed:predicateString:": 2
      case "fetchRequestForSourceEntityNamed:": 1
      default: 0
      }
    guard wanted > 0 else { throw Self.refused("it calls $manager's “\(selector)”") }
    guard arguments.count == wanted, let entity = try Self.text(arguments[0]) else {
      throw Self.refused("the arguments of “\(selector)” are not a name and a predicate text")
    }
    self.entity = entity
    guard wanted == 2 else {
      predicate = nil
      return
    }
    guard let text = try Self.text(arguments[1]) else { throw Self.refused("its predicate is not a text") }
    predicate = Self.condition(text)
  }

  /// Returns the predicate text; nil if it is empty or always true.
  static func condition(_ text: String?) -> String? {
    guard let text, text.utf8.contains(where: { ![0x20, 0x09, 0x0a, 0x0d].contains($0) }) else { return nil }
    let bare = text.utf8.filter { ![0x20, 0x09, 0x0a, 0x0d].contains($0) }
    return String(decoding: bare, as: UTF8.self).uppercased() == "TRUEPREDICATE" ? nil : text
  }

  /// Whether the fetch only counts. The flag is a bare boolean in every file seen, or an expression, as
  /// NSFetchRequestExpression's initializer takes it.
  private static func countsOnly(_ object: ArchivedObject) throws(HopdError) -> Bool {
    guard case .object(let flag) = try object.value("NSCountOnlyFlag") else {
      return try object.boolean("NSCountOnlyFlag")
    }
    guard flag.isKind(of: "NSConstantValueExpression") else { throw refused("whether it counts is computed") }
    return try flag.boolean("NSConstantValue")
  }

  private static func isManager(_ object: ArchivedObject?) throws(HopdError) -> Bool {
    guard let object, object.isKind(of: "NSVariableExpression") else { return false }
    return try object.string("NSVariable") == "manager"
  }

  /// Whether the expression is `$manager.sourceContext`, as a key path or as a call of the property.
  private static func isSourceContext(_ object: ArchivedObject?) throws(HopdError) -> Bool {
    guard let object, object.isKind(of: "NSFunctionExpression"), try isManager(try object.object("NSOperand")) else {
      return false
    }
    let arguments = try object.elements("NSArguments")
    switch try object.string("NSSelectorName") {
    case "valueForKey:", "valueForKeyPath:":
      guard arguments.count == 1, let argument = arguments[0].object else { return false }
      if argument.isKind(of: "NSKeyPathSpecifierExpression") {
        return try argument.string("NSKeyPath") == "sourceContext"
      }
      return try text(arguments[0]) == "sourceContext"
    case "sourceContext": return arguments.isEmpty
    default: return false
    }
  }

  private static func text(_ value: ArchivedValue) throws(HopdError) -> String? {
    guard let object = value.object, object.isKind(of: "NSConstantValueExpression") else { return nil }
    return try object.value("NSConstantValue").string
  }

  private static func refused(_ what: String) -> HopdError {
    HopdError(
      .invalidMapping,
      "the source expression is not the fetch that Xcode generates: \(what)",
      hint: "enable “Auto Generate Value Expression” of the entity mapping and select the objects with a filter "
        + "predicate")
  }
}
