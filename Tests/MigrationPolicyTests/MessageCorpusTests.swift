// The seeds and the findings of fuzzing the messages, as ordinary tests.

import Glibc
import MigrationPolicy
import Testing

@Suite struct MessageCorpusTests {
  @Test func everyFileIsAMessageOfOneEndOrRefused() throws {
    let tests = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(2).joined(separator: "/")
    let names = try #require(Self.files(in: "\(tests)/FuzzCorpus/policy-message"))
    #expect(names.count >= 19)
    var read: Set<String> = []
    for name in names {
      let bytes = try #require(Self.bytes(of: "\(tests)/FuzzCorpus/policy-message/\(name)"), "\(name)")
      if let message = try? PolicyWire.decodeProgram(bytes, during: nil) {
        read.insert(name)
        let frame = try #require(PolicyWire.encode(message))
        let again = try PolicyWire.decodeProgram(Array(frame.dropFirst(4)), during: nil)
        #expect(PolicyWire.encode(again) == frame, "\(name)")
      }
      if (try? PolicyWire.decodeEngine(bytes)) != nil { read.insert(name) }
    }
    #expect(
      read.isSuperset(of: [
        "hello", "done", "apply", "results", "failed", "fetch", "values", "lookup", "log", "remember",
      ]))
    #expect(read.isSuperset(of: ["instances", "call", "answer"]))
    #expect(
      read.isDisjoint(with: [
        "deep", "deep-objects", "keys-twice", "number-long", "done-standard",
      ]))
  }

  private static func files(in folder: String) -> [String]? {
    guard let directory = opendir(folder) else { return nil }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if !name.hasPrefix(".") { names.append(name) }
    }
    return names.sorted()
  }

  private static func bytes(of path: String) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    let count = read(descriptor, &buffer, buffer.count)
    return count < 0 ? nil : Array(buffer.prefix(count))
  }
}
