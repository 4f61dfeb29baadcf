// The changes to the rows of persistent history that let the last version read them: numbers of entities, the
// properties that a change names, and the values of deleted objects (docs/decisions/0057).

import Diagnostics
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

extension HopdError.Code {
  /// Changes name more properties than were changed, because the changed ones are not known.
  package static let historyWidened = HopdError.Code("history-widened", severity: .warning)
}

struct HistoryContinuation {
  private let reader: StoreReader
  private let layout: HistoryLayout
  private let path: MigrationPath
  private let final: StoreSchema
  private(set) var carry = HistoryCarry()
  private(set) var findings = Findings()
  private(set) var warnings: [HopdError] = []
  /// The number of changes of removed entities.
  private(set) var removedChanges: Int64 = 0

  /// The changes of one entity number, by length of ZCOLUMNS.
  private struct Changes {
    var rows: Int64 = 0
    var columns: [Int64: Int64] = [:]
  }

  /// Inspects the history of the store that `path` migrates to `final`.
  init(reader: StoreReader, layout: HistoryLayout, path: MigrationPath, final: StoreSchema) throws {
    self.reader = reader
    self.layout = layout
    self.path = path
    self.final = final
    carry.sourceColumns = layout.tables.mapValues(\.columnNames)
    for (number, found) in try changes().sorted(by: { $0.key < $1.key }) { try follow(number, found) }
    if findings.errors.isEmpty { try placeMark() }
  }

  /// The maximum number of pairs of entity number and length of ZCOLUMNS that are distinguished.
  private static let most = 20_000
  private static let hint =
    "drop the rows of its history: `history = \"clear\"`, --history clear; or migrate the store with its app"

  private func has(_ column: String) -> Bool { carry.sourceColumns[.change]?.contains(column) == true }

  private mutating func changes() throws(SQLiteError) -> [Int64: Changes] {
    guard layout.tables[.change] != nil else { return [:] }
    let columns = has("ZCOLUMNS") ? "ZCOLUMNS" : "NULL"
    let rows = try reader.connection.rows(
      """
      SELECT ZENTITY, length(\(columns)), count(*), sum(typeof(ZENTITY) <> 'integer' OR \
      typeof(ZENTITYPK) <> 'integer' OR typeof(ZTRANSACTIONID) <> 'integer' \
      OR typeof(\(columns)) NOT IN ('blob', 'null')) FROM \(reader.qualified(HistoryLayout.Table.change.rawValue)) \
      GROUP BY 1, 2 LIMIT \(Self.most)
      """
    ) { row in
      (
        number: row.integer(at: 0), length: row.isNull(at: 1) ? nil : row.integer(at: 1), count: row.integer(at: 2),
        strange: row.integer(at: 3)
      )
    }
    let strange = rows.reduce(Int64(0)) { $0 &+ $1.strange }
    if rows.count == Self.most {
      findings.add(
        .historyNotUnderstood, "ACHANGE has changes of more than \(Self.most) kinds, which no app makes",
        hint: Self.hint)
    }
    if strange > 0 {
      findings.add(
        .historyNotUnderstood,
        "\(strange.counted("row")) of ACHANGE name no entity, object or transaction by number",
        hint: Self.hint)
    }
    var changes: [Int64: Changes] = [:]
    for row in rows where row.strange == 0 {
      var change = changes[row.number] ?? Changes()
      change.rows += row.count
      if let length = row.length { change.columns[length] = row.count }
      changes[row.number] = change
    }
    return changes
  }

  // MARK: Entities

  private mutating func follow(_ number: Int64, _ found: Changes) throws {
    guard let source = path.sourceSchema.entityName(of: number) else {
      findings.add(
        .historyNotUnderstood,
        "\(found.rows.counted("row")) of ACHANGE name the entity number \(number), which version "
          + "\(path.sourceSchema.model.name) does not have", hint: Self.hint)
      return
    }
    guard let name = path.entity(continuing: source, at: path.end), let new = final.number(of: name) else {
      carry.removed.append(number)
      removedChanges += found.rows
      warnings.add(
        .historyCleared,
        "\(found.rows.counted("change")) of this entity leave the persistent history, because the entity is removed",
        at: Place(entity: source))
      return
    }
    if new != number { carry.numbers[number] = new }
    if !found.columns.isEmpty { followColumns(number, source: source, destination: name, found.columns) }
    try followTombstones(number, source: source, destination: name)
  }

  // MARK: Changed properties

  private mutating func followColumns(_ number: Int64, source: String, destination: String, _ lengths: [Int64: Int64]) {
    guard let before = HistoryColumns(of: source, in: path.sourceSchema),
      let after = HistoryColumns(of: destination, in: final)
    else { return }
    if before.bits == after.bits { return }
    if let doubt = after.doubt ?? before.doubt {
      findings.add(
        .historyNotUnderstood,
        "its changes say by position which properties have changed; the list of properties changes, and the place of "
          + "\(doubt) in it is unknown", at: Place(entity: destination), hint: Self.hint)
      return
    }
    carry.columns[number] = HistoryCarry.ColumnsChange(
      source: before, destination: after, sets: sets(before, after))
    let strange = lengths.filter { $0.key != Int64(before.byteCount) }.values.reduce(0, &+)
    if strange > 0 {
      warnings.add(
        .historyWidened,
        "\(strange.counted("change")) of this entity have a list of changed properties of another "
          + "length than it should be; they name all properties from now on", at: Place(entity: destination),
        hint: "expect readers of the history to see extra changes")
    }
  }

  /// Returns, for each bit after the migration, the bits before it that set it: those of the property of that name. A
  /// renamed property loses its bit, as in Core Data.
  private func sets(_ before: HistoryColumns, _ after: HistoryColumns) -> [[Int]] {
    var sets = after.bits.map { bit in before.bits.indices.filter { before.bits[$0].sets(bit) } }
    /// Returns these bits, and all bits of every unordered group that contains one of them: any may be meant.
    func widened(_ bits: Set<Int>) -> Set<Int> {
      HistoryColumns.Group.allCases.filter(\.isUnordered).reduce(bits) { all, group in
        let alike = before.bits.indices.filter { before.bits[$0].group == group }
        return alike.contains(where: bits.contains) ? all.union(alike) : all
      }
    }
    for group in HistoryColumns.Group.allCases where group.isUnordered {
      // In an unordered group, each bit may mean any of several properties: before, any bit of the group; after, any
      // position.
      let places = after.bits.indices.filter { after.bits[$0].group == group }
      let all = widened(Set(places.flatMap { sets[$0] }))
      if places.count > 1 || all.count > 1 { for place in places { sets[place] = all.sorted() } }
    }
    // A to-one that continues one of several to-manys may be meant by any of them, too.
    for (place, bit) in after.bits.enumerated() where !bit.group.isUnordered {
      sets[place] = widened(Set(sets[place])).sorted()
    }
    return sets
  }

  // MARK: Tombstones

  private mutating func followTombstones(_ number: Int64, source: String, destination: String) throws(SQLiteError) {
    let places = layout.tombstoneCount
    guard places > 0 else { return }
    let before = HistoryLayout.tombstoneAttributes(of: source, in: path.sourceSchema.model)
    let after = HistoryLayout.tombstoneAttributes(of: destination, in: final.model).map {
      path.sourceAttribute(of: $0, in: destination, at: path.end)
    }
    let count = max(places, HistoryLayout.tombstoneCount(of: final.model))
    // A value in a column that the entity does not use any more stays there, as in Core Data.
    let moves = (0..<count).map { place -> Int? in
      guard after.indices.contains(place) else { return place < places ? place : nil }
      return after[place].flatMap { before.firstIndex(of: $0) }.flatMap { $0 < places ? $0 : nil }
    }
    guard (0..<places).contains(where: { moves[$0] != $0 }) || (places..<count).contains(where: { moves[$0] != nil })
    else { return }
    carry.tombstones[number] = moves
    for (place, name) in before.enumerated() where place < min(places, after.count) && !after.contains(name) {
      let column = "ZTOMBSTONE\(place)"
      let values =
        try reader.connection.integer(
          "SELECT count(\(column)) FROM \(reader.qualified(HistoryLayout.Table.change.rawValue)) "
            + "WHERE ZENTITY = \(number)") ?? 0
      guard values > 0 else { continue }
      warnings.add(
        .historyCleared,
        "\(values.counted("value")) that deleted objects have left in the persistent history stay "
          + "behind: the attribute is not preserved after deletion any more", at: Place(entity: source, property: name))
    }
  }

  // MARK: The mark

  private static let program = "hopd"

  /// Adds the mark under the next number, also above purged transactions; a store whose history has not begun gets
  /// none.
  private mutating func placeMark() throws {
    guard let last = mark(of: .transaction) else { return }
    let author = HistoryMark.author(digest: final.model.versionHashesDigest)
    let (transaction, overflow) = last.addingReportingOverflow(1)
    guard !overflow else { return full() }
    guard layout.tables[.transactionString] != nil else {
      carry.mark = HistoryMark(
        transaction: transaction, author: author, program: Self.program, texts: [], authorKey: nil, programKey: nil)
      return
    }
    var next = mark(of: .transactionString) ?? 0
    var texts: [HistoryMark.Text] = []
    var keys: [Int64] = []
    for text in [author, Self.program] {
      let known = try reader.connection.integer(
        "SELECT Z_PK FROM \(reader.qualified(HistoryLayout.Table.transactionString.rawValue)) WHERE ZNAME = ? LIMIT 1",
        [.text(text)])
      if let known {
        keys.append(known)
        continue
      }
      guard next < Int64.max else { return full() }
      next += 1
      texts.append(HistoryMark.Text(key: next, text: text))
      keys.append(next)
    }
    carry.mark = HistoryMark(
      transaction: transaction, author: author, program: Self.program, texts: texts, authorKey: keys.first,
      programKey: keys.last)
  }

  private func mark(of table: HistoryLayout.Table) -> Int64? {
    layout.numbers.first { $0.number == table.number }.map { max(0, $0.highWaterMark) }
  }

  private mutating func full() {
    findings.add(
      .historyNotUnderstood, "the keys of the persistent history are used up (Z_PRIMARYKEY)", hint: Self.hint)
  }

  /// Returns the rows of Z_PRIMARYKEY after the migration.
  var numbers: [PrimaryKeyEntry] {
    guard let mark = carry.mark else { return layout.numbers }
    func raised(_ table: HistoryLayout.Table, _ entry: PrimaryKeyEntry) -> PrimaryKeyEntry {
      let key = table == .transaction ? mark.transaction : mark.texts.last?.key ?? entry.highWaterMark
      return PrimaryKeyEntry(number: entry.number, name: entry.name, parent: entry.parent, highWaterMark: key)
    }
    var numbers = layout.numbers.map { entry in
      [.transaction, .transactionString].first { $0.number == entry.number }.map { raised($0, entry) } ?? entry
    }
    let strings = HistoryLayout.Table.transactionString
    if let last = mark.texts.last?.key, !numbers.contains(where: { $0.number == strings.number }) {
      numbers.append(PrimaryKeyEntry(number: strings.number, name: strings.entityName, parent: 0, highWaterMark: last))
    }
    return numbers
  }
}
