// Values for filled stores: typical values of apps, and values that sometimes break programs. The same seed gives the
// same values on every machine.

import ManagedObjectModel
import PropertyLists
import SQLite

/// SplitMix64 (Steele, Lea, Flood 2014): small, fast, and reproducible, unlike the system's generator.
struct SplitMix64: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }

  /// Returns a number in 0..<bound; 0 if there is none. The bias of the remainder does not matter for samples.
  mutating func below(_ bound: Int64) -> Int64 { bound > 0 ? Int64(next() % UInt64(bound)) : 0 }
}

/// The kind of rows in a filled store.
package enum SampleRows: String, Sendable, Hashable {
  /// Values of every type with their limits, nulls where allowed, shared and missing targets.
  case everyKind = "every-kind"
  /// Rows as in apps: nulls where allowed, shared and missing targets, numbers of the size that their type is chosen
  /// for; no limits, and no value twice.
  case everyday
  /// Rows that few hops have problems with: no null, no limit, no value twice, small numbers, and each object the
  /// target of at most one other.
  case ordinary
}

/// Makes values of attributes.
struct SampleValues {
  var random: SplitMix64
  let kind: SampleRows
  private let archives: [[UInt8]]
  private let external: ExternalSamples?

  init(seed: UInt64, kind: SampleRows = .everyKind, external: ExternalSamples? = nil) {
    self.kind = kind
    self.external = external
    random = SplitMix64(seed: seed)
    archives = SampleValues.words.prefix(8).map(SampleValues.archive)
  }

  /// Returns the value of row `ordinal` of an entity. The first rows have the limits one by one, so that even a small
  /// store has them all; later rows have a limit occasionally.
  mutating func value(of attribute: Attribute, ordinal: Int64, shift: Int64) -> SQLiteValue {
    switch kind {
    case .everyKind: break
    case .everyday: return everyday(attribute, ordinal: ordinal)
    case .ordinary: return ordinary(attribute, ordinal: ordinal)
    }
    // A type has up to six limits, cases 1 to 6; case 0 is null.
    let turn = ordinal &+ shift
    let special: Int64? = ordinal == 0 ? nil : turn < 14 ? turn % 7 : random.below(24) == 0 ? random.below(6) : nil
    if let special {
      if special == 0, attribute.isOptional { return .null }
      if special == 2, let value = large(attribute) { return value }
      if let value = limit(Int(special), of: attribute) { return value }
    }
    return plausible(attribute)
  }

  // MARK: Usual values

  private mutating func plausible(_ attribute: Attribute) -> SQLiteValue {
    switch attribute.type.form {
    case .integer:
      let range = integers(attribute)
      let low = max(range.lowerBound, min(range.upperBound, 0))
      let width = range.upperBound.subtractingReportingOverflow(low)
      return .integer(low &+ random.below(min(999, width.overflow ? 999 : width.partialValue) + 1))
    case .boolean: return .integer(random.below(2))
    case .real:
      let isFloat = attribute.type.traits.isFloat
      let number = isFloat ? Double(random.below(100_000)) / 8 : Double(random.below(1_000_000)) / 64
      return .real(bounded(number, attribute))
    case .decimal:
      let cents = bounded(Double(random.below(100_000)) / 100, attribute)
      return .real((cents * 100).rounded() / 100)
    case .date: return .real(bounded(Double(random.below(800_000_000)) + Double(random.below(1000)) / 1000, attribute))
    case .string: return .text(fitted(sentence(Int(1 + random.below(4))), attribute))
    case .uri: return .text("https://example.org/\(word())/\(random.below(100_000))?q=\(word())")
    case .uuid: return .blob(uuid())
    case .binary: return attribute.stored(bytes(Int(1 + random.below(48))))
    case .transformable: return .blob(archives[Int(random.below(Int64(archives.count)))])
    case .other: return .null
    }
  }

  /// A value as in apps: sometimes null, and numbers that distinguish the types.
  private mutating func everyday(_ attribute: Attribute, ordinal: Int64) -> SQLiteValue {
    if attribute.isOptional, ordinal % 5 == 3 { return .null }
    let place = ordinal % 1_000_000
    switch attribute.type.form {
    case .integer:
      let bits = attribute.type.traits.bits
      let range = integers(attribute)
      let step: Int64 = bits < 32 ? 1009 : bits < 64 ? 100_000_007 : 1_000_000_000_039
      // The remainder keeps them in the range of the type; the largest of 64 bits are far below its end.
      let value = place * step % (Int64.max >> (64 - bits))
      return .integer(max(range.lowerBound, min(range.upperBound, value)))
    case .real, .decimal: return .real(bounded(Double(place) + 0.25, attribute))
    default: return ordinary(attribute, ordinal: ordinal)
    }
  }

  /// A value like those of most rows: it differs from row to row, and fits every type of its family.
  private mutating func ordinary(_ attribute: Attribute, ordinal: Int64) -> SQLiteValue {
    switch attribute.type.form {
    case .integer:
      let range = integers(attribute)
      let low = max(range.lowerBound, min(range.upperBound, 0))
      return .integer(min(range.upperBound, low.addingReportingOverflow(ordinal).partialValue))
    case .real, .decimal: return .real(bounded(Double(ordinal), attribute))
    case .date: return .real(bounded(600_000_000 + Double(ordinal), attribute))
    case .string: return .text(fitted("\(word()) \(ordinal)", attribute))
    case .uri, .uuid: return unique(attribute, key: ordinal) ?? .null
    case .boolean, .binary, .transformable, .other: return plausible(attribute)
    }
  }

  // MARK: Limits

  /// Returns limit number 1…6 of a type; nil if it has none of that number.
  private mutating func limit(_ index: Int, of attribute: Attribute) -> SQLiteValue? {
    switch attribute.type.form {
    case .integer:
      let range = integers(attribute)
      return switch index {
      case 1: .integer(range.lowerBound)
      case 2: .integer(range.upperBound)
      case 3: .integer(max(range.lowerBound, min(range.upperBound, 0)))
      case 4: .integer(max(range.lowerBound, min(range.upperBound, -1)))
      default: nil
      }
    case .boolean: return .integer(Int64(index & 1))
    case .real:
      let doubles: [Double] = [
        -.greatestFiniteMagnitude, .greatestFiniteMagnitude, 0, .leastNonzeroMagnitude, 0.1 + 0.2,
        9_007_199_254_740_992,
      ]
      let floats: [Float] = [-.greatestFiniteMagnitude, .greatestFiniteMagnitude, 0, .leastNonzeroMagnitude, 0.1, -1.5]
      let place = (index + 5) % 6
      return .real(bounded(attribute.type.traits.isFloat ? Double(floats[place]) : doubles[place], attribute))
    case .decimal:
      return .real(bounded([-99_999_999.99, 99_999_999.99, 0, 0.01, 0.1, 1e15][(index + 5) % 6], attribute))
    case .date:
      // distantPast and distantFuture of Foundation, the two epochs, and instants with fractions of a second.
      let dates: [Double] = [-63_114_076_800, 63_113_904_000, 0, -978_307_200, -0.25, 86_399.999]
      return .real(bounded(dates[(index + 5) % 6], attribute))
    case .string:
      return .text(fitted(SampleValues.strings[(index + 5) % SampleValues.strings.count], attribute))
    case .uri: return .text(index == 1 ? "urn:isbn:9780000000000" : "file:///tmp/%C3%BCber%20uns/#\(index)")
    case .uuid: return .blob([UInt8](repeating: index & 1 == 0 ? 0xff : 0, count: 16))
    case .binary: return attribute.stored([[], bytes(4096), [0], [1, 2, 3], [2], bytes(65)][(index + 5) % 6])
    case .transformable: return .blob(archives[index % archives.count])
    case .other: return nil
    }
  }

  // MARK: Distinct values

  /// Returns a value that no other row `key` of the table has; nil if the type has too few.
  mutating func unique(_ attribute: Attribute, key: Int64) -> SQLiteValue? {
    let bits = attribute.type.traits.bits
    switch attribute.type.form {
    case .integer where bits < 32: return key <= 65_535 ? .integer(key - 32_768) : nil
    case .integer: return key <= Int64.max >> (64 - bits) ? .integer(key) : nil
    case .real where attribute.type.traits.isFloat: return key <= 1 << 24 ? .real(Double(key)) : nil
    case .real, .date, .decimal: return .real(Double(key))
    case .string:
      // Length limits are kept if they allow a number of a dozen digits.
      return .text(key == 3 ? "é🧪-\(key)" : "\(word())-\(key)")
    case .uri: return .text("https://example.org/\(word())/\(key)")
    case .uuid:
      var bytes = uuid()
      for place in 0..<6 { bytes[10 + place] = UInt8(truncatingIfNeeded: key >> (8 * (5 - place))) }
      return .blob(bytes)
    case .binary:
      let digits = (0..<8).map { UInt8(truncatingIfNeeded: key >> (8 * (7 - $0))) }
      return attribute.stored(digits)
    case .transformable: return .blob(Self.archive("\(word())-\(key)"))
    case .boolean, .other: return nil
    }
  }

  // MARK: Parts

  /// The values that type and model allow.
  private func integers(_ attribute: Attribute) -> ClosedRange<Int64> {
    let type = attribute.type.integers ?? .min ... .max
    let low = max(type.lowerBound, min(type.upperBound, attribute.minimum.flatMap { Int64($0) } ?? type.lowerBound))
    let high = max(type.lowerBound, min(type.upperBound, attribute.maximum.flatMap { Int64($0) } ?? type.upperBound))
    return low <= high ? low...high : type
  }

  private func bounded(_ number: Double, _ attribute: Attribute) -> Double {
    let low = attribute.minimum.flatMap { Double($0) } ?? -.infinity
    let high = attribute.maximum.flatMap { Double($0) } ?? .infinity
    return low <= high ? max(low, min(high, number)) : number
  }

  /// Returns the text with a length that the model allows.
  private func fitted(_ text: String, _ attribute: Attribute) -> String {
    // 1 MiB is far more than any text here; a model's larger limit has no effect.
    let low = min(1 << 20, attribute.minimum.flatMap { Int($0) } ?? 0)
    let high = min(1 << 20, attribute.maximum.flatMap { Int($0) } ?? (1 << 20))
    guard low <= high, low > 0 || high < 1 << 20 else { return text }
    var characters = Array(text.utf16.count > high ? text.prefix(max(0, high / 12)) : text[...])
    while characters.count < low { characters.append("x") }
    return String(characters)
  }

  /// Returns a value in an external file; nil if no more are allowed.
  private mutating func large(_ attribute: Attribute) -> SQLiteValue? {
    guard attribute.hasExternalForm, let external, external.hasRoom else { return nil }
    let content = bytes(ExternalSamples.size + Int(random.below(1000)))
    let text = UUIDText.text(of: uuid())
    guard let name = ExternalFileName(text.utf8), external.keep(content, as: name) else { return nil }
    return .blob(ExternalDataForm.reference(to: name))
  }

  private mutating func word() -> String {
    SampleValues.words[Int(random.below(Int64(SampleValues.words.count)))]
  }

  private mutating func sentence(_ count: Int) -> String {
    var text = word()
    for _ in 1..<max(1, count) { text += " " + word() }
    return text
  }

  private mutating func bytes(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 8)
    while bytes.count < count {
      let word = random.next()
      for shift in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: word >> (8 * UInt64(shift)))) }
    }
    return Array(bytes.prefix(count))
  }

  private mutating func uuid() -> [UInt8] {
    var value = bytes(16)
    value[6] = value[6] & 0x0f | 0x40
    value[8] = value[8] & 0x3f | 0x80
    return value
  }

  private static let words = [
    "harbour", "Übung", "copper", "lantern", "北京", "meadow", "naïve", "quartz", "river", "Ωmega", "saffron", "timber",
    "umbrella", "velvet", "walnut", "zephyr",
  ]

  /// Texts that programs get wrong: empty text, combining marks, emoji of several scalars, right to left, characters of
  /// SQL and JSON, and long text.
  private static let strings: [String] = [
    "", "e\u{301}a\u{30a}\u{323} combined", "👩‍👩‍👧‍👦 🏳️‍🌈 \u{1f1e9}\u{1f1ea}", "שלום עליכם — مرحبا",
    "it's \"quoted\" \\ %s ; --\nsecond line\ttab\u{7f}\u{1}", String(repeating: "long text with Wörter, ", count: 200),
  ]

  /// A keyed archive of a string, as Core Data's default transformer writes one.
  private static func archive(_ text: String) -> [UInt8] {
    PropertyList.encodeBinary(
      .dictionary([
        "$version": .integer(100_000), "$archiver": .string("NSKeyedArchiver"),
        "$top": .dictionary(["root": .uid(1)]), "$objects": .array([.string("$null"), .string(text)]),
      ]))
  }
}
