// What every subcommand is.

import ArgumentParser
import Diagnostics

/// A subcommand that does something.
protocol HopctlCommand: ParsableCommand {
  var output: OutputOptions { get }
  /// Does the work and prints the result; throws an error, or `Finished` when everything is said.
  func execute() throws
}

extension HopctlCommand {
  mutating func run() throws { try execute() }
}

/// Thrown by a command that has said everything and only needs its exit status.
struct Finished: Error {
  let status: ExitStatus
}
