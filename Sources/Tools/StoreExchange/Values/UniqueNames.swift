// Names of tables, columns and files that come from a model. SQLite ignores the case of ASCII letters, and file systems
// of other machines the case of all letters, so two names that differ only in that are made different.

/// Names of one scope, each given once.
struct UniqueNames {
  private var taken: Set<String> = []

  /// Creates a scope in which `names` are given already.
  init(_ names: [String] = []) { taken = Set(names.map(UniqueNames.key)) }

  /// Returns the first of the wanted names that is free, otherwise the last of them with a number.
  mutating func take(_ wanted: String...) -> String {
    for name in wanted where taken.insert(UniqueNames.key(name)).inserted { return name }
    let stem = wanted.last ?? ""
    var number = 2
    while !taken.insert(UniqueNames.key("\(stem)_\(number)")).inserted { number += 1 }
    return "\(stem)_\(number)"
  }

  /// Two names are one if they differ only in case, or in Unicode's ways to write a character, which some file systems
  /// change.
  private static func key(_ name: String) -> String { name.lowercased() }
}
