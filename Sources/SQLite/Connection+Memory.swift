// Attached databases in memory: small stores are built there and written in one go. Those that become a file use
// SQLite's memdb VFS, where a commit writes the same header fields and pages as on disk; the others have no file at
// all, which is cheapest.

import CLinux
import CSQLite
import Glibc
import SystemPackage

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

  /// Returns the bytes of a closed database file; nil if it has more than `most`, if it cannot be read, or if the
  /// default VFS is not SQLite's own and may keep it elsewhere.
  package static func content(of path: FilePath, atMost most: Int64) -> [UInt8]? {
    guard clinux_store_vfs_is_plain() != 0 else { return nil }
    let descriptor = path.withPlatformString { open($0, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0,
      status.st_size <= most
    else { return nil }
    let size = Int(status.st_size)
    let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
      while count < size {
        let read = pread(descriptor, buffer.baseAddress.map { $0 + count }, size - count, off_t(count))
        if read <= 0 { break }
        count += read
      }
    }
    return bytes.count == size ? bytes : nil
  }

  /// Returns the bytes of a database's file; nil if it has more than `most`, or if the database is in memory. Nothing
  /// may write to the file, and its log must be empty.
  package func content(of schema: String, atMost most: Int64) throws(SQLiteError) -> [UInt8]? {
    guard let file = clinux_store_vfs_file(handle, schema) else { return nil }
    let size = clinux_store_vfs_size(file)
    guard size > 0, size <= most else { return nil }
    var code = SQLITE_OK
    let bytes = [UInt8](unsafeUninitializedCapacity: Int(size)) { buffer, count in
      code = clinux_store_vfs_read(file, buffer.baseAddress, size)
      count = code == SQLITE_OK ? Int(size) : 0
    }
    guard code == SQLITE_OK else {
      throw SQLiteError(extendedCode: code, message: "the database cannot be read")
    }
    return bytes
  }

  /// Returns the bytes that the file of an attached database would have. No transaction may be open.
  package func image(of schema: String) throws(SQLiteError) -> [UInt8] {
    if let image = keptImage(of: schema) { return image }
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
