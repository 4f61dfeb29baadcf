// The protocol of subcommands, and the error that ends one.

import ArgumentParser
import Diagnostics

/// A subcommand with an action of its own.
protocol HopctlCommand: ParsableCommand {
  var output: OutputOptions { get }
  /// Runs the command and prints the result; throws an error, or `Finished` if everything is printed.
  func execute() throws
}

extension HopctlCommand {
  mutating func run() throws { try execute() }
}

/// Thrown by a command that has printed everything, to set its exit status.
struct Finished: Error {
  let status: ExitStatus
}
