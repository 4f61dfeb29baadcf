// A restored store is not migrated until the operator decides, or its watch gets another target where that is the rule:
// the pin is read under the store's lock, and removed with a migration that the operator asked for.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import StoreReplacement
import SystemPackage

extension MigrationPipeline {
  /// The pin that holds a store at its version, for an inspection; nil where nothing does. A store whose target is its
  /// own version is pinned, too, unless the rule lets it go to the next target.
  ///
  /// Throws where the pin cannot be read.
  package func pinInEffect(
    _ location: CanonicalStoreLocation, _ assessment: StoreAssessment, rule: PinRule
  ) throws -> RestorePin? {
    guard [.behind, .current].contains(assessment.state), let metadata = assessment.metadata,
      let target = assessment.target
    else {
      return nil
    }
    return try PinStore(location: location, files: files).pin(
      against: StoreVersionMark(target), storeUUID: metadata.uuid,
      digest: VersionHash.digest(of: metadata.versionHashes), rule: rule)
  }

  /// The pin of the store in its present state, whatever the target; nil where it has none or the pin is another
  /// store's.
  package func pin(_ location: CanonicalStoreLocation, _ assessment: StoreAssessment) throws -> RestorePin? {
    guard let metadata = assessment.metadata else { return nil }
    return try PinStore(location: location, files: files).read()?.matching(
      storeUUID: metadata.uuid, digest: VersionHash.digest(of: metadata.versionHashes))
  }
}

extension StoreVersionMark {
  /// The mark of a version of the catalog.
  init(_ version: CatalogedVersion) {
    self.init(name: version.model.name, digest: VersionHash.digest(of: version.versionHashes))
  }
}

extension MigrationRun {
  /// The pin of the locked store. Throws `.pinned` where it holds the store back from the target and the operator did
  /// not ask for the migration.
  func requireNotPinned(_ lockedStore: LockedStore, _ store: IdentifiedStore, target: CatalogedVersion) throws
    -> RestorePin?
  {
    let digest = VersionHash.digest(of: store.metadata.versionHashes)
    let pins = PinStore(location: lockedStore.location, files: files)
    let pin: RestorePin?
    do { pin = try pins.read() } catch let error as HopdError {
      // An operator who asks for the migration wants the pin removed in any case.
      guard request.releasesPin, error.code == .recordUnreadable else { throw error }
      return nil
    }
    guard let pin = pin?.matching(storeUUID: store.metadata.uuid, digest: digest) else { return nil }
    if !request.releasesPin, pin.forbids(StoreVersionMark(target), rule: request.pinRule) {
      throw pin.refusal(request.name)
    }
    return pin
  }

  /// Records the results of the replacement, and removes the pin: the store has another version now, to which it does
  /// not apply.
  func note(_ replaced: ReplacedStore, _ lockedStore: LockedStore, _ pin: RestorePin?, _ report: inout MigrationReport)
  {
    report.fingerprint = replaced.fingerprint
    report.prunedBackups = replaced.removedBackups
    do {
      try PinStore(location: lockedStore.location, files: files).remove()
      report.releasedPin = pin
    } catch {
      report.warnings.append(
        HopdError.of(error, at: Place(store: lockedStore.location.database)))
    }
  }
}
