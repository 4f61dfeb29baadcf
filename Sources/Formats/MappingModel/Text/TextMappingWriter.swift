// Writes a mapping as a `.hopmap.toml`: only what the reader would not fill in by itself, in the shortest form that
// reads back equal. Every text is read again before it is returned, so that it never means something else.

import Diagnostics
import Expressions
import ManagedObjectModel
import PropertyLists
import SystemPackage
import TOMLDocuments

/// Comments for a text mapping.
struct TextMappingRemarks {
  /// At the top.
  var header: [String] = []
  /// Before the entity mapping with that index.
  var entities: [Int: [String]] = [:]
  /// Before the property of the entity mapping with that index; at the mapping's end if the property has no line.
  var properties: [Int: [(name: String, text: String)]] = [:]
}

/// Writes one mapping.
struct TextMappingWriter {
  private let mapping: ExplicitMapping
  private let source: ManagedObjectModel
  private let destination: ManagedObjectModel
  private let modelName: String?
  private let remarks: TextMappingRemarks
  private let outlines: [MappingOutline]
  /// The ends of relationships that have a line so far. The reader sets copies before lines, so a later copy of either
  /// end needs a line too, unless it is one of a text mapping.
  private var written: Set<String> = []
  private var findings: [HopdError] = []

  init(
    _ mapping: ExplicitMapping, source: ManagedObjectModel, destination: ManagedObjectModel, modelName: String? = nil,
    remarks: TextMappingRemarks = TextMappingRemarks()
  ) {
    // Mappings of a whole composite are written element by element. Dead entity mappings are left out.
    self.mapping = mapping.livingOnly().openingComposites(source: source, destination: destination)
    self.source = source
    self.destination = destination
    self.modelName = modelName
    self.remarks = remarks
    outlines = self.mapping.entityMappings.map(MappingOutline.init)
  }

  /// Returns the text; throws with everything that a text mapping cannot express.
  mutating func text() throws(HopdError) -> String {
    var lines = remarks.header.map(Self.comment)
    if !lines.isEmpty { lines.append("") }
    lines.append("[mapping]")
    if let modelName { lines.append("model = \(Self.quoted(modelName))") }
    lines.append("source = \(Self.quoted(mapping.sourceVersion))")
    lines.append("destination = \(Self.quoted(mapping.destinationVersion))")
    for (index, entity) in mapping.entityMappings.enumerated() {
      lines.append("")
      lines += (remarks.entities[index] ?? []).map(Self.comment)
      lines += self.lines(entity, remarks.properties[index] ?? [])
    }
    guard findings.isEmpty else {
      throw HopdError(
        .textMappingInvalid, "the mapping cannot be expressed as a text mapping", at: Place(file: mapping.path),
        hint: "use the mapping model unchanged", reasons: findings)
    }
    return lines.joined(separator: "\n") + "\n"
  }

  // MARK: Entities

  private mutating func lines(_ entity: ExplicitEntityMapping, _ remarks: [(name: String, text: String)]) -> [String] {
    var lines = ["[[entity]]"]
    let usual = TextEntityMapping.title(source: entity.source, destination: entity.destination)
    if entity.name != usual { lines.append("name = \(Self.quoted(entity.name))") }
    if let source = entity.source { lines.append("source = \(Self.quoted(source))") }
    if let destination = entity.destination { lines.append("destination = \(Self.quoted(destination))") }
    if let filter = entity.filter { lines.append("filter = \(Self.quoted(filter.text))") }
    if let policy = entity.policy { lines.append("policy = \(Self.quoted(policy))") }
    if !entity.userInfo.isEmpty {
      lines.append("user_info = \(inline(.dictionary(entity.userInfo), in: entity))")
    }
    lines += grouping(entity)
    var left = remarks
    lines += properties(entity, &left)
    return lines + left.map { Self.comment("\($0.name): \($0.text)") }
  }

  private mutating func grouping(_ entity: ExplicitEntityMapping) -> [String] {
    func keep(_ rule: KeepRule, _ writer: inout TextMappingWriter) -> [String] {
      switch rule {
      case .lowest: []
      case .highest: ["keep = \"highest\""]
      case .latest(let value): ["keep = { latest = \(writer.quoted(value, entity, "keep")) }"]
      }
    }
    switch entity.grouping {
    case .each: return []
    case .distinctBy(let keys, let rule):
      return ["distinct_by = \(list(keys, entity, "distinct_by"))"] + keep(rule, &self)
    case .deduplicate(let keys, let rule):
      return ["deduplicate_by = \(list(keys, entity, "deduplicate_by"))"] + keep(rule, &self)
    case .expand(let members, _): return ["expand = \(quoted(members, entity, "expand"))"]
    }
  }

  // MARK: Properties

  private mutating func properties(
    _ entity: ExplicitEntityMapping, _ remarks: inout [(name: String, text: String)]
  ) -> [String] {
    guard let target = entity.destination.flatMap({ destination.entity(named: $0) }) else { return [] }
    let origin = entity.source.flatMap { source.entity(named: $0) }
    var generated = resolver(entity, origin, target, relationships: [])
    let (usualAttributes, usualRelationships) = (values(generated.attributes()), values(generated.relationships()))
    let (attributes, relationships) = (values(entity.attributes), values(entity.relationships))
    let copied = Set(entity.relationships.filter(\.isCopied).map(\.name))
    let oldNames = Set(
      origin.map { source.storedAttributes(of: $0).map(\.name) + source.storedRelationships(of: $0).map(\.name) } ?? [])
    var skipped: [String] = []
    var lines: [String] = []

    func remark(_ name: String, _ remarks: inout [(name: String, text: String)]) {
      lines += remarks.filter { $0.name == name }.map { Self.comment($0.text) }
      remarks.removeAll { $0.name == name }
    }
    for name in destination.storedAttributes(of: target).map(\.name).sortedByBytes(of: \.self) {
      guard let value = attributes[name] else {
        if generated.copies, oldNames.contains(name) { skipped.append(name) }
        continue
      }
      if usualAttributes[name] == value { continue }
      remark(name, &remarks)
      if case .expression(let node) = value {
        lines.append("attributes.\(TOMLText.key(name)) = \(attribute(node, entity, name))")
      }
    }
    for relationship in destination.storedRelationships(of: target).sortedByBytes(of: \.name) {
      let name = relationship.name
      guard let value = relationships[name] else {
        if generated.copies, oldNames.contains(name) { skipped.append(name) }
        continue
      }
      let ends = ends(of: relationship, in: target)
      if usualRelationships[name] == value, copied.contains(name) || written.isDisjoint(with: ends) { continue }
      written.insert(ends[0])
      remark(name, &remarks)
      let text = self.relationship(value, entity, relationship, origin, target)
      lines.append("relationships.\(TOMLText.key(name)) = \(text)")
    }
    if !skipped.isEmpty {
      for name in skipped { remark(name, &remarks) }
      lines.append("skip = [\(skipped.map { Self.quoted($0) }.joined(separator: ", "))]")
    }
    return lines
  }

  /// Returns the names of both ends of a relationship, its own first.
  private func ends(of relationship: Relationship, in entity: Entity) -> [String] {
    let owner = destination.declaringEntity(of: relationship.name, in: entity) ?? entity
    let inverse = destination.inverse(of: relationship)
    return ["\(owner.name).\(relationship.name)"]
      + (inverse.map { ["\($0.entity.name).\($0.relationship.name)"] } ?? [])
  }

  private func values(_ properties: [ExplicitPropertyMapping]) -> [String: PropertyValue] {
    properties.reduce(into: [:]) { result, property in result[property.name] = property.value }
  }

  /// Returns a resolver of the entity mapping that knows nothing about its properties except these relationships.
  private func resolver(
    _ entity: ExplicitEntityMapping, _ origin: Entity?, _ target: Entity,
    relationships: [(name: String, value: Located<PropertyValue>)]
  ) -> TextPropertyResolver {
    let place = Place(file: mapping.path)
    let grouping: TextGrouping? =
      switch entity.grouping {
      case .each: nil
      case .distinctBy(let keys, let keep): .distinctBy(keys, keep: keep)
      case .deduplicate(let keys, let keep): .deduplicate(by: keys, keep: keep)
      case .expand(let objects, _): .expand(objects)
      }
    let text = TextEntityMapping(
      place: place, name: Located(value: entity.name, place: place),
      source: entity.source.map { Located(value: $0, place: place) },
      destination: entity.destination.map { Located(value: $0, place: place) }, filter: nil, policy: entity.policy,
      userInfo: [:], copies: nil, skipped: [], attributes: [], relationships: relationships,
      grouping: grouping.map { Located(value: $0, place: place) })
    return TextPropertyResolver(
      text: text, origin: origin, entity: target, source: source, destination: destination, outlines: outlines,
      variables: entity.grouping.variables)
  }

  private mutating func attribute(_ node: ExpressionNode, _ entity: ExplicitEntityMapping, _ name: String) -> String {
    switch node {
    case .constant(.integer(let value)): return "\(value)"
    case .constant(.boolean(let value)): return "\(value)"
    default: return quoted(node, entity, name)
    }
  }

  private mutating func relationship(
    _ value: PropertyValue, _ entity: ExplicitEntityMapping, _ relationship: Relationship, _ origin: Entity?,
    _ target: Entity
  ) -> String {
    let name = relationship.name
    switch value {
    case .grouped(let mapping, let keys):
      return "{ mapping = \(Self.quoted(mapping)), key = \(list(keys, entity, name)) }"
    case .matching(let other, let attribute, let key):
      return "{ entity = \(Self.quoted(other)), attribute = \(Self.quoted(attribute)), "
        + "key = \(quoted(key, entity, name)) }"
    case .expression(let node):
      guard case .destinationInstances(let lookup, let objects) = node else { return quoted(node, entity, name) }
      let place = Place(file: mapping.path, key: name)
      var short = resolver(
        entity, origin, target, relationships: [(name, Located(value: .expression(objects), place: place))])
      let read = values(short.relationships())[name]
      if read == value, !short.mistakes.errors.contains(where: { $0.place == place }) {
        return quoted(objects, entity, name)
      }
      switch lookup {
      case .entityMapping(let mapping):
        return "{ mapping = \(Self.quoted(mapping)), objects = \(quoted(objects, entity, name)) }"
      case .sourceRelationship(let relationship):
        return "{ relationship = \(Self.quoted(relationship)), objects = \(quoted(objects, entity, name)) }"
      }
    }
  }

  // MARK: TOML

  private mutating func list(_ nodes: [ExpressionNode], _ entity: ExplicitEntityMapping, _ name: String) -> String {
    let texts = nodes.map { quoted($0, entity, name) }
    return texts.count == 1 ? texts.joined() : "[\(texts.joined(separator: ", "))]"
  }

  private mutating func quoted(_ node: ExpressionNode, _ entity: ExplicitEntityMapping, _ name: String) -> String {
    let text = node.description
    let read = try? ExpressionParser.expression(text, at: Place())
    // The keys of composites are joined again when the text is resolved.
    let hasComposites = source.entities.contains { !$0.composites.isEmpty }
    if read != node, !(hasComposites && read?.description == text) {
      findings.append(
        HopdError(
          .textMappingInvalid, "its expression has no text that means the same",
          at: Place(entity: entity.name, property: name),
          hint: "write the constant as a string or number; this form exists only in archives"))
    }
    return Self.quoted(text)
  }

  private mutating func inline(_ value: PropertyListValue, in entity: ExplicitEntityMapping) -> String {
    switch value {
    case .string(let text): return Self.quoted(text)
    case .integer(let number): return "\(number)"
    case .real(let number) where number.isFinite: return "\(number)"
    case .boolean(let flag): return "\(flag)"
    case .array(let elements): return "[\(elements.map { inline($0, in: entity) }.joined(separator: ", "))]"
    case .dictionary(let entries):
      let texts = entries.sorted { $0.key < $1.key }.map { "\(TOMLText.key($0.key)) = \(inline($0.value, in: entity))" }
      return texts.isEmpty ? "{}" : "{ \(texts.joined(separator: ", ")) }"
    case .real, .date, .data, .uid:
      findings.append(
        HopdError(
          .textMappingInvalid, "TOML cannot represent a value of its user info", at: Place(entity: entity.name)))
      return "\"\""
    }
  }

  /// Returns a comment line. It contains names of strangers' models, and TOML allows no control characters there.
  private static func comment(_ text: String) -> String {
    var line = "# "
    for scalar in text.unicodeScalars where scalar.value >= 0x20 && scalar.value != 0x7f {
      line.unicodeScalars.append(scalar)
    }
    return line
  }

  /// Returns a string in the quotes that need no escapes, if possible.
  private static func quoted(_ text: String) -> String {
    let isPlain = text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7f }
    if isPlain, text.contains("\"") || text.contains("\\"), !text.contains("'") { return "'\(text)'" }
    return TOMLText.quoted(text)
  }
}

extension ExplicitMapping {
  /// Returns the mapping as the text of a `.hopmap.toml` file; throws with everything that such a file cannot express.
  ///
  /// Read against the same models, the text gives a mapping that does the same. Transient destination attributes are
  /// left out, and types of mappings are computed again.
  package func text(
    source: ManagedObjectModel, destination: ManagedObjectModel, modelName: String? = nil
  ) throws(HopdError) -> String {
    var remarks = TextMappingRemarks()
    if let file = path.lastComponent {
      remarks.header = ["What \(file.string) says, as a text mapping."]
    }
    var writer = TextMappingWriter(
      self, source: source, destination: destination, modelName: modelName, remarks: remarks)
    return try writer.text()
  }
}
