// The known name that is most similar to a misspelt one.

/// Finds similar names.
package enum NearestName {
  /// Returns the name that is most similar to `name`, if at most a third of its letters differ, or one of a short name,
  /// but not all. Case, spaces, hyphens and underscores count only between names that are equal otherwise: "library2"
  /// is nearer to "Library 2" than to "Library".
  package static func among(_ names: some Sequence<String>, to name: String) -> String? {
    let plainName = plain(name)
    return names.map { (near: distance(plainName, plain($0)), exact: distance(name, $0), name: $0) }
      .filter { $0.near <= max(1, name.utf8.count / 3) && $0.near < max(1, name.utf8.count) }.min { $0 < $1 }?.name
  }

  /// Returns the hint for a misspelt name: the nearest name, if any, and all names if there are few.
  package static func hint(_ near: String?, of names: [String]) -> String {
    let all = names.map(\.printableLine).joined(separator: ", ")
    guard let near else { return "use one of: \(all)" }
    // The nearest may not be the intended one.
    return "use '\(near.printableLine)'" + (names.count <= 24 ? ", or one of: \(all)" : "")
  }

  private static func plain(_ name: String) -> String { name.lowercased().filter { !" -_".contains($0) } }

  /// The number of insertions, deletions, replacements and swaps of neighbors that turn one name into the other.
  private static func distance(_ a: String, _ b: String) -> Int {
    let (a, b) = (Array(a.utf8.prefix(64)), Array(b.utf8.prefix(64)))
    var older: [Int] = []
    var last = Array(0...b.count)
    for i in a.indices {
      var row = [i + 1]
      for j in b.indices {
        var best = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
        if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, older[j - 1] + 1) }
        row.append(best)
      }
      older = last
      last = row
    }
    return last.last ?? 0
  }
}
