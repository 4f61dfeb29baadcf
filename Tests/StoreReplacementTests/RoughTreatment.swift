// What tests do to stores that a user's disk or program may do: damage a page, fill a store with rows.

import Glibc
import OtherPrograms
import PersistentStore
import SQLite
import SystemPackage
import Testing

/// A table that no version of the store has a word about, so that nobody looks at it but SQLite's own check.
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
