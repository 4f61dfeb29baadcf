// Reads Swift source for hopctl: a request and files come on standard input, and one line of JSON with the facts of
// each file goes to standard output. Before the first byte is read the process gives up everything else, because the
// source may be anybody's: it opens no file, makes no socket and starts no program.

import CConfinement
import FoundationEssentials
import Glibc
import SwiftParser
import SwiftSyntax

/// The program.
@main
enum SwiftDataReader {
  static func main() {
    let code = confinement_enter()
    guard code == 0 else { fail("cannot confine itself: error \(code)") }
    guard let head = readBlock(), let request = try? JSONDecoder().decode(SourceRequest.self, from: Data(head)) else {
      fail("the request cannot be read")
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.withoutEscapingSlashes]
    while let bytes = readBlock() {
      guard var line = try? encoder.encode(facts(of: bytes, request)) else { fail("the facts cannot be written") }
      line.append(UInt8(ascii: "\n"))
      write(line)
    }
  }

  private static func facts(of bytes: [UInt8], _ request: SourceRequest) -> SourceFile {
    let tree = bytes.withUnsafeBufferPointer { Parser.parse(source: $0) }
    let positions = SourceLocationConverter(fileName: "", tree: tree)
    var collector = DeclarationCollector(positions: positions, conditions: Conditions(request.definitions))
    var file = collector.file(tree)
    if file.faults != nil, bytes.mayDeclareModels { file.mayDeclareModels = true }
    return file
  }

  // MARK: Standard input and output

  /// A block: its length in eight bytes, the highest first, and its bytes; nil at the end of the input.
  private static func readBlock() -> [UInt8]? {
    guard let head = readBytes(8) else { return nil }
    let length = head.reduce(0) { $0 << 8 | UInt64($1) }
    guard length <= 64 << 20, let bytes = readBytes(Int(length)) else { fail("the input cannot be read") }
    return bytes
  }

  /// That many bytes; nil where the input ends before the first.
  private static func readBytes(_ count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    var filled = 0
    while filled < count {
      let got = bytes.withUnsafeMutableBytes { read(0, $0.baseAddress.map { $0 + filled }, count - filled) }
      if got < 0, errno == EINTR { continue }
      guard got > 0 else {
        guard got == 0, filled == 0 else { fail("the input ends too early") }
        return nil
      }
      filled += got
    }
    return bytes
  }

  private static func write(_ data: Data) {
    data.withUnsafeBytes { bytes in
      var sent = 0
      while sent < bytes.count {
        let count = Glibc.write(1, bytes.baseAddress.map { $0 + sent }, bytes.count - sent)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { exit(1) }
        sent += count
      }
    }
  }

  private static func fail(_ message: String) -> Never {
    let text = Array("hopctl-swiftdata-reader: \(message)\n".utf8)
    _ = text.withUnsafeBytes { Glibc.write(2, $0.baseAddress, $0.count) }
    exit(1)
  }
}
