// Reads an `.xcdatamodeld` folder as a bundle of versions (docs/formats/model-files.md, "Source bundles"), with the
// rule of both forms of bundles: a version that cannot be read or used is left out, unless none would remain
// (docs/decisions/0016).

import Diagnostics
import PropertyLists
import SystemPackage

/// The versions of a bundle during reading.
struct BundleVersions {
  let name: String
  let path: FilePath
  /// Hashes of versions that the app's compiled model states.
  var hashes: [String: [String: VersionHash]] = [:]
  /// The versions that were read, in their order.
  var models: [ManagedObjectModel] = []
  /// The errors of the others, by name.
  var failures: [String: HopdError] = [:]
  var warnings: [ModelWarning] = []

  /// Leaves a version out; throws if the cause may be temporary, such as a missing permission or a file that is being
  /// copied: the version may be valid, and the chain through it may be the one that keeps the data.
  mutating func leaveOut(_ version: String, _ error: HopdError) throws(HopdError) {
    let passing: [HopdError.Code] = [.noPermission, .inputOutput, .damagedXML, .damagedPropertyList]
    if passing.contains(error.code) { throw error }
    failures[version] = error
  }

  /// Returns the bundle; throws if no version can be used. `current` finds the current version, which may be left out.
  func bundle(
    order: VersionOrder, names: [String],
    current: ([ManagedObjectModel], inout [ModelWarning]) throws(HopdError) -> String?
  ) throws(HopdError) -> ModelBundle {
    let reported = names.compactMap { failures[$0] }
    guard !models.isEmpty else {
      guard let first = reported.first, reported.count > 1 else {
        throw reported.first ?? HopdError(.invalidModel, "the bundle has no versions", at: Place(file: path))
      }
      throw HopdError(
        first.code, "\(reported.count) versions of the model “\(name)” cannot be used", at: Place(file: path),
        hint: first.hint, reasons: reported)
    }
    var warnings = warnings
    let name = try current(models, &warnings)
    // If no version is marked as current, the last one of a declared order is the target.
    let reached = name ?? (order == .declared ? names.last : nil)
    let omitted = names.compactMap { version in
      failures[version].map {
        OmittedVersion(name: version, reason: $0, hashes: hashes[version], isCurrent: version == reached)
      }
    }
    return ModelBundle(
      name: self.name, path: path, versions: models, order: order,
      currentVersionName: failures[name ?? ""] == nil ? name : nil, omitted: omitted, warnings: warnings)
  }
}

extension ModelReader {
  /// Reads the versions in an `.xcdatamodeld` folder.
  static func readBundle(at path: FilePath, declaredOrder: [String]) throws(HopdError) -> ModelBundle {
    let place = Place(file: path)
    var paths: [String: FilePath] = [:]
    for name in try ModelFiles.names(in: path) {
      let version = path.appending(name)
      guard version.extension == "xcdatamodel", case .folder = try ModelFiles.kind(of: version) else { continue }
      paths[version.stem ?? name] = version
    }
    guard !paths.isEmpty else {
      throw HopdError(
        .invalidModel, "the bundle has no versions", at: place,
        hint: "copy the .xcdatamodeld again, with an .xcdatamodel for each version")
    }
    guard paths.count <= ModelLimits.versions else {
      throw HopdError(.modelTooLarge, "the bundle has more than \(ModelLimits.versions) versions", at: place)
    }
    var versions = BundleVersions(name: path.stem ?? path.string, path: path)
    let all = Array(paths.keys)
    let current = try currentVersion(ofBundleAt: path, among: all, warnings: &versions.warnings)
    let (order, names) = VersionOrdering.order(all, ofBundleAt: path, current: current, declared: declaredOrder)
    for name in names {
      guard let version = paths[name] else { continue }
      do {
        let source = try source(ofVersionAt: version)
        let model = try ModelValidation.validated(source, at: Place(file: file(ofVersionAt: version)))
        versions.warnings += source.warnings
        versions.models.append(model)
      } catch {
        try versions.leaveOut(name, error)
      }
    }
    try check(declaredOrder, against: all, omitted: Array(versions.failures.keys), at: path)
    let settled = try settled(versions.models, ofBundleAt: path, warnings: &versions.warnings)
    (versions.models, versions.hashes) = settled
    return try versions.bundle(order: order, names: names) { _, _ in current }
  }

  /// The file of a version: `contents`, or `elements` of an Xcode before 4.1.
  static func file(ofVersionAt path: FilePath) -> FilePath {
    let contents = path.appending("contents")
    let elements = path.appending("elements")
    let isOld = (try? ModelFiles.kind(of: contents)) == .missing && (try? ModelFiles.kind(of: elements)) == .file
    return isOld ? elements : contents
  }

  /// Reads a version in source form.
  static func source(ofVersionAt path: FilePath) throws(HopdError) -> ModelSource {
    let file = file(ofVersionAt: path)
    guard try ModelFiles.kind(of: file) != .missing else {
      throw HopdError(
        .invalidModel, "the version has no file “contents”", at: Place(file: path),
        hint: "copy the whole model from the app's sources again")
    }
    do {
      let name = path.stem ?? path.string
      let place = Place(file: file)
      if file.lastComponent?.string == "elements" {
        let bytes = try ModelFiles.bytes(of: file, limit: PropertyListLimits.archive.maximumBytes)
        return try ElementsReader.read(bytes, name: name, at: place)
      }
      let bytes = try ModelFiles.bytes(of: file, limit: XMLLimits.standard.maximumBytes)
      return try ModelContentsReader.read(bytes, name: name, at: place)
    } catch {
      // The remedy is the same for every fault of the file.
      throw error.hinted("copy the model from the app's sources again, or open and save it with Xcode")
    }
  }

  /// Reads one version from the bytes of its `elements` file.
  package static func read(
    elements bytes: [UInt8], name: String, at place: Place = Place()
  ) throws(HopdError) -> (model: ManagedObjectModel, warnings: [ModelWarning]) {
    let source = try ElementsReader.read(bytes, name: name, at: place)
    return (try ModelValidation.validated(source, at: place), source.warnings)
  }

  /// `_XCCurrentVersionName` of `.xccurrentversion` (148 seen); the file may be missing if there is only one version.
  private static func currentVersion(
    ofBundleAt path: FilePath, among versions: [String], warnings: inout [ModelWarning]
  ) throws(HopdError) -> String? {
    let file = path.appending(".xccurrentversion")
    let place = Place(file: file)
    guard try ModelFiles.kind(of: file) != .missing else {
      if versions.count > 1 {
        warnings.add("the bundle has several versions and does not state which is current", at: Place(file: path))
      }
      return versions.count == 1 ? versions.first : nil
    }
    let fallback = versions.count == 1 ? versions.first : nil
    let list: PropertyListValue
    do {
      list = try PropertyList.decode(try ModelFiles.bytes(of: file, limit: 64 << 10), at: place)
    } catch {
      warnings.add("the current version is unknown: \(error.message)", at: place)
      return fallback
    }
    guard let entry = list.dictionary?["_XCCurrentVersionName"]?.string, !entry.isEmpty else {
      warnings.add("the file does not name the current version, ignoring it", at: place)
      return fallback
    }
    // The entry has the extension, which is removed as text, because the name may contain dots: "1.8.xcdatamodel".
    let name = entry.hasSuffix(".xcdatamodel") ? String(entry.dropLast(".xcdatamodel".count)) : entry
    guard versions.contains(name) else {
      warnings.add("the current version “\(name)” is not in the bundle, ignoring it", at: place)
      return fallback
    }
    return name
  }
}
