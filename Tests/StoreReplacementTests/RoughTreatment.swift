// What a user's disk or program may do to a store: damage a page, fill it with rows.

import Glibc
import OtherPrograms
import PersistentStore
import SQLite
import SystemPackage
import Testing

/// A table that is in no version of the model, so that only SQLite's own check reads it.
enum Ballast {
  /// Adds the table to a closed store; the more rows, the longer a check takes, and the more pages are copied.
  static func add(to database: FilePath, rows: Int = 10) throws {
    let connection = try Connection.ofApp(database)
    try connection.execute(
      """
      CREATE TABLE ballast(a INTEGER, b TEXT);
      WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
        INSERT INTO ballast SELECT i, hex(zeroblob(50)) FROM n;
      """)
  }

  /// So many that a check runs through hundreds of thousands of SQLite's steps, and a copy through thousands of pages.
  static let many = 45_000

  /// Adds the table and damages the page on which it begins: everything else can be read as before.
  static func addDamaged(to database: FilePath) throws {
    try add(to: database)
    let (root, size) = try place(in: database)
    let descriptor = open(database.string, O_WRONLY)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    let noise = [UInt8](repeating: 0xff, count: size)
    try #require(pwrite(descriptor, noise, size, off_t((root - 1) * size)) == size)
  }

  private static func place(in database: FilePath) throws -> (root: Int, pageSize: Int) {
    let connection = try Connection.ofApp(database)
    let root = try #require(try connection.integer("SELECT rootpage FROM sqlite_master WHERE name = 'ballast'"))
    return (Int(root), Int(try #require(try connection.integer("PRAGMA page_size"))))
  }
}
