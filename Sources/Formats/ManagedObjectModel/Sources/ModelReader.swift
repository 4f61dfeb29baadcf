// Reads the versions of a model from a path: finds the files that make a model, and their form. SourceBundle and
// CompiledBundle read bundles of versions; ModelContentsReader reads a `contents` file, ElementsReader an `elements`
// file, and ModelValidation checks the result.

import Diagnostics
import PropertyLists
import SystemPackage

extension HopdError.Code {
  /// A model breaks a rule of models.
  package static let invalidModel = HopdError.Code("model-invalid", exit: .dataError)
  /// A model is larger than any real one.
  package static let modelTooLarge = HopdError.Code("model-too-large", exit: .dataError)
  /// A model is in a form that hopd does not support.
  package static let unsupportedModel = HopdError.Code("model-unsupported", exit: .dataError)
  /// The declared order of versions does not fit the model.
  package static let versionOrder = HopdError.Code("version-order", exit: .configuration)
}

/// Reads models from disk.
package enum ModelReader {
  /// Reads the versions of the model at `path`: an `.xcdatamodeld` bundle, an `.xcdatamodel` folder, or one of their
  /// compiled forms, a `.momd` bundle or a `.mom` file.
  ///
  /// `declaredOrder` names all versions, oldest first; if it is empty the project file beside the bundle gives the
  /// order, otherwise the names do. A version of a bundle that cannot be read or used is left out; if none remains, one
  /// error contains the faults of all versions.
  package static func read(at path: FilePath, declaredOrder: [String] = []) throws(HopdError) -> ModelBundle {
    do throws(HopdError) {
      return try readForm(at: path, declaredOrder: declaredOrder)
    } catch {
      throw switch error.code {
      case _ where !error.reasons.isEmpty: error
      case .notFound: error.hinted("check the path")
      case .modelTooLarge: error.hinted("no app has a model of this size: check that this is the right file")
      default: error.hinted("open the model in Xcode and save it again, or copy it from the app again")
      }
    }
  }

  private static func readForm(at path: FilePath, declaredOrder: [String]) throws(HopdError) -> ModelBundle {
    let place = Place(file: path)
    switch (Form(of: path), try ModelFiles.kind(of: path)) {
    case (_, .missing): throw HopdError(.notFound, "no such file or directory", at: place)
    case (.bundle, .folder): return try readBundle(at: path, declaredOrder: declaredOrder)
    case (.version, .folder):
      let source = try source(ofVersionAt: path)
      let model = try ModelValidation.validated(source, at: Place(file: file(ofVersionAt: path)))
      try check(declaredOrder, against: [model.name], at: path)
      var warnings = source.warnings
      return ModelBundle(
        name: model.name, path: path, versions: try settled([model], ofBundleAt: path, warnings: &warnings).versions,
        order: declaredOrder.isEmpty ? .names : .declared, currentVersionName: model.name, warnings: warnings)
    case (.compiledBundle, .folder): return try readCompiledBundle(at: path, declaredOrder: declaredOrder)
    case (.compiledVersion, .file): return try readCompiledVersion(at: path, declaredOrder: declaredOrder)
    case (.image, _):
      throw HopdError(
        .unsupportedModel, "an .omo is a private memory image of a model, which is not read", at: place,
        hint: "pass the .mom or .momd next to it, or the model's source form")
    case (_, .folder):
      throw HopdError(
        .invalidModel, "not a model", at: place,
        hint: "pass the .xcdatamodeld or .momd bundle, an .xcdatamodel, or a .mom")
    default:
      throw HopdError(
        .invalidModel, "not a model", at: place,
        hint:
          "pass the .xcdatamodeld or .xcdatamodel directory of the source form, or the .momd directory or .mom file "
          + "of the compiled form")
    }
  }

  /// Reads one version from the bytes of its `contents` file.
  package static func read(
    contents bytes: [UInt8], name: String, at place: Place = Place()
  ) throws(HopdError) -> (model: ManagedObjectModel, warnings: [ModelWarning]) {
    let source = try ModelContentsReader.read(bytes, name: name, at: place)
    return (try ModelValidation.validated(source, at: place), source.warnings)
  }

  /// Finds the models below `path`: `path` itself if it is one, otherwise all bundles and single versions in it,
  /// sorted.
  ///
  /// Compiled forms count as models too. Versions inside a bundle are not listed separately. `skipped` gets the links
  /// that are not searched.
  package static func findBundles(
    in path: FilePath, skipped: @escaping (HopdError) -> Void = { _ in }
  ) throws(HopdError) -> [FilePath] {
    // The folder `.` may be a bundle: its name tells.
    let path = path.lastComponent?.kind == .regular ? path : path.resolvingLinks ?? path
    switch (Form(of: path), try ModelFiles.kind(of: path)) {
    case (_, .missing):
      throw HopdError(.notFound, "no such file or directory", at: Place(file: path), hint: "check the path")
    case (.bundle, .folder), (.version, .folder), (.compiledBundle, .folder), (.compiledVersion, .file): return [path]
    case (_, .folder): break
    default:
      throw HopdError(
        .invalidModel, "not a model or a directory of models", at: Place(file: path),
        hint: "pass an .xcdatamodeld or .momd bundle, an .xcdatamodel, a .mom, or their directory")
    }
    let tooMany = HopdError(
      .modelTooLarge, "more than 200000 files in this directory",
      hint: "pass the directory that contains the models, not one above it")
    return try FolderSearch.paths(below: path, tooMany: tooMany, skipped: skipped) { path throws(HopdError) in
      switch Form(of: path) {
      case .bundle, .version, .compiledBundle:
        if case .folder = try ModelFiles.kind(of: path) { .found } else { .ignore }
      case .compiledVersion: try ModelFiles.kind(of: path) == .file ? .found : .ignore
      case .image: .ignore
      case .none: .descend
      }
    }
  }

  /// Throws if a declared order of versions does not name exactly the existing ones; it need not name those in
  /// `omitted`.
  static func check(
    _ declared: [String], against versions: [String], omitted: [String] = [], at path: FilePath
  ) throws(HopdError) {
    guard !declared.isEmpty else { return }
    let optional = Set(omitted)
    var reasons: [HopdError] = []
    var seen: Set<String> = []
    for name in declared {
      if !seen.insert(name).inserted {
        reasons.append(HopdError(.versionOrder, "the declared order names “\(name)” twice"))
      } else if !versions.contains(name) {
        reasons.append(
          HopdError(.versionOrder, "the declared order names “\(name)”, but the model has no version of that name"))
      }
    }
    for name in versions where !seen.contains(name) && !optional.contains(name) {
      reasons.append(HopdError(.versionOrder, "the model has a version “\(name)”, which the declared order leaves out"))
    }
    guard !reasons.isEmpty else { return }
    throw HopdError(
      .versionOrder, "the declared order of versions does not match the model", at: Place(file: path),
      hint: "declare every version once, oldest first: " + versions.map { "\"\($0)\"" }.joined(separator: ", ")
        + ". Or declare none: `hopctl model list` shows the order that hopd takes then", reasons: reasons)
  }

  /// The form of a model, by the path's extension.
  private enum Form {
    case bundle, version, compiledBundle, compiledVersion, image, none

    init(of path: FilePath) {
      switch path.extension {
      case "xcdatamodeld": self = .bundle
      case "xcdatamodel": self = .version
      case "momd": self = .compiledBundle
      case "mom": self = .compiledVersion
      case "omo": self = .image
      default: self = .none
      }
    }
  }
}
