// Small stores are built in memory and written at once: most of what a small migration costs is files that are created,
// written page by page and removed again. The later stages (verification of the file, the guarded swap) are the same.
// Nothing is on disk before the result is complete, so there is nothing to resume and one intent record does
// (docs/decisions/0024).

import Diagnostics
import DurableFiles
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPlanning
import PersistentStore
import StoreReplacement
import StoreVerification
import SystemPackage

/// Which stores are built in memory.
enum SmallStore {
  /// Most bytes of a staged store in memory; nil where the store is to be built in files.
  ///
  /// Policies may keep what they saw, objects that are set aside go to a file of their own, and files of external
  /// storage may become values or be written: such plans go through files, which can be resumed.
  static func memory(for plan: MigrationPlan, passes: Passes, options: EngineOptions) -> Int64? {
    let source = plan.estimate.bytes
    guard source > 0, source <= options.smallStoreMax, !plan.hops.isEmpty,
      passes.alterProgram == nil, passes.groups.allSatisfy({ $0.execution == .chunks }),
      options.invalidRows.standard != .quarantine, !options.invalidRows.byEntity.values.contains(.quarantine),
      plan.memo.fact(PlainHops(), { plan.hops.allSatisfy(isPlain) })
    else { return nil }
    return options.stagedInMemoryMax
  }

  /// Names the answer whether hops may be made in memory.
  private struct PlainHops: Hashable {}

  private static func isPlain(_ hop: Hop) -> Bool {
    hop.mapped?.policies.isEmpty != false
      && [hop.sourceSchema, hop.destinationSchema].allSatisfy { ExternalDataColumn.all(in: $0).isEmpty }
  }
}

extension MigrationRun {
  /// Builds a small store in memory, writes it and verifies the file; nil where it must be built in files.
  func buildInMemory(
    _ files: HopChain, _ held: LockedStore, intent: inout ReplacementIntent, environment: ReplacementEnvironment
  ) throws -> (HopChain.Outcome, VerifiedStore)? {
    // The work of an interrupted run is continued, and cleaned up, in the form in which it was begun.
    guard interrupted == nil,
      let most = SmallStore.memory(for: files.plan, passes: files.passes, options: request.engine),
      try !files.hasStagedStores()
    else { return nil }
    var chain = files
    chain.medium = .memory(maximumBytes: most)
    stage = .migrate
    let outcome: HopChain.Outcome
    let expectation: StoreExpectation
    do {
      outcome = try chain.run(from: 0)
      expectation = try chain.expectation()
      try chain.detachAll(keepsViews: true)
    } catch let error as HopdError where error.code == .noSpace {
      // It grows beyond the bound: build it in a file.
      try chain.detachAll()
      return nil
    }
    guard let image = outcome.image else {
      throw HopdError(.internalError, "a store that was built in memory has no content")
    }
    intent = try swap(environment).announce(
      intent, held, staged: outcome.staged, backup: request.backup, journalMode: request.journalMode,
      now: intent.startedAt)
    _ = try chain.area.write(image, hop: chain.plan.hops.count - 1)
    return (outcome, try verify(outcome.staged, chain: chain, expectation: expectation))
  }
}
