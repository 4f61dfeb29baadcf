// The order of a model's versions (docs/formats/model-files.md, "Version order"; docs/decisions/0016): as declared,
// else by the project file beside the bundle, else by the names.

import SystemPackage

/// Puts versions in order, oldest first.
package enum VersionOrdering {
  /// Returns all `names` in order, and the source of the order. `current` is the current version, if there is one.
  ///
  /// The caller refuses a declared order that does not fit the versions: here, names that it lacks come first.
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
    // If the version with the bundle's name is the oldest and current, the others may be copies of its earlier states.
    guard let current, current == path.stem, sorted.first == current else { return (.project, sorted) }
    return (.project, withCurrent(current, behindItsPast: sorted, bundle: path.stem))
  }

  /// Orders by the names alone. Xcode gives the first version the bundle's name, so that one leads; the current one was
  /// made last; between them natural order.
  ///
  /// A name with the current one's words and a higher number is clearly a later version, which the app does not use yet
  /// or no longer uses: it comes after the current one. If every name has one number, at its end, the numbers are the
  /// order, whatever the words are.
  package static func byName(_ names: [String], bundle: String?, current: String?) -> [String] {
    if let numbered = NaturalOrder.byFinalNumber(names) { return numbered }
    let spelled = NaturalOrder.spelledAlike(names)
    let natural = names.sorted { left, right in
      if (left == bundle) != (right == bundle) { return left == bundle }
      let (first, second) = (spelled[left] ?? left, spelled[right] ?? right)
      return first != second ? NaturalOrder.precedes(first, second) : NaturalOrder.precedes(left, right)
    }
    guard let current, names.contains(current) else { return natural }
    return withCurrent(current, behindItsPast: natural, bundle: bundle)
  }

  /// The versions with the current one after all others that are not clearly later.
  private static func withCurrent(_ current: String, behindItsPast names: [String], bundle: String?) -> [String] {
    func isLater(_ name: String) -> Bool {
      name != bundle && NaturalOrder.haveSameWords(name, current) && NaturalOrder.precedes(current, name)
    }
    let others = names.filter { $0 != current }
    return others.filter { !isLater($0) } + [current] + others.filter(isLater)
  }
}
