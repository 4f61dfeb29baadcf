// Reads XML stores from XML events. Every element that is not known is an error: a store that is read in part would
// lose the rest.

import Diagnostics
import PropertyLists

/// Builds an XML store from events.
final class XMLStoreReader: XMLEventHandler {
  private let place: Place
  private var store = XMLStore()
  private var path: [String] = []
  private var object: XMLStoreObject?
  private var value: (name: String, type: String, text: String)?
  private var ids: Set<String> = []
  private var metadata: XMLPropertyListReader?

  private init(place: Place) { self.place = place }

  static func read(_ bytes: [UInt8], at place: Place) throws(HopdError) -> XMLStore {
    let reader = XMLStoreReader(place: place)
    try XMLReader.read(bytes, limits: .store, at: place, to: reader)
    guard !reader.store.metadata.uuid.isEmpty else { throw reader.invalid("the store has no UUID", nil) }
    return reader.store
  }

  func startElement(_ name: String, attributes: [XMLAttribute], at position: XMLPosition) throws(HopdError) {
    path.append(name)
    if let metadata { return try metadata.startElement(name, attributes: attributes, at: position) }
    func text(_ key: String) throws(HopdError) -> String {
      if let value = attributes.first(where: { $0.name == key })?.value { return value }
      throw invalid("an element \(name) has no \(key)", position)
    }
    switch path.count {
    case 1 where name == "database", 2 where name == "databaseInfo": break
    case 3 where path[1] == "databaseInfo" && ["version", "UUID", "nextObjectID", "metadata"].contains(name): break
    case 4 where path[2] == "metadata" && name == "plist":
      let reader = XMLPropertyListReader(limits: .standard, place: place)
      metadata = reader
      try reader.startElement(name, attributes: attributes, at: position)
    case 2 where name == "object":
      object = XMLStoreObject(entity: try text("type"), id: try text("id"), line: position.line)
    case 3 where object != nil && name == "attribute":
      value = (try text("name"), try text("type"), "")
    case 3 where object != nil && name == "relationship":
      let references = attributes.first { $0.name == "idrefs" }?.value ?? ""
      let ids = references.utf8.split { $0 == 0x20 || $0 == 0x09 || $0 == 0x0a || $0 == 0x0d }
      let key = try text("name")
      guard object?.references.updateValue(ids.map { String(Substring($0)) }, forKey: key) == nil else {
        throw invalid("an object has the relationship \(key) twice", position)
      }
    default: throw invalid("the element \(path.joined(separator: "/")) is unknown", position)
    }
  }

  func text(_ text: String, at position: XMLPosition) throws(HopdError) {
    if let metadata { return try metadata.text(text, at: position) }
    if value != nil {
      value?.text += text
    } else if path == ["database", "databaseInfo", "UUID"] {
      store.metadata.uuid += XMLStoreText.trimmed(text)
    }
  }

  func endElement(_ name: String, at position: XMLPosition) throws(HopdError) {
    if let reader = metadata {
      try reader.endElement(name, at: position)
      if path.count == 4 {
        store.metadata.entries = reader.result?.dictionary ?? [:]
        metadata = nil
      }
    } else if let (key, type, text) = value {
      value = nil
      guard object?.values.updateValue((type, text), forKey: key) == nil else {
        throw invalid("an object has the attribute \(key) twice", position)
      }
    } else if path.count == 2, let ended = object {
      object = nil
      guard ids.insert(ended.id).inserted else { throw invalid("two objects have the id \(ended.id)", position) }
      store.objects.append(ended)
    }
    path.removeLast()
  }

  private func invalid(_ what: String, _ position: XMLPosition?) -> HopdError {
    HopdError(
      .xmlStoreInvalid, "the XML store cannot be read: \(what)",
      at: position.map { Place(line: $0.line).filled(from: place) } ?? place,
      hint: "open the store with the app, or restore it from a backup; nothing was written")
  }
}
