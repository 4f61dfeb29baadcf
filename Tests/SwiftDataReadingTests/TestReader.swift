// The reader of Swift source, if it was built: `make swiftdata` does.

import Glibc
import SwiftDataReading
import SwiftDataSource
import SystemPackage
import Testing

/// The reader for tests.
enum TestReader {
  /// The built program; nil if there is none.
  static let program: SourceReaderProgram? = {
    let path = KnownPair.package.appending(".build-reader/release/hopctl-swiftdata-reader")
    return access(path.string, X_OK) == 0 ? SourceReaderProgram(path) : nil
  }()

  static let absence: Comment = "the reader of Swift source is not built: make swiftdata"

  /// Returns the target of some files.
  static func target(_ files: [String: String], definitions: [String: Bool] = [:]) throws -> SourceTarget {
    let program = try #require(program)
    let sorted = files.sorted { $0.key < $1.key }.map { (path: $0.key, bytes: Array($0.value.utf8)) }
    let facts = try program.facts(of: sorted, definitions: definitions)
    return SourceTarget(files: zip(sorted, facts).map { (path: $0.path, facts: $1) })
  }
}
