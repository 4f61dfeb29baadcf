// The files of one target among all files of a folder: as the Xcode project beside them says, as a SwiftPM package has
// them in its folders; without either, all that are below the folder.

import Diagnostics
import SystemPackage

/// A folder with its files, on disk or in a commit.
protocol SourceTree {
  /// Paths of the Swift files, of `Package.swift` and of `project.pbxproj`, from the top of the tree.
  var paths: [String] { get }
  /// The folder that is meant, from the top of the tree; empty for the top itself.
  var folder: String { get }
  func bytes(of path: String) throws(HopdError) -> [UInt8]
}

/// The choice of a target's files.
struct TargetFiles {
  /// The Swift files of the target.
  let paths: [String]
  /// The name of its module, as far as it is known.
  let module: String?

  /// Finds the files of a target; `name` is that of `--target`.
  static func find(in tree: some SourceTree, target name: String?) throws(HopdError) -> TargetFiles {
    let below = tree.folder.isEmpty ? "" : tree.folder + "/"
    let swift = tree.paths.filter {
      $0.hasPrefix(below) && $0.hasSuffix(".swift") && $0 != "Package.swift" && !$0.hasSuffix("/Package.swift")
        && !$0.dropFirst(below.count).split(separator: "/").dropLast().contains { SourceFolder.isForeign(String($0)) }
    }
    if let found = try inProject(tree, swift, name) { return found }
    if let found = try inPackage(tree, swift, below, name) { return found }
    if let name {
      let inside = swift.filter { $0.hasPrefix("\(below)\(name)/") }
      guard !inside.isEmpty else { throw unknown(name, [], tree) }
      return TargetFiles(paths: inside, module: name)
    }
    return TargetFiles(paths: swift, module: tree.folder.split(separator: "/").last.map(String.init))
  }

  private static func unknown(_ name: String, _ targets: [String], _ tree: some SourceTree) -> HopdError {
    HopdError(
      .notFound, "there is no target \(name.printableLine)", at: Place(file: FilePath(tree.folder)),
      hint: targets.isEmpty
        ? "--target takes the name of an Xcode target, of a package's target, or of a folder"
        : "the targets are: \(targets.map(\.printableLine).joined(separator: ", "))")
  }

  // MARK: Xcode

  /// The files of a target of the nearest project that has files of the folder; nil without one.
  private static func inProject(
    _ tree: some SourceTree, _ swift: [String], _ name: String?
  ) throws(HopdError) -> TargetFiles? {
    var choices: [(target: XcodeProject.Target, files: [String], depth: Int)] = []
    var names: [String] = []
    for path in tree.paths where path.hasSuffix(".xcodeproj/project.pbxproj") {
      let parts = path.split(separator: "/").dropLast(2)
      let root = parts.isEmpty ? "" : parts.joined(separator: "/") + "/"
      let project = XcodeProject(try tree.bytes(of: path))
      names += project.targets.map(\.name)
      for target in project.targets where !target.isTest && (name == nil || target.name == name) {
        let files = swift.filter { $0.hasPrefix(root) && target.contains(String($0.dropFirst(root.count))) }
        if !files.isEmpty { choices.append((target, files, parts.count)) }
      }
    }
    // An app before its extensions; of several, the one with the most files of the folder.
    let best = choices.max { left, right in
      if left.target.isApplication != right.target.isApplication { return right.target.isApplication }
      if left.files.count != right.files.count { return left.files.count < right.files.count }
      return left.depth != right.depth ? left.depth > right.depth : left.target.name > right.target.name
    }
    guard let best else {
      if let name, names.contains(name) { throw unknown(name, names, tree) }
      return nil
    }
    return TargetFiles(paths: best.files, module: best.target.name)
  }

  // MARK: SwiftPM

  /// The files of a target of the package whose folder is meant; nil where it is none.
  private static func inPackage(
    _ tree: some SourceTree, _ swift: [String], _ below: String, _ name: String?
  ) throws(HopdError) -> TargetFiles? {
    guard tree.paths.contains("\(below)Package.swift") else { return nil }
    var targets: [String: [String]] = [:]
    for path in swift where path.hasPrefix("\(below)Sources/") {
      let parts = path.dropFirst(below.count).split(separator: "/")
      if parts.count > 2 { targets[String(parts[1]), default: []].append(path) }
    }
    if let name {
      guard let files = targets[name] else { throw unknown(name, targets.keys.sorted(), tree) }
      return TargetFiles(paths: files, module: name)
    }
    guard targets.count > 1 else { return targets.first.map { TargetFiles(paths: $0.value, module: $0.key) } }
    throw HopdError(
      .usage, "the package has several targets, and names are looked up inside one",
      at: Place(file: FilePath(tree.folder)),
      hint: "name it with --target; the targets are: \(targets.keys.sorted().joined(separator: ", "))")
  }
}
