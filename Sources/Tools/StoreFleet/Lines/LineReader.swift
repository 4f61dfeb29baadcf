// Lines of a manifest or of results, one at a time: a manifest of ten million stores is never in memory as a whole.

import Diagnostics
import FoundationEssentials
import Glibc
import SystemPackage

extension HopdError.Code {
  /// A manifest or a results file has a malformed line.
  package static let badManifest = HopdError.Code("bad-manifest", exit: .dataError)
}

/// Reads text files line by line.
package struct LineReader: ~Copyable {
  /// hopd writes no line as long; a path has at most 4,096 bytes.
  private static let longest = 1 << 20

  /// The file, for messages.
  package let path: FilePath
  /// Number of the line that was read last, from 1.
  package private(set) var number = 0
  /// Whether the last line lacked its newline. Then its writer was killed.
  package private(set) var endsTorn = false

  private let descriptor: Int32
  private let isOurs: Bool
  private var buffer: [UInt8] = []
  private var start = 0
  private var isAtEnd = false

  /// Opens a file; "-" is standard input.
  package init(path: FilePath) throws(HopdError) {
    self.path = path
    if path == "-" {
      descriptor = STDIN_FILENO
      isOurs = false
      return
    }
    descriptor = path.withPlatformString { open($0, O_RDONLY | O_CLOEXEC | O_NOCTTY) }
    isOurs = true
    guard descriptor >= 0 else {
      let code = errno
      throw HopdError(
        code == ENOENT ? .notFound : code == EACCES ? .noPermission : .inputOutput, "cannot open the file",
        at: Place(file: path), cause: Errno(rawValue: code), hint: "check the path: ls -l \(path.quotedForShell)")
    }
  }

  deinit { if isOurs, descriptor >= 0 { close(descriptor) } }

  /// The next line without its newline; nil at the end.
  package mutating func next() throws(HopdError) -> [UInt8]? {
    var inspected = start
    while true {
      if let end = buffer[inspected...].firstIndex(of: UInt8(ascii: "\n")) {
        defer { start = end + 1 }
        number += 1
        return Array(buffer[start..<end])
      }
      if isAtEnd {
        guard start < buffer.count else { return nil }
        defer { start = buffer.count }
        number += 1
        endsTorn = true
        return Array(buffer[start...])
      }
      inspected = buffer.count - start
      buffer.removeFirst(start)
      start = 0
      guard buffer.count < Self.longest else {
        throw HopdError(
          .badManifest, "a line is longer than a mebibyte", at: Place(file: path, line: number + 1),
          hint: "pass the file that `hopctl fleet scan` wrote, or a list with one path a line")
      }
      try fill()
    }
  }

  private mutating func fill() throws(HopdError) {
    let count = buffer.count
    let room = 1 << 16
    buffer.append(contentsOf: repeatElement(0, count: room))
    var got = -1
    repeat {
      got = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress?.advanced(by: count), room) }
    } while got < 0 && errno == EINTR
    let code = errno
    buffer.removeLast(room - max(0, got))
    guard got >= 0 else {
      throw HopdError(.inputOutput, "the file cannot be read", at: Place(file: path), cause: Errno(rawValue: code))
    }
    isAtEnd = got == 0
  }
}

/// Reads a manifest.
package struct Manifest: ~Copyable {
  /// Whether the summary of a scan was among the lines so far.
  package private(set) var hasSummary = false

  private var lines: LineReader
  private let decoder = JSONDecoder()
  private let allowsTornEnd: Bool

  /// Opens a manifest; "-" is standard input. With `allowsTornEnd` half a line at the end, which a killed scan leaves,
  /// is skipped.
  package init(path: FilePath, allowsTornEnd: Bool = false) throws(HopdError) {
    lines = try LineReader(path: path)
    self.allowsTornEnd = allowsTornEnd
  }

  /// The next store; nil at the end. A line is an object with `store`, or a plain path. Empty lines, lines that begin
  /// with #, and objects without `store`, as the summary of a scan, are skipped.
  package mutating func next() throws(HopdError) -> StoreLine? {
    while let bytes = try lines.next() {
      guard let first = bytes.first(where: { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\r") }),
        first != UInt8(ascii: "#")
      else { continue }
      if first == UInt8(ascii: "{") {
        guard let line = try object(bytes) else { continue }
        return line
      }
      let text = String(validating: bytes.last == UInt8(ascii: "\r") ? bytes.dropLast() : bytes[...], as: UTF8.self)
      guard let text, !text.utf8.contains(0) else { throw bad("the line is not UTF-8") }
      return StoreLine(store: text)
    }
    return nil
  }

  private mutating func object(_ bytes: [UInt8]) throws(HopdError) -> StoreLine? {
    struct Named: Decodable {
      var store: String?
    }
    struct Last: Decodable {
      struct Summary: Decodable {
        var stores: Int
      }
      var summary: Summary
    }
    let data = Data(bytes)
    if let line = try? decoder.decode(StoreLine.self, from: data), !line.store.isEmpty, !line.store.utf8.contains(0) {
      return line
    }
    // A summary is not a store; half a line, or a field of another kind, is a mistake that must not hide a store.
    do {
      if try decoder.decode(Named.self, from: data).store == nil {
        if (try? decoder.decode(Last.self, from: data)) != nil { hasSummary = true }
        return nil
      }
    } catch {
      if lines.endsTorn, allowsTornEnd { return nil }
      throw bad(lines.endsTorn ? "the last line is truncated" : "the line is not a JSON object", cause: error)
    }
    throw bad("the line is not what `hopctl fleet scan` writes")
  }

  private func bad(_ message: String, cause: (any Error)? = nil) -> HopdError {
    HopdError(
      .badManifest, message, at: Place(file: lines.path, line: lines.number), cause: cause,
      hint: "write the manifest again: hopctl fleet scan DIR --output FILE")
  }
}
