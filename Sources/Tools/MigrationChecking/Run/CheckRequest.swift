// The request for a check: models with their mapping models, the versions to check, and the rows to try them with.

import Diagnostics
import ManagedObjectModel
import MigrationPipeline
import MigrationPlanning
import SystemPackage

/// One check of models.
package struct CheckRequest: Sendable {
  /// The models, with the mapping models between their versions.
  package var catalog: ModelCatalog
  /// The shipped versions; models without a record there are not compared.
  package var shipped = ShippedRecord()
  /// The command, for hints about what to type next.
  package var command = CheckWords()
  /// The target that all other versions must reach.
  package var target: TargetVersion = .current
  /// The settings of the migrations: route, renames, rules for invalid rows.
  package var settings = MigrationSettings()
  /// Creates the policies that mapping models name; nil if no class is bound.
  package var policies: PolicyMaker? = nil
  /// Names of the versions that are checked; empty for all.
  package var only: Set<String> = []
  /// The oldest version that is checked.
  package var since: String?
  /// Stores of users, each migrated on a copy.
  package var stores: [FilePath] = []
  /// Objects of every entity in a sample store.
  package var objectsEach: Int64 = 16
  /// The seed of their values.
  package var seed: UInt64 = 1
  /// Whether each version is also tried with rows that break its own rules.
  package var isUnhappy = false
  /// Whether a version that needs a policy without a program passes, if everything before that policy does.
  package var allowsUnboundPolicies = false
  /// Whether a drop that the lock does not allow fails the check.
  package var failsOnDrop = false
  /// Seconds after which no further store is tried; the models alone decide about the rest.
  package var budget: Double?
  /// The number of versions that are tried at a time.
  package var workers = 2
  /// The folder for temporary stores; nil for the default one.
  package var scratch: FilePath?
  /// The Core Data version whose layout the stores have.
  package var frameworkVersion: Int64 = 1344

  /// Returns the words of `hopctl check` with these models and all options that affect the result.
  func words(for bundle: ModelBundle) -> CheckWords {
    command.models.isEmpty
      ? CheckWords(models: [bundle.path.string], options: command.options, source: command.source) : command
  }

  /// Creates a check of all versions of these models. The code of an app's stages is not needed for a trial.
  package init(catalog: ModelCatalog) {
    self.catalog = catalog
    settings.leavesOutStages = true
  }
}

/// A `hopctl check` command as it was typed, without options that do not affect its result.
package struct CheckWords: Sendable {
  /// Models and folders as typed.
  package var models: [String]
  /// Options with their values.
  package var options: [String]
  /// Those among them that say which models of Swift source are meant.
  package var source: [String]

  /// The source options without the one that chooses releases.
  var sourceWithoutTags: [String] {
    guard let index = source.firstIndex(of: "--tags") else { return source }
    return Array(source[..<index] + source[index...].dropFirst(2))
  }

  /// Creates a command from the typed words.
  package init(models: [String] = [], options: [String] = [], source: [String] = []) {
    self.models = models
    self.options = options
    self.source = source
  }

  /// Returns the command with more words, quoted for a shell.
  package func line(adding more: [String] = []) -> String {
    (["hopctl", "check"] + models + options + more).map(\.quotedForShell).joined(separator: " ")
  }
}
