// Reads a `.momd` folder or a single `.mom` as a bundle of versions (docs/formats/model-files.md, "Compiled bundles").
// The `.omo` next to a `.mom` is a private memory image of the same version and is never read.

import Diagnostics
import PropertyLists
import SystemPackage

extension ModelReader {
  /// Largest size of all versions of one `.momd`: real ones take some hundred kilobytes each.
  private static let maximumBundleBytes = 64 << 20

  /// Reads the single version in a `.mom` file.
  static func readCompiledVersion(at path: FilePath, declaredOrder: [String]) throws(HopdError) -> ModelBundle {
    let bytes = try ModelFiles.bytes(of: path, limit: PropertyListLimits.archive.maximumBytes)
    let (model, warnings) = try read(compiled: bytes, name: path.stem ?? path.string, at: Place(file: path))
    try check(declaredOrder, against: [model.name], at: path)
    return ModelBundle(
      name: model.name, path: path, versions: [model], order: declaredOrder.isEmpty ? .names : .declared,
      currentVersionName: model.name, warnings: warnings)
  }

  /// Reads the versions in a `.momd` folder and compares their hashes with VersionInfo.plist.
  static func readCompiledBundle(at path: FilePath, declaredOrder: [String]) throws(HopdError) -> ModelBundle {
    let place = Place(file: path)
    let name = path.stem ?? path.string
    let info = try ModelVersionInfo.read(ofBundleAt: path)
    let (paths, missing) = try versionPaths(ofBundleAt: path, info: info)
    var versions = BundleVersions(name: name, path: path, hashes: info?.hashes ?? [:])
    if info == nil {
      versions.warnings.add(
        "the bundle has no \(ModelVersionInfo.fileName): hashes cannot be compared and the current version is unknown",
        at: place)
    }
    for (version, reason) in missing { versions.failures[version] = reason }
    let all = Array(Set(paths.keys).union(missing.keys))
    let (order, names) = VersionOrdering.order(
      all, ofBundleAt: path, current: info?.currentVersionName, declared: declaredOrder)

    var total = 0
    for version in names {
      guard let file = paths[version] else { continue }
      do throws(HopdError) {
        let bytes = try ModelFiles.bytes(of: file, limit: PropertyListLimits.archive.maximumBytes)
        total += bytes.count
        guard total <= maximumBundleBytes else {
          throw HopdError(.modelTooLarge, "the versions have more than \(maximumBundleBytes) bytes", at: place)
        }
        let (model, remarks) = try read(compiled: bytes, name: version, at: Place(file: file))
        versions.warnings += remarks
        if let info, info.hashes[version] == nil {
          versions.warnings.add(
            "\(ModelVersionInfo.fileName) does not know the version “\(version)”, its hashes cannot be compared",
            at: Place(file: file))
        }
        versions.models.append(try info?.settled(model) ?? model)
      } catch {
        // VersionInfo.plist contradicts the app's own model: no version of it can be trusted.
        if error.code == .modelsDisagree || total > maximumBundleBytes { throw error }
        try versions.leaveOut(version, error)
      }
    }
    try check(declaredOrder, against: all, omitted: Array(versions.failures.keys), at: path)
    return try versions.bundle(order: order, names: names) { kept, warnings in
      current(of: kept, info: info, omitted: Set(versions.failures.keys), warnings: &warnings)
    }
  }

  /// Compares the source's versions with the hashes that a `.momd` of the same name in the same folder states; also
  /// returns all hashes that it states.
  static func settled(
    _ versions: [ManagedObjectModel], ofBundleAt path: FilePath, warnings: inout [ModelWarning]
  ) throws(HopdError) -> (versions: [ManagedObjectModel], stated: [String: [String: VersionHash]]) {
    guard let name = path.stem else { return (versions, [:]) }
    let compiled = path.removingLastComponent().appending(name + ".momd")
    guard case .folder = try ModelFiles.kind(of: compiled) else { return (versions, [:]) }
    let info: ModelVersionInfo?
    do {
      info = try ModelVersionInfo.read(ofBundleAt: compiled)
    } catch {
      // This read is for the source bundle; a later read of the .momd itself reports more.
      warnings.append(ModelWarning("cannot be compared with the source next to it: \(error.message)", at: error.place))
      return (versions, [:])
    }
    guard let info else { return (versions, [:]) }
    var result: [ManagedObjectModel] = []
    for version in versions { result.append(try info.settled(version)) }
    return (result, info.hashes)
  }

  /// The `.mom` of each version, and an error for each stated version without one.
  private static func versionPaths(
    ofBundleAt path: FilePath, info: ModelVersionInfo?
  ) throws(HopdError) -> (paths: [String: FilePath], missing: [String: HopdError]) {
    let place = Place(file: path)
    var paths: [String: FilePath] = [:]
    var images: Set<String> = []
    for name in try ModelFiles.names(in: path) {
      let file = path.appending(name)
      guard let stem = file.stem, case .file = try ModelFiles.kind(of: file) else { continue }
      switch file.extension {
      case "mom": paths[stem] = file
      case "omo": images.insert(stem)
      default: break
      }
    }
    let stated = images.union(info?.hashes.keys.map { $0 } ?? []).union(paths.keys)
    guard stated.count <= ModelLimits.versions else {
      throw HopdError(.modelTooLarge, "the bundle has more than \(ModelLimits.versions) versions", at: place)
    }
    guard !stated.isEmpty else {
      throw HopdError(
        .invalidModel, "the bundle has no versions", at: place,
        hint: "copy the whole .momd again, with a .mom for each version")
    }
    var missing: [String: HopdError] = [:]
    for version in stated.subtracting(paths.keys) {
      missing[version] = HopdError(
        .unsupportedModel,
        images.contains(version)
          ? "the version “\(version)” is there only as .omo, a private memory image that is not read"
          : "\(ModelVersionInfo.fileName) names the version “\(version)”, but there is no \(version).mom", at: place,
        hint: "copy the whole .momd from the app, with a .mom for each version, or pass the model's source form")
    }
    return (paths, missing)
  }

  private static func current(
    of versions: [ManagedObjectModel], info: ModelVersionInfo?, omitted: Set<String>, warnings: inout [ModelWarning]
  ) -> String? {
    let fallback = versions.count == 1 && omitted.isEmpty ? versions.first?.name : nil
    guard let info else { return fallback }
    if let name = info.currentVersionName, omitted.contains(name) { return name }
    guard let name = info.currentVersionName, versions.contains(where: { $0.name == name }) else {
      warnings.add(
        info.currentVersionName.map { "the current version “\($0)” is not in the bundle, ignoring it" }
          ?? "the file does not name the current version, ignoring it", at: Place(file: info.path))
      return fallback
    }
    return name
  }
}

extension ModelBundle {
  /// Merges this bundle with another form of the same model: the same model built elsewhere, or its source.
  ///
  /// Versions of the same name must agree in all hashes that are certain; otherwise the error names version and entity.
  /// The source form is kept, because people edit it; facts that only the compiled form has are added.
  package func merged(with other: ModelBundle) throws(HopdError) -> ModelBundle {
    let preferred = isCompiled && !other.isCompiled ? other : self
    let second = isCompiled && !other.isCompiled ? self : other
    var versions: [ManagedObjectModel] = []
    for version in preferred.versions {
      guard let twin = second.version(named: version.name) else {
        versions.append(version)
        continue
      }
      let settled = try HashAgreement.settle(
        version, by: twin.versionHashes, ignoring: twin.entitiesOfUncertainHash, source: second.path.printable,
        at: Place(file: preferred.path))
      versions.append(settled.compiled(to: version.compiledForm ?? twin.compiledForm))
    }
    let names = Set(versions.map(\.name))
    versions += second.versions.filter { !names.contains($0.name) }
    let current = preferred.currentName ?? second.currentName
    var order = preferred.order
    if names.count < versions.count, !preferred.isOrderDeclared {
      let (found, sorted) = VersionOrdering.order(versions.map(\.name), ofBundleAt: preferred.path, current: current)
      let byName = Dictionary(versions.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
      (order, versions) = (found, sorted.compactMap { byName[$0] })
    }
    // A version that one form lacks may be in the other.
    let kept = Set(versions.map(\.name))
    var omitted: [OmittedVersion] = []
    for version in preferred.omitted + second.omitted
    where !kept.contains(version.name) && !omitted.contains(where: { $0.name == version.name }) {
      let twin = second.omitted.first { $0.name == version.name }
      omitted.append(
        OmittedVersion(
          name: version.name, reason: version.reason, hashes: version.hashes ?? twin?.hashes,
          isCurrent: version.name == current))
    }
    var warnings = preferred.warnings + second.warnings
    if let one = preferred.currentName, let two = second.currentName, one != two {
      warnings.add(
        "its current version is “\(one)”, but “\(two)” in \(second.path.printable); taking “\(one)”",
        at: Place(file: preferred.path))
    }
    return ModelBundle(
      name: name, path: preferred.path, versions: versions, order: order,
      currentVersionName: kept.contains(current ?? "") ? current : nil, omitted: omitted, warnings: warnings)
  }

  /// The version that the bundle marks as current, even if it is left out.
  private var currentName: String? { currentVersionName ?? omitted.first(where: \.isCurrent)?.name }

  /// Whether it was read from a compiled form.
  package var isCompiled: Bool { path.extension == "momd" || path.extension == "mom" }
}
