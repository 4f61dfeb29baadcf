// Reads `bplist00`. The bytes come from strangers, so every offset is checked before use, every object is read once,
// and all objects together cannot be larger than the file: lists that refer to themselves, that point many objects at
// the same bytes, or that would unfold without end are refused.

import Diagnostics

/// One pass over a binary property list.
struct BinaryPropertyListReader {
  /// An object that has been read, and the number of values that it unfolds to.
  private struct Made {
    let value: PropertyListValue
    let weight: Int
    let height: Int
  }

  private enum State {
    case untouched
    case inProgress
    case made(Made)
  }

  private let bytes: [UInt8]
  private let limits: PropertyListLimits
  private let place: Place
  private let offsetSize: Int
  private let referenceSize: Int
  private let offsetTable: Int
  private var states: [State]
  /// Bytes of the objects read so far; objects do not overlap, so never more than the file has.
  private var taken = 0
  /// Bytes of keys, counted once per use: one long key can serve thousands of dictionaries, and each of
  /// them inspects all of it.
  private var keyBytes = 0
  private static let maximumKeyBytes = 8 << 20

  /// The value of the list's top object.
  static func decode(
    _ bytes: [UInt8], limits: PropertyListLimits, at place: Place
  ) throws(HopdError) -> PropertyListValue {
    // Trailer, the last 32 bytes: 6 unused, offset size, reference size, object count, top object, offset table.
    let header = 8
    let trailer = 32
    guard bytes.count >= header + trailer, bytes.starts(with: "bplist00".utf8) else {
      throw HopdError(.damagedPropertyList, "the binary property list is truncated or of an unknown version", at: place)
    }
    let end = bytes.count - trailer
    let offsetSize = Int(bytes[end + 6])
    let referenceSize = Int(bytes[end + 7])
    guard (1...8).contains(offsetSize), (1...8).contains(referenceSize),
      let count = Int(exactly: bigEndian(bytes[(end + 8)..<(end + 16)])),
      let top = Int(exactly: bigEndian(bytes[(end + 16)..<(end + 24)])),
      let table = Int(exactly: bigEndian(bytes[(end + 24)..<(end + 32)])),
      count >= 1, top < count, table >= header, table <= end, count <= (end - table) / offsetSize
    else {
      throw HopdError(.damagedPropertyList, "the binary property list has a damaged trailer", at: place)
    }
    guard count <= limits.maximumValues else { throw tooMany(limits, place) }
    var reader = BinaryPropertyListReader(
      bytes: bytes, limits: limits, place: place, offsetSize: offsetSize, referenceSize: referenceSize,
      offsetTable: table, states: [State](repeating: .untouched, count: count))
    return try reader.object(top, depth: 0).value
  }

  private mutating func object(_ number: Int, depth: Int) throws(HopdError) -> Made {
    guard number < states.count else { throw damaged("a reference to object \(number) of \(states.count)") }
    switch states[number] {
    case .inProgress: throw damaged("object \(number) contains itself")
    case .made(let made):
      guard depth + made.height <= limits.maximumDepth else { throw tooDeep() }
      return made
    case .untouched:
      guard depth <= limits.maximumDepth else { throw tooDeep() }
      states[number] = .inProgress
      let made = try make(number, depth: depth)
      states[number] = .made(made)
      return made
    }
  }

  private mutating func make(_ number: Int, depth: Int) throws(HopdError) -> Made {
    // The check of the trailer ensures that the file contains the offset table for `states.count` objects.
    let entry = offsetTable + number * offsetSize
    guard var cursor = Int(exactly: Self.bigEndian(bytes[entry..<(entry + offsetSize)])), cursor >= 8,
      cursor < offsetTable
    else { throw damaged("object \(number) is outside the list") }
    let marker = bytes[cursor]
    cursor += 1
    let low = Int(marker & 0x0f)

    switch marker >> 4 {
    case 0x0 where low == 0x8: return leaf(.boolean(false))
    case 0x0 where low == 0x9: return leaf(.boolean(true))
    case 0x1:
      guard low <= 4 else { throw damaged("object \(number) is an integer of 2^\(low) bytes") }
      return leaf(.integer(try integer(at: cursor, size: 1 << low, object: number)))
    case 0x2:
      switch low {
      case 2:
        let bits = Self.bigEndian(try payload(at: cursor, length: 4, object: number))
        return leaf(.real(Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits)))))
      case 3:
        return leaf(.real(Double(bitPattern: Self.bigEndian(try payload(at: cursor, length: 8, object: number)))))
      default: throw damaged("object \(number) is a real of 2^\(low) bytes")
      }
    case 0x3:
      guard low == 3 else { throw damaged("object \(number) is a date of 2^\(low) bytes") }
      return leaf(.date(Double(bitPattern: Self.bigEndian(try payload(at: cursor, length: 8, object: number)))))
    case 0x4:
      let length = try count(low, cursor: &cursor, object: number)
      return leaf(.data(Array(try sized(at: cursor, length: length, object: number))))
    case 0x5, 0x7:
      // ASCII; 0x7 is UTF-8, which only newer lists have. The check ensures that ASCII has no other bytes.
      let length = try count(low, cursor: &cursor, object: number)
      let content = try sized(at: cursor, length: length, object: number)
      guard marker >> 4 == 0x7 || content.allSatisfy({ $0 < 0x80 }),
        let text = String(validating: content, as: UTF8.self)
      else { throw damaged("object \(number) is text with bytes that are not text") }
      return leaf(.string(text))
    case 0x6:
      let units = try count(low, cursor: &cursor, object: number)
      let (length, overflow) = units.multipliedReportingOverflow(by: 2)
      guard !overflow else { throw damaged("object \(number) is longer than the list") }
      return leaf(.string(try utf16(try sized(at: cursor, length: length, object: number), object: number)))
    case 0x8:
      guard low < 8 else { throw damaged("object \(number) is a reference of \(low + 1) bytes") }
      return leaf(.uid(Self.bigEndian(try payload(at: cursor, length: low + 1, object: number))))
    case 0xA:
      let count = try count(low, cursor: &cursor, object: number)
      return try array(try references(at: cursor, count: count, object: number), depth: depth)
    case 0xD:
      let count = try count(low, cursor: &cursor, object: number)
      let (both, overflow) = count.multipliedReportingOverflow(by: 2)
      guard !overflow else { throw damaged("object \(number) is longer than the list") }
      return try dictionary(try references(at: cursor, count: both, object: number), depth: depth, object: number)
    default: throw damaged("object \(number) has the unknown kind \(marker)")
    }
  }

  private func leaf(_ value: PropertyListValue) -> Made { Made(value: value, weight: 1, height: 0) }

  private mutating func array(_ references: ArraySlice<UInt8>, depth: Int) throws(HopdError) -> Made {
    var elements: [PropertyListValue] = []
    elements.reserveCapacity(references.count / referenceSize)
    var weight = 1
    var height = 0
    for start in stride(from: references.startIndex, to: references.endIndex, by: referenceSize) {
      let made = try object(try reference(at: start), depth: depth + 1)
      weight = try add(weight, made.weight)
      height = max(height, made.height)
      elements.append(made.value)
    }
    return Made(value: .array(elements), weight: weight, height: height + 1)
  }

  private mutating func dictionary(
    _ references: ArraySlice<UInt8>, depth: Int, object number: Int
  ) throws(HopdError) -> Made {
    let half = references.count / 2
    var entries: [String: PropertyListValue] = [:]
    entries.reserveCapacity(half / referenceSize)
    var weight = 1
    var height = 0
    for start in stride(from: references.startIndex, to: references.startIndex + half, by: referenceSize) {
      guard case .string(let key) = try object(try reference(at: start), depth: depth + 1).value else {
        throw damaged("object \(number) is a dictionary with a key that is not text")
      }
      keyBytes += key.utf8.count
      guard keyBytes <= Self.maximumKeyBytes else {
        throw HopdError(
          .propertyListTooLarge, "the property list has more than \(Self.maximumKeyBytes) bytes of keys", at: place)
      }
      let made = try object(try reference(at: start + half), depth: depth + 1)
      weight = try add(weight, made.weight)
      weight = try add(weight, 1)
      height = max(height, made.height)
      guard entries.updateValue(made.value, forKey: key) == nil else {
        throw damaged("object \(number) is a dictionary with the same key twice")
      }
    }
    return Made(value: .dictionary(entries), weight: weight, height: height + 1)
  }

  // MARK: Bytes

  /// The count of a variable-size object: in the marker, or in an integer object after it.
  private mutating func count(_ low: Int, cursor: inout Int, object number: Int) throws(HopdError) -> Int {
    guard low == 0xf else { return low }
    guard cursor < offsetTable, bytes[cursor] >> 4 == 0x1, bytes[cursor] & 0x0f <= 3 else {
      throw damaged("object \(number) has no readable length")
    }
    let size = 1 << Int(bytes[cursor] & 0x0f)
    cursor += 1
    guard let count = Int(exactly: Self.bigEndian(try payload(at: cursor, length: size, object: number))) else {
      throw damaged("object \(number) is longer than the list")
    }
    cursor += size
    return count
  }

  /// Signed with 8 or 16 bytes, unsigned with fewer, as CoreFoundation writes them.
  private mutating func integer(at start: Int, size: Int, object number: Int) throws(HopdError) -> Int64 {
    let content = try payload(at: start, length: size, object: number)
    if size < 8 { return Int64(truncatingIfNeeded: Self.bigEndian(content)) }
    let value = Int64(bitPattern: Self.bigEndian(content.suffix(8)))
    if size == 16, Self.bigEndian(content.prefix(8)) != (value < 0 ? UInt64.max : 0) {
      throw damaged("object \(number) is an integer beyond 64 bits with sign")
    }
    return value
  }

  private func utf16(_ content: ArraySlice<UInt8>, object number: Int) throws(HopdError) -> String {
    let units = stride(from: content.startIndex, to: content.endIndex, by: 2).map { start in
      UInt16(content[start]) << 8 | UInt16(content[start + 1])
    }
    guard let text = String(validating: units, as: UTF16.self) else {
      throw damaged("object \(number) is text with half a surrogate pair")
    }
    return text
  }

  private mutating func sized(at start: Int, length: Int, object number: Int) throws(HopdError) -> ArraySlice<UInt8> {
    guard length <= limits.maximumValueBytes else {
      throw HopdError(
        .propertyListTooLarge, "object \(number) of the property list has more than \(limits.maximumValueBytes) bytes",
        at: place)
    }
    return try payload(at: start, length: length, object: number)
  }

  private mutating func references(at start: Int, count: Int, object number: Int) throws(HopdError) -> ArraySlice<UInt8>
  {
    let (length, overflow) = count.multipliedReportingOverflow(by: referenceSize)
    guard !overflow else { throw damaged("object \(number) is longer than the list") }
    return try payload(at: start, length: length, object: number)
  }

  /// `length` bytes from `start`, which must be before the offset table.
  private mutating func payload(at start: Int, length: Int, object number: Int) throws(HopdError) -> ArraySlice<UInt8> {
    guard length >= 0, start <= offsetTable, length <= offsetTable - start else {
      throw damaged("object \(number) is longer than the list")
    }
    taken += length
    guard taken <= bytes.count else { throw damaged("its objects overlap") }
    return bytes[start..<(start + length)]
  }

  private func reference(at start: Int) throws(HopdError) -> Int {
    guard let number = Int(exactly: Self.bigEndian(bytes[start..<(start + referenceSize)])) else {
      throw damaged("a reference outside the list")
    }
    return number
  }

  /// Up to 8 bytes as an unsigned number.
  private static func bigEndian(_ content: ArraySlice<UInt8>) -> UInt64 {
    content.reduce(0) { $0 << 8 | UInt64($1) }
  }

  // MARK: Errors

  private func add(_ left: Int, _ right: Int) throws(HopdError) -> Int {
    let (sum, overflow) = left.addingReportingOverflow(right)
    guard !overflow, sum <= limits.maximumValues else { throw Self.tooMany(limits, place) }
    return sum
  }

  private func damaged(_ what: String) -> HopdError {
    HopdError(.damagedPropertyList, "the binary property list is damaged: \(what)", at: place)
  }

  private func tooDeep() -> HopdError {
    HopdError(
      .propertyListTooLarge, "the property list is nested deeper than \(limits.maximumDepth) containers", at: place)
  }

  private static func tooMany(_ limits: PropertyListLimits, _ place: Place) -> HopdError {
    HopdError(.propertyListTooLarge, "the property list has more than \(limits.maximumValues) values", at: place)
  }
}
