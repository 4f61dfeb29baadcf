// The steps of a hop with their costs on an imagined machine. Only the proportions matter: the estimate of the time
// left measures the speed of the real machine.

/// The steps of a hop as work.
package struct HopOutline: Sendable, Hashable {
  /// The kind of a step's work.
  package enum Kind: Sendable, Hashable {
    /// Writes rows, by ranges of a key.
    case rows
    /// Runs a program over objects.
    case policy
    /// Builds an index over all rows of a table.
    case index
    /// Any other statement.
    case statement
  }

  /// One step.
  package struct Step: Sendable, Hashable {
    /// The kind of work.
    package let kind: Kind
    /// Its seconds on the imagined machine.
    package var seconds: Double
    /// Whether the number of its rows is unknown until the steps before it are done.
    package var isGuess = false

    /// Makes a step.
    package init(_ kind: Kind, seconds: Double, isGuess: Bool = false) {
      self.kind = kind
      self.seconds = seconds
      self.isGuess = isGuess
    }
  }

  /// The result of the hop, which verification reads completely.
  package struct Result: Sendable, Hashable {
    /// The rows of all tables, and the bytes of the file.
    package var rows = 0.0
    package var bytes = 0.0
    /// The rows of all indexes, and of those over references.
    package var entries = 0.0
    package var references = 0.0

    /// An empty result.
    package init() {}
  }

  /// The step before those of a program, if a copy of the store is altered.
  package static let copyOfStore = -1

  /// The steps in order; the last one completes the file at the end of the hop.
  package var steps: [Step]
  /// The expected result; nil if there is no estimate.
  package var result: Result?
  /// The number of earlier outlines: a later one has better numbers.
  package var revision = 0

  /// Makes an outline.
  package init(steps: [Step], result: Result? = nil, revision: Int = 0) {
    self.steps = steps
    self.result = result
    self.revision = revision
  }
}

/// The costs of rows and bytes on the imagined machine, in seconds. Measured once, as proportions (docs/PERFORMANCE.md,
/// "Progress").
package enum WorkCost {
  /// A row that is read, made anew, and written; and each byte of it.
  package static let row = 0.34e-6
  package static let rowByte = 1.7e-9
  /// A row whose value is updated in place.
  package static let updated = 0.45e-6
  /// A row that a program makes, and one whose relationships it sets.
  package static let policyRow = 60.0e-6
  package static let policyLook = 1.4e-6
  /// A row that is sorted into its group.
  package static let grouped = 0.43e-6
  /// A row in an index over a reference, and in one over values.
  package static let reference = 0.26e-6
  package static let indexed = 0.38e-6
  /// A table or an index that SQLite parses again when a name changes, or when a table gets a column.
  package static let renamedObject = 8.0e-6
  package static let extendedObject = 1.5e-6
  /// A row that a check over a whole table reads.
  package static let looked = 0.05e-6
  /// A byte of a hop's file when the hop is completed.
  package static let sealedByte = 0.5e-9
  /// A byte that is copied from file to file.
  package static let byte = 0.6e-9
  /// A byte of a store that replaces another: synced and read back.
  package static let replacedByte = 1.2e-9
  /// A byte of a replacement in place: of its backup, of the commit, and of the final check.
  package static let backedUpByte = 2.9e-9
  package static let committedByte = 3.6e-9
  package static let confirmedByte = 1.6e-9
  /// The start of a program.
  package static let program = 0.1
  /// The minimum cost of any stage.
  package static let least = 0.001

  /// The inspection of a store before its migration.
  package static func planning(rows: Double, bytes: Double) -> Double { rows * 0.28e-6 + bytes * 0.5e-9 }

  /// The verification of a result, whose checks run in parallel. For a full one: the check of all pages, before the
  /// first row is looked up.
  package static func verification(_ result: HopOutline.Result, isFull: Bool) -> Double {
    let quick = result.rows * 0.1e-6 + result.references * 0.04e-6 + result.bytes * 0.17e-9
    return quick * (isFull ? 0.55 : 1) + least
  }

  /// The second part of a full verification, which looks up each row of a table in each of its indexes.
  package static func lookUps(_ result: HopOutline.Result) -> Double {
    result.rows * 0.2e-6 + result.entries * 0.82e-6
  }

  /// The steps of SQLite's virtual machine in a full verification.
  package static func verificationSteps(_ result: HopOutline.Result) -> Double {
    result.rows * 10 + result.entries * 3.7
  }
}
