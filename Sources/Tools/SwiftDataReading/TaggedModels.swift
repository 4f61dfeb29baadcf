// The models of an app's releases, out of the tags of its repository: one version for each shape that was shipped, with
// the tags that have it, and the source of the folder as the current one. No VersionedSchema is needed.

import Diagnostics
import ManagedObjectModel
import SwiftDataSource
import SystemPackage

extension HopdError.Code {
  /// Tags were skipped, or cannot be distinguished.
  package static let tagRemark = HopdError.Code("tag-remark", severity: .note)
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
        hint: GitSource.hint(for: pattern, try source.tags("*")))
    }
    let calibrated = try CalibrationFile.read(besides: folder)
    var releases: [Release] = []
    var builder = Builder(folder: folder)
    var without: [String] = []
    for tag in tags {
      do throws(HopdError) {
        let target = try source.target(at: tag.commit, choice: choice)
        releases.append(
          Release(
            tag: tag.name,
            models: try SourceModels(
              target, schema: choice.schema, calibrated: calibrated, words: choice.words(for: folder))))
      } catch {
        if error.code == .noSourceModels { without.append(tag.name) } else { builder.refuse(error, tag.name) }
      }
    }
    for release in releases { builder.add(release) }
    let (now, name) = try current(source, folder, choice, calibrated)
    builder.addCurrent(now, called: name)
    builder.shipped = changedSchemas(releases, now: now)
    if !without.isEmpty {
      builder.warnings.append(
        ModelWarning("\(without.count) tags have no SwiftData models: \(Self.words(without))", at: Place(file: folder)))
    }
    return builder.bundle
  }

  /// The source of the folder, and what it is called beside the tags; that of HEAD in a repository without a working
  /// tree.
  private static func current(
    _ source: GitSource, _ folder: FilePath, _ choice: SourceChoice, _ calibrated: CalibratedForms
  ) throws(HopdError) -> (models: SourceModels, name: String) {
    let isHere = SourceFolder.isSource(folder)
    let target =
      isHere
      ? try SwiftDataSourceReader(choice).target(at: folder)
      : try source.target(at: try source.commit(of: "HEAD"), choice: choice)
    let models = try SourceModels(
      target, schema: choice.schema, calibrated: calibrated, words: choice.words(for: folder))
    return (models, isHere ? "working-tree" : "HEAD")
  }

  /// The VersionedSchema types of releases whose shape the current source does not have any more: their stores are of
  /// no version. A shape that it has under another name is known to the app, which compares hashes.
  private static func changedSchemas(_ releases: [Release], now: SourceModels) -> [ShippedSchema] {
    let declared = now.versions.filter { $0.version.schema != nil }
    guard !declared.isEmpty else { return [] }
    let known = Set(declared.compactMap { $0.derived.model?.versionHashes })
    struct Shape: Hashable {
      let name: String
      let hashes: [String: VersionHash]
    }
    var order: [Shape] = []
    var found: [Shape: (tags: [String], version: SourceVersion, model: ManagedObjectModel, wasCurrent: Bool)] = [:]
    for release in releases {
      for (index, (version, derived)) in release.models.versions.enumerated() {
        guard version.schema != nil, let model = derived.model else { continue }
        let shape = Shape(name: version.name, hashes: model.versionHashes)
        guard !known.contains(shape.hashes) else { continue }
        if found[shape] == nil { order.append(shape) }
        found[shape, default: ([], version, model, false)].tags.append(release.tag)
        if index == release.models.versions.count - 1 { found[shape]?.wasCurrent = true }
      }
    }
    return order.compactMap { shape in
      guard let (tags, version, model, wasCurrent) = found[shape] else { return nil }
      let same =
        declared.first { $0.version.name == version.name }
        ?? declared.first { $0.version.identifier == version.identifier }
      // One that is refused is told as such; one that is gone matters only if stores were made with it.
      if let same, same.derived.model == nil { return nil }
      guard same != nil || wasCurrent else { return nil }
      return ShippedSchema(
        name: version.name, tags: tags, model: model,
        now: same?.derived.model.map { $0.renamed(same?.version.name ?? "") },
        place: same?.version.place ?? version.place)
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
    private var findings: [HopdError] = []
    var shipped: [ShippedSchema] = []
    var warnings: [ModelWarning] = []

    init(folder: FilePath) { self.folder = folder }

    mutating func add(_ release: Release) {
      guard let (version, derived) = release.models.versions.last else { return }
      guard let model = derived.model else {
        return refuse(release.models.refusal((version, derived)), release.tag)
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
      origin.enumValues[name] = derived.enumValues
    }

    mutating func addCurrent(_ models: SourceModels, called place: String) {
      findings += models.findings
      origin.stages = models.appStages
      warnings += models.remarks.map { ModelWarning($0.message, at: $0.place) }
      guard let (version, derived) = models.versions.last else { return }
      // Without a VersionedSchema its identifier is 1.0.0 in every release, which looks like one of the tags.
      let taken = Set(versions.map(\.name))
      let name = version.schema == nil || taken.contains(version.name) ? place : version.name
      guard let model = derived.model else {
        omitted.append(
          OmittedVersion(name: name, reason: models.refusal((version, derived)), isCurrent: true))
        return
      }
      // A shape that was released already is the current version under the name of its release, with what the source
      // says now: defaults and new names are in no hash.
      if let known = hashes.firstIndex(of: model.versionHashes) {
        let name = versions.remove(at: known).name
        hashes.remove(at: known)
        append(model, name, derived)
        current = name
        warnings.append(ModelWarning("the source as it is now has the model of \(name)", at: version.place))
      } else {
        append(model, taken.contains(name) ? "\(name) (now)" : name, derived)
        current = versions.last?.name
      }
      for (version, derived) in models.versions where version.schema != nil {
        guard let known = derived.model.flatMap({ hashes.firstIndex(of: $0.versionHashes) }) else { continue }
        origin.otherNames[version.name] = versions[known].name
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
      origin.shipped = shipped
      bundle.origin = origin
      return bundle
    }
  }
}
