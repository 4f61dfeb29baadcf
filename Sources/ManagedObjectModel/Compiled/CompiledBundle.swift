// A `.momd` folder or a lone `.mom` as a bundle of versions (docs/formats/model-files.md, "Compiled bundles"). The
// `.omo` beside a `.mom` is a private memory image of the same version and is never read.

import Diagnostics
import PropertyLists
import SystemPackage

extension ModelReader {
  /// Bytes of all versions of one `.momd`: real ones take some hundred kilobytes each.
  private static let maximumBundleBytes = 64 << 20

  /// The single version in a `.mom` file.
  static func readCompiledVersion(at path: FilePath, declaredOrder: [String]) throws(HopdError) -> ModelBundle {
    let bytes = try ModelFiles.bytes(of: path, limit: PropertyListLimits.archive.maximumBytes)
    let (model, warnings) = try read(compiled: bytes, name: path.stem ?? path.string, at: Place(file: path))
    try check(declaredOrder, against: [model.name], at: path)
    return ModelBundle(
      name: model.name, path: path, versions: [model], isOrderDeclared: !declaredOrder.isEmpty,
      currentVersionName: model.name, warnings: warnings)
  }

  /// The versions in a `.momd` folder, with their hashes compared with VersionInfo.plist.
  static func readCompiledBundle(at path: FilePath, declaredOrder: [String]) throws(HopdError) -> ModelBundle {
    let place = Place(file: path)
    let name = path.stem ?? path.string
    var warnings: [ModelWarning] = []
    let info = try ModelVersionInfo.read(ofBundleAt: path)
    let paths = try versionPaths(ofBundleAt: path, info: info)
    if info == nil {
      warnings.append(
        ModelWarning(
          "the bundle has no \(ModelVersionInfo.fileName): hashes cannot be compared and the current version is "
            + "unknown",
          at: place))
    }
    let natural = NaturalOrder.sorted(Array(paths.keys), first: name)
    try check(declaredOrder, against: natural, at: path)

    var versions: [ManagedObjectModel] = []
    var failures: [HopdError] = []
    var total = 0
    for version in declaredOrder.isEmpty ? natural : declaredOrder {
      guard let file = paths[version] else { continue }
      do throws(HopdError) {
        let bytes = try ModelFiles.bytes(of: file, limit: PropertyListLimits.archive.maximumBytes)
        total += bytes.count
        guard total <= maximumBundleBytes else {
          throw HopdError(.modelTooLarge, "the versions have more than \(maximumBundleBytes) bytes", at: place)
        }
        let (model, remarks) = try read(compiled: bytes, name: version, at: Place(file: file))
        warnings += remarks
        if let info, info.hashes[version] == nil {
          warnings.append(
            ModelWarning(
              "\(ModelVersionInfo.fileName) does not know the version “\(version)”, its hashes cannot be compared",
              at: Place(file: file)))
        }
        if let info { versions.append(try info.settled(model)) } else { versions.append(model) }
      } catch {
        failures.append(error)
        if error.code == .modelTooLarge { break }
      }
    }
    if failures.count == 1, let failure = failures.first { throw failure }
    if let first = failures.first {
      throw HopdError(
        first.code, "\(failures.count) versions of the model “\(name)” cannot be used", at: place, hint: first.hint,
        reasons: failures)
    }
    return ModelBundle(
      name: name, path: path, versions: versions, isOrderDeclared: !declaredOrder.isEmpty,
      currentVersionName: current(of: versions, info: info, warnings: &warnings), warnings: warnings)
  }

  /// What a `.momd` of the same name beside a source bundle states is compared with the source's versions.
  static func settled(
    _ versions: [ManagedObjectModel], ofBundleAt path: FilePath, warnings: inout [ModelWarning]
  ) throws(HopdError) -> [ManagedObjectModel] {
    guard let name = path.stem else { return versions }
    let compiled = path.removingLastComponent().appending(name + ".momd")
    guard case .folder = try ModelFiles.kind(of: compiled) else { return versions }
    let info: ModelVersionInfo?
    do {
      info = try ModelVersionInfo.read(ofBundleAt: compiled)
    } catch {
      // It is not what was asked for; a later read of the .momd itself says more.
      warnings.append(ModelWarning("cannot be compared with the source beside it: \(error.message)", at: error.place))
      return versions
    }
    guard let info else { return versions }
    var result: [ManagedObjectModel] = []
    for version in versions { result.append(try info.settled(version)) }
    return result
  }

  /// The `.mom` of each version; a version that is told but not there is an error with the way out.
  private static func versionPaths(
    ofBundleAt path: FilePath, info: ModelVersionInfo?
  ) throws(HopdError) -> [String: FilePath] {
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
    guard paths.count <= ModelLimits.versions else {
      throw HopdError(.modelTooLarge, "the bundle has more than \(ModelLimits.versions) versions", at: place)
    }
    var reasons: [HopdError] = []
    for version in images.union(info?.hashes.keys.map { $0 } ?? []).subtracting(paths.keys).sorted() {
      reasons.append(
        HopdError(
          .unsupportedModel,
          images.contains(version)
            ? "the version “\(version)” is there only as .omo, a private memory image that is not read"
            : "\(ModelVersionInfo.fileName) names the version “\(version)”, but there is no \(version).mom", at: place))
    }
    guard reasons.isEmpty else {
      throw HopdError(
        .unsupportedModel, "the compiled model is not complete", at: place,
        hint: "Copy the whole .momd from the app, with a .mom for each version, or give the model's source form.",
        reasons: Array(reasons.prefix(ModelLimits.findings)))
    }
    guard !paths.isEmpty else {
      throw HopdError(
        .invalidModel, "the bundle has no versions", at: place,
        hint: "A .momd holds one .mom per version; was it copied completely?")
    }
    return paths
  }

  private static func current(
    of versions: [ManagedObjectModel], info: ModelVersionInfo?, warnings: inout [ModelWarning]
  ) -> String? {
    let fallback = versions.count == 1 ? versions.first?.name : nil
    guard let info else { return fallback }
    guard let name = info.currentVersionName, versions.contains(where: { $0.name == name }) else {
      warnings.append(
        ModelWarning(
          info.currentVersionName.map { "the current version “\($0)” is not in the bundle, ignoring it" }
            ?? "the file does not name the current version, ignoring it", at: Place(file: info.path)))
      return fallback
    }
    return name
  }
}

extension ModelBundle {
  /// This bundle and another form of the same model as one: the same model built elsewhere, or its source.
  ///
  /// Versions of the same name must agree in all hashes that are certain; else the error names version and entity. The
  /// source form is kept, because it is what people edit, with what only the compiled one knows.
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
    if names.count < versions.count, !preferred.isOrderDeclared {
      let order = NaturalOrder.sorted(versions.map(\.name), first: name)
      let byName = Dictionary(versions.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
      versions = order.compactMap { byName[$0] }
    }
    var warnings = preferred.warnings + second.warnings
    if let one = preferred.currentVersionName, let two = second.currentVersionName, one != two {
      warnings.append(
        ModelWarning(
          "its current version is “\(one)”, but “\(two)” in \(second.path.printable); taking “\(one)”",
          at: Place(file: preferred.path)))
    }
    return ModelBundle(
      name: name, path: preferred.path, versions: versions, isOrderDeclared: preferred.isOrderDeclared,
      currentVersionName: preferred.currentVersionName ?? second.currentVersionName, warnings: warnings)
  }

  /// Was it read from a compiled form?
  package var isCompiled: Bool { path.extension == "momd" || path.extension == "mom" }
}
