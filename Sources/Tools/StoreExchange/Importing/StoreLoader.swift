// Writes objects and their relationships into the tables of a store. Rows are written as they come; what needs the
// whole data (references by key, the order of to-manys, inverses) is staged in temporary tables, which SQLite keeps on
// the disk, so memory does not grow with the data.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite
import SystemPackage

/// Fills the tables of one store.
final class StoreLoader {
  let connection: Connection
  let schema: StoreSchema
  let problems: RowProblems
  private let storeUUID: String
  /// Keeps a large value in an external file; removes the file of nil.
  let external: (ExternalFileName, [UInt8]?) throws -> Void
  private var writers: [String: ObjectWriter] = [:]
  private(set) var pairs: [PropertyKey: StagedPairs] = [:]
  /// What was looked up in the model: for each row that would take longer than writing it.
  private var entities: [String: (number: Int64, table: EntityTable)] = [:]
  private var pairsByName: [PropertyKey: StagedPairs] = [:]
  private var files: [FilePath] = []
  private var nextKeys: [String: Int64] = [:]
  /// Whether the tables have objects already.
  let isAdding: Bool
  /// The highest key that a table had before, by its name; 0 in a new store.
  private var bases: [String: Int64] = [:]
  private var waiting = 0
  /// Objects that were written.
  private(set) var count: Int64 = 0
  /// The to-ones that some object of a concrete entity was not given: they follow from the other end.
  var open: Set<PropertyKey> = []

  /// Core Data keeps values of up to about 100 KB in the column (docs/formats/store-layout.md, "External binary data").
  private static let largestInline = 100_000
  private static let chunk = 20_000

  /// Fills the tables of a new store; with `isAdding` those of a store that has objects.
  init(
    connection: Connection, schema: StoreSchema, storeUUID: String, problems: RowProblems, isAdding: Bool = false,
    external: @escaping (ExternalFileName, [UInt8]?) throws -> Void
  ) throws {
    self.isAdding = isAdding
    self.connection = connection
    self.schema = schema
    self.storeUUID = storeUUID
    self.problems = problems
    self.external = external
    for index in schema.tables.indices {
      try connection.execute(
        "CREATE TEMP TABLE hopd_origins_\(index) (key INTEGER PRIMARY KEY, file INTEGER, line INTEGER)")
    }
    guard isAdding else { return }
    let marks = Dictionary(
      try StoreReader(connection: connection).primaryKeys().map { ($0.number, $0.highWaterMark) },
      uniquingKeysWith: max)
    for table in schema.tables {
      let largest = try connection.integer("SELECT max(\"Z_PK\") FROM \(SQLiteIdentifier.quoted(table.name))") ?? 0
      let mark = schema.number(of: table.rootEntity).flatMap { marks[$0] } ?? 0
      bases[table.name] = max(0, mark, largest)
    }
    nextKeys = bases
  }

  /// The number and the table of an entity; nil for an unknown one.
  func place(ofEntity name: String) -> (number: Int64, table: EntityTable)? {
    if let known = entities[name] { return known }
    guard let number = schema.number(of: name), let table = schema.table(of: name) else { return nil }
    entities[name] = (number, table)
    return (number, table)
  }

  /// The key that an object of the data has in the store: keys follow those that the store has given.
  func key(_ key: Int64, in table: EntityTable) throws(HopdError) -> Int64 {
    guard isAdding else { return key }
    let (sum, overflow) = key.addingReportingOverflow(bases[table.name] ?? 0)
    guard !overflow else { throw HopdError(.rowInvalid, "the key of an object is too large") }
    return sum
  }

  /// SQL that is true for the rows of this import among those of a table; empty if all rows are.
  func isNew(_ key: String, in table: EntityTable) -> String {
    isAdding ? " AND \(key) IN (SELECT key FROM \(origins(of: table)))" : ""
  }

  // MARK: Locations

  /// The number of a file, by which objects remember where they come from.
  func number(of file: FilePath) -> Int64 {
    if let known = files.firstIndex(of: file) { return Int64(known) }
    files.append(file)
    return Int64(files.count - 1)
  }

  /// The place of a line of a file.
  func place(file: Int64, line: Int64) -> Place {
    let path = Int(exactly: file).flatMap { files.indices.contains($0) ? files[$0] : nil }
    return Place(file: path, line: Int(clamping: line))
  }

  /// The temporary table with the origins of the objects of an entity table.
  func origins(of table: EntityTable) -> String {
    "temp.hopd_origins_\(schema.tables.firstIndex { $0.name == table.name } ?? 0)"
  }

  /// The place of an object in the data.
  func place(of key: Int64, in table: EntityTable) throws(SQLiteError) -> Place {
    let found = try connection.rows("SELECT file, line FROM \(origins(of: table)) WHERE key = ?", [.integer(key)]) {
      ($0.integer(at: 0), $0.integer(at: 1))
    }.first
    return found.map { place(file: $0.0, line: $0.1) } ?? Place(entity: table.rootEntity, row: key)
  }

  // MARK: Objects

  /// Returns the writer of a concrete entity.
  func writer(of name: String) throws -> ObjectWriter {
    if let known = writers[name] { return known }
    guard let entity = schema.model.entity(named: name), !entity.isAbstract, let number = schema.number(of: name),
      let table = schema.table(of: name)
    else {
      let near = NearestName.among(schema.model.entities.filter { !$0.isAbstract }.map(\.name), to: name)
      throw HopdError(
        .rowInvalid, "the model has no entity \(name.printableLine) with objects",
        hint: near.map { "use '\($0)'" })
    }
    let writer = try ObjectWriter(
      entity, number: number, table: table, schema: schema, connection: connection, origins: origins(of: table))
    writers[name] = writer
    return writer
  }

  /// The key after those of a table; it is taken when an object is written with it, so that a row that is left out
  /// leaves no gap.
  func nextKey(in table: EntityTable) -> Int64 { (nextKeys[table.name] ?? 0) &+ 1 }

  /// Returns binary content as a column has it: large content of external storage is in a file, which is written with
  /// the object. Its name follows from
  /// the object and the content, so an import that is run again after a crash finds the files that it wrote.
  func stored(_ bytes: [UInt8], as attribute: Attribute, of writer: ObjectWriter) throws -> SQLiteValue {
    guard attribute.hasExternalForm, bytes.count > Self.largestInline else { return attribute.stored(bytes) }
    let owner = [storeUUID, writer.entity.name, String(writer.key), attribute.name].joined(separator: "\u{0}")
    var digest = ContentDigest.Running()
    digest.add(owner.utf8)
    digest.add([0])
    digest.add(bytes)
    // The form of a random UUID, which Core Data's names have.
    var text = Array(digest.sha256().uppercased().utf8.prefix(32))
    text[12] = UInt8(ascii: "4")
    text[16] = UInt8(ascii: "A")
    for place in [8, 13, 18, 23] { text.insert(UInt8(ascii: "-"), at: place) }
    guard let name = ExternalFileName(text) else { return attribute.stored(bytes) }
    writer.files.append((name, bytes))
    return .blob(ExternalDataForm.reference(to: name))
  }

  /// Writes the object that a writer has; throws an error of the row if its key is taken.
  func write(_ writer: ObjectWriter, file: Int64, line: Int64) throws {
    try beginChunk()
    do {
      try writer.write(file: file, line: line)
    } catch {
      // SQLITE_CONSTRAINT: of the key, or of a uniqueness constraint inside the table.
      guard error.extendedCode & 0xff == 19 else { throw error }
      throw HopdError(
        .rowInvalid, "another object has this key, or a value that must be unique",
        at: Place(entity: writer.entity.name))
    }
    for (name, bytes) in writer.files { try external(name, bytes) }
    nextKeys[writer.table.name] = max(nextKeys[writer.table.name] ?? 0, writer.key)
    count &+= 1
  }

  /// Replaces a text by bytes that are not UTF-8, which only SQLite can store.
  func set(invalidText bytes: [UInt8], in column: String, of writer: ObjectWriter) throws {
    let name = SQLiteIdentifier.quoted(column)
    try connection.run(
      "UPDATE \(SQLiteIdentifier.quoted(writer.table.name)) SET \(name) = CAST(? AS TEXT) WHERE \"Z_PK\" = ?",
      [.blob(bytes), .integer(writer.key)])
  }

  // MARK: Pairs

  /// Stages a pair of a to-many.
  func stage(
    _ relationship: String, of entity: String, owner: Int64, target: Int64, place: Int64?
  ) throws {
    try beginChunk()
    try staged(relationship, of: entity)?.add(owner: owner, target: target, place: place)
  }

  /// The staged pairs of a to-many, by the entity whose declaration has the storage; nil if it has none.
  func staged(_ relationship: String, of entity: String) throws -> StagedPairs? {
    let name = PropertyKey(entity: entity, property: relationship)
    if let known = pairsByName[name] { return known }
    guard let storing = schema.storingEntity(ofRelationship: relationship, in: entity) else { return nil }
    let key = PropertyKey(entity: storing, property: relationship)
    if let known = pairs[key] {
      pairsByName[name] = known
      return known
    }
    guard let storage = schema.storage(ofRelationship: relationship, in: entity), storage.ownColumns == nil,
      let declared = schema.model.entity(named: storing).flatMap({ schema.model.allRelationships(of: $0)[relationship] }
      )
    else { return nil }
    let made = try StagedPairs(
      key: key, relationship: declared, storage: storage, table: "hopd_pairs_\(pairs.count)", connection: connection)
    pairs[key] = made
    pairsByName[name] = made
    return made
  }

  // MARK: Transactions

  /// Begins a transaction, and commits it now and then: one for each row would take its time.
  func beginChunk() throws {
    waiting += 1
    if waiting >= Self.chunk { try commit() }
    if !connection.isInTransaction { try connection.execute("BEGIN") }
  }

  /// Commits what is written.
  func commit() throws {
    waiting = 0
    if connection.isInTransaction { try connection.execute("COMMIT") }
  }

  /// The objects of this import that the store has now.
  func countOfObjects() throws -> Int64 {
    try schema.tables.reduce(0) { sum, table in
      let count = try connection.integer(
        "SELECT count(*) FROM \(SQLiteIdentifier.quoted(table.name)) WHERE true\(isNew("\"Z_PK\"", in: table))")
      return sum &+ (count ?? 0)
    }
  }

  /// Highest key by root entity: Z_MAX.
  func highWaterMarks() throws -> [String: Int64] {
    var marks: [String: Int64] = [:]
    for table in schema.tables {
      let largest = try connection.integer("SELECT max(\"Z_PK\") FROM \(SQLiteIdentifier.quoted(table.name))") ?? 0
      marks[table.rootEntity] = max(0, largest)
    }
    return marks
  }
}

/// Pairs of one to-many in a temporary table, until all objects are written.
final class StagedPairs {
  let key: PropertyKey
  let relationship: Relationship
  let storage: RelationshipStorage
  /// The temporary table, with `owner`, `target` and `place`.
  let table: String
  private let insert: Statement

  init(
    key: PropertyKey, relationship: Relationship, storage: RelationshipStorage, table: String, connection: Connection
  ) throws(SQLiteError) {
    self.key = key
    self.relationship = relationship
    self.storage = storage
    self.table = "temp.\(table)"
    try connection.execute("CREATE TEMP TABLE \(table) (owner INTEGER, target INTEGER, place INTEGER)")
    insert = try connection.prepare("INSERT INTO temp.\(table) VALUES (?, ?, ?)")
  }

  func add(owner: Int64, target: Int64, place: Int64?) throws(SQLiteError) {
    try insert.run([.integer(owner), .integer(target), place.map { .integer($0) } ?? .null])
  }
}
