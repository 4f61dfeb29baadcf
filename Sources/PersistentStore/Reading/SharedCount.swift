// Counts the rows of several tables in two threads: a second connection reads the same file, and both take parts of the
// tables from one list until it is empty (docs/decisions/0156). Sums do not depend on who counted what. A table of
// which a part cannot be counted is left to the first thread alone, so that an error is the same as without the second.

import SQLite
import Synchronization

/// The counting of conditions on several tables by two threads.
struct SharedCount {
  /// Some rows of a table, and what is counted in them.
  fileprivate struct Part: Sendable {
    let table: String
    let range: ClosedRange<Int64>?
    let conditions: [String]
  }

  private let counter: RowCounter
  private let parts: [Part]

  /// A table whose keys span less is one part.
  private static let smallestSpan: Int64 = 40_000
  /// With more tables, whole tables are shared out well enough.
  private static let mostDivided = 64
  /// The most parts of a table.
  private static let mostParts: Int64 = 16
  /// A statement with more conditions is left to `RowCounter`, which divides it.
  private static let mostConditions = 400

  /// Divides the tables of entities, named in `entities`, by their keys. Conditions that are counted already are left
  /// out.
  init(_ conditions: [String: [String]], entities: Set<String>, counter: RowCounter) throws(SQLiteError) {
    self.counter = counter
    var parts: [Part] = []
    for (table, list) in conditions.sorted(by: { $0.key < $1.key }) {
      var asked: Set<String> = []
      let new = list.filter { !counter.knows($0, in: table) && asked.insert($0).inserted }
      guard !new.isEmpty, new.count <= Self.mostConditions else { continue }
      let isDivided = conditions.count <= Self.mostDivided && entities.contains(table)
      let ranges = isDivided ? try Self.ranges(of: table, counter.reader) : [nil]
      parts += ranges.map { Part(table: table, range: $0, conditions: new) }
    }
    self.parts = parts
  }

  /// Returns ranges of about the same span that contain every key there can be; one, which is nil, for a small table.
  private static func ranges(of table: String, _ reader: StoreReader) throws(SQLiteError) -> [ClosedRange<Int64>?] {
    let ends = try reader.keyEnds(of: table)
    guard let low = ends.low, let high = ends.high, low < high else { return [nil] }
    let (span, isFar) = high.subtractingReportingOverflow(low)
    guard !isFar, span >= smallestSpan, try reader.isKeyed(table) else { return [nil] }
    let count = min(mostParts, span / (smallestSpan / 2))
    var ranges: [ClosedRange<Int64>?] = []
    var start = Int64.min
    for index in 1..<count {
      let end = low + span / count * index
      ranges.append(start...end)
      start = end + 1
    }
    return ranges + [start...Int64.max]
  }

  /// Counts, and keeps the numbers in the counter's memory. Does nothing where a second thread has nothing to take, or
  /// cannot be had: then the counter has to count. `prepare` registers what the conditions call.
  func run(_ prepare: @escaping ConnectionThread.Body) throws(SQLiteError) {
    let reader = counter.reader
    guard parts.count > 1 else { return }
    let work = Work(parts)
    let second = ConnectionThread(reading: reader.schema, of: reader.connection) { connection throws(SQLiteError) in
      try prepare(connection)
      try work.take(on: connection, space: .schema("main"))
    }
    guard let second else { return }
    defer { second.cancel() }
    do {
      try work.take(on: reader.connection, space: reader.space)
    } catch {
      if error.isInterrupt { throw error }
      return
    }
    // Its error is found again by the counter, or was none of the file's.
    try? second.finish(keepAlive: reader.connection.mayContinue)
    for (table, all) in Dictionary(grouping: parts.indices, by: { parts[$0].table }) {
      let answers = all.compactMap(work.answers)
      guard let first = all.first, answers.count == all.count else { continue }
      var sums = [Int64](repeating: 0, count: parts[first].conditions.count + 1)
      for answer in answers {
        for (place, count) in zip(sums.indices, answer) { sums[place] &+= count }
      }
      counter.keep(sums, to: parts[first].conditions, in: reader.qualified(table))
    }
  }
}

/// The list of parts that both threads take from.
private final class Work: Sendable {
  private let parts: [SharedCount.Part]
  private let next = Atomic<Int>(0)
  private let found: Mutex<[Int: [Int64]]> = Mutex([:])

  init(_ parts: [SharedCount.Part]) { self.parts = parts }

  /// Counts one part after the other until none is left.
  func take(on connection: Connection, space: SourceTables) throws(SQLiteError) {
    while true {
      let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
      guard parts.indices.contains(index) else { return }
      let part = parts[index]
      let answers = try RowCounter.answers(
        part.conditions, in: space.qualified(part.table), range: part.range, of: connection)
      found.withLock { $0[index] = answers }
    }
  }

  func answers(to index: Int) -> [Int64]? { found.withLock { $0[index] } }
}
