// The keys of a table's rows in little memory: their ends if there is no gap, else one bit per key. They replace a
// look-up by key for every reference. Where neither form is possible the look-ups remain.

import SQLite

/// The keys of one table, and on request those of the rows of each entity in it.
struct RowKeys {
  private enum Form {
    /// Every key from the first to the last.
    case range(ClosedRange<Int64>)
    case bits([Int64: KeyBits])
  }
  private let form: Form?
  /// The only entity that has rows; nil if several have.
  private let onlyEntity: Int64?

  /// Name of the functions that test the bits.
  private let test: String

  /// Bits of all tables of a store together: 4 MiB.
  static let budget: Int64 = 32 << 20

  /// Reads the keys of a table. With `byEntity` discriminators can be tested; then `counts` receives its rows by Z_ENT.
  ///
  /// `budget` is the number of bits still available; the bits used are subtracted.
  init(
    of table: String, index: Int, byEntity: Bool, reader: StoreReader, counter: RowCounter, budget: inout Int64,
    counts: inout [Int64: Int64]?
  ) throws(SQLiteError) {
    test = "hopd_unknown_key_\(index)"
    let name = reader.qualified(table)
    let total = try counter.total(of: table)
    let ends = try reader.keyEnds(of: table)
    let (first, last) = (ends.low ?? 0, ends.high ?? 0)
    let (distance, isFar) = last.subtractingReportingOverflow(first)
    // In a damaged table keys may be unordered, and the last one found may be less than the first.
    let isSmall = !isFar && distance >= 0 && distance < budget && first > .min / 2 && last < .max / 2
    let isDense = isSmall && total == distance + 1
    guard total > 0, isSmall, byEntity || !isDense else {
      form = isDense ? .range(first...last) : nil
      onlyEntity = nil
      return
    }
    // How many entities have rows is unknown before they are read.
    var bits: [Int64: KeyBits] = [:]
    var rows: [Int64: Int64] = [:]
    var fits = true
    let statement = try reader.connection.prepare("SELECT Z_PK\(byEntity ? ", Z_ENT" : "") FROM \(name)")
    while try statement.step() {
      let number = byEntity && statement.isInteger(at: 1) ? statement.integer(at: 1) : 0
      rows[number, default: 0] &+= 1
      guard fits else { continue }
      if byEntity, !statement.isInteger(at: 1) {
        fits = false
      } else if let known = bits[number] {
        known.insert(statement.integer(at: 0))
      } else if distance < budget {
        budget -= distance + 1
        let made = KeyBits(first: first, count: distance + 1)
        made.insert(statement.integer(at: 0))
        bits[number] = made
      } else {
        fits = false
      }
    }
    if byEntity { counts = rows }
    onlyEntity = byEntity && fits && bits.count == 1 ? bits.keys.first : nil
    form = isDense && (!fits || onlyEntity != nil) ? .range(first...last) : fits ? .bits(bits) : nil
  }

  /// Registers the functions that the conditions call.
  func register(on connection: Connection) throws(SQLiteError) {
    guard case .bits(let bits)? = form else { return }
    let all = Array(bits.values)
    try connection.registerKeyTest(test, argumentCount: 1) { key, _ in all.contains { $0.contains(key) } }
    try connection.registerKeyTest(test, argumentCount: 2) { key, number in bits[number]?.contains(key) ?? false }
  }

  /// Removes the functions.
  func unregister(from connection: Connection) {
    guard case .bits? = form else { return }
    for count: Int32 in 1...2 { connection.removeKeyTest(test, argumentCount: count) }
  }

  /// A condition on a column that is true at least for every value that is the key of no row, and not for NULL; nil if
  /// there is none. If it is true for no row, no reference is missing. A value of another type may fulfil it and still
  /// be a key, so such a row is checked again.
  func mayBeMissing(_ column: String) -> String? {
    switch form {
    case .range(let keys)?: RowKeys.outside(keys, column)
    case .bits?: "\(test)(\(column))"
    case nil: nil
    }
  }

  /// SQL that is true for a value that is not a whole number within a range; it is not used for NULL.
  static func outside(_ keys: ClosedRange<Int64>, _ column: String) -> String {
    // The plus removes the column's affinity: a text is never compared as a number.
    "(+\(column) NOT BETWEEN \(keys.lowerBound) AND \(keys.upperBound) OR (+\(column) | 0) IS NOT +\(column))"
  }

  /// A condition that is true at least for every pair of an existing row's key and a number other than that row's
  /// Z_ENT; nil if there is none.
  func mayBeWrong(_ column: String, entity: String) -> String? {
    if let onlyEntity { return "(\(column) IS NOT NULL AND +\(entity) IS NOT \(onlyEntity))" }
    return if case .bits? = form { "\(test)(\(column), \(entity))" } else { nil }
  }
}

extension StoreReader {
  /// Whether Z_PK is the rowid. A table from another program may have duplicate keys, or none.
  func isKeyed(_ table: String) throws(SQLiteError) -> Bool {
    try shape(of: table).isKeyedByRowID
  }
}

/// A bit for each key of a range.
private final class KeyBits {
  private let first: Int64
  private var words: [UInt64]

  init(first: Int64, count: Int64) {
    self.first = first
    words = Array(repeating: 0, count: Int(clamping: count / 64 + 1))
  }

  func insert(_ key: Int64) {
    let place = Int(clamping: key &- first)
    guard words.indices.contains(place >> 6) else { return }
    words[place >> 6] |= 1 << UInt64(place & 63)
  }

  func contains(_ key: Int64) -> Bool {
    let place = Int(clamping: key &- first)
    guard words.indices.contains(place >> 6) else { return false }
    return words[place >> 6] & (1 << UInt64(place & 63)) != 0
  }
}
