// The choice between several chains: through every version, as the app's authors meant it, or with fewer hops. Core
// Data without a migrator in the app uses one direct hop (docs/formats/migration-semantics.md, "Finding a chain").

import MappingModel

/// The choice between several chains.
package enum RouteRule: String, Sendable, Hashable, CaseIterable {
  /// Through every version in order; versions are skipped only if no hop leads further.
  case progressive
  /// One hop from the store's version to the target.
  case direct
  /// The fewest hops.
  case shortest
}

/// The rules that, with the versions and the mapping models, determine a chain.
package struct RouteRules: Sendable, Hashable {
  /// Whether hops may be inferred.
  package var infer: Bool
  /// The operator's names.
  package var renames: RenameRules
  /// The choice between several chains.
  package var route: RouteRule
  /// Whether inference may lead back to an older version.
  package var allowsOlder: Bool
  /// Titles of inferred hops that the rows of the given store forbid.
  package var forbidden: Set<String> = []
  /// Names of versions of which no store can be made, because a part of their layout is not known: no hop ends there
  /// unless it is the target.
  package var unusable: Set<String> = []
  /// Whether inferred hops run as equivalent mapping models. They do if rows break the destination's rules and a rule
  /// for invalid rows decides about them: objects are left out or corrected only where each one is made.
  package var settlesInvalidRows = false

  /// Makes rules; the defaults are those of the configuration.
  package init(
    infer: Bool = true, renames: RenameRules = RenameRules(), route: RouteRule = .progressive,
    allowsOlder: Bool = false
  ) {
    (self.infer, self.renames, self.route, self.allowsOlder) = (infer, renames, route, allowsOlder)
  }
}
