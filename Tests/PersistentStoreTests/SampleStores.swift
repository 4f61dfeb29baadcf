// Models as short XML, and stores made from them in a temporary folder.

import Diagnostics
import Glibc
import ManagedObjectModel
import SQLite
import SystemPackage
import Testing

@testable import PersistentStore

/// The model in a body of XML.
func sampleModel(_ body: String) throws -> ManagedObjectModel {
  try ModelReader.read(contents: Array("<?xml version=\"1.0\"?><model>\(body)</model>".utf8), name: "Test").model
}

/// A model with every attribute type and every kind of relationship.
func everythingModel() throws -> ManagedObjectModel {
  let types = [
    "Integer 16", "Integer 32", "Integer 64", "Decimal", "Double", "Float", "String", "Boolean", "Date", "Binary",
    "UUID", "URI", "Transformable",
  ]
  let attributes = types.flatMap { type in
    let name = type.filter { $0 != " " }.lowercased()
    return [
      "<attribute name='\(name)' attributeType='\(type)'/>",
      "<attribute name='\(name)Maybe' optional='YES' attributeType='\(type)'/>",
    ]
  }.joined()
  return try sampleModel(
    """
    <entity name='Thing'>\(attributes)
      <attribute name='outside' optional='YES' attributeType='Binary' allowsExternalBinaryDataStorage='YES'/>
      <attribute name='scratch' optional='YES' transient='YES' attributeType='String'/>
    </entity>
    <entity name='Animal' isAbstract='YES'>
      <attribute name='name' attributeType='String'/>
      <attribute name='tag' attributeType='Integer 32'/>
      <relationship name='owner' maxCount='1' destinationEntity='Person' inverseName='pets'
        inverseEntity='Person'/>
      <relationship name='next' optional='YES' maxCount='1' destinationEntity='Animal' inverseName='previous'
        inverseEntity='Animal'/>
      <relationship name='previous' optional='YES' maxCount='1' destinationEntity='Animal' inverseName='next'
        inverseEntity='Animal'/>
      <uniquenessConstraints><uniquenessConstraint><constraint value='tag'/></uniquenessConstraint>
      </uniquenessConstraints>
    </entity>
    <entity name='Cat' parentEntity='Animal'><attribute name='lives' attributeType='Integer 16'
      minValueString='1' maxValueString='9'/></entity>
    <entity name='Dog' parentEntity='Animal'/>
    <entity name='Person'>
      <attribute name='name' attributeType='String' minValueString='3' maxValueString='40'/>
      <relationship name='pets' optional='YES' toMany='YES' ordered='YES' destinationEntity='Animal'
        inverseName='owner' inverseEntity='Animal'/>
      <relationship name='favourite' optional='YES' maxCount='1' destinationEntity='Animal'/>
      <relationship name='passport' optional='YES' maxCount='1' destinationEntity='Passport' inverseName='holder'
        inverseEntity='Passport'/>
      <relationship name='groups' optional='YES' toMany='YES' destinationEntity='Group' inverseName='members'
        inverseEntity='Group'/>
    </entity>
    <entity name='Passport'>
      <attribute name='number' attributeType='UUID'/>
      <relationship name='holder' optional='YES' maxCount='1' destinationEntity='Person' inverseName='passport'
        inverseEntity='Person'/>
      <uniquenessConstraints><uniquenessConstraint><constraint value='number'/></uniquenessConstraint>
      </uniquenessConstraints>
    </entity>
    <entity name='Group'>
      <relationship name='members' optional='YES' toMany='YES' ordered='YES' destinationEntity='Person'
        inverseName='groups' inverseEntity='Person'/>
    </entity>
    """)
}

/// A folder that is removed with all its files at the end.
final class Folder {
  let path: FilePath

  init() throws {
    var template = Array("/tmp/hopd-test-XXXXXX".utf8CString)
    let made: String? = template.withUnsafeMutableBufferPointer { buffer in
      guard let start = buffer.baseAddress, mkdtemp(start) != nil else { return nil }
      return String(cString: start)
    }
    path = FilePath(try #require(made))
  }

  deinit {
    for name in names { _ = path.appending(name).withPlatformString { unlink($0) } }
    _ = path.withPlatformString { rmdir($0) }
  }

  /// The names of its files.
  var names: [String] {
    guard let folder = path.withPlatformString({ opendir($0) }) else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  /// Makes a filled store.
  func store(_ model: ManagedObjectModel, rows: Int64, seed: UInt64 = 1, framework: Int64 = 1344) throws
    -> StoreLocation
  {
    let location = StoreLocation(database: path.appending("s\(names.count).sqlite"))
    let schema = StoreSchema(model: model, frameworkVersion: framework)
    try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: seed)).make(
      at: location.database, rows: rows, seed: seed)
    return location
  }

  /// The dump of a store.
  func dump(_ location: StoreLocation, _ model: ManagedObjectModel) throws -> String {
    try StoreReader.withUnchangedStore(at: location) { reader in
      let framework = try reader.metadata().frameworkVersion
      return try dumped(reader, StoreSchema(model: model, frameworkVersion: framework))
    }
  }
}

/// The dump of an open store.
func dumped(_ reader: StoreReader, _ schema: StoreSchema) throws -> String {
  var bytes: [UInt8] = []
  try StoreDump(reader: reader, schema: schema).write { bytes += $0 }
  return String(decoding: bytes, as: UTF8.self)
}
