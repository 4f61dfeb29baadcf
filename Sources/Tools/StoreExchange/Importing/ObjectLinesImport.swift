// Reads hopctl's own JSON lines, of `hopctl export --to ndjson` or `hopctl dump`: the objects keep their keys, so the
// lines of the new store are those of the old one.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import PropertyLists
import SQLite
import SystemPackage

/// Imports hopctl's own lines.
struct ObjectLinesImport {
  let loader: StoreLoader
  /// The directory of `--files`.
  let files: FilePath?
  private let values: ImportedValue

  init(loader: StoreLoader, files: FilePath?) {
    self.loader = loader
    self.files = files
    values = ImportedValue(isExact: true, keepsNumbers: loader.problems.rule == .keep)
  }

  /// Whether a line is one of hopctl's.
  static func isOwn(_ line: JSONNode) -> Bool {
    line["entity"]?.string != nil && line["id"]?.string != nil && line["attributes"] != nil
  }

  func read(_ path: FilePath, progress: (_ share: Double) throws -> Void) throws {
    let reader = try JSONLinesReader(path)
    let file = loader.number(of: path)
    var count = 0
    while let line = try reader.object() {
      do {
        try read(line, file: file, line: reader.line)
      } catch let error as HopdError where error.code == .rowInvalid {
        try loader.problems.add(error.located(Place(file: path, line: Int(clamping: reader.line))))
      }
      count += 1
      if count % 2048 == 0 { try progress(reader.share) }
    }
  }

  private func read(_ object: JSONNode, file: Int64, line: Int64) throws {
    guard let entity = object["entity"]?.string, let id = object["id"]?.string else {
      throw invalid("the line has no \"entity\" and \"id\"")
    }
    let (owner, number) = try self.id(id)
    guard owner == entity else { throw invalid("the entity of the id is not that of the line") }
    let writer = try loader.writer(of: entity)
    let key = try loader.key(number, in: writer.table)
    writer.begin(key)
    var texts: [(column: String, bytes: [UInt8])] = []
    guard case .object(let attributes)? = object["attributes"] else {
      throw invalid("the line has no \"attributes\"")
    }
    let here = loader.place(file: file, line: line)
    for (name, value) in attributes {
      do {
        try set(name, value, of: writer, at: here, texts: &texts)
      } catch let error as HopdError where error.code == .rowInvalid && loader.problems.rule == .default {
        loader.problems.correct(error.located(here))
      }
    }
    var lists: [(name: String, targets: [JSONNode])] = []
    try setReferences(object["relationships"], of: writer, lists: &lists)
    try loader.write(writer, file: file, line: line)
    for (column, bytes) in texts { try loader.set(invalidText: bytes, in: column, of: writer) }
    for (name, targets) in lists {
      for (offset, target) in targets.enumerated() {
        let other = try reference(target.string, name)
        try loader.stage(name, of: entity, owner: key, target: other.key, place: Int64(offset))
      }
    }
  }

  private func invalid(_ message: String) -> HopdError {
    HopdError(.rowInvalid, message, hint: "correct the line, or export the store again")
  }

  /// The parts of an id, `Entity/p7`.
  private func id(_ text: String?) throws -> (entity: String, key: Int64) {
    guard let text, let slash = text.utf8.lastIndex(of: UInt8(ascii: "/")), text.utf8[slash...].starts(with: "/p".utf8),
      let key = Int64(text[slash...].dropFirst(2))
    else { throw invalid("an id is not of the form \"Entity/p1\"") }
    return (String(text[..<slash]), key)
  }

  /// The key and entity number of an object that a line refers to.
  private func reference(_ text: String?, _ name: String) throws -> (key: Int64, number: Int64) {
    let (entity, key) = try id(text)
    guard let (number, table) = loader.place(ofEntity: entity) else {
      throw invalid("\(name.printableLine) refers to an object of no entity of the model")
    }
    return (try loader.key(key, in: table), number)
  }

  // MARK: Attributes

  private func set(
    _ name: String, _ value: JSONNode, of writer: ObjectWriter, at here: Place,
    texts: inout [(column: String, bytes: [UInt8])]
  ) throws {
    if let (attribute, column, place) = writer.attributes[name] {
      // The store computes it of the objects that are there.
      if writer.computed.contains(name) { return }
      if let bytes = value["invalidText"]?.string.flatMap({ Base64.decode($0.utf8) }),
        [.string, .uri].contains(attribute.type.form)
      {
        texts.append((column, bytes))
        // The row has a text until the bytes replace it, which a required attribute needs.
        writer.set(.text(""), at: place)
      } else {
        let here = Place(entity: writer.entity.name, property: name).filled(from: here)
        writer.set(try stored(value, as: attribute, of: writer, at: here), at: place)
      }
      return
    }
    let elements = writer.attributes.filter { $0.value.attribute.compositeName == name }
    guard !elements.isEmpty else {
      // Transient attributes, and those of a layout without a column, are not in a dump.
      let near = NearestName.among(writer.attributes.keys, to: name)
      throw HopdError(
        .rowInvalid, "\(writer.entity.name.printableLine) has no attribute \(name.printableLine)",
        hint: near.map { "use '\($0)'" } ?? "remove it, or pass the models of the data")
    }
    if value.isNull {
      for (_, element) in elements { writer.set(.null, at: element.place) }
      return
    }
    guard case .object(let members) = value else { throw invalid("\(name.printableLine) is not an object") }
    for (element, value) in members { try set("\(name).\(element)", value, of: writer, at: here, texts: &texts) }
  }

  private func stored(
    _ value: JSONNode, as attribute: Attribute, of writer: ObjectWriter, at here: Place
  ) throws -> SQLiteValue {
    switch value {
    case .null: return .null
    case .boolean(let flag): return try values.stored(.boolean(flag), as: attribute)
    case .number(let digits): return try values.stored(.number(digits), as: attribute)
    case .string(let text):
      let stored = try values.stored(.text(text), as: attribute)
      if attribute.type.form == .binary, case .blob(let bytes) = stored {
        return try loader.stored(bytes, as: attribute, of: writer)
      }
      return stored
    case .array: throw values.unfit(attribute, "is an array")
    case .object: return try content(of: value, attribute, writer, at: here)
    }
  }

  /// Content that is not in the line.
  private func content(
    of value: JSONNode, _ attribute: Attribute, _ writer: ObjectWriter, at here: Place
  ) throws -> SQLiteValue {
    guard [.binary, .transformable, .uuid].contains(attribute.type.form) else {
      throw values.unfit(attribute, "is an object")
    }
    if let name = value["file"]?.string {
      guard let files else {
        throw HopdError(
          .rowInvalid, "the content of \(attribute.name) is in a file beside the lines",
          at: Place(property: attribute.name), hint: "pass the --files DIRECTORY of the export")
      }
      // The name is a digest; nothing else leads out of the directory.
      guard name.utf8.count == 64, name.utf8.allSatisfy({ Unicode.Scalar($0).properties.isASCIIHexDigit }) else {
        throw values.unfit(attribute, "names a file that is not a digest")
      }
      let bytes = try InputFile(files.appending(name)).content()
      guard ContentDigest.sha256(bytes) == name.lowercased() else {
        throw values.unfit(attribute, "is in a file whose content is not that of its name")
      }
      return attribute.type.form == .binary ? try loader.stored(bytes, as: attribute, of: writer) : .blob(bytes)
    }
    if value["external"] != nil {
      // The value is lost, not wrong: as with a reference to an object that is not there, the rule decides.
      try loader.problems.add(
        reference: HopdError(
          .rowInvalid, "the external file of \(attribute.name) was missing when the store was exported", at: here,
          hint: "copy the store's external data directory too, and export again"))
      return .null
    }
    throw HopdError(
      .rowInvalid, "the line has only the digest of \(attribute.name)", at: Place(property: attribute.name),
      hint: "export again with whole values: hopctl export STORE --to ndjson")
  }

  // MARK: Relationships

  private func setReferences(
    _ relationships: JSONNode?, of writer: ObjectWriter, lists: inout [(name: String, targets: [JSONNode])]
  ) throws {
    var given: Set<String> = []
    if case .object(let members)? = relationships {
      for (name, value) in members {
        if let reference = writer.references[name] {
          given.insert(name)
          if value.isNull { continue }
          let (key, number) = try self.reference(value.string, name)
          writer.set(.integer(key), at: reference.key)
          if let place = reference.discriminator { writer.set(.integer(number), at: place) }
        } else if writer.collections[name] != nil {
          guard case .array(let targets) = value else { throw invalid("\(name.printableLine) is not an array") }
          lists.append((name, targets))
        } else {
          throw HopdError(
            .rowInvalid, "\(writer.entity.name.printableLine) has no relationship \(name.printableLine)",
            hint: "remove it, or pass the models of the data")
        }
      }
    }
    guard given.count < writer.references.count else { return }
    for name in writer.references.keys where !given.contains(name) {
      loader.open.insert(PropertyKey(entity: writer.entity.name, property: name))
    }
  }
}
