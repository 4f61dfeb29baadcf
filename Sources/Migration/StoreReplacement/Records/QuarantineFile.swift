// The side file of objects that a migration took out of the store and keeps (`invalid_rows = "quarantine"`). It gets
// its name before the new store gets its own: a crash in between leaves one file too many, never loses an object.

import Diagnostics
import DurableFiles
import PersistentStore
import SystemPackage

/// The file of the objects that a job set aside: a SQLite database beside the store.
package struct QuarantineFile: Sendable {
  private let area: StagingArea
  private let files: any DurableFileSystem

  /// The file of a job's staging area.
  package init(area: StagingArea, files: any DurableFileSystem) {
    self.area = area
    self.files = files
  }

  /// The path under which it is built, among the staged stores; it is removed with them.
  package var staged: FilePath { area.path(named: "quarantine") }

  /// Its final name: `<store>.quarantine-<job>`, which no pattern for stores should match; a long one is cut.
  package var published: FilePath {
    let label = NameLabel.label(of: area.location.fileName)
    return area.location.directory.appending("\(label).quarantine-\(area.job)")
  }

  /// Creates the empty database unless it is there.
  package func prepare() throws {
    guard try files.status(staged) == nil else { return }
    try files.createFile(staged, [], mode: 0o600)
  }

  /// Gives the file its final name, with the attributes of `model` where that file exists; nil where nothing was set
  /// aside. Repeated after a crash, it returns the existing file. Attributes that cannot be set are an error, unless
  /// they `mayDiffer`, as where the store keeps its own file since this user could not make one like it.
  package func publish(attributesOf model: FilePath?, mayDiffer: Bool = false) throws -> FilePath? {
    guard try files.status(staged) != nil else {
      return try files.status(published) != nil ? published : nil
    }
    if let model, try files.status(model) != nil {
      do { try files.copyAttributes(from: model, to: staged) } catch {
        if !mayDiffer { throw error }
      }
    }
    try files.syncFile(staged)
    try files.rename(staged, to: published)
    try files.syncDirectory(area.location.directory)
    return published
  }

  /// Removes the file again: the store keeps its old content, and with it these objects.
  package func withdraw() throws {
    if try files.unlinkIfPresent(published) { try files.syncDirectory(area.location.directory) }
  }
}
