// The models of an app's releases, out of the tags of its repository: one version for each shape that was shipped, with
// the tags that have it, and the source of the folder as the current one. No VersionedSchema is needed.

import Diagnostics
import ManagedObjectModel
import SwiftDataSource
import SystemPackage

extension HopdError.Code {
  /// Tags were skipped, or cannot be distinguished.
  package static let tagRemark = HopdError.Code("tag-remark", severity: .note)
  /// A VersionedSchema has another shape than in an earlier release.
  package static let shippedSchemaChanged = HopdError.Code("shipped-schema-changed", severity: .warning)
}

/// The models of releases.
package enum TaggedModels {
  /// What a release has.
  private struct Release {
    let tag: String
    let models: SourceModels
  }

  /// Returns the shapes of the tags that a pattern fits, oldest first, and the current source as the last version.
  package static func bundle(
    of folder: FilePath, tags pattern: String, choice: SourceChoice
  ) throws(HopdError) -> ModelBundle {
    let source = try GitSource(folder: folder)
    let tags = try source.tags(pattern)
    guard !tags.isEmpty else {
      throw HopdError(
        .usage, "no tag fits \(pattern.printableLine)", at: Place(file: folder),
        hint: "git tag shows them. In a pipeline: fetch them first, with fetch-tags: true and fetch-depth: 0")
    }
    let calibrated = try CalibrationFile.read(besides: folder)
    var releases: [Release] = []
    var builder = Builder(folder: folder)
    var without: [String] = []
    for tag in tags {
      do throws(HopdError) {
        let target = try source.target(at: tag.commit, choice: choice)
        releases.append(
          Release(tag: tag.name, models: try SourceModels(target, schema: choice.schema, calibrated: calibrated)))
      } catch {
        if error.code == .noSourceModels { without.append(tag.name) } else { builder.refuse(error, tag.name) }
      }
    }
    for release in releases { builder.add(release) }
    builder.addCurrent(try current(source, folder, choice, calibrated))
    builder.findings += changedSchemas(releases)
    if !without.isEmpty {
      builder.warnings.append(
        ModelWarning("\(without.count) tags have no SwiftData models: \(Self.words(without))", at: Place(file: folder)))
    }
    return builder.bundle
  }

  /// The source of the folder; that of HEAD in a repository without a working tree.
  private static func current(
    _ source: GitSource, _ folder: FilePath, _ choice: SourceChoice, _ calibrated: CalibratedForms
  ) throws(HopdError) -> SourceModels {
    let target =
      SourceFolder.isSource(folder)
      ? try SwiftDataSourceReader(choice).target(at: folder)
      : try source.target(at: try source.commit(of: "HEAD"), choice: choice)
    return try SourceModels(target, schema: choice.schema, calibrated: calibrated)
  }

  /// VersionedSchema types whose shape differs between releases: what shipped with the earlier one is of no version in
  /// the later one.
  private static func changedSchemas(_ releases: [Release]) -> [HopdError] {
    var shapes: [String: [(hashes: [String: VersionHash], tags: [String], place: Place)]] = [:]
    for release in releases {
      for (version, derived) in release.models.versions {
        guard let model = derived.model, version.schema != nil else { continue }
        let hashes = model.versionHashes
        if let index = shapes[version.name]?.firstIndex(where: { $0.hashes == hashes }) {
          shapes[version.name]?[index].tags.append(release.tag)
        } else {
          shapes[version.name, default: []].append((hashes, [release.tag], version.place))
        }
      }
    }
    return shapes.sorted { $0.key < $1.key }.compactMap { name, found in
      guard found.count > 1, let first = found.first, let last = found.last else { return nil }
      let entities = Set(first.hashes.keys).union(last.hashes.keys).filter { first.hashes[$0] != last.hashes[$0] }
      return HopdError(
        .shippedSchemaChanged,
        "\(name) has \(found.count) shapes in these releases: "
          + found.map { words($0.tags) }.joined(separator: "; ")
          + ". Between the first and the last, \(entities.count) entities differ: \(words(entities.sorted()))",
        at: last.place,
        hint: "a version that has shipped stays as it is; freeze it: hopctl model freeze FOLDER --tag \(first.tags[0]) "
          + "--name \(name)")
    }
  }

  /// Names for a message: the first and the last ones.
  static func words(_ names: [String]) -> String {
    names.count <= 6
      ? names.joined(separator: ", ") : names.prefix(3).joined(separator: ", ") + " … \(names[names.count - 1])"
  }

  /// Collects versions.
  private struct Builder {
    let folder: FilePath
    private var versions: [ManagedObjectModel] = []
    private var hashes: [[String: VersionHash]] = []
    private var origin = ModelOrigin()
    private var omitted: [OmittedVersion] = []
    private var refusedTags: [String: [String]] = [:]
    private var current: String?
    var findings: [HopdError] = []
    var warnings: [ModelWarning] = []

    init(folder: FilePath) { self.folder = folder }

    mutating func add(_ release: Release) {
      guard let (version, derived) = release.models.versions.last else { return }
      guard let model = derived.model else {
        return refuse(derived.refusal(at: version.place), release.tag)
      }
      if let known = hashes.firstIndex(of: model.versionHashes) {
        origin.tags[versions[known].name]?.append(release.tag)
        return
      }
      append(model, release.tag, derived)
      origin.tags[release.tag] = [release.tag]
    }

    private mutating func append(_ model: ManagedObjectModel, _ name: String, _ derived: DerivedModel) {
      versions.append(model.renamed(name))
      hashes.append(model.versionHashes)
      origin.places[name] = derived.places
    }

    mutating func addCurrent(_ models: SourceModels) {
      findings += models.findings
      guard let (version, derived) = models.versions.last else { return }
      guard let model = derived.model else {
        omitted.append(
          OmittedVersion(name: version.name, reason: derived.refusal(at: version.place), isCurrent: true))
        return
      }
      // A shape that was released already is the current version under the name of its release, with what the source
      // says now: defaults and new names are in no hash.
      if let known = hashes.firstIndex(of: model.versionHashes) {
        let name = versions.remove(at: known).name
        hashes.remove(at: known)
        append(model, name, derived)
        current = name
      } else {
        let name = versions.contains { $0.name == version.name } ? "\(version.name) (now)" : version.name
        append(model, name, derived)
        current = name
      }
    }

    /// Leaves a release out; those with the same refusal are one version.
    mutating func refuse(_ error: HopdError, _ tag: String) {
      let key = ([error] + error.reasons).map(\.message).joined(separator: "\n")
      refusedTags[key, default: []].append(tag)
      if refusedTags[key]?.count == 1 { omitted.append(OmittedVersion(name: tag, reason: error)) }
    }

    var bundle: ModelBundle {
      var remarks = warnings
      for tags in refusedTags.values where tags.count > 1 {
        remarks.append(
          ModelWarning(
            "refused for the same reason as \(tags[0]): \(words(Array(tags.dropFirst())))", at: Place(file: folder)))
      }
      var bundle = ModelBundle(
        name: (folder.resolvingLinks ?? folder).stem ?? folder.string, path: folder, versions: versions,
        order: .declared,
        currentVersionName: current, omitted: omitted, warnings: remarks)
      var origin = self.origin
      origin.findings = findings
      bundle.origin = origin
      return bundle
    }
  }
}
