// The order of a model's versions (docs/formats/model-files.md, "Version order"; docs/decisions/0056): as declared,
// else by the project file beside the bundle, else by the names.

import SystemPackage

/// Puts versions in order, oldest first.
package enum VersionOrdering {
  /// All `names` in order, and where the order comes from. `current` is the current version, if there is one.
  ///
  /// A declared order that does not fit the versions is for others to refuse: names that it lacks come first.
  static func order(
    _ names: [String], ofBundleAt path: FilePath, current: String?, declared: [String] = []
  ) -> (order: VersionOrder, names: [String]) {
    let byName = byName(names, bundle: path.stem, current: current)
    if !declared.isEmpty { return (.declared, byName.filter { !declared.contains($0) } + declared) }
    guard names.count > 1, let dates = ProjectFile.additions(ofVersionsIn: path), names.allSatisfy({ dates[$0] != nil })
    else { return (.names, byName) }
    // Versions that were added to the project at once, with the whole bundle, keep the order of their names.
    let ranks = byName.places
    let sorted = names.sorted { left, right in
      let (first, second) = (dates[left] ?? 0, dates[right] ?? 0)
      return first != second ? first < second : (ranks[left] ?? 0) < (ranks[right] ?? 0)
    }
    // Where the bundle's own version was there first and is current, the others may be copies of its past.
    guard let current, current == path.stem, sorted.first == current else { return (.project, sorted) }
    return (.project, withCurrent(current, behindItsPast: sorted, bundle: path.stem))
  }

  /// By the names alone: Xcode names the first version as the bundle, so that one leads; the current one is the last
  /// that was made; between them natural order.
  ///
  /// A name of the same words as the current one's with a higher number is plainly a later version, which the app does
  /// not use yet or no longer: it stays behind the current one.
  package static func byName(_ names: [String], bundle: String?, current: String?) -> [String] {
    let spelled = NaturalOrder.spelledAlike(names)
    let natural = names.sorted { left, right in
      if (left == bundle) != (right == bundle) { return left == bundle }
      let (first, second) = (spelled[left] ?? left, spelled[right] ?? right)
      return first != second ? NaturalOrder.precedes(first, second) : NaturalOrder.precedes(left, right)
    }
    guard let current, names.contains(current) else { return natural }
    return withCurrent(current, behindItsPast: natural, bundle: bundle)
  }

  /// The versions with the current one after all others that are not plainly later.
  private static func withCurrent(_ current: String, behindItsPast names: [String], bundle: String?) -> [String] {
    func isLater(_ name: String) -> Bool {
      name != bundle && NaturalOrder.haveSameWords(name, current) && NaturalOrder.precedes(current, name)
    }
    let others = names.filter { $0 != current }
    return others.filter { !isLater($0) } + [current] + others.filter(isLater)
  }
}
