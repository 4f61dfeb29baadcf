// The data of an import: a folder of files, one file, or a database.

import Diagnostics
import Glibc
import SQLite
import SystemPackage

/// Opens the sources of an import.
struct DataSet {
  private enum Form {
    case folder
    case file
    case database(Connection)
  }

  let path: FilePath
  private let form: Form

  /// Opens what is at a path.
  init(at path: FilePath) throws {
    self.path = path
    if DataSet.isFolder(path) {
      form = .folder
    } else if try InputFile(path).begins(with: "SQLite format 3\0") {
      form = .database(try DataSet.open(path))
    } else {
      form = .file
    }
  }

  private static func isFolder(_ path: FilePath) -> Bool {
    let descriptor = path.withPlatformString { Glibc.open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    if descriptor >= 0 { close(descriptor) }
    return descriptor >= 0
  }

  /// A database is read as it is on the disk: a program that writes it meanwhile, or a log with rows, is refused.
  private static func open(_ path: FilePath) throws -> Connection {
    for suffix in ["-wal", "-journal"] {
      let side = path.removingLastComponent().appending((path.lastComponent?.string ?? "") + suffix)
      guard let status = side.linkStatus(), status.st_size > 0 else { continue }
      throw HopdError(
        .dataInvalid, "some of its rows are in \(side.printable)", at: Place(file: path),
        hint: "close the program that writes it, then run `sqlite3 \(path.quotedForShell) 'VACUUM'`")
    }
    do {
      return try Connection(path: path, access: .immutable)
    } catch {
      throw HopdError(.dataInvalid, "the database cannot be opened", at: Place(file: path), cause: error)
    }
  }

  /// Whether it is a single file that is not a database.
  var isFile: Bool { if case .file = form { true } else { false } }

  /// Opens a source by its name: a file in the folder, the file itself, or a table of the database. `columns` are those
  /// that are read of JSON lines.
  func source(_ name: String, delimiter: UInt8?, columns: [String], at place: Place) throws -> any RecordSource {
    switch form {
    case .database(let connection): return try TableReader(name, of: connection, path: path)
    case .folder: return try file(try inside(name, at: place), delimiter, columns, at: place)
    case .file:
      guard path.lastComponent?.string == name else {
        throw HopdError(
          .dataInvalid, "the data is the file \(path.printable), and `from` names another one", at: place,
          hint: "write from = \"\(path.lastComponent?.string ?? "")\", or pass the folder of the files")
      }
      return try file(path, delimiter, columns, at: place)
    }
  }

  /// The path of a file in the folder; nothing leads out of it.
  private func inside(_ name: String, at place: Place) throws(HopdError) -> FilePath {
    let relative = FilePath(name)
    guard relative.isRelative, !relative.isEmpty, relative.components.allSatisfy({ $0.kind == .regular }) else {
      throw HopdError(.dataInvalid, "`from` names no file in the folder of the data", at: place)
    }
    return path.pushing(relative)
  }

  private func file(
    _ path: FilePath, _ delimiter: UInt8?, _ columns: [String], at place: Place
  ) throws(HopdError) -> any RecordSource {
    if let delimiter { return try CSVReader(path, delimiter: delimiter) }
    switch path.extension?.lowercased() {
    case "csv": return try CSVReader(path, delimiter: UInt8(ascii: ","))
    case "tsv", "tab": return try CSVReader(path, delimiter: 0x09)
    case "ndjson", "jsonl": return try JSONLinesReader(path, columns: columns)
    default:
      throw HopdError(
        .dataInvalid, "the form of \(path.printable) does not follow from its name", at: place,
        hint: "rename it to .csv, .tsv, .ndjson or .jsonl, or set delimiter")
    }
  }
}
