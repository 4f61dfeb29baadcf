// Property lists read and written: values survive the round trip, the bytes are those of Apple's format, and for every
// input the reader returns or throws.

import Diagnostics
import PropertyLists
import Testing

/// One value of every kind, with the borders of each size.
private let everything = PropertyListValue.dictionary([
  "ascii": .string("Model 2"),
  "empty": .string(""),
  "umlaut": .string("Größe 🦉"),
  "long": .string(String(repeating: "x", count: 300)),
  "integers": .array(
    [0, 1, 127, 128, 255, 256, 65_535, 65_536, 4_294_967_295, 4_294_967_296, .max, .min, -1, -129]
      .map { .integer($0) }),
  "reals": .array([0.0, -0.0, 0.5, -1e300, .infinity].map { .real($0) }),
  "flags": .array([.boolean(true), .boolean(false)]),
  "date": .date(-978_307_200.25),
  "data": .data([0, 1, 255]),
  "many": .data([UInt8](repeating: 7, count: 70_000)),
  "uids": .array([0, 255, 256, 65_536, .max].map { .uid($0) }),
  "nested": .dictionary(["a": .dictionary(["b": .array([.array([])])]), "a2": .dictionary([:])]),
])

@Suite struct PropertyListTests {
  @Test func everythingSurvivesBinary() throws {
    let bytes = PropertyList.encodeBinary(everything)
    #expect(try PropertyList.decode(bytes) == everything)
    #expect(PropertyList.encodeBinary(try PropertyList.decode(bytes)) == bytes)
  }

  @Test func everyIntegerSizeSurvives() throws {
    for shift in 0..<64 {
      for delta: Int64 in -2...2 {
        let number = (Int64(1) << Int64(shift)) &+ delta
        for value in [number, 0 &- number] {
          let bytes = PropertyList.encodeBinary(.integer(value))
          #expect(try PropertyList.decode(bytes) == .integer(value))
        }
      }
    }
  }

  @Test func binaryHasTheBytesOfTheFormat() {
    // As CoreFoundation writes {"a": 1}: dictionary, key, value, offset table, trailer.
    let bytes = PropertyList.encodeBinary(.dictionary(["a": .integer(1)]))
    let body: [UInt8] = [0xd1, 1, 2, 0x51, 0x61, 0x10, 1, 8, 11, 13]
    let trailer: [UInt8] = [0, 0, 0, 0, 0, 0, 1, 1] + [0, 0, 0, 0, 0, 0, 0, 3] + .init(repeating: 0, count: 15) + [15]
    #expect(bytes == Array("bplist00".utf8) + body + trailer)
  }

  @Test func scalarsAreStoredOnceButTextByItsBytes() throws {
    let twice = PropertyListValue.array([.string("abcdefgh"), .string("abcdefgh")])
    let once = PropertyListValue.array([.string("abcdefgh")])
    #expect(PropertyList.encodeBinary(twice).count == PropertyList.encodeBinary(once).count + 1)
    // The same letter composed and decomposed: equal in Swift, two texts in a file.
    let spellings = PropertyListValue.array([.string("\u{e9}"), .string("e\u{301}")])
    let read = try PropertyList.decode(PropertyList.encodeBinary(spellings)).array ?? []
    #expect(read.compactMap { $0.string.map { Array($0.utf8) } } == [[0xc3, 0xa9], [0x65, 0xcc, 0x81]])
  }

  @Test func sixteenByteIntegers() throws {
    func list(_ high: UInt8, _ low: UInt8) -> [UInt8] {
      let object: [UInt8] = [0x14] + .init(repeating: high, count: 8) + .init(repeating: low, count: 8)
      return wrap([object])
    }
    #expect(try PropertyList.decode(list(0, 0x7f)) == .integer(0x7f7f_7f7f_7f7f_7f7f))
    #expect(try PropertyList.decode(list(0xff, 0xff)) == .integer(-1))
    // Unsigned numbers from 2^63 do not fit in 64 bits with sign.
    #expect(throws: HopdError.self) { try PropertyList.decode(list(0, 0xff)) }
    #expect(throws: HopdError.self) { try PropertyList.decode(list(1, 0)) }
  }

  @Test func xmlValues() throws {
    let text = """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0"><dict>
        <key>s</key><string>a &amp; b<!-- remark --> &#x1F989;</string>
        <key>e</key><string/>
        <key>i</key><array><integer>-9223372036854775808</integer><integer>0x1F</integer><integer> +7 </integer></array>
        <key>r</key><real>-1.5e3</real>
        <key>t</key><true/><key>f</key><false/>
        <key>d</key><array><date>2001-01-01T00:00:00Z</date><date>1970-01-01T00:00:00Z</date>
          <date>2024-02-29T12:30:15Z</date></array>
        <key>b</key><data> AAH/
          </data>
        <key>u</key><dict><key>CF$UID</key><integer>12</integer></dict>
      </dict></plist>
      """
    #expect(
      try PropertyList.decode(Array(text.utf8))
        == .dictionary([
          "s": .string("a & b 🦉"), "e": .string(""),
          "i": .array([.integer(.min), .integer(31), .integer(7)]), "r": .real(-1500),
          "t": .boolean(true), "f": .boolean(false),
          "d": .array([.date(0), .date(-978_307_200), .date(730_902_615)]), "b": .data([0, 1, 255]), "u": .uid(12),
        ]))
  }

  @Test(arguments: [
    "<plist><dict><string>no key</string></dict></plist>", "<plist><dict><key>a</key></dict></plist>",
    "<plist><dict><key>a</key><true/><key>a</key><true/></dict></plist>", "<plist><integer>1x</integer></plist>",
    "<plist><integer>9223372036854775808</integer></plist>", "<plist><integer>--1</integer></plist>",
    "<plist><date>2001-13-01T00:00:00Z</date></plist>", "<plist><date>99999999-01-01T00:00:00Z</date></plist>",
    "<plist><data>AAA</data></plist>", "<plist/>", "<plist><true/><true/></plist>", "<plist>text</plist>",
    "<plist><what/></plist>", "<dict/>", "<plist><string><true/></string></plist>", "<plist><true/>", "", " ",
    "bplist00",
    "<!DOCTYPE plist [<!ENTITY a \"b\">]><plist><string>&a;</string></plist>",
    "<!DOCTYPE plist [<!ENTITY a SYSTEM \"file:///etc/passwd\">]><plist><string>&a;</string></plist>",
    "<!DOCTYPE plist SYSTEM \"file:///etc/passwd\"><plist><string>&a;</string></plist>",
  ])
  func faultyTextIsRefused(text: String) {
    #expect(throws: HopdError.self) { try PropertyList.decode(Array(text.utf8)) }
  }

  @Test func errorsInXMLSayWhere() throws {
    let text = "<plist>\n<dict>\n<key>a</key>\n  <integer>x</integer></dict></plist>"
    let error = #expect(throws: HopdError.self) { try PropertyList.decode(Array(text.utf8)) }
    #expect(error?.place.line == 4)
    #expect(error?.code == .damagedPropertyList)
  }

  @Test func base64() {
    for (plain, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
      #expect(Base64.encode(Array(plain.utf8)) == text)
      #expect(Base64.decode(text.utf8) == Array(plain.utf8))
    }
    for text in ["Z", "Zg", "Zg=", "Zg===", "Z=g=", "Zm9v=", "Z*=="] { #expect(Base64.decode(text.utf8) == nil) }
    for count in 0..<70 {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ count) }
      #expect(Base64.decode(Base64.encode(bytes).utf8) == bytes)
    }
  }
}

/// A binary list of these objects, the first on top; offsets and references take one byte.
func wrap(_ objects: [[UInt8]], references: UInt8 = 1) -> [UInt8] {
  func bigEndian(_ number: Int, bytes: Int) -> [UInt8] {
    (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
  }
  var bytes = Array("bplist00".utf8)
  var offsets: [UInt8] = []
  for object in objects {
    offsets += bigEndian(bytes.count, bytes: 4)
    bytes += object
  }
  let table = bytes.count
  bytes += offsets + [0, 0, 0, 0, 0, 0, 4, references]
  for number in [objects.count, 0, table] { bytes += bigEndian(number, bytes: 8) }
  return bytes
}
