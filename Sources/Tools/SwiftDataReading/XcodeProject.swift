// Which files an Xcode project compiles into which target. Names mean something inside a target only, and a folder may
// have files of several targets, or of none.

import Diagnostics
import ManagedObjectModel

/// The targets of a `project.pbxproj`.
struct XcodeProject {
  /// A target with its Swift files, by their paths relative to the project's folder.
  struct Target {
    let name: String
    let isApplication: Bool
    let isTest: Bool
    var files: Set<String> = []
    /// Folders that belong to it as a whole, without the files that are left out.
    var folders: [(path: String, without: Set<String>)] = []

    /// Whether a file belongs to it.
    func contains(_ path: String) -> Bool {
      files.contains(path) || folders.contains { path.hasPrefix($0.path + "/") && !$0.without.contains(path) }
    }
  }

  private struct Object {
    var fields: [String: [String]] = [:]

    var isa: String { fields["isa"]?.first ?? "" }
    func one(_ name: String) -> String? { fields[name]?.first }
  }

  let targets: [Target]

  /// Reads the bytes of a project file.
  init(_ bytes: [UInt8]) {
    let objects = Self.objects(bytes)
    var paths: [String: String] = [:]
    for project in objects.values where project.isa == "PBXProject" {
      if let main = project.one("mainGroup") { Self.walk(main, below: "", objects, &paths, depth: 0) }
    }
    var targets: [(id: String, target: Target)] = []
    for (id, object) in objects.sorted(by: { $0.key < $1.key }) where object.isa == "PBXNativeTarget" {
      targets.append((id, Self.target(object, id, objects, paths)))
    }
    // A target may take single files out of a folder that belongs to another one.
    for object in objects.values where object.isa == "PBXFileSystemSynchronizedRootGroup" {
      for exception in object.fields["exceptions"] ?? [] {
        guard let set = objects[exception], let id = set.one("target"),
          let index = targets.firstIndex(where: { $0.id == id }),
          let group = objects.first(where: { $0.value.fields["exceptions"]?.contains(exception) == true })?.key,
          let folder = paths[group], objects[id]?.fields["fileSystemSynchronizedGroups"]?.contains(group) != true
        else { continue }
        targets[index].target.files.formUnion((set.fields["membershipExceptions"] ?? []).map { "\(folder)/\($0)" })
      }
    }
    self.targets = targets.map(\.target)
  }

  private static func target(
    _ object: Object, _ id: String, _ objects: [String: Object], _ paths: [String: String]
  ) -> Target {
    let product = object.one("productType") ?? ""
    var target = Target(
      name: object.one("name") ?? "", isApplication: product.hasSuffix(".application"),
      isTest: product.contains("bundle.unit-test") || product.contains("bundle.ui-testing"))
    for phase in object.fields["buildPhases"] ?? [] where objects[phase]?.isa == "PBXSourcesBuildPhase" {
      for file in objects[phase]?.fields["files"] ?? [] {
        guard let reference = objects[file]?.one("fileRef"), let path = paths[reference] else { continue }
        target.files.insert(path)
      }
    }
    for group in object.fields["fileSystemSynchronizedGroups"] ?? [] {
      guard let folder = paths[group] else { continue }
      let without = (objects[group]?.fields["exceptions"] ?? []).filter { objects[$0]?.one("target") == id }
        .flatMap { objects[$0]?.fields["membershipExceptions"] ?? [] }
      target.folders.append((folder, Set(without.map { "\(folder)/\($0)" })))
    }
    return target
  }

  /// Notes the paths of all files and folders below a group.
  private static func walk(
    _ id: String, below folder: String, _ objects: [String: Object], _ paths: inout [String: String], depth: Int
  ) {
    guard depth < 64, let object = objects[id], paths[id] == nil else { return }
    let path: String
    switch object.one("sourceTree") ?? "<group>" {
    case "<group>": path = joined(folder, object.one("path") ?? "")
    case "SOURCE_ROOT": path = object.one("path") ?? ""
    default: return
    }
    paths[id] = path
    for child in object.fields["children"] ?? [] { walk(child, below: path, objects, &paths, depth: depth + 1) }
  }

  /// A path below a folder, with `..` resolved.
  private static func joined(_ folder: String, _ path: String) -> String {
    var parts = folder.split(separator: "/").map(String.init)
    for part in path.split(separator: "/") {
      if part == "..", !parts.isEmpty, parts.last != ".." {
        parts.removeLast()
      } else if part != "." {
        parts.append(String(part))
      }
    }
    return parts.joined(separator: "/")
  }

  /// The objects by their identifiers: `{ objects = { IDENTIFIER = { key = value; key = (value, …); } } }`.
  private static func objects(_ bytes: [UInt8]) -> [String: Object] {
    var scanner = TextListScanner(bytes)
    var result: [String: Object] = [:]
    var (depth, key, isValue) = (0, "", false)
    var keys: [String] = []
    var object = Object()
    while let token = scanner.next() {
      switch token {
      case .open:
        depth += 1
        guard depth <= 16 else { return result }
        keys.append(key)
        if depth == 3 { object = Object() }
        (key, isValue) = ("", false)
      case .close:
        guard depth > 0, let name = keys.popLast() else { return result }
        if depth == 3 { result[name] = object }
        depth -= 1
        (key, isValue) = ("", false)
      case .equals: isValue = true
      case .end: (key, isValue) = ("", false)
      case .text(let text):
        if !isValue { key = text } else if depth == 3 { object.fields[key, default: []].append(text) }
      }
    }
    return result
  }
}
