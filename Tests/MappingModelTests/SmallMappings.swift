// Mapping models in a few lines: keyed archives in the form of Apple's software, and the XML around them.

import Diagnostics
import ManagedObjectModel
import MappingModel
import PropertyLists
import SystemPackage

/// A value to write into a keyed archive.
indirect enum Archived {
  case null
  case text(String)
  case data([UInt8])
  case list([Archived])
  case dictionary([(String, Archived)])
  /// A value that its object contains directly.
  case bare(PropertyListValue)
  case object([String], [(String, Archived)])

  /// The archive with this object at the top.
  var bytes: [UInt8] {
    var objects: [PropertyListValue] = [.string("$null")]
    let root = number(&objects)
    return PropertyList.encodeBinary(
      .dictionary([
        "$archiver": .string("NSKeyedArchiver"), "$version": .integer(100_000),
        "$top": .dictionary(["root": .uid(root)]), "$objects": .array(objects),
      ]))
  }

  private func number(_ objects: inout [PropertyListValue]) -> UInt64 {
    func add(_ value: PropertyListValue) -> UInt64 {
      objects.append(value)
      return UInt64(objects.count - 1)
    }
    func add(_ classes: [String], _ fields: [String: PropertyListValue]) -> UInt64 {
      let description = add(
        .dictionary(["$classname": .string(classes[0]), "$classes": .array(classes.map { .string($0) })]))
      return add(.dictionary(fields.merging(["$class": .uid(description)]) { first, _ in first }))
    }
    switch self {
    case .null: return 0
    case .text(let text): return add(.string(text))
    case .data(let bytes): return add(.data(bytes))
    case .bare(let value): return add(value)
    case .list(let members):
      let numbers = members.map { PropertyListValue.uid($0.number(&objects)) }
      return add(["NSArray", "NSObject"], ["NS.objects": .array(numbers)])
    case .dictionary(let entries):
      let keys = entries.map { PropertyListValue.uid(add(.string($0.0))) }
      let values = entries.map { PropertyListValue.uid($0.1.number(&objects)) }
      return add(["NSDictionary", "NSObject"], ["NS.keys": .array(keys), "NS.objects": .array(values)])
    case .object(let classes, let fields):
      var values: [String: PropertyListValue] = [:]
      for (key, value) in fields {
        if case .bare(let plain) = value { values[key] = plain } else { values[key] = .uid(value.number(&objects)) }
      }
      return add(classes + ["NSObject"], values)
    }
  }

  // MARK: Expressions

  static func constant(_ text: String) -> Archived {
    .object(
      ["NSConstantValueExpression", "NSExpression"],
      [("NSConstantValue", .text(text)), ("NSExpressionType", .bare(.integer(0)))])
  }

  static func variable(_ name: String) -> Archived {
    .object(
      ["NSVariableExpression", "NSExpression"],
      [("NSVariable", .text(name)), ("NSExpressionType", .bare(.integer(2)))])
  }

  static func path(_ operand: Archived, _ path: String) -> Archived {
    .object(
      ["NSKeyPathExpression", "NSFunctionExpression", "NSExpression"],
      [
        ("NSOperand", operand), ("NSSelectorName", .text("valueForKeyPath:")), ("NSExpressionType", .bare(.integer(4))),
        (
          "NSArguments",
          .list([
            .object(
              ["NSKeyPathSpecifierExpression", "NSExpression"],
              [("NSKeyPath", .text(path)), ("NSExpressionType", .bare(.integer(10)))])
          ])
        ),
      ])
  }

  static func call(_ operand: Archived, _ selector: String, _ arguments: [Archived]) -> Archived {
    .object(
      ["NSFunctionExpression", "NSExpression"],
      [
        ("NSOperand", operand), ("NSSelectorName", .text(selector)), ("NSExpressionType", .bare(.integer(4))),
        ("NSArguments", .list(arguments)),
      ])
  }

  /// Makes `FETCH(request, context, NO)`.
  static func fetch(
    _ request: Archived, context: Archived = .path(.variable("manager"), "sourceContext"),
    counts: Archived = .bare(.boolean(false))
  ) -> Archived {
    .object(
      ["NSFetchRequestExpression", "NSExpression"],
      [
        ("NSFRExpression", request), ("NSMOCExpression", context), ("NSCountOnlyFlag", counts),
        ("NSExpressionType", .bare(.integer(50))),
      ])
  }

  /// Makes the fetch that Xcode generates.
  static func fetch(_ entity: String, _ predicate: String = "TRUEPREDICATE") -> Archived {
    .fetch(
      .call(
        .variable("manager"), "fetchRequestForSourceEntityNamed:predicateString:",
        [.constant(entity), .constant(predicate)]))
  }

  // MARK: Compiled mapping models

  static func property(_ name: String, _ value: Archived = .null) -> Archived {
    .object(
      ["NSPropertyMapping"],
      [("NSDestinationPropertyName", .text(name)), ("NSValueExpression", value), ("NSPropertyTransforms", .null)])
  }

  /// Makes an NSEntityMapping with the hashes of the entities in both models.
  static func mapping(
    _ name: String, type: Int64 = 4, from source: (String, ManagedObjectModel)?,
    to destination: (String, ManagedObjectModel)?, fetch: Archived? = nil, policy: String? = nil,
    attributes: [Archived] = [], relationships: [Archived] = []
  ) -> Archived {
    func hash(_ end: (String, ManagedObjectModel)?) -> Archived {
      guard let end, let hash = end.1.versionHashes[end.0] else { return .null }
      return .data(hash.bytes)
    }
    func text(_ text: String?) -> Archived { text.map { .text($0) } ?? .null }
    return .object(
      ["NSEntityMapping"],
      [
        ("NSMappingName", .text(name)), ("NSMappingType", .bare(.integer(type))),
        ("NSSourceEntityName", text(source?.0)), ("NSSourceEntityVersionHash", hash(source)),
        ("NSDestinationEntityName", text(destination?.0)), ("NSDestinationEntityVersionHash", hash(destination)),
        ("NSSourceExpression", fetch ?? source.map { .fetch($0.0) } ?? .null),
        ("NSEntityMigrationPolicyClassName", text(policy)), ("NSAttributeMappings", .list(attributes)),
        ("NSRelationshipMappings", .list(relationships)),
      ])
  }

  /// A `.cdm`.
  static func model(_ mappings: [Archived]) -> Archived {
    .object(["NSMappingModel"], [("NSEntityMappings", .list(mappings))])
  }
}

/// Returns a `.cdm` as read.
func compiledFile(_ mappings: [Archived], path: FilePath = "/maps/Test.cdm") throws -> CompiledMappingFile {
  try CompiledMappingFile(contents: Archived.model(mappings).bytes, path: path)
}

/// Returns an `xcmapping.xml` with objects, and a mapping model that lists entity mappings by their ids.
func xml(
  _ objects: String, list: String, from source: String = "App/Zoo.xcdatamodeld/V1.xcdatamodel",
  to destination: String = "App/Zoo.xcdatamodeld/V2.xcdatamodel", copies: (String, String) = ("AAAA", "AAAA")
) -> [UInt8] {
  Array(
    """
    <?xml version="1.0"?>
    <!DOCTYPE database SYSTEM "file:///System/Library/DTDs/CoreData.dtd">
    <database><databaseInfo><version>134481920</version><metadata><plist><dict/></plist></metadata></databaseInfo>
    \(objects)
    <object type="XDDEVMAPPINGMODEL" id="z2">
    <attribute name="sourcemodelpath" type="string">\(source)</attribute>
    <attribute name="sourcemodeldata" type="binary">\(copies.0)</attribute>
    <attribute name="destinationmodeldata" type="binary">\(copies.1)</attribute>
    <attribute name="destinationmodelpath" type="string">\(destination)</attribute>
    <relationship name="entitymappings" type="0/0" destination="XDDEVENTITYMAPPING" idrefs="\(list)"></relationship>
    </object></database>
    """.utf8)
}

/// Returns one object of it; values without a name are idrefs.
func object(
  _ type: String, _ id: String, _ values: [(String, String)] = [], attributes: String = "", relationships: String = ""
) -> String {
  "<object type=\"XDDEV\(type)\" id=\"\(id)\">"
    + values.map { "<attribute name=\"\($0.0)\" type=\"string\">\($0.1)</attribute>" }.joined()
    + (type == "ENTITYMAPPING"
      ? "<relationship name=\"attributemappings\" idrefs=\"\(attributes)\"></relationship>"
        + "<relationship name=\"relationshipmappings\" idrefs=\"\(relationships)\"></relationship>" : "")
    + "</object>\n"
}

/// Returns an entity mapping with its number.
func entityMapping(
  _ id: String, _ number: Int, _ source: String?, _ destination: String?, _ values: [(String, String)] = [],
  attributes: String = "", relationships: String = ""
) -> String {
  object(
    "ENTITYMAPPING", id,
    [("mappingnumber", "\(number)"), ("autogenerateexpression", "1"), ("mappingtypename", "Undefined")]
      .filter { pair in !values.contains { $0.0 == pair.0 } }
      + [("sourcename", source), ("destinationname", destination)].compactMap { name, value in value.map { (name, $0) }
      }
      + values, attributes: attributes, relationships: relationships)
}

/// Returns the archive as the XML contains it: base64 with line breaks.
func base64(_ archive: Archived) -> String {
  var text = ""
  for (index, character) in Base64.encode(archive.bytes).enumerated() {
    if index > 0, index % 76 == 0 { text += "\n" }
    text.append(character)
  }
  return text + "\n"
}

/// Returns an `.xcmappingmodel` as read.
func sourceFile(_ bytes: [UInt8], path: FilePath = "/maps/Test.xcmappingmodel") throws -> XcodeMappingFile {
  try XcodeMappingFile(contents: bytes, path: path, at: Place(file: path))
}

/// Returns a mapping model's copy of a model whose entities have attributes only, in the form of Xcode's editor.
func copy(of model: ManagedObjectModel) -> String {
  func marks(_ name: String, _ values: [(String, Archived)]) -> Archived {
    let properties = values.map { key, value in
      (key, Archived.object(["XDUMLPropertyImp"], [("_name", .text(key)), ("_default", value)]))
    }
    return .dictionary([
      (name, .object(["XDUMLStereotypeImp"], [("XDBucketForOwnedAttributesstorage", .dictionary(properties))]))
    ])
  }
  let entities = model.entities.map { entity -> (String, Archived) in
    let attributes = entity.attributes.map { attribute -> (String, Archived) in
      let values: [(String, Archived)] = [
        ("XD_PPSK_isOptional", .bare(.boolean(attribute.isOptional))),
        ("XD_PAttK_attributeType", .bare(.integer(Int64(attribute.type.rawValue)))),
      ]
      let property = Archived.object(
        ["XDPMAttribute", "XDPMProperty"],
        [("_name", .text(attribute.name)), ("XDBucketForStereotypesstorage", marks("XD_PPropStereotype", values))])
      return (attribute.name, property)
    }
    let constraints = entity.uniquenessConstraints.map { Archived.list($0.map { .text($0) }) }
    let values: [(String, Archived)] = [
      ("XD_PSK_isAbstract", .bare(.boolean(false))), ("XDPMUniquenessConstraints", .list(constraints)),
    ]
    let fields: [(String, Archived)] = [
      ("_name", .text(entity.name)), ("XDBucketForOwnedAttributesstorage", .dictionary(attributes)),
      ("XDBucketForStereotypesstorage", marks("XD_PStereotype", values)),
    ]
    return (entity.name, .object(["XDPMEntity", "XDUMLClassImp"], fields))
  }
  let package = Archived.object(["XDModelPackage"], [("XDBucketForClassesstorage", .dictionary(entities))])
  return base64(.object(["XDPMModel"], [("_xd_rootPackage", package)]))
}
