// Policies that run in the process of the test. The engine gets the same messages as from a program, without a pipe.

import MigrationPolicy

/// Policies in the engine's own process, without a program.
package struct LocalPolicies: PolicyProvider {
  private let classes: PolicyClasses
  private let names: Set<String>

  /// Binds classes to their names.
  package init(
    _ policies: [String: EntityMigrationPolicy.Type] = [:], stages: [String: CustomMigrationStage.Type] = [:]
  ) {
    classes = PolicyClasses(policies: policies, stages: stages)
    names = Set((Array(policies.keys) + stages.keys).map(PolicyClassName.bare))
  }

  package func isBound(_ policy: String) -> Bool { names.contains(PolicyClassName.bare(policy)) }

  package func open(_ introduction: PolicyIntroduction) throws -> any PolicyConversation {
    LocalConversation(try PolicyRunner(introduction, classes: classes))
  }
}

private final class LocalConversation: PolicyConversation {
  private let runner: PolicyRunner

  init(_ runner: PolicyRunner) { self.runner = runner }

  func call(
    _ call: PolicyCall, keys: PolicyKeys, answering: (PolicyRequest) throws -> PolicyAnswer
  ) throws -> PolicyReply {
    let outcome = withoutActuallyEscaping(answering) { answering in
      runner.run(call, keys: keys) { request in
        switch request {
        case .apply(let operations): try answering(.apply(PolicyOperation.spelledOut(operations, during: call)))
        case .plain(let request): try answering(request)
        }
      }
    }
    switch outcome {
    case .done(let operations): return .done(PolicyOperation.spelledOut(operations, during: call))
    case .results(let results, let operations):
      return .results(results, PolicyOperation.spelledOut(operations, during: call))
    case .failed(let reason): return .failed(reason)
    }
  }

  func finish() throws { try runner.close() }

  func close() {}
}

extension PolicyOperation {
  /// Returns the changes with default creation written as insertions and associations, of the instances of a call.
  package static func spelledOut(_ operations: [PolicyWireOperation], during call: PolicyCall) -> [PolicyOperation] {
    let instances = call.instances
    return spelledOut(operations) { instances.indices.contains($0) ? instances[$0] : nil }
  }
}
