// systemd/hopd.catalog against `JournalMessage`: an id without its text helps nobody, a text without its id is never
// shown, and a field that no entry has would leave a hole in the text.

import Glibc
import Testing

@testable import SystemdSupport

@Suite struct JournalCatalogTests {
  @Test func everyKindOfEntryHasItsTextAndEveryTextItsKind() throws {
    let ids = try Self.entries().map(\.id)
    #expect(Set(ids).count == ids.count)
    #expect(Set(ids) == Set(JournalMessage.allCases.map(\.rawValue)))
  }

  @Test func everyIdIsARandom128BitNumber() {
    for message in JournalMessage.allCases {
      #expect(message.rawValue.utf8.count == 32)
      #expect(message.rawValue.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
      #expect(Array(message.rawValue)[12] == "4", "as systemd-id128 makes them: version 4")
    }
  }

  @Test func everyTextIsWholeAndUsesOnlyFieldsThatExist() throws {
    let fields = Set(JournalField.allCases.map(\.rawValue))
    for entry in try Self.entries() {
      #expect(entry.text.hasPrefix("Subject: "), "\(entry.id)")
      #expect(entry.text.contains("\nDefined-By: hopd\n"), "\(entry.id)")
      #expect(entry.text.contains("\n\n"), "\(entry.id)")
      for (index, part) in entry.text.split(separator: "@", omittingEmptySubsequences: false).enumerated()
      where index % 2 == 1 {
        #expect(fields.contains(String(part)), "\(entry.id): @\(part)@")
      }
    }
  }

  private static func entries() throws -> [(id: String, text: String)] {
    let path = #filePath.split(separator: "/").dropLast(3).reduce("") { $0 + "/" + $1 } + "/systemd/hopd.catalog"
    let file = try #require(fopen(path, "r"))
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = fread(&bytes, 1, bytes.count, file)
    let text = String(decoding: bytes.prefix(count), as: UTF8.self)
    var entries: [(id: String, text: String)] = []
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("-- ") {
        entries.append((String(line.dropFirst(3)), ""))
      } else if let last = entries.indices.last {
        entries[last].text += line + "\n"
      }
    }
    return entries
  }
}
