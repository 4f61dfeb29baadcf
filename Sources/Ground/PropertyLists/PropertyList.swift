// Decodes property lists into plain values, and encodes binary ones. Core Data keeps a store's metadata and its
// compiled models in binary lists, and Xcode keeps small settings in XML ones. The callers interpret the values.

import Diagnostics

extension HopdError.Code {
  /// A property list breaks its format.
  package static let damagedPropertyList = HopdError.Code("plist-damaged", exit: .dataError)
  /// A property list is larger, deeper or fuller than anything Apple's software writes.
  package static let propertyListTooLarge = HopdError.Code("plist-too-large", exit: .dataError)
}

/// The limits of a property list: hostile lists end in an error instead of a full memory.
package struct PropertyListLimits: Sendable, Hashable {
  /// Bytes of the whole list.
  package var maximumBytes: Int
  /// Depth of nested containers.
  package var maximumDepth: Int
  /// Values, counted once per reference: a list that refers to one array twice counts it twice.
  package var maximumValues: Int
  /// Bytes of one string or data value.
  package var maximumValueBytes: Int

  /// Makes limits.
  package init(maximumBytes: Int, maximumDepth: Int, maximumValues: Int, maximumValueBytes: Int) {
    self.maximumBytes = maximumBytes
    self.maximumDepth = maximumDepth
    self.maximumValues = maximumValues
    self.maximumValueBytes = maximumValueBytes
  }

  /// The usual limits. Metadata takes kilobytes and compiled models some hundred; total memory stays below 64 MiB.
  package static let standard = PropertyListLimits(
    maximumBytes: 16 << 20, maximumDepth: 128, maximumValues: 150_000, maximumValueBytes: 8 << 20)
}

/// Property lists, binary (`bplist00`) and XML, as plain values.
package enum PropertyList {
  /// Decodes a binary or XML property list; throws if the list is damaged or beyond the limits.
  ///
  /// `place` is the origin of the bytes, for errors.
  package static func decode(
    _ bytes: [UInt8], limits: PropertyListLimits = .standard, at place: Place = Place()
  ) throws(HopdError) -> PropertyListValue {
    guard bytes.count <= limits.maximumBytes else {
      throw HopdError(
        .propertyListTooLarge,
        "the property list has \(bytes.count) bytes; more than \(limits.maximumBytes) are not read", at: place)
    }
    if bytes.starts(with: "bplist".utf8) {
      return try BinaryPropertyListReader.decode(bytes, limits: limits, at: place)
    }
    guard looksLikeXML(bytes) else {
      throw HopdError(.damagedPropertyList, "this is neither a binary nor an XML property list", at: place)
    }
    return try XMLPropertyListReader.decode(bytes, limits: limits, at: place)
  }

  /// Encodes the value as a binary property list: equal values give equal bytes.
  package static func encodeBinary(_ value: PropertyListValue) -> [UInt8] {
    BinaryPropertyListWriter.encode(value)
  }

  /// Whether the text begins with `<`, after a byte order mark or white space, or is UTF-16.
  private static func looksLikeXML(_ bytes: [UInt8]) -> Bool {
    if bytes.starts(with: [0xfe, 0xff]) || bytes.starts(with: [0xff, 0xfe]) { return true }
    let text = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? bytes.dropFirst(3) : bytes[...]
    return text.first { $0 != 0x20 && $0 != 0x09 && $0 != 0x0a && $0 != 0x0d } == UInt8(ascii: "<")
  }
}
