// The source of a target on disk as a bundle of models.

import Diagnostics
import ManagedObjectModel
import SwiftDataSource
import SystemPackage

/// Which part of a source is meant.
package struct SourceChoice: Sendable, Hashable {
  /// The folder of the target below the given one.
  package var target: String?
  /// A VersionedSchema, classes, or the place of a call.
  package var schema: String?
  /// A pattern for the tags of the releases whose models are the versions.
  package var tags: String?
  /// Conditions of `#if`.
  package var definitions: [String: Bool] = [:]

  package init() {}

  /// The options that make this choice, without those of the releases.
  package var words: [String] {
    (target.map { ["--target", $0] } ?? []) + (schema.map { ["--schema", $0] } ?? [])
      + definitions.sorted { $0.key < $1.key }.flatMap { ["--define", $0.value ? $0.key : "\($0.key)=0"] }
  }

  /// A folder with these options, for a command to type next.
  package func words(for folder: FilePath) -> String {
    ([folder.string] + words).map(\.quotedForShell).joined(separator: " ")
  }

  /// Returns the conditions of `--define` words: `DEBUG`, `os(iOS)`, `DEBUG=0`.
  package static func definitions(_ words: [String]) -> [String: Bool] {
    words.reduce(into: [:]) { result, word in
      let parts = word.split(separator: "=", maxSplits: 1)
      let name = (parts.first ?? "").filter { !$0.isWhitespace }
      result[String(name)] = parts.count < 2 || parts[1] != "0" && parts[1] != "false"
    }
  }
}

/// Reads models in Swift source.
package struct SwiftDataSourceReader: SourceModelReader {
  private let choice: SourceChoice
  private let limits: SourceLimits

  package init(_ choice: SourceChoice = SourceChoice(), limits: SourceLimits = SourceLimits()) {
    self.choice = choice
    self.limits = limits
  }

  package var isNamed: Bool { choice.schema != nil || choice.tags != nil }

  /// With tags the source is in git, whatever the working tree has.
  package func isSource(_ path: FilePath) -> Bool { choice.tags != nil || SourceFolder.isSource(path) }

  package func absence(at path: FilePath) -> HopdError? {
    guard let count = SourceFolder.countOfFiles(below: path), count > 0 else { return nil }
    let folder = SourceFolder.folderWithModels(near: path)
    return HopdError(
      .noSourceModels,
      "no Core Data model here, and none of \(count) Swift files has a class with @Model; directories of tests "
        + "and of other packages are left out", at: Place(file: path),
      hint: folder.map { "pass the directory of the app's target: \($0.quotedForShell) has @Model classes" }
        ?? "pass the directory of the target that declares the models")
  }

  package func bundle(at path: FilePath, declaredOrder: [String]) throws(HopdError) -> ModelBundle {
    if let tags = choice.tags { return try TaggedModels.bundle(of: path, tags: tags, choice: choice) }
    let target = try target(at: path)
    let calibrated = try CalibrationFile.read(besides: path)
    let models = try SourceModels(
      target, schema: choice.schema, calibrated: calibrated, words: choice.words(for: path))
    return try models.bundle(
      name: (path.resolvingLinks ?? path).stem ?? path.string, path: path, declaredOrder: declaredOrder)
  }

  /// Returns the facts of the target at a path.
  package func target(at path: FilePath) throws(HopdError) -> SourceTarget {
    let tree = try SourceFolder(path, limits: limits)
    let files = try TargetFiles.find(in: tree, target: choice.target)
    guard !files.paths.isEmpty else {
      throw HopdError(
        .notFound, "no Swift file here", at: Place(file: path),
        hint: "pass the directory of the target that declares the models")
    }
    var read: [(path: String, bytes: [UInt8])] = []
    var total = 0
    for file in files.paths {
      let bytes = try tree.bytes(of: file)
      total += bytes.count
      guard total <= limits.allBytes else {
        throw HopdError(
          .sourceTooLarge, "the source has more than \(limits.allBytes >> 20) MiB", at: Place(file: path),
          hint: "pass only the directory that declares the models")
      }
      // As the path was given: what is printed can be opened.
      let below = tree.folder.isEmpty ? file : String(file.dropFirst(tree.folder.utf8.count + 1))
      let isFile = path.extension == "swift"
      read.append((isFile ? path.string : path.appending(FilePath(below).components).string, bytes))
    }
    let program = SourceReaderProgram(try SourceReaderProgram.find().path, limits: limits)
    let facts = try program.facts(of: read, definitions: choice.definitions)
    return SourceTarget(module: files.module, files: zip(read, facts).map { (path: $0.path, facts: $1) })
  }
}
