// What the previous run of hopd has recorded of stores that failed, so that a restart tells nobody again.

import Diagnostics
import ServiceState
import SystemPackage

/// The cause of a failure that an earlier run of hopd has recorded.
struct KnownFailure: Hashable, Sendable {
  private let code: String
  private let reason: String

  init(_ failure: StoreFailure) { (code, reason) = (failure.code, failure.reason) }

  init(_ error: HopdError) { (code, reason) = (error.code.name, error.headlineOfStore) }

  /// The recorded causes of stores that hopd does not retry automatically, by path; empty if the record is unreadable.
  static func recorded(in stateDirectory: FilePath) -> [String: KnownFailure] {
    let failed = try? StateReader(stateDirectory: stateDirectory).stores(StateReader.Filter(conditions: [.failed]))
    return Dictionary(
      (failed ?? []).compactMap { store in store.failure.map { (store.path, KnownFailure($0)) } }
    ) { first, _ in first }
  }
}
