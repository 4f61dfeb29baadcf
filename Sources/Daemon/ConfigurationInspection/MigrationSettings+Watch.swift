// The settings of a watch, and the programs of policies. hopd and hopctl --config both use this conversion, so they
// agree.

import HopdConfiguration
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PolicyHost

extension MigrationSettings {
  /// Converts the settings of a watch. `memoryLimit` is the limit of one migration, in bytes.
  package init(_ watch: Configuration.Watch, memoryLimit: Int64) {
    self = watch.migration
    engine.memoryLimit = memoryLimit
  }
}

extension Configuration {
  /// The programs of policies by class name.
  package var policyBindings: [String: PolicyBinding] {
    Dictionary(
      policies.map { policy in
        let limits = PolicyLimits(timeout: policy.timeout, memory: policy.memory)
        return (policy.name, PolicyBinding(command: policy.command, limits: limits))
      }
    ) { first, _ in first }
  }
}

extension PolicyPrograms {
  /// Creates the programs of a migration; nil if none is bound.
  package static func maker(_ bindings: [String: PolicyBinding]) -> PolicyMaker? {
    if bindings.isEmpty { return nil }
    return { isStopped, output in PolicyPrograms(bindings, isStopped: isStopped, observer: output) }
  }
}
