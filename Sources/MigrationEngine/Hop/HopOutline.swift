// The steps of a hop with their costs on an imagined machine. Only the proportions matter: the estimate of the time
// left measures how fast the real machine is.

/// The steps of a hop as work.
package struct HopOutline: Sendable, Hashable {
  /// What a step does.
  package enum Kind: Sendable, Hashable {
    /// Rows, by ranges of a key.
    case rows
    /// Objects, by a program.
    case policy
    /// An index over all rows of a table.
    case index
    /// Anything else.
    case statement
  }

  /// One step.
  package struct Step: Sendable, Hashable {
    /// What it does.
    package let kind: Kind
    /// Seconds on the imagined machine.
    package var seconds: Double
    /// Is the number of its rows unknown until the steps before it are done?
    package var isGuess = false

    /// Makes a step.
    package init(_ kind: Kind, seconds: Double, isGuess: Bool = false) {
      self.kind = kind
      self.seconds = seconds
      self.isGuess = isGuess
    }
  }

  /// What the hop leaves behind: verification looks at all of it.
  package struct Result: Sendable, Hashable {
    /// Rows of all tables, and the bytes of the file.
    package var rows = 0.0
    package var bytes = 0.0
    /// Rows of all indexes, and of those over references.
    package var entries = 0.0
    package var references = 0.0

    /// Nothing.
    package init() {}
  }

  /// The step before those of a program, where a copy of the store is altered.
  package static let copyOfStore = -1

  /// In order; the last one is the end of the hop, when its file is completed.
  package var steps: [Step]
  /// What is expected to come of it; nil where nobody has looked.
  package var result: Result?
  /// How often it was made: a later one knows more.
  package var revision = 0

  /// Makes an outline.
  package init(steps: [Step], result: Result? = nil, revision: Int = 0) {
    self.steps = steps
    self.result = result
    self.revision = revision
  }
}

/// What rows and bytes cost on the imagined machine, in seconds. Measured once, as proportions (docs/PERFORMANCE.md,
/// "Progress").
package enum WorkCost {
  /// A row that is read, made anew, and written, and each byte of it.
  package static let row = 0.34e-6
  package static let rowByte = 1.7e-9
  /// A row that gets another value where it is.
  package static let updated = 0.45e-6
  /// A row that a program makes, and one whose relationships it is asked for.
  package static let policyRow = 60.0e-6
  package static let policyLook = 1.4e-6
  /// A row that is sorted into its group.
  package static let grouped = 0.43e-6
  /// A row in an index over a reference, and in one over values.
  package static let reference = 0.26e-6
  package static let indexed = 0.38e-6
  /// A table or an index that SQLite reads again when something gets another name, or a table another column.
  package static let renamedObject = 8.0e-6
  package static let extendedObject = 1.5e-6
  /// A row that is looked at by a check over a whole table.
  package static let looked = 0.05e-6
  /// A byte of a hop's file when the hop is completed.
  package static let sealedByte = 0.5e-9
  /// A byte that is copied from file to file.
  package static let byte = 0.6e-9
  /// A byte of a store that takes the place of another: synced and read back.
  package static let replacedByte = 1.2e-9
  /// A byte of a replacement in place: of its backup, of what is committed, and of what is looked at in the end.
  package static let backedUpByte = 2.9e-9
  package static let committedByte = 3.6e-9
  package static let confirmedByte = 1.6e-9
  /// A program that starts.
  package static let program = 0.1
  /// What any stage costs, however little it has to do.
  package static let least = 0.001

  /// The look at a store before its migration.
  package static func planning(rows: Double, bytes: Double) -> Double { rows * 0.28e-6 + bytes * 0.5e-9 }

  /// The verification of a result: what is looked at beside each other. Of a full one it is the look at all pages,
  /// before the first row is looked up.
  package static func verification(_ result: HopOutline.Result, isFull: Bool) -> Double {
    let quick = result.rows * 0.1e-6 + result.references * 0.04e-6 + result.bytes * 0.17e-9
    return quick * (isFull ? 0.55 : 1) + least
  }

  /// The second part of a full verification, when each row of a table is looked up in each of its indexes.
  package static func lookUps(_ result: HopOutline.Result) -> Double {
    result.rows * 0.2e-6 + result.entries * 0.82e-6
  }

  /// Steps of SQLite's program in a full verification.
  package static func verificationSteps(_ result: HopOutline.Result) -> Double {
    result.rows * 10 + result.entries * 3.7
  }
}
