// Which way a store goes through the versions: hop by hop as the app's makers meant it, or with fewer hops. Core Data
// without a migrator in the app goes directly (docs/FIDELITY.md).

import MappingModel

/// Which of several ways is taken.
package enum RouteRule: String, Sendable, Hashable, CaseIterable {
  /// Every version in its turn; versions are skipped only where no hop leads on.
  case progressive
  /// One hop from the store's version to the wanted one.
  case direct
  /// The fewest hops.
  case shortest
}

/// What decides about a route, beside the versions and the mapping models.
package struct RouteRules: Sendable, Hashable {
  /// May hops be inferred?
  package var infer: Bool
  /// Names that the operator decided.
  package var renames: RenameRules
  /// Which of several ways is taken.
  package var route: RouteRule
  /// May inference lead back to an older version?
  package var allowsOlder: Bool
  /// Titles of inferred hops that the rows of the store at hand forbid.
  package var forbidden: Set<String> = []
  /// Names of versions that no store can be made of, because a part of their layout is not known: no hop ends there on
  /// the way to another version.
  package var unusable: Set<String> = []
  /// Do inferred hops run as the mapping models that they stand for? They do where rows break the destination's rules
  /// and a rule for invalid rows settles that: objects are only left out or mended where each is made.
  package var settlesInvalidRows = false

  /// Makes rules; the defaults are those of the configuration.
  package init(
    infer: Bool = true, renames: RenameRules = RenameRules(), route: RouteRule = .progressive,
    allowsOlder: Bool = false
  ) {
    (self.infer, self.renames, self.route, self.allowsOlder) = (infer, renames, route, allowsOlder)
  }
}
