// The real models and stores: the folder named by HOPD_FIXTURES, else `../shared/fixtures` beside the package. If the
// folder is missing, tests that need them are skipped, with a message. Tests never write there.

import FoundationEssentials
import Glibc
import SystemPackage
import Testing

/// The folder of fixtures.
enum Fixtures {
  /// The folder; nil if it does not exist.
  static let root: FilePath? = {
    let folder: FilePath
    if let named = getenv("HOPD_FIXTURES").map({ String(cString: $0) }), !named.isEmpty {
      folder = FilePath(named)
    } else {
      // This file is Tests/RealStoreTests/Fixtures.swift of the package.
      folder = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
        .removingLastComponent().appending("shared/fixtures")
    }
    return FileManager.default.fileExists(atPath: folder.string) ? folder : nil
  }()

  /// Whether the folder exists.
  static var isAvailable: Bool { root != nil }

  /// Whether it is the set whose figures the documents quote, and not another one named by HOPD_FIXTURES.
  static var isStandardSet: Bool {
    cases(in: "hash-vectors").count == 46 && cases(in: "stores").count == 28 && cases(in: "chains").count == 9
  }

  /// The reason for skipped tests.
  static let absence: Comment = "no fixtures: set HOPD_FIXTURES to their folder"

  /// Returns the folders directly in a part of the fixtures, sorted: `cases(in: "stores")`.
  static func cases(in part: String) -> [FilePath] {
    guard let folder = root?.appending(part) else { return [] }
    return names(in: folder).map { folder.appending($0) }.filter { isFolder($0) }
  }

  /// Returns the names in a folder, sorted.
  static func names(in folder: FilePath) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: folder.string)) ?? []).sorted()
  }

  /// Whether the path is a folder.
  static func isFolder(_ path: FilePath) -> Bool {
    var isFolder = false
    return FileManager.default.fileExists(atPath: path.string, isDirectory: &isFolder) && isFolder
  }

  /// Whether the path exists.
  static func exists(_ path: FilePath) -> Bool { FileManager.default.fileExists(atPath: path.string) }

  /// Returns the bytes of a file.
  static func bytes(of path: FilePath) throws -> [UInt8] {
    Array(try Data(contentsOf: URL(filePath: path.string)))
  }

  /// Returns a JSON file as a value.
  static func json<Value: Decodable>(_ type: Value.Type, at path: FilePath) throws -> Value {
    try JSONDecoder().decode(type, from: Data(contentsOf: URL(filePath: path.string)))
  }
}
