// Writes `bplist00` with CoreFoundation's layout: objects in the order of their first reference, each distinct scalar
// once, the smallest sizes that fit. Dictionary keys are sorted, so that equal values give equal bytes.

/// Collects the objects of one list, then writes them.
struct BinaryPropertyListWriter {
  private enum Object {
    case scalar(PropertyListValue)
    case array([Int])
    case dictionary(keys: [Int], values: [Int])
  }

  private var objects: [Object] = []
  private var numbers: [ScalarIdentity: Int] = [:]

  /// Returns the bytes of a list with `value` on top.
  static func encode(_ value: PropertyListValue) -> [UInt8] {
    var writer = BinaryPropertyListWriter()
    let top = writer.collect(value)
    return writer.write(top: top)
  }

  private mutating func collect(_ value: PropertyListValue) -> Int {
    switch value {
    case .string, .integer, .real, .boolean, .date, .data, .uid: return intern(value)
    case .array(let elements):
      let number = reserve()
      objects[number] = .array(elements.map { collect($0) })
      return number
    case .dictionary(let entries):
      let number = reserve()
      let sorted = entries.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      let keys = sorted.map { intern(.string($0.key)) }
      objects[number] = .dictionary(keys: keys, values: sorted.map { collect($0.value) })
      return number
    }
  }

  private mutating func intern(_ scalar: PropertyListValue) -> Int {
    let identity = ScalarIdentity(scalar)
    if let number = numbers[identity] { return number }
    objects.append(.scalar(scalar))
    numbers[identity] = objects.count - 1
    return objects.count - 1
  }

  /// Reserves a container's number, which comes before those of its contents.
  private mutating func reserve() -> Int {
    objects.append(.array([]))
    return objects.count - 1
  }

  private func write(top: Int) -> [UInt8] {
    var output = Array("bplist00".utf8)
    let referenceSize = Self.size(of: UInt64(objects.count))
    var offsets: [Int] = []
    offsets.reserveCapacity(objects.count)
    for object in objects {
      offsets.append(output.count)
      switch object {
      case .scalar(let scalar): Self.write(scalar, to: &output)
      case .array(let elements):
        Self.write(marker: 0xA, count: elements.count, to: &output)
        for element in elements { Self.write(UInt64(element), size: referenceSize, to: &output) }
      case .dictionary(let keys, let values):
        Self.write(marker: 0xD, count: keys.count, to: &output)
        for number in keys + values { Self.write(UInt64(number), size: referenceSize, to: &output) }
      }
    }
    let table = output.count
    let offsetSize = Self.size(of: UInt64(table))
    for offset in offsets { Self.write(UInt64(offset), size: offsetSize, to: &output) }
    output += [0, 0, 0, 0, 0, 0, UInt8(offsetSize), UInt8(referenceSize)]
    for number in [objects.count, top, table] { Self.write(UInt64(number), size: 8, to: &output) }
    return output
  }

  private static func write(_ scalar: PropertyListValue, to output: inout [UInt8]) {
    switch scalar {
    case .boolean(let flag): output.append(flag ? 0x09 : 0x08)
    case .integer(let number): write(integer: number, to: &output)
    case .real(let number):
      output.append(0x23)
      write(number.bitPattern, size: 8, to: &output)
    case .date(let seconds):
      output.append(0x33)
      write(seconds.bitPattern, size: 8, to: &output)
    case .data(let content):
      write(marker: 0x4, count: content.count, to: &output)
      output += content
    case .uid(let number):
      let size = size(of: number)
      output.append(0x80 | UInt8(size - 1))
      write(number, size: size, to: &output)
    case .string(let text):
      if text.utf8.allSatisfy({ $0 < 0x80 }) {
        write(marker: 0x5, count: text.utf8.count, to: &output)
        output += text.utf8
      } else {
        write(marker: 0x6, count: text.utf16.count, to: &output)
        for unit in text.utf16 { write(UInt64(unit), size: 2, to: &output) }
      }
    // Containers are not scalars.
    case .array, .dictionary: break
    }
  }

  /// Negative numbers take 8 bytes; 1, 2 and 4 bytes are read as unsigned.
  private static func write(integer number: Int64, to output: inout [UInt8]) {
    let size = number < 0 ? 8 : size(of: UInt64(number))
    output.append(0x10 | UInt8(size.trailingZeroBitCount))
    write(UInt64(bitPattern: number), size: size, to: &output)
  }

  private static func write(marker: UInt8, count: Int, to output: inout [UInt8]) {
    output.append(marker << 4 | UInt8(min(count, 0xf)))
    if count >= 0xf { write(integer: Int64(count), to: &output) }
  }

  private static func write(_ number: UInt64, size: Int, to output: inout [UInt8]) {
    for index in (0..<size).reversed() { output.append(UInt8(truncatingIfNeeded: number >> (8 * UInt64(index)))) }
  }

  private static func size(of number: UInt64) -> Int {
    switch number {
    case 0...0xff: 1
    case 0...0xffff: 2
    case 0...0xffff_ffff: 4
    default: 8
    }
  }
}
