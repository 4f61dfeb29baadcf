// The offset of local time from UTC at any moment, read from the system's time zone files (RFC 9636, "TZif") and from
// the rule at their end (POSIX TZ). FoundationEssentials has no zone but GMT, and glibc has one zone per process.

import Diagnostics
import Glibc
import SystemPackage

/// A time zone: its past transitions, and the rule for later times.
package struct TimeZoneRules: Sendable, Hashable {
  /// The name under which it was loaded; nil for the system's zone.
  package let name: String?
  /// Times of transitions in seconds since 1970, and the offset after each, in seconds east of UTC.
  private var transitions: [Int64] = []
  private var offsets: [Int64] = []
  /// The offset before the first transition.
  private var first: Int64 = 0
  /// The rule after the last transition.
  private var rule: PosixTimeZone?

  /// UTC.
  package static let utc = TimeZoneRules(name: "UTC")

  private init(name: String?) { self.name = name }

  /// A zone that always follows one rule; nil if the text is not a rule.
  package init?(rule text: String) {
    guard let rule = PosixTimeZone(text) else { return nil }
    self.init(name: text)
    self.rule = rule
  }

  /// Seconds east of UTC at a time in seconds since 1970.
  package func offset(at moment: Int64) -> Int64 {
    guard let last = transitions.last else { return rule?.offset(at: moment) ?? first }
    if moment >= last { return rule?.offset(at: moment) ?? offsets.last ?? first }
    // The first transition after `moment`.
    var (low, high) = (0, transitions.count)
    while low < high {
      let middle = (low + high) / 2
      if transitions[middle] <= moment { low = middle + 1 } else { high = middle }
    }
    return low == 0 ? first : offsets[low - 1]
  }

  // MARK: Files

  /// The folder of zone files, and the file of the system's zone.
  private static let folder: FilePath = "/usr/share/zoneinfo"
  private static let local: FilePath = "/etc/localtime"
  /// The size limit of a zone file; real ones are much smaller.
  private static let mostBytes = 1 << 20

  /// Returns the zone of a name; for nil the system's zone, which is UTC if none is set. Throws if there is no such
  /// zone.
  package static func named(_ name: String?) throws(HopdError) -> TimeZoneRules {
    guard let name else {
      guard let bytes = bytes(of: local) else { return utc }
      return TimeZoneRules(name: nil, file: bytes) ?? utc
    }
    // A name is a path below the folder; it must not lead out of it.
    let isName =
      !name.hasPrefix("/") && !name.split(separator: "/").contains("..")
      && name.utf8.allSatisfy { byte in
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
          || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "/_+-".utf8.contains(byte)
      }
    if isName, !name.isEmpty, let bytes = bytes(of: folder.appending(name)),
      let zone = TimeZoneRules(name: name, file: bytes)
    {
      return zone
    }
    if name == "UTC" { return utc }
    throw HopdError(
      .configurationInvalid, "this system has no time zone \"\(name.printableLine)\"",
      hint: "`timedatectl list-timezones` lists them; they come with the package tzdata")
  }

  private static func bytes(of file: FilePath) -> [UInt8]? {
    // Nonblocking: a pipe instead of a file must not block the start.
    let descriptor = file.withPlatformString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size <= mostBytes else {
      return nil
    }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 16 * 1024)
    while bytes.count <= mostBytes {
      let count = read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { return nil }
      if count == 0 { return bytes }
      bytes += buffer.prefix(count)
    }
    return nil
  }

  /// The counts in the header of one part of a file (RFC 9636, 3.1).
  private struct Header {
    static let size = 44
    let version: UInt8
    let transitions: Int
    let types: Int
    /// The size of the part without its header, in bytes, if a time takes `width` bytes.
    let size: (Int) -> Int

    init?(_ bytes: ArraySlice<UInt8>) {
      guard bytes.count >= Self.size, bytes.prefix(4).elementsEqual("TZif".utf8) else { return nil }
      let start = bytes.startIndex
      version = bytes[start + 4]
      var counts: [Int] = []
      for index in 0..<6 {
        let count = TimeZoneRules.number(bytes.dropFirst(20 + index * 4), width: 4)
        guard let count, count >= 0, count <= TimeZoneRules.mostBytes else { return nil }
        counts.append(Int(count))
      }
      (transitions, types) = (counts[3], counts[4])
      size = { width in
        counts[3] * (width + 1) + counts[4] * 6 + counts[5] + counts[2] * (width + 4) + counts[1] + counts[0]
      }
    }
  }

  /// Parses a zone file; nil if the bytes are not one.
  package init?(name: String?, file bytes: [UInt8]) {
    self.init(name: name)
    guard var header = Header(bytes[...]) else { return nil }
    var rest = bytes.dropFirst(Header.size)
    var width = 4
    if header.version >= UInt8(ascii: "2") {
      // The second part has the same data with 64 bits per time.
      let old = header.size(4)
      guard rest.count > old, let new = Header(rest.dropFirst(old)) else { return nil }
      rest = rest.dropFirst(old + Header.size)
      (header, width) = (new, 8)
    }
    let size = header.size(width)
    guard rest.count >= size, header.types > 0 else { return nil }
    let indexes = rest.dropFirst(header.transitions * width)
    let types = indexes.dropFirst(header.transitions)
    var known: [Int64] = []
    for type in 0..<header.types {
      guard let offset = Self.number(types.dropFirst(type * 6), width: 4) else { return nil }
      // No real offset is a week or longer.
      guard offset.magnitude < 7 * 86_400 else { return nil }
      known.append(offset)
    }
    first = known[0]
    for (position, type) in indexes.prefix(header.transitions).enumerated() {
      guard let moment = Self.number(rest.dropFirst(position * width), width: width), known.indices.contains(Int(type)),
        transitions.last.map({ $0 < moment }) ?? true
      else { return nil }
      transitions.append(moment)
      offsets.append(known[Int(type)])
    }
    let footer = rest.dropFirst(size)
    guard width == 8, footer.first == UInt8(ascii: "\n") else { return }
    let text = String(decoding: footer.dropFirst().prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    rule = text.isEmpty ? nil : PosixTimeZone(text)
  }

  /// Reads a signed big-endian number.
  private static func number(_ bytes: ArraySlice<UInt8>, width: Int) -> Int64? {
    guard bytes.count >= width else { return nil }
    var value: UInt64 = 0
    for byte in bytes.prefix(width) { value = value << 8 | UInt64(byte) }
    return width == 4 ? Int64(Int32(truncatingIfNeeded: value)) : Int64(bitPattern: value)
  }
}
