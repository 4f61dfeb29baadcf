// A file of data, read from its beginning to its end through one buffer.

import Diagnostics
import Glibc
import ManagedObjectModel
import SystemPackage

extension HopdError.Code {
  /// A file of data breaks its format.
  package static let dataInvalid = HopdError.Code("data-invalid", exit: .dataError)
}

/// Bytes of a plain file.
final class InputFile {
  let path: FilePath
  /// Its size when it was opened.
  let size: Int64
  /// Bytes that were taken out of it.
  var position: Int64 { read - Int64(buffer.count - next) }
  /// The share of it that was taken, from 0 to 1.
  var share: Double { size > 0 ? min(1, Double(max(0, position)) / Double(size)) : 1 }
  private let descriptor: FileDescriptor
  private var decoder: TextDecoder?
  private var buffer: [UInt8] = []
  private var next = 0
  private var read: Int64 = 0
  private static let portion = 256 << 10

  /// Opens a plain file of text; its bytes are UTF-8 when they are taken, whatever they are in the file.
  convenience init(_ path: FilePath, encoding: TextEncoding?) throws(HopdError) {
    try self.init(path)
    if next == buffer.count { _ = try fill() }
    let (encoding, mark) = try TextEncoding.found(at: buffer[next...], given: encoding, path)
    next += mark
    guard let decoder = TextDecoder(encoding) else { return }
    self.decoder = decoder
    buffer = self.decoder?.decoded(Array(buffer[next...])) ?? []
    next = 0
  }

  /// Opens a plain file.
  init(_ path: FilePath) throws(HopdError) {
    self.path = path
    let opened = path.openForReading()
    guard opened >= 0 else {
      let code = Errno(rawValue: errno)
      throw HopdError(
        code == .noSuchFileOrDirectory ? .notFound : code == .permissionDenied ? .noPermission : .inputOutput,
        "cannot be read: \(code)", at: Place(file: path), hint: "check the path")
    }
    descriptor = FileDescriptor(rawValue: opened)
    var status = stat()
    guard fstat(opened, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(opened)
      throw HopdError(.dataInvalid, "not a regular file", at: Place(file: path), hint: "write the data into a file")
    }
    size = Int64(status.st_size)
  }

  deinit { try? descriptor.close() }

  /// Returns the next byte without taking it; nil at the end.
  func peek() throws(HopdError) -> UInt8? {
    if next == buffer.count, try !fill() { return nil }
    return buffer[next]
  }

  /// Takes the next byte; nil at the end.
  func take() throws(HopdError) -> UInt8? {
    if next == buffer.count, try !fill() { return nil }
    defer { next += 1 }
    return buffer[next]
  }

  /// Whether it begins with a text, before anything was taken.
  func begins(with text: String) throws(HopdError) -> Bool {
    if next == buffer.count { _ = try fill() }
    return buffer[next...].starts(with: text.utf8)
  }

  /// Takes the bytes up to the next end of a line, without it; nil at the end of the file.
  func line(limit: Int) throws(HopdError) -> [UInt8]? {
    var line: [UInt8] = []
    var isAtEnd = true
    while true {
      if next == buffer.count, try !fill() { return isAtEnd ? nil : line }
      isAtEnd = false
      let rest = buffer[next...]
      let end = rest.firstIndex(of: 0x0a)
      line += rest[..<(end ?? rest.endIndex)]
      guard line.count <= limit else {
        throw HopdError(.dataInvalid, "a line has more than \(limit) bytes", at: Place(file: path))
      }
      next = end.map { $0 + 1 } ?? buffer.count
      if end != nil { return line }
    }
  }

  /// The digest of the rest of the file.
  func digest() throws(HopdError) -> String {
    var digest = ContentDigest.Running()
    repeat {
      digest.add(buffer[next...])
      next = buffer.count
    } while try fill()
    return digest.sha256()
  }

  /// Takes the rest of the file.
  func content() throws(HopdError) -> [UInt8] {
    var content = Array(buffer[next...])
    while try fill() { content += buffer }
    next = buffer.count
    return content
  }

  private func fill() throws(HopdError) -> Bool {
    do {
      let count = try withUnsafeTemporaryAllocation(byteCount: InputFile.portion, alignment: 1) { memory in
        let count = try descriptor.read(into: memory)
        buffer.removeAll(keepingCapacity: true)
        buffer.append(contentsOf: memory[..<count])
        return count
      }
      next = 0
      read += Int64(count)
      guard decoder != nil else { return count > 0 }
      buffer = decoder?.decoded(count > 0 ? buffer : nil) ?? []
      // A portion may hold less than one character.
      return count > 0 ? try !buffer.isEmpty || fill() : !buffer.isEmpty
    } catch {
      throw HopdError(.inputOutput, "cannot be read", at: Place(file: path), cause: error)
    }
  }
}
