// Attached databases in memory: small stores are built there and written in one go. Those that become a file use
// SQLite's memdb VFS, where a commit writes the same header fields and pages as on disk; the others have no file at
// all, which is cheapest.

import CSQLite

/// The use of a database that is attached in memory.
package enum MemoryPurpose: Sendable, Hashable {
  /// Statements of the same connection read it; it ends with the connection.
  case scratch
  /// Its image becomes a file.
  case image
}

extension Connection {
  /// Attaches an empty database in memory under a schema name. Beyond `maximumBytes` a write fails as on a full disk;
  /// the page size must be set before the first table.
  package func attachMemory(as schema: String, for purpose: MemoryPurpose) throws(SQLiteError) {
    // Without a leading slash the name is private to this connection (sqlite.org: memdb). The mode is explicit: a
    // connection in memory would pass on its own mode, and SQLite keeps no header for a database without a file.
    let name = purpose == .scratch ? ":memory:" : "file:hopd?vfs=memdb&mode=rw"
    try attach(name: name, as: schema)
  }

  /// Replaces an attached database in memory by the one in these bytes; it can grow. No transaction may be open.
  package func load(_ image: [UInt8], into schema: String) throws(SQLiteError) {
    let count = Int64(image.count)
    guard let copy = sqlite3_malloc64(UInt64(image.count)) else {
      throw SQLiteError(extendedCode: SQLITE_NOMEM, message: "no copy of the image can be made")
    }
    image.withUnsafeBytes { UnsafeMutableRawBufferPointer(start: copy, count: image.count).copyMemory(from: $0) }
    // From here SQLite owns the copy, also if this fails. sqlite3_deserialize runs an ATTACH.
    let code = try watch.attaching { () throws(SQLiteError) in
      sqlite3_deserialize(
        handle, schema, copy.assumingMemoryBound(to: UInt8.self), count, count,
        UInt32(SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE))
    }
    guard code == SQLITE_OK else {
      throw SQLiteError(extendedCode: code, message: "the image cannot be taken for a database")
    }
  }

  /// Bounds the size of an attached database.
  package func limitSize(of schema: String, toBytes bytes: Int64) throws(SQLiteError) {
    let name = SQLiteIdentifier.quoted(schema)
    let pageSize = max(512, try integer("PRAGMA \(name).page_size") ?? 4096)
    try execute("PRAGMA \(name).max_page_count = \(max(8, bytes / pageSize))")
  }

  /// Whether the database attached under that name is in memory.
  package func isInMemory(_ schema: String) throws(SQLiteError) -> Bool {
    try text("PRAGMA \(SQLiteIdentifier.quoted(schema)).journal_mode") == "memory"
  }

  /// Returns the bytes that the file of an attached database would have. No transaction may be open.
  package func image(of schema: String) throws(SQLiteError) -> [UInt8] {
    var count: Int64 = 0
    // Without a copy if the database is in one piece (memdb); else SQLite makes a copy, which is freed here.
    if let own = sqlite3_serialize(handle, schema, &count, UInt32(SQLITE_SERIALIZE_NOCOPY)) {
      return Array(UnsafeBufferPointer(start: own, count: Int(clamping: count)))
    }
    guard let copy = sqlite3_serialize(handle, schema, &count, 0) else {
      throw SQLiteError(extendedCode: SQLITE_NOMEM, message: "no image of the database can be made")
    }
    defer { sqlite3_free(copy) }
    return Array(UnsafeBufferPointer(start: copy, count: Int(clamping: count)))
  }
}
