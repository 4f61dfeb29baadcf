// An XML store as it stands in the file (docs/formats/xml-stores.md): nothing is compared with a model here.

import Diagnostics
import ManagedObjectModel
import PropertyLists
import SystemPackage

/// A Core Data XML store.
package struct XMLStore: Sendable {
  /// UUID and metadata; the entries are empty in stores of systems before versioning.
  package internal(set) var metadata = StoreMetadata(uuid: "", entries: [:])
  /// Its objects in the order of the file.
  var objects: [XMLStoreObject] = []

  /// Reads the store of a file.
  package init(at path: FilePath) throws(HopdError) {
    self = try XMLStoreReader.read(
      try ModelFiles.bytes(of: path, limit: XMLLimits.store.maximumBytes), at: Place(store: path))
  }

  init() {}
}

/// An element `object`.
struct XMLStoreObject: Sendable {
  /// Name of the entity in upper case.
  let entity: String
  let id: String
  let line: Int
  /// Values by the lower-case names of attributes, with the type that the file gives them.
  var values: [String: (type: String, text: String)] = [:]
  /// Ids of the targets by the lower-case names of relationships.
  var references: [String: [String]] = [:]
}

extension XMLLimits {
  /// Limits of an XML store. Core Data itself holds such a store in memory as a whole.
  static let store = XMLLimits(
    maximumBytes: 256 << 20, maximumDepth: 64, maximumAttributes: 16, maximumTextBytes: 64 << 20)
}

extension HopdError.Code {
  /// An XML store has a form that hopd does not know, or contradicts itself or its model.
  package static let xmlStoreInvalid = HopdError.Code("xml-store-invalid", exit: .dataError)
}
