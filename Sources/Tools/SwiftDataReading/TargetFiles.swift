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
  /// The content of a project file.
  func bytes(of path: String) throws(HopdError) -> [UInt8]
  /// Whether a Swift file may declare a model: a quick test of its bytes, without parsing.
  func mentionsModel(_ path: String) throws(HopdError) -> Bool
}

/// The choice of a target's files.
struct TargetFiles {
  /// The Swift files of the target.
  let paths: [String]
  /// The name of its module, as far as it is known.
  let module: String?
  private var rank = 0

  private init(paths: [String], module: String?, rank: Int = 0) {
    (self.paths, self.module, self.rank) = (paths, module, rank)
  }

  /// Finds the files of a target; `name` is that of `--target`.
  ///
  /// Without a name it is the one that has models; of several, an app before a framework, an extension or a package.
  static func find(in tree: some SourceTree, target name: String?) throws(HopdError) -> TargetFiles {
    let below = tree.folder.isEmpty ? "" : tree.folder + "/"
    let swift = tree.paths.filter {
      $0.hasPrefix(below) && $0.hasSuffix(".swift") && $0 != "Package.swift" && !$0.hasSuffix("/Package.swift")
        && !$0.dropFirst(below.count).split(separator: "/").dropLast().contains { SourceFolder.isForeign(String($0)) }
    }
    var all = try projectTargets(tree, swift) + packageTargets(tree, swift)
    if let name {
      let inside = swift.filter { $0.hasPrefix("\(below)\(name)/") }
      if let found = all.filter({ $0.module == name }).max(by: isWorse) { return found }
      guard !inside.isEmpty else { throw unknown(name, all.compactMap(\.module), tree) }
      return TargetFiles(paths: inside, module: name)
    }
    let taken = Set(all.flatMap(\.paths))
    let rest = swift.filter { !taken.contains($0) }
    // Files that no project and no package has are a target only where nothing else is.
    if all.isEmpty || !rest.isEmpty && !hasProject(tree) {
      all.append(TargetFiles(paths: rest, module: tree.folder.split(separator: "/").last.map(String.init)))
    }
    guard all.count > 1 else { return all.first ?? TargetFiles(paths: [], module: nil) }
    var withModels: [TargetFiles] = []
    for target in all where try mentionsModels(target, tree) { withModels.append(target) }
    guard let best = (withModels.isEmpty ? all : withModels).max(by: isWorse) else { return all[0] }
    let equal = withModels.filter { $0.rank == best.rank && Set($0.paths).isDisjoint(with: best.paths) }
    guard equal.isEmpty else {
      let names = ([best] + equal).map { $0.module ?? tree.folder }.sorted()
      throw HopdError(
        .usage, "\(names.count) targets have models, and names are looked up inside one",
        at: Place(file: FilePath(tree.folder.isEmpty ? "." : tree.folder)),
        hint: "pass one with --target: \(names.map(\.printableLine).joined(separator: ", "))")
    }
    return best
  }

  /// Whether another one is to be preferred: by its kind, then by the number of its files.
  private static func isWorse(_ left: TargetFiles, than right: TargetFiles) -> Bool {
    if left.rank != right.rank { return left.rank < right.rank }
    if left.paths.count != right.paths.count { return left.paths.count < right.paths.count }
    return left.module ?? "" > right.module ?? ""
  }

  private static func mentionsModels(_ target: TargetFiles, _ tree: some SourceTree) throws(HopdError) -> Bool {
    for path in target.paths where try tree.mentionsModel(path) { return true }
    return false
  }

  private static func hasProject(_ tree: some SourceTree) -> Bool {
    tree.paths.contains { $0.hasSuffix(".xcodeproj/project.pbxproj") }
  }

  private static func unknown(_ name: String, _ targets: [String], _ tree: some SourceTree) -> HopdError {
    HopdError(
      .notFound, "no target \(name.printableLine)",
      at: Place(file: FilePath(tree.folder.isEmpty ? "." : tree.folder)),
      hint: targets.isEmpty
        ? "pass the name of an Xcode target, of a package's target, or of a directory"
        : "the targets are: \(Set(targets).sorted().map(\.printableLine).joined(separator: ", "))")
  }

  /// The targets of the Xcode projects that have files of the folder.
  private static func projectTargets(_ tree: some SourceTree, _ swift: [String]) throws(HopdError) -> [TargetFiles] {
    var found: [TargetFiles] = []
    for path in tree.paths where path.hasSuffix(".xcodeproj/project.pbxproj") {
      let parts = path.split(separator: "/").dropLast(2)
      let root = parts.isEmpty ? "" : parts.joined(separator: "/") + "/"
      for target in XcodeProject(try tree.bytes(of: path)).targets where !target.isTest {
        let files = swift.filter { $0.hasPrefix(root) && target.contains(String($0.dropFirst(root.count))) }
        if !files.isEmpty {
          found.append(TargetFiles(paths: files, module: target.name, rank: target.isApplication ? 2 : 1))
        }
      }
    }
    return found
  }

  /// The targets of the packages in the folder: the folders below their `Sources`.
  private static func packageTargets(_ tree: some SourceTree, _ swift: [String]) -> [TargetFiles] {
    var targets: [String: (name: String, paths: [String])] = [:]
    for path in tree.paths where path == "Package.swift" || path.hasSuffix("/Package.swift") {
      let sources = path.dropLast("Package.swift".count) + "Sources/"
      for file in swift where file.hasPrefix(sources) {
        let parts = file.dropFirst(sources.count).split(separator: "/")
        let name = parts.count > 1 ? String(parts[0]) : ""
        targets["\(sources)\(name)", default: (name, [])].paths.append(file)
      }
    }
    return targets.sorted { $0.key < $1.key }.map { TargetFiles(paths: $0.value.paths, module: $0.value.name) }
  }
}

extension [UInt8] {
  /// Whether the text has `@Model`.
  var mentionsModel: Bool {
    let mark = Array("@Model".utf8)
    var rest = self[...]
    while let start = rest.firstIndex(of: mark[0]) {
      rest = rest[start...]
      if rest.starts(with: mark) { return true }
      rest = rest.dropFirst()
    }
    return false
  }
}
