// The data of an import: a folder of files, one file, or a database.

import Diagnostics
import Glibc
import ManagedObjectModel
import SQLite
import SystemPackage

/// Where rows come from.
struct DataSource: Hashable {
  /// A file in the folder of the data, or a table of its database.
  let name: String
  /// The character between cells; nil if the name of the file says it.
  var delimiter: UInt8?
  var encoding: TextEncoding?
}

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
  func source(_ source: DataSource, columns: [String], at place: Place) throws -> any RecordSource {
    switch form {
    case .database(let connection): return try TableReader(source.name, of: connection, path: path)
    case .folder, .file: return try file(try path(of: source, at: place), source, columns, at: place)
    }
  }

  /// The connection to a database; nil for files.
  var database: Connection? { if case .database(let connection) = form { connection } else { nil } }

  /// A digest of the files of some sources; of the whole file or database if the data is one.
  func digest(of sources: [(source: DataSource, place: Place)]) throws -> String {
    guard case .folder = form else { return try InputFile(path).digest() }
    let paths = try sources.map { try path(of: $0.source, at: $0.place).string }
    let digests = try Set(paths).sorted().map { try InputFile(FilePath($0)).digest() }
    return ContentDigest.sha256(digests.joined().utf8)
  }

  /// The path of a source of a folder or file.
  private func path(of source: DataSource, at place: Place) throws(HopdError) -> FilePath {
    guard case .file = form else { return try inside(source.name, at: place) }
    guard path.lastComponent?.string == source.name else {
      throw HopdError(
        .dataInvalid, "the data is the file \(path.printable), and `from` names another one", at: place,
        hint: "write from = \"\(path.lastComponent?.string ?? "")\", or pass the directory of the files")
    }
    return path
  }

  /// The path of a file in the folder; nothing leads out of it.
  private func inside(_ name: String, at place: Place) throws(HopdError) -> FilePath {
    let relative = FilePath(name)
    guard relative.isRelative, !relative.isEmpty, relative.components.allSatisfy({ $0.kind == .regular }) else {
      throw HopdError(.dataInvalid, "`from` names no file in the directory of the data", at: place)
    }
    return path.pushing(relative)
  }

  private func file(
    _ path: FilePath, _ source: DataSource, _ columns: [String], at place: Place
  ) throws(HopdError) -> any RecordSource {
    let encoding = source.encoding
    if let delimiter = source.delimiter { return try CSVReader(path, delimiter: delimiter, encoding: encoding) }
    switch path.extension?.lowercased() {
    case "csv": return try CSVReader(path, delimiter: UInt8(ascii: ","), encoding: encoding)
    case "tsv", "tab": return try CSVReader(path, delimiter: 0x09, encoding: encoding)
    case "ndjson", "jsonl": return try JSONLinesReader(path, columns: columns, encoding: encoding)
    default:
      throw HopdError(
        .dataInvalid, "the form of \(path.printable) does not follow from its name", at: place,
        hint: "rename it to .csv, .tsv, .ndjson or .jsonl, or set delimiter")
    }
  }
}
