// Binary values in a dump: shown, counted and digested, or written to files, whether they are in a column or in an
// external file. A value may be as large as the disk, so an external file is read in portions.

import ManagedObjectModel
import PropertyLists

/// The form of binary values in a dump that are longer than `BinaryForm.shownBytes`; shorter ones are always base64.
package enum BinaryForm {
  /// `{"bytes":N,"digest":"…"}`, with SHA-256 in hexadecimal.
  case digest
  /// A string of base64.
  case base64
  /// `{"bytes":N,"digest":"…","file":"…"}`; the value is a file of that name.
  case files(any BinaryValueFiles)

  /// Values of up to this many bytes are base64 in every form.
  static let shownBytes = 64
}

/// Makes files of binary values.
package protocol BinaryValueFiles {
  /// Creates a file of one value, which `produce` passes in portions.
  func add(_ produce: ((ArraySlice<UInt8>) throws -> Void) throws -> Void) throws -> BinaryValueFile
}

/// A file with one binary value.
package struct BinaryValueFile: Sendable, Hashable {
  /// Name of the file.
  package let name: String
  /// Length of the value.
  package let bytes: Int64
  /// SHA-256 of the value, in hexadecimal.
  package let digest: String

  package init(name: String, bytes: Int64, digest: String) {
    self.name = name
    self.bytes = bytes
    self.digest = digest
  }
}

/// Writes the binary values of one dump.
final class BinaryValues {
  private let external: ExternalDataDirectory?
  private let form: BinaryForm
  /// Values whose external file is missing or must not be read.
  private(set) var missing: Int64 = 0
  /// Values that are shown by their length and digest alone.
  private(set) var shortened: Int64 = 0

  /// Creates a writer that reads external files from `external`.
  init(form: BinaryForm, external: ExternalDataDirectory?) {
    self.form = form
    self.external = external
  }

  /// Writes a value that is in the column.
  func write(_ bytes: ArraySlice<UInt8>, into lines: inout JSONLines) throws {
    if bytes.count <= BinaryForm.shownBytes { return try lines.string(Base64.encode(bytes)) }
    switch form {
    case .base64: try lines.string(Base64.encode(bytes))
    case .files(let files): try write(files.add { try $0(bytes) }, into: &lines)
    case .digest:
      shortened &+= 1
      try lines.raw("{\"bytes\":\(bytes.count),\"digest\":\"\(ContentDigest.sha256(bytes))\"}")
    }
  }

  /// Writes a value with external storage. Its content is shown from either place, so that dumps of a value in a file
  /// and in the column are equal. A reference whose file cannot be read is shown by its name.
  func write(external bytes: [UInt8], into lines: inout JSONLines) throws {
    switch ExternalDataForm(bytes) {
    case .inline: try write(bytes.dropFirst(), into: &lines)
    case .malformed: try write(bytes[...], into: &lines)
    case .reference(let name):
      guard let external, case .file(let size) = external.status(of: name) else {
        missing &+= 1
        return try lines.raw("{\"external\":\"\(name.text)\"}")
      }
      if size <= Int64(BinaryForm.shownBytes) {
        return try write(try external.content(of: name, limit: Int64(BinaryForm.shownBytes))[...], into: &lines)
      }
      try write(content: name, of: external, into: &lines)
    }
  }

  private func write(
    content name: ExternalFileName, of external: ExternalDataDirectory, into lines: inout JSONLines
  ) throws {
    switch form {
    case .base64:
      // Three bytes make four characters: the rest of a portion is written with the next one.
      var waiting: [UInt8] = []
      try lines.raw("\"")
      try external.read(name) { portion in
        waiting += portion
        let whole = waiting.count / 3 * 3
        try lines.raw(Base64.encode(waiting.prefix(whole)))
        waiting.removeFirst(whole)
      }
      try lines.raw(Base64.encode(waiting) + "\"")
    case .files(let files):
      try write(files.add { add in try external.read(name) { try add($0[...]) } }, into: &lines)
    case .digest:
      shortened &+= 1
      var digest = ContentDigest.Running()
      var count: Int64 = 0
      try external.read(name) {
        digest.add($0)
        count &+= Int64($0.count)
      }
      try lines.raw("{\"bytes\":\(count),\"digest\":\"\(digest.sha256())\"}")
    }
  }

  private func write(_ file: BinaryValueFile, into lines: inout JSONLines) throws {
    try lines.raw("{\"bytes\":\(file.bytes),\"digest\":\"\(file.digest)\",\"file\":\"\(file.name)\"}")
  }
}
