// Hostile lists. A test that ends has half passed: a trap or a hang would not end.

import Diagnostics
import PropertyLists
import Testing

@Suite struct HostilePropertyListTests {
  private let small = PropertyList.encodeBinary(
    .dictionary([
      "k": .array([.integer(-5), .real(2), .date(1), .boolean(true), .uid(300)]), "t": .string("é"),
      "d": .data([1, 2, 3]), "long": .string("sixteen letters!"),
    ]))

  @Test func everyByteFlippedInEveryBit() {
    var thrown = 0
    for index in small.indices {
      for bit in 0..<8 {
        var bytes = small
        bytes[index] ^= 1 << UInt8(bit)
        if (try? PropertyList.decode(bytes)) == nil { thrown += 1 }
      }
    }
    #expect(thrown > 0)
  }

  @Test func everyByteSetToExtremes() {
    for index in small.indices {
      for value: UInt8 in [0x00, 0x7f, 0x80, 0xff] {
        var bytes = small
        bytes[index] = value
        _ = try? PropertyList.decode(bytes)
        // Two adjacent extremes reach lengths and offsets that one does not.
        if index + 1 < bytes.count {
          bytes[index + 1] = 0xff
          _ = try? PropertyList.decode(bytes)
        }
      }
    }
  }

  @Test func everyTruncationIsRefused() {
    for count in 0..<small.count {
      #expect(throws: HopdError.self) { try PropertyList.decode(Array(small[..<count])) }
    }
  }

  @Test func trailerOfMaxima() {
    for range in [8..<16, 16..<24, 24..<32] {
      var bytes = small
      let trailer = bytes.count - 32
      for index in range { bytes[trailer + index] = 0xff }
      #expect(throws: HopdError.self) { try PropertyList.decode(bytes) }
    }
  }

  @Test func selfReferenceIsRefused() {
    #expect(throws: HopdError.self) { try PropertyList.decode(wrap([[0xa1, 0]])) }
    #expect(throws: HopdError.self) { try PropertyList.decode(wrap([[0xa1, 1], [0xd1, 2, 0], [0x51, 0x61]])) }
  }

  @Test func unfoldingWithoutEndIsRefused() {
    // Thirty arrays, each holding the next one four times: 4^30 values when unfolded.
    var objects = (0..<30).map { [0xa4] + [UInt8](repeating: UInt8($0 + 1), count: 4) }
    objects.append([0x10, 1])
    let error = #expect(throws: HopdError.self) { try PropertyList.decode(wrap(objects)) }
    #expect(error?.code == .propertyListTooLarge)
  }

  @Test func lengthsBeyondTheListAreRefused() {
    for kind: UInt8 in [0x4f, 0x5f, 0x6f, 0x7f, 0xaf, 0xdf] {
      for size: UInt8 in 0...3 {
        let length = [UInt8](repeating: 0xff, count: 1 << Int(size))
        #expect(throws: HopdError.self) { try PropertyList.decode(wrap([[kind, 0x10 | size] + length])) }
      }
    }
  }

  @Test func overlappingObjectsAreRefused() {
    // Two hundred objects that all point at the same text of 200 bytes.
    var bytes = Array("bplist00".utf8)
    let text: [UInt8] = [0x5f, 0x10, 200] + [UInt8](repeating: 0x61, count: 200)
    let array: [UInt8] = [0xaf, 0x10, 200] + (1...200).map { UInt8($0) }
    bytes += text + array
    let table = bytes.count
    let arrayOffset = 8 + text.count
    bytes += [UInt8(arrayOffset)] + [UInt8](repeating: 8, count: 200) + [0, 0, 0, 0, 0, 0, 1, 1]
    for number in [201, 0, table] {
      bytes += [0, 0, 0, 0, 0, 0, UInt8(number >> 8), UInt8(number & 0xff)]
    }
    #expect(throws: HopdError.self) { try PropertyList.decode(bytes) }
  }

  @Test func keysMustBeTextAndUnique() {
    #expect(throws: HopdError.self) { try PropertyList.decode(wrap([[0xd1, 1, 1], [0x10, 1]])) }
    #expect(throws: HopdError.self) {
      try PropertyList.decode(wrap([[0xd2, 1, 2, 1, 1], [0x51, 0x61], [0x51, 0x61]]))
    }
  }

  @Test func halfASurrogatePairIsRefused() {
    #expect(throws: HopdError.self) { try PropertyList.decode(wrap([[0x61, 0xd8, 0x00]])) }
  }

  @Test func depthIsBounded() {
    let depth = 100_000
    let open = String(repeating: "<array>", count: depth)
    let error = #expect(throws: HopdError.self) { try PropertyList.decode(Array("<plist>\(open)".utf8)) }
    #expect(error?.code == .xmlTooLarge)
    // Binary: a chain of arrays, each holding the next, with references of three bytes.
    var bytes = Array("bplist00".utf8)
    for index in 1...depth { bytes += [0xa1, UInt8(index >> 16), UInt8(index >> 8 & 0xff), UInt8(index & 0xff)] }
    bytes.append(0xa0)
    let table = bytes.count
    for index in 0...depth {
      let offset = 8 + 4 * index
      bytes += [UInt8(offset >> 16), UInt8(offset >> 8 & 0xff), UInt8(offset & 0xff)]
    }
    bytes += [0, 0, 0, 0, 0, 0, 3, 3]
    for number in [depth + 1, 0, table] {
      bytes += (0..<8).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
    let binary = #expect(throws: HopdError.self) { try PropertyList.decode(bytes) }
    #expect(binary?.code == .propertyListTooLarge)
  }

  @Test func sizeIsBounded() {
    let limits = PropertyListLimits(maximumBytes: 200, maximumDepth: 4, maximumValues: 5, maximumValueBytes: 10)
    let tooLong = PropertyList.encodeBinary(.string("eleven char"))
    #expect(throws: HopdError.self) { try PropertyList.decode(tooLong, limits: limits) }
    let tooMany = PropertyList.encodeBinary(.array((0..<6).map { .integer($0) }))
    #expect(throws: HopdError.self) { try PropertyList.decode(tooMany, limits: limits) }
    let enough = PropertyList.encodeBinary(.array((0..<4).map { .integer($0) }))
    #expect((try? PropertyList.decode(enough, limits: limits))?.array?.count == 4)
    #expect(throws: HopdError.self) {
      try PropertyList.decode(PropertyList.encodeBinary(.data(.init(repeating: 0, count: 300))), limits: limits)
    }
  }

  @Test func entityBombsAreRefused() {
    var declarations = "<!ENTITY a0 \"lol\">"
    for level in 1..<20 {
      declarations += "<!ENTITY a\(level) \"" + String(repeating: "&a\(level - 1);", count: 10) + "\">"
    }
    let bomb = "<!DOCTYPE plist [\(declarations)]><plist><string>&a19;</string></plist>"
    let error = #expect(throws: HopdError.self) { try PropertyList.decode(Array(bomb.utf8)) }
    #expect(error?.code == .damagedXML)
  }

  /// Found by fuzzing: each dictionary inspected all of a key that thousands of them shared, for hours.
  @Test func oneLongKeyOfManyDictionariesIsRefused() {
    let key = [0x7f, 0x11, 0x7f, 0xfe] + [UInt8](repeating: 0x61, count: 0x7ffe)
    let count = 2_000
    let references = (2..<(2 + count)).flatMap { [UInt8($0 >> 8), UInt8($0 & 0xff)] }
    let array = [0xaf, 0x11, UInt8(count >> 8), UInt8(count & 0xff)] + references
    let error = #expect(throws: HopdError.self) {
      try PropertyList.decode(
        wrap([array, key] + [[UInt8]](repeating: [0xd1, 0, 1, 0, 1], count: count), references: 2))
    }
    #expect(error?.code == .propertyListTooLarge)
  }

  /// Found by fuzzing: megabytes in place of a number were inspected letter by letter.
  @Test func megabytesInPlaceOfANumberAreRefused() throws {
    let digits = String(repeating: "1", count: 4_000_000)
    for kind in ["integer", "real", "date"] {
      let error = #expect(throws: HopdError.self) {
        try PropertyList.decode(Array("<plist><\(kind)>\(digits)</\(kind)></plist>".utf8))
      }
      #expect(error?.message.contains("4000000 bytes") == true)
    }
    let spaces = String(repeating: " ", count: 100_000)
    #expect(
      try PropertyList.decode(Array("<plist><integer>\n\(spaces)7\(spaces)</integer></plist>".utf8)) == .integer(7))
  }
}
