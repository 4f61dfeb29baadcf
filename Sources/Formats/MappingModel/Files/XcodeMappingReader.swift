// Reads the `xcmapping.xml` of an `.xcmappingmodel`: an XML store of Xcode's own editing objects, a flat list with
// references by id (docs/formats/mapping-models.md, "Source files"). The objects are collected first; the mapping
// model's own list and their numbers decide which of them count and in which order, never their position in the file.

import Diagnostics
import Expressions
import PropertyLists

extension XMLLimits {
  /// Limits of a mapping model. The snapshots of both models are one text each; the largest file seen has 0.7 MiB.
  static let mapping = XMLLimits(
    maximumBytes: 16 << 20, maximumDepth: 32, maximumAttributes: 64, maximumTextBytes: 6 << 20)
}

extension PropertyListLimits {
  /// Limits of one archived expression or user info; real ones have a few kilobytes and less than a hundred objects.
  static let mappingArchive = PropertyListLimits(
    maximumBytes: 192 << 10, maximumDepth: 16, maximumValues: 4_000, maximumValueBytes: 64 << 10)
}

/// The objects of the file, by their ids.
private struct XcodeObject {
  /// Types of objects that the reader uses.
  enum Kind: String {
    case model = "XDDEVMAPPINGMODEL"
    case entity = "XDDEVENTITYMAPPING"
    case attribute = "XDDEVATTRIBUTEMAPPING"
    case relationship = "XDDEVRELATIONSHIPMAPPING"
  }

  let kind: Kind
  let id: String
  let line: Int
  /// The file's values unchanged, including escapes.
  var values: [String: String] = [:]
  var references: [String: [String]] = [:]

  /// Returns the text of an attribute; nil if it is absent or empty.
  func text(_ name: String) -> String? {
    guard let raw = values[name] else { return nil }
    let text = XMLStoreText.unescaped(raw)
    return text.isEmpty ? nil : text
  }

  /// Returns the value of a boolean attribute.
  func flag(_ name: String) -> Bool? { values[name].map { ["1", "YES", "true"].contains(XMLStoreText.trimmed($0)) } }
}

/// Builds a mapping model from XML events.
final class XcodeMappingReader: XMLEventHandler {
  /// Attributes that are kept.
  private static let known: Set<String> = [
    "sourcemodeldata", "destinationmodeldata", "sourcemodelpath", "destinationmodelpath", "name", "sourcename",
    "destinationname", "mappingnumber",
    "autogenerateexpression", "migrationpolicyclassname", "sourcefilterpredicatestring", "sourceexpressiondata",
    "userinfodata", "valueexpressiondata", "sourcekeypath", "sourcemappingname",
  ]
  private static let archives: Set<String> = ["sourceexpressiondata", "userinfodata", "valueexpressiondata"]

  private static let snapshots: Set<String> = ["sourcemodeldata", "destinationmodeldata"]

  private let place: Place
  private var objects: [String: XcodeObject] = [:]
  private var order: [String] = []
  private var path: [String] = []
  private var current: XcodeObject?
  private var attribute: String?
  private var archiveCount = 0
  private var mapping = XcodeMapping()

  private init(place: Place) { self.place = place }

  /// Reads the mapping model in `bytes`; throws if they are not one. Parts that cannot be followed become `problems`.
  static func read(_ bytes: [UInt8], at place: Place) throws(HopdError) -> XcodeMapping {
    let reader = XcodeMappingReader(place: place)
    try XMLReader.read(bytes, limits: .mapping, at: place, to: reader)
    try reader.build()
    return reader.mapping
  }

  // MARK: Events

  func startElement(_ name: String, attributes: [XMLAttribute], at position: XMLPosition) throws(HopdError) {
    path.append(name)
    func value(_ key: String) -> String? { attributes.first { $0.name == key }?.value }
    switch path.count {
    case 1 where name != "database":
      throw HopdError(
        .invalidMapping,
        "this is not a mapping model of Xcode: it begins with <\(name.prefix(100))>, not with <database>",
        at: at(position.line))
    case 2 where name == "object":
      guard let kind = value("type").flatMap(XcodeObject.Kind.init(rawValue:)), let id = value("id") else { return }
      guard objects.count < MappingLimits.entityMappings + MappingLimits.propertyMappings else {
        throw tooLarge("it has more than \(objects.count) mappings", position.line)
      }
      guard id.utf8.count <= 100 else { throw tooLarge("an id has more than 100 bytes", position.line) }
      current = XcodeObject(kind: kind, id: id, line: position.line)
    case 3 where current != nil && name == "attribute":
      attribute = value("name").flatMap { Self.known.contains($0) ? $0 : nil }
      if let attribute { current?.values[attribute] = "" }
    case 3 where current != nil && name == "relationship":
      guard let key = value("name"), ["entitymappings", "attributemappings", "relationshipmappings"].contains(key)
      else { return }
      let ids = (value("idrefs") ?? "").utf8.split { $0 == 0x20 || $0 == 0x09 || $0 == 0x0a || $0 == 0x0d }
      guard ids.count <= MappingLimits.propertyMappings else {
        throw tooLarge("an object refers to \(ids.count) others", position.line)
      }
      current?.references[key] = ids.map { String(Substring($0)) }
    default: break
    }
  }

  func text(_ text: String, at position: XMLPosition) throws(HopdError) {
    guard let attribute, path.count == 3 else { return }
    let limit =
      Self.archives.contains(attribute)
      ? MappingLimits.archiveTextBytes
      : Self.snapshots.contains(attribute) ? XMLLimits.mapping.maximumTextBytes : MappingLimits.textBytes
    guard text.utf8.count <= limit else { throw tooLarge("“\(attribute)” has more than \(limit) bytes", position.line) }
    current?.values[attribute] = text
  }

  func endElement(_ name: String, at position: XMLPosition) throws(HopdError) {
    if path.count == 3 { attribute = nil }
    if path.count == 2, let object = current {
      current = nil
      guard objects.updateValue(object, forKey: object.id) == nil else {
        throw HopdError(.invalidMapping, "two objects have the id “\(object.id)”", at: at(object.line))
      }
      order.append(object.id)
    }
    path.removeLast()
  }

  // MARK: Objects

  private func build() throws(HopdError) {
    let models = order.compactMap { objects[$0] }.filter { $0.kind == .model }
    guard let model = models.first, models.count == 1 else {
      throw HopdError(
        .invalidMapping, "the file has \(models.count) mapping models; it must have exactly one", at: place)
    }
    guard let source = model.text("sourcemodelpath"), let destination = model.text("destinationmodelpath") else {
      throw HopdError(
        .invalidMapping, "the mapping model does not state between which versions it maps", at: at(model.line))
    }
    mapping.source = VersionPath(source)
    mapping.destination = VersionPath(destination)
    mapping.sourceHashes = XcodeSnapshot.hashes(base64: model.values["sourcemodeldata"])
    mapping.destinationHashes = XcodeSnapshot.hashes(base64: model.values["destinationmodeldata"])
    let listed = resolve(model.references["entitymappings"] ?? [], as: .entity, of: model)
    guard listed.count <= MappingLimits.entityMappings else {
      throw tooLarge("it has more than \(MappingLimits.entityMappings) entity mappings", model.line)
    }
    let ids = Set(listed.map(\.id))
    let unlisted = order.compactMap { objects[$0] }.filter { $0.kind == .entity && !ids.contains($0.id) }
    if let first = unlisted.first {
      warn(
        unlisted.count == 1
          ? "the entity mapping \(title(first)) is not listed in its mapping model; it is ignored"
          : "\(unlisted.count) entity mappings are not listed in their mapping model; they are ignored: "
            + Set(unlisted.prefix(20).map(title)).sorted().joined(separator: ", "), first.line)
    }
    var numbers: Set<Int64> = []
    let numbered = listed.enumerated().map { position, object in
      let number = object.values["mappingnumber"].flatMap { Int64(XMLStoreText.trimmed($0)) }
      if let number, !numbers.insert(number).inserted {
        warn("two entity mappings have the number \(number); they are taken in the order of their list", object.line)
      }
      return (number: number ?? .max, position: position, object: object)
    }
    for item in numbered.sorted(by: { ($0.number, $0.position) < ($1.number, $1.position) }) {
      guard item.object.text("sourcename") != nil || item.object.text("destinationname") != nil else {
        warn(
          "the entity mapping \(title(item.object)) has neither source nor destination; it is ignored",
          item.object.line)
        continue
      }
      mapping.entityMappings.append(entityMapping(item.object))
    }
  }

  private func entityMapping(_ object: XcodeObject) -> XcodeEntityMapping {
    let (source, destination) = (object.text("sourcename"), object.text("destinationname"))
    let here = at(object.line).filled(from: Place(entity: destination ?? source))
    var entity = XcodeEntityMapping(
      name: object.text("name"), source: source, destination: destination,
      policy: object.text("migrationpolicyclassname").flatMap {
        let name = XMLStoreText.trimmed($0)
        return name.isEmpty ? nil : name
      }, filter: SourceFetch.condition(object.text("sourcefilterpredicatestring")), line: object.line)
    attempt(here) { () throws(HopdError) in
      // An archived expression counts only if none is generated: one author left a constant there.
      guard object.flag("autogenerateexpression") == false, let archive = try archive("sourceexpressiondata", object)
      else { return }
      let fetch = try SourceFetch(archive)
      guard fetch.entity == source else {
        throw HopdError(
          .invalidMapping, "the source expression fetches the entity \(fetch.entity), not \(source ?? "none")",
          hint: "enable “Auto Generate Value Expression” of the entity mapping")
      }
      entity.filter = fetch.predicate ?? entity.filter
    }
    attempt(here) { () throws(HopdError) in
      guard let archive = try archive("userinfodata", object) else { return }
      let info = try ArchivedUserInfo(archive)
      entity.userInfo = info.values
      for name in info.unknownClasses {
        warn("a value of class \(name) in the user info of \(title(object)) is ignored", object.line)
      }
    }
    entity.attributes = properties("attributemappings", .attribute, of: object, here)
    entity.relationships = properties("relationshipmappings", .relationship, of: object, here)
    return entity
  }

  private func properties(
    _ list: String, _ kind: XcodeObject.Kind, of owner: XcodeObject, _ place: Place
  ) -> [XcodePropertyMapping] {
    var result: [XcodePropertyMapping] = []
    var seen: Set<String> = []
    for object in resolve(owner.references[list] ?? [], as: kind, of: owner) {
      guard let name = object.text("name") else {
        warn("a property mapping of \(title(owner)) has no name; it is ignored", object.line)
        continue
      }
      guard seen.insert(name).inserted else {
        warn("\(title(owner)) maps “\(name)” twice; the first mapping of it counts", object.line)
        continue
      }
      var property = XcodePropertyMapping(
        name: name, isGenerated: object.flag("autogenerateexpression") ?? true,
        sourceMapping: kind == .relationship ? object.text("sourcemappingname") : nil, line: object.line)
      attempt(Place(file: place.file, line: object.line, entity: place.entity, property: name)) {
        () throws(HopdError) in
        // An archived expression takes precedence over the flag (docs/formats/mapping-models.md, "Compiling a source",
        // rule 5).
        if let archive = try archive("valueexpressiondata", object) {
          property.expression = try ArchivedExpressionReader.expression(archive)
        } else if kind == .relationship, let text = object.text("sourcekeypath") {
          property.sourceKeyPath = try ExpressionParser.expression(text, at: at(object.line))
        }
      }
      result.append(property)
    }
    return result
  }

  /// Returns the objects of that kind with those ids, without duplicates.
  private func resolve(_ ids: [String], as kind: XcodeObject.Kind, of owner: XcodeObject) -> [XcodeObject] {
    var seen: Set<String> = []
    return ids.compactMap { id in
      guard seen.insert(id).inserted else { return nil }
      guard let object = objects[id], object.kind == kind else {
        warn("\(title(owner)) refers to an object that is not there or of another kind; it is ignored", owner.line)
        return nil
      }
      return object
    }
  }

  private func archive(_ name: String, _ object: XcodeObject) throws(HopdError) -> ArchivedObject? {
    guard let text = object.values[name], text.utf8.contains(where: { $0 > 0x20 }) else { return nil }
    archiveCount += 1
    guard archiveCount <= MappingLimits.archives else {
      throw tooLarge("it has more than \(MappingLimits.archives) archived expressions", object.line)
    }
    guard let bytes = Base64.decode(text.utf8) else {
      throw HopdError(.invalidMapping, "“\(name)” is not base64", at: at(object.line))
    }
    return try KeyedArchive.decode(bytes, limits: .mappingArchive, at: at(object.line)).root()
  }

  // MARK: Helpers

  private func attempt(_ place: Place, _ body: () throws(HopdError) -> Void) {
    do throws(HopdError) {
      try body()
    } catch {
      if mapping.problems.count < MappingLimits.findings {
        mapping.problems.append(
          MappingProblem(entityMapping: mapping.entityMappings.count, error: error.located(place)))
      }
    }
  }

  private func title(_ object: XcodeObject) -> String {
    let names = [object.text("sourcename"), object.text("destinationname")].compactMap(\.self)
    let name = object.text("name") ?? names.joined(separator: "To")
    return name.isEmpty ? "without a name" : "“\(name.prefix(200))”"
  }

  private func warn(_ message: String, _ line: Int) {
    guard mapping.warnings.count < MappingLimits.findings else { return }
    mapping.warnings.append(HopdError(.mappingRemark, message, at: at(line)))
  }

  private func at(_ line: Int) -> Place {
    var place = place
    place.line = line
    return place
  }

  private func tooLarge(_ what: String, _ line: Int) -> HopdError {
    HopdError(.mappingTooLarge, "the mapping model is too large: \(what)", at: at(line))
  }
}
