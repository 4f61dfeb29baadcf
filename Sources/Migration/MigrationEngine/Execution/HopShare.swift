// The share of a hop that is done, for progress reports: of the steps that write rows, the share of their keys; of the
// statements that follow them, the share of their number.

import MigrationPlanning
import PersistentStore
import SQLite

/// The share of a hop's program that is done.
struct HopShare {
  /// An object that a program makes takes as long as so many rows that SQL writes.
  private static let keysPerObject = 50.0
  /// The keys of hops with fewer rows are not read: such a hop ends before a report could show them.
  private static let fewRows: Int64 = 10_000

  private let connection: Connection
  /// The number of keys of each step up to the last one that writes rows.
  private var keys: [Double]
  private let isMeasured: Bool
  /// The number of steps after them, including the bookkeeping.
  private let statements: Int
  private var step = 0
  /// The first and last key of the current step.
  private var ends: ClosedRange<Int64>?
  /// The share of the current step that is done.
  private var done = 0.0

  init(of program: HopProgram, in hop: Hop, on connection: Connection) {
    self.connection = connection
    isMeasured = hop.entities.reduce(0) { $0 &+ $1.rows } >= Self.fewRows
    let end = program.steps.lastIndex { $0.writesRows }.map { $0 + 1 } ?? 0
    statements = program.steps.count - end + 1
    keys = []
    keys = program.steps[..<end].map { weight(of: $0, in: hop) }
  }

  private func weight(of step: HopProgram.Step, in hop: Hop) -> Double {
    switch step {
    case .copy(let copy): return weight(of: copy.rows.driver)
    case .chunks(let chunks): return weight(of: chunks.driver)
    case .policy(let policy):
      let objects = Double(hop.entities.first { $0.mapping == policy.subject }?.rows ?? 0)
      switch policy.pass {
      case .createInstances, .stage: return objects * Self.keysPerObject
      case .createRelationships: return objects
      case .performCustomValidation, .end: return 0
      }
    case .update, .validate, .table, .index, .trigger: return 0
    }
  }

  private func weight(of driver: SourceTables.Driver) -> Double {
    guard isMeasured else { return 1 }
    // A step before it may have to make the table.
    return (try? connection.ends(of: driver))?.length ?? 0
  }

  // MARK: Events

  /// A step begins.
  mutating func begin(_ step: Int) { (self.step, ends, done) = (step, nil, 0) }

  /// A step of rows begins, or continues after a key.
  mutating func begin(_ step: Int, over driver: SourceTables.Driver, after key: Int64?) throws(SQLiteError) {
    begin(step)
    guard isMeasured, keys.indices.contains(step) else { return }
    ends = try connection.ends(of: driver)
    // The tables of this hop have their keys only now.
    keys[step] = ends?.length ?? 0
    if let key { reached(key) }
  }

  /// The rows up to a key are written.
  mutating func reached(_ key: Int64) {
    guard let ends else { return }
    done = key < ends.lowerBound ? 0 : (ends.lowerBound...min(key, ends.upperBound)).length / ends.length
  }

  /// A share of the objects of a program's step is written.
  mutating func reached(share: Double) { done = min(1, max(0, share)) }

  // MARK: Results

  var stage: HopStage { step < keys.count ? .rows : .indexes }

  /// The share of the stage that is done, 0 to 1.
  var value: Double {
    guard step < keys.count else { return Double(step - keys.count) / Double(statements) }
    let all = keys.reduce(0, +)
    guard all > 0 else { return Double(step) / Double(keys.count) }
    return min(1, (keys[..<step].reduce(0, +) + keys[step] * done) / all)
  }
}

extension HopProgram.Step {
  /// Whether the step writes or checks rows.
  fileprivate var writesRows: Bool {
    switch self {
    case .copy, .update, .chunks, .policy, .validate: true
    case .table, .index, .trigger: false
    }
  }
}

extension ClosedRange<Int64> {
  fileprivate var length: Double { Double(upperBound) - Double(lowerBound) + 1 }
}

extension Connection {
  /// Returns the first and the last key of a table; nil if it has no rows. Reads only both ends of its tree.
  fileprivate func ends(of driver: SourceTables.Driver) throws(SQLiteError) -> ClosedRange<Int64>? {
    let statement = try prepare(driver.endKeys)
    guard try statement.step(), !statement.isNull(at: 0), !statement.isNull(at: 1) else { return nil }
    let (first, last) = (statement.integer(at: 0), statement.integer(at: 1))
    return first <= last ? first...last : nil
  }
}
