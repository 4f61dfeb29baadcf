/// The commit of a version control system at which a model was checked.
package struct CheckedCommit: Sendable, Hashable {
  /// Its hexadecimal name.
  package let name: String
  /// Whether the model on the disk differs from the one in the commit.
  package let isChanged: Bool

  /// Creates a commit.
  package init(name: String, isChanged: Bool) {
    self.name = name
    self.isChanged = isChanged
  }
}
