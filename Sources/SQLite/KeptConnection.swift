// A connection that serves one small store after the other. Its databases are images in memory, and the next store is
// put below it as the commit of another program would be (CLinux/imagevfs.c). Statements, views and functions stay: for
// stores with the same schema none is compiled again.
//
// Nothing of one store may be read as another's. So an image is exchanged only while no statement runs, and SQLite
// itself must then report that it has dropped the old pages (PRAGMA data_version). Whoever meets an error drops the
// connection.

import CLinux
import CSQLite
import SystemPackage

/// The state of a connection that is kept.
final class KeptState {
  /// A database whose content is exchanged.
  struct Image {
    /// The rows of sqlite_master that each schema cookie stands for; the last one is that of the present content.
    var schemas: [(cookie: UInt32, rows: [UInt8])] = []
    /// The number by which SQLite reports changes of the content by others.
    var version: Int64 = 0
    /// Change counter and schema cookie of the content as it came, and its counter here.
    var header = (counter: UInt32(0), cookie: UInt32(0), ownCounter: UInt32(0))
  }

  /// Whether a migrated store is built with the connection.
  let builds: Bool
  /// By schema name.
  var images: [String: Image] = [:]
  /// Compiled statements, by text.
  var statements: [String: KeptStatements] = [:]
  /// Temporary tables, indexes and views, by name, with the statements that created them.
  var temporaries: [String: String] = [:]
  /// What is known about a database as long as its schema stays, by schema name.
  var facts: [String: AnyObject] = [:]
  /// The number of the present store.
  var store = 0

  /// Statements that are kept for stores of other kinds.
  static let mostStatements = 512
  /// The schemas of an image that are remembered.
  static let mostSchemas = 64

  init(builds: Bool) { self.builds = builds }

  /// Whether a statement stays valid as long as the schema: not one that changes the schema or a setting, nor one that
  /// SQLite answers while it compiles it.
  static func isReusable(_ sql: String) -> Bool {
    if sql.utf8.first == UInt8(ascii: "P") {
      return ["schema_version", "data_version", "page_count", "freelist_count", "quick_check(1)", "quick_check(5)"]
        .contains { sql.hasSuffix($0) }
    }
    return ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "WITH "].contains { sql.utf8.starts(with: $0.utf8) }
  }
}

/// The compiled statements of one text that are not in use.
final class KeptStatements {
  var handles: [OpaquePointer] = []
  /// The number of the store that used one last.
  var store = 0

  /// Before the connection is closed: each statement in use keeps its connection.
  deinit {
    for handle in handles { sqlite3_finalize(handle) }
  }
}

extension Connection {
  /// Opens a connection that is kept, for the store in `image`, which it only reads. Other databases can be attached
  /// and written if it `builds` one.
  package convenience init(keptFor image: [UInt8], builds: Bool) throws(SQLiteError) {
    guard Connection.imageCode == SQLITE_OK else {
      throw SQLiteError(extendedCode: Connection.imageCode, message: "the VFS of images cannot be registered")
    }
    let bytes = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: image.count)
    defer { bytes.deallocate() }
    _ = bytes.initialize(from: image)
    clinux_image_vfs_opens(bytes.baseAddress, Int64(image.count))
    defer { clinux_image_vfs_opens(nil, 0) }
    try self.init(path: "store", access: .image(builds: builds), vfs: CLINUX_IMAGE_VFS)
    kept = KeptState(builds: builds)
    limitValues(of: image)
    try begin("main", image)
  }

  /// Whether this connection outlives its store.
  package var isKept: Bool { kept != nil }

  /// Whether a database whose content can be exchanged is attached under that name.
  package func hasImage(_ schema: String) -> Bool { kept?.images[schema] != nil }

  /// Attaches a copy of `image`, whose content can be exchanged, for reading and writing.
  package func attachImage(_ image: [UInt8], as schema: String) throws(SQLiteError) {
    let code: Result<Void, SQLiteError> = image.withUnsafeBytes { bytes in
      clinux_image_vfs_opens(bytes.baseAddress, Int64(bytes.count))
      defer { clinux_image_vfs_opens(nil, 0) }
      do throws(SQLiteError) {
        return .success(try attach(name: "file:\(schema)?vfs=\(CLINUX_IMAGE_VFS)&mode=rw", as: schema))
      } catch {
        return .failure(error)
      }
    }
    try code.get()
    try begin(schema, image)
  }

  private func begin(_ schema: String, _ image: [UInt8]) throws(SQLiteError) {
    var state = KeptState.Image()
    state.header = header(of: image, in: schema)
    state.version = try dataVersion(of: schema)
    state.schemas = [(1, try schemaRows(of: schema))]
    kept?.images[schema] = state
  }

  /// Puts the next store, or another database, in the place of a schema's content; false if this connection cannot read
  /// it, because its pages, encoding or form of the schema are others. After an error the connection must not be used.
  package func exchange(_ schema: String, for image: [UInt8]) throws(SQLiteError) -> Bool {
    guard let kept, var state = kept.images[schema], let present = state.schemas.last else { return false }
    guard try put(image, in: schema, cookie: present.cookie, &state) else { return false }
    // With the cookie as it was, SQLite takes the schema to be as it was. Its rows must show that.
    let rows = try schemaRows(of: schema)
    if rows != present.rows {
      let known = state.schemas.firstIndex { $0.rows == rows }
      let next =
        known.map { state.schemas.remove(at: $0) }
        ?? (cookie: (state.schemas.map(\.cookie).max() ?? 1) &+ 1, rows: rows)
      guard state.schemas.count < KeptState.mostSchemas else { return false }
      state.schemas.append(next)
      guard try put(image, in: schema, cookie: next.cookie, &state) else { return false }
      // Read within the bounds of schemas.
      watch.limitStatements(of: handle, readingSchema: true)
      defer { watch.limitStatements(of: handle, readingSchema: false) }
      guard try schemaRows(of: schema) == rows else { return false }
    }
    state.header = header(of: image, in: schema)
    kept.images[schema] = state
    if schema == "main" { limitValues(of: image) }
    return true
  }

  /// Puts content below a schema, and makes sure that SQLite has noticed.
  private func put(
    _ image: [UInt8], in schema: String, cookie: UInt32, _ state: inout KeptState.Image
  ) throws(SQLiteError) -> Bool {
    let code = image.withUnsafeBytes {
      clinux_image_exchange(handle, schema, $0.baseAddress, Int64($0.count), cookie)
    }
    if code == SQLITE_MISMATCH || code == SQLITE_FULL { return false }
    guard code == SQLITE_OK else {
      throw SQLiteError(extendedCode: code, message: "the database in memory cannot be exchanged")
    }
    let version = try dataVersion(of: schema)
    guard version != state.version else {
      throw SQLiteError(extendedCode: SQLITE_MISUSE, message: "SQLite has not noticed that its database was exchanged")
    }
    state.version = version
    return true
  }

  /// Bounds values as on a connection to the store's file.
  private func limitValues(of image: [UInt8]) {
    if kept?.builds == true {
      limitValues(toBytes: Int64(Int32.max))
    } else {
      watch.limitValues(of: handle, fileBytes: Int64(image.count))
    }
  }

  private func dataVersion(of schema: String) throws(SQLiteError) -> Int64 {
    try integer("PRAGMA \(SQLiteIdentifier.quoted(schema)).data_version") ?? 0
  }

  /// All rows of sqlite_master as bytes: every value with its type and length.
  private func schemaRows(of schema: String) throws(SQLiteError) -> [UInt8] {
    var bytes: [UInt8] = []
    let statement = try prepare(
      "SELECT rowid, type, name, tbl_name, rootpage, sql FROM \(SQLiteIdentifier.quoted(schema)).sqlite_master")
    while try statement.step() {
      for column in 0..<statement.columnCount {
        statement.withPlace(at: column) { place in
          let (kind, content): (UInt8, UnsafeRawBufferPointer?) =
            switch place {
            case .null: (0, nil)
            case .integer: (1, nil)
            case .real: (2, nil)
            case .text(let text): (3, text)
            case .blob(let blob): (4, blob)
            }
          bytes.append(kind)
          var number = kind == 1 ? UInt64(bitPattern: statement.integer(at: column)) : UInt64(content?.count ?? 0)
          if kind == 2 { number = statement.real(at: column).bitPattern }
          withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
          if let content { bytes.append(contentsOf: content) }
        }
      }
    }
    return bytes
  }

  // MARK: The image of a result

  private func header(of image: [UInt8], in schema: String) -> (counter: UInt32, cookie: UInt32, ownCounter: UInt32) {
    let own = withImageBytes(of: schema) { Self.number($0, at: 24) } ?? 0
    return image.withUnsafeBytes { (Self.number($0, at: 24), Self.number($0, at: 40), own) }
  }

  private static func number(_ bytes: UnsafeRawBufferPointer, at place: Int) -> UInt32 {
    bytes.count < 100 ? 0 : (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(bytes[place + $1]) }
  }

  private func withImageBytes<Result>(
    of schema: String, _ body: (UnsafeRawBufferPointer) -> Result
  ) -> Result? {
    var count: Int64 = 0
    guard let bytes = clinux_image_bytes(handle, schema, &count) else { return nil }
    return body(UnsafeRawBufferPointer(start: bytes, count: Int(clamping: count)))
  }

  /// Returns the content of an exchangeable database as the file that SQLite would have written: change counter and
  /// schema cookie continue from those of the content that it began with. nil for any other database.
  func keptImage(of schema: String) -> [UInt8]? {
    guard let state = kept?.images[schema], var bytes = withImageBytes(of: schema, { Array($0) }), bytes.count >= 100
    else { return nil }
    let counter = bytes.withUnsafeBytes { Self.number($0, at: 24) }
    let cookie = bytes.withUnsafeBytes { Self.number($0, at: 40) }
    guard let given = state.schemas.last?.cookie else { return nil }
    func set(_ number: UInt32, at place: Int) {
      for index in 0..<4 { bytes[place + index] = UInt8(truncatingIfNeeded: number >> (24 - 8 * UInt32(index))) }
    }
    let isSized = bytes[24..<28] == bytes[92..<96]
    set(state.header.counter &+ (counter &- state.header.ownCounter), at: 24)
    if isSized { for index in 0..<4 { bytes[92 + index] = bytes[24 + index] } }
    set(state.header.cookie &+ (cookie &- given), at: 40)
    return bytes
  }

  /// Returns a fact about a database, which must be compared with the version of its schema. A connection that is not
  /// kept makes it anew.
  package func keptFact<Fact: AnyObject>(of schema: String, _ make: () -> Fact) -> Fact {
    guard let kept, kept.images[schema] != nil else { return make() }
    if let known = kept.facts[schema] as? Fact { return known }
    let made = make()
    kept.facts[schema] = made
    return made
  }

  // MARK: Statements and temporary objects

  /// Returns the statements of a text, which may be empty; nil if they are not kept.
  func keptStatements(_ sql: String) -> KeptStatements? {
    guard let kept else { return nil }
    if let known = kept.statements[sql] { return known }
    guard KeptState.isReusable(sql) else { return nil }
    let made = KeptStatements()
    kept.statements[sql] = made
    return made
  }

  /// Ends the use of a statement: it is kept for the next store, or finalized.
  func end(_ statement: OpaquePointer, _ statements: KeptStatements?) {
    guard let kept, let statements else {
      sqlite3_finalize(statement)
      return
    }
    sqlite3_reset(statement)
    // No value of this store stays.
    sqlite3_clear_bindings(statement)
    statements.store = kept.store
    statements.handles.append(statement)
  }

  /// Prepares for the next store: what only stores long ago have used is released.
  package func finishStore() {
    guard let kept else { return }
    setProgressHandler(nil)
    functionFailure = nil
    // A statement of the next store whose function is not registered again must fail.
    for function in functions.values {
      (function as? FunctionBox)?.body = { _ in nil }
      (function as? FunctionBox)?.mapping = nil
      (function as? AggregateBox)?.start = { AggregateGroup(step: { _ in false }, finish: { nil }) }
    }
    kept.store += 1
    guard kept.statements.count > KeptState.mostStatements else { return }
    for (sql, entry) in kept.statements where entry.store < kept.store - 4 { kept.statements[sql] = nil }
  }

  /// Runs the CREATE statement of a temporary object. On a connection that is kept, one of the same name and text stays
  /// as it is.
  package func createTemporary(_ kind: String, _ name: String, _ sql: String) throws(SQLiteError) {
    guard let kept else { return try execute(sql) }
    if let known = kept.temporaries[name] {
      if known == sql { return }
      kept.temporaries[name] = nil
      try execute("DROP \(kind) IF EXISTS temp.\(SQLiteIdentifier.quoted(name))")
    }
    try execute(sql)
    kept.temporaries[name] = sql
  }
}
