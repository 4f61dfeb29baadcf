// The request for a check: models with their mapping models, which versions, and with which rows they are tried.

import ManagedObjectModel
import MigrationPipeline
import MigrationPlanning
import SystemPackage

/// One check of models.
package struct CheckRequest: Sendable {
  /// The models, with the mapping models that lead between their versions.
  package var catalog: ModelCatalog
  /// What has shipped; models that are not noted there are not compared.
  package var shipped = ShippedRecord()
  /// The command, for hints that say what to type next.
  package var command = CheckWords()
  /// The version that all others must reach.
  package var target: TargetVersion = .current
  /// How stores are migrated: route, renames, rules for invalid rows.
  package var settings = MigrationSettings()
  /// Makes the policies that mapping models name; nil where no class is bound.
  package var policies: PolicyMaker? = nil
  /// Names of the versions that are checked; empty for all.
  package var only: Set<String> = []
  /// The oldest version that is checked.
  package var since: String?
  /// Stores of users, each migrated on a copy.
  package var stores: [FilePath] = []
  /// Objects of every entity in a store that is made for trying.
  package var objectsEach: Int64 = 16
  /// The seed of their values.
  package var seed: UInt64 = 1
  /// Is each version tried with rows that break its own rules too?
  package var isUnhappy = false
  /// Is a version that needs a policy without a program good, if everything before that policy is?
  package var allowsUnboundPolicies = false
  /// Seconds after which no further store is tried; the models alone decide about the rest.
  package var budget: Double?
  /// Versions that are tried at a time.
  package var workers = 2
  /// Where stores are made that are thrown away; nil for the usual place.
  package var scratch: FilePath?
  /// Core Data's version whose habits the stores follow.
  package var frameworkVersion: Int64 = 1344

  /// The words of `hopctl check` with these models and everything that decides about the result.
  func words(for bundle: ModelBundle) -> CheckWords {
    command.models.isEmpty ? CheckWords(models: [bundle.path.string], options: command.options) : command
  }

  /// A check of all versions of these models.
  package init(catalog: ModelCatalog) { self.catalog = catalog }
}

/// A `hopctl check` as it was typed, without what does not change its result.
package struct CheckWords: Sendable {
  /// Models and folders as typed.
  package var models: [String]
  /// Options with their values.
  package var options: [String]

  /// Takes what was typed.
  package init(models: [String] = [], options: [String] = []) {
    self.models = models
    self.options = options
  }

  /// The command with more words, as a shell takes it.
  package func line(adding more: [String] = []) -> String {
    (["hopctl", "check"] + models + options + more).map(\.quotedForShell).joined(separator: " ")
  }
}
