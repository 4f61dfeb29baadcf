// Stored values as an export shows them. SQL and CSV use the same code, so that they agree.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import PropertyLists
import SQLite

/// Converts stored values to those of an export.
struct ExportedValue {
  let options: ExportOptions
  /// The store's external files.
  let external: ExternalDataDirectory?
  /// Values whose external file is missing or must not be read; they are nil in the export.
  let missing = MissingFiles()
  /// Archives of which the export has the plain value.
  let archives = ExtractedArchives()

  /// Largest external file that becomes a value: SQLite's limit, and what several copies of a value take in memory.
  static let largestValue = ExternalDataForm.largestValue(memoryLimit: 1 << 30)

  /// Returns the SQL of an attribute's value as a call on its column; the column itself where the stored form stays.
  func expression(_ column: String, of attribute: Attribute) -> String {
    guard let function = function(of: attribute) else { return column }
    return "\(function.rawValue)(\(column))"
  }

  /// The functions of SQL.
  private enum Function: String, CaseIterable {
    case date = "hopd_export_date"
    case uuid = "hopd_export_uuid"
    case external = "hopd_export_external"
    case archive = "hopd_export_archive"
  }

  private func function(of attribute: Attribute) -> Function? {
    switch attribute.type.form {
    case .date: .date
    case .uuid: options.uuids == .text ? .uuid : nil
    case .binary: attribute.hasExternalForm ? .external : nil
    case .transformable: .archive
    default: nil
    }
  }

  /// Registers the functions.
  func register(on connection: Connection) throws(SQLiteError) {
    for function in Function.allCases {
      try connection.registerFailingFunction(function.rawValue, argumentCount: 1) { values in
        try apply(function, to: values.first ?? .null)
      }
    }
  }

  private func apply(_ function: Function, to value: SQLiteValue) throws -> SQLiteValue {
    switch (function, value) {
    case (.date, .integer(let seconds)): return date(Double(seconds))
    case (.date, .real(let seconds)): return date(seconds)
    case (.uuid, .blob(let bytes)) where bytes.count == 16: return .text(UUIDText.text(of: bytes))
    case (.external, .blob(let bytes)): return try content(bytes)
    case (.archive, .blob(let bytes)):
      let content = ArchivedContent(dates: options.dates)
      let text = try content.text(bytes)
      if !content.isArchive(text) { archives.count &+= 1 }
      return .text(text)
    // A value of another class than its type has stays what it is.
    default: return value
    }
  }

  /// A date that RFC 3339 cannot write is its Unix seconds.
  func date(_ seconds: Double) -> SQLiteValue {
    if options.dates == .iso, let text = DateText.rfc3339(secondsSince2001: seconds) { return .text(text) }
    return .real(seconds + Double(DateText.secondsFrom1970))
  }

  private func content(_ bytes: [UInt8]) throws -> SQLiteValue {
    switch ExternalDataForm(bytes) {
    case .inline: return .blob(Array(bytes.dropFirst()))
    case .malformed: return .blob(bytes)
    case .reference(let name):
      guard let external, case .file = external.status(of: name) else {
        missing.count &+= 1
        return .null
      }
      return .blob(try external.content(of: name, limit: ExportedValue.largestValue))
    }
  }
}

/// Counts archives whose plain values are in an export.
final class ExtractedArchives {
  var count: Int64 = 0

  /// The note about them; nil if there are none.
  var warning: HopdError? {
    guard count > 0 else { return nil }
    return HopdError(
      .archivesExtracted,
      "\(count) \(count == 1 ? "archive is a plain value" : "archives are plain values") in the export, and an import "
        + "creates new archives",
      hint: "hopctl export --to ndjson writes every archive as it is")
  }
}

/// Counts values whose external file is missing or must not be read.
final class MissingFiles {
  var count: Int64 = 0

  /// The warning about them; nil if there are none.
  var warning: HopdError? {
    guard count > 0 else { return nil }
    return HopdError(
      .externalFilesLeftOut, "the external data of \(count) \(count == 1 ? "value is" : "values are") missing",
      hint: "copy the store's external data directory too")
  }
}
