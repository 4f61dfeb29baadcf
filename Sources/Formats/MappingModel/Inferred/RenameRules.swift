// The operator's decisions where a renaming identifier contradicts a name. Core Data's own precedence is not documented
// (docs/formats/migration-semantics.md, "Matching"), so hopd continues only if both readings give the same rows, or if
// the operator chose one.

/// Which source names continue under which destination names, with precedence over renaming identifiers.
package struct RenameRules: Sendable, Hashable {
  /// Maps a source name, "Entity" or "Entity.property", to its name in the destination, empty if it ends.
  package var renames: [String: String]
  /// Whether equal names mean the same thing, with precedence over renaming identifiers.
  package var namesCount: Bool

  /// Makes rules; without any, renaming identifiers decide.
  package init(renames: [String: String] = [:], namesCount: Bool = false) {
    self.renames = renames
    self.namesCount = namesCount
  }

  /// Reads "Entity=New", "Entity.property=new", or "Entity.property=" for a property that ends; nil for other texts.
  package static func parse(_ text: String) -> (old: String, new: String)? {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2 else { return nil }
    let path = parts[0].split(separator: ".", omittingEmptySubsequences: false)
    guard (1...2).contains(path.count), path.allSatisfy({ !$0.isEmpty }), !parts[1].contains(".") else { return nil }
    return (parts[0], parts[1])
  }

  /// Returns the option that lets a property start again and drops its old values: the remedy if a model has shipped
  /// and cannot change.
  package static func dropping(_ entity: String, _ property: String) -> String {
    "--rename \(entity).\(property)= (for the daemon, renames = [\"\(entity).\(property)=\"])"
  }

  /// Returns the decided names of entities (`owners` empty), or of the properties of any of `owners`.
  func decided(_ names: [Identified], owners: [String]) -> [String: String] {
    guard !renames.isEmpty else { return [:] }
    var decided: [String: String] = [:]
    for name in names.map(\.name) {
      let keys = owners.isEmpty ? [name] : owners.map { "\($0).\(name)" }
      if let new = keys.lazy.compactMap({ renames[$0] }).first { decided[name] = new }
    }
    return decided
  }

  /// The rules as text; equal rules give equal text.
  package var text: String {
    (renames.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" } + (namesCount ? ["names count"] : []))
      .joined(separator: " ")
  }
}
