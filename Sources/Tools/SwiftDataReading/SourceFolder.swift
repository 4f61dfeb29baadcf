// The Swift files of a folder on disk, with the Xcode project that it belongs to.

import Diagnostics
import Glibc
import ManagedObjectModel
import SystemPackage

/// A folder on disk.
package struct SourceFolder: SourceTree {
  /// Folders that hold other packages and built things, never the source of the target.
  private static let foreign: Set<String> = [
    "Pods", "Carthage", "DerivedData", "node_modules", "SourcePackages", "Checkouts", "build",
  ]
  private static let maximumFolders = 8

  /// The top of the tree: the folder itself, or one above it that has an Xcode project.
  let top: FilePath
  let folder: String
  let paths: [String]
  private let limits: SourceLimits

  /// Whether the source of a folder of that name belongs to another target: tests link the app, and are none of it.
  package static func isForeign(_ name: String) -> Bool {
    name.hasPrefix(".") || foreign.contains(name) || name == "Tests" || name.hasSuffix("Tests")
  }

  /// Whether a path is a Swift file, or a folder of Swift files of which one may declare a model.
  package static func isSource(_ path: FilePath) -> Bool {
    switch try? ModelFiles.kind(of: path) {
    case .file: path.extension == "swift"
    case .folder:
      ((try? search(path, most: 20_000, withProjects: false)) ?? []).contains { file in
        let bytes = try? ModelFiles.bytes(of: path.appending(FilePath(file).components), limit: 4 << 20)
        return bytes?.mentionsModel == true
      }
    default: false
    }
  }

  /// The number of Swift files at or below a path; nil if it cannot be listed.
  package static func countOfFiles(below path: FilePath) -> Int? {
    guard case .folder? = try? ModelFiles.kind(of: path) else { return nil }
    return (try? search(path, most: 20_000, withProjects: false))?.count
  }

  /// Returns a folder with models elsewhere in the same checkout.
  package static func folderWithModels(near path: FilePath) -> FilePath? {
    guard var top = path.resolvingLinks else { return nil }
    for _ in 0..<maximumFolders {
      if access(top.appending(".git").string, F_OK) == 0 { break }
      top.removeLastComponent()
    }
    guard access(top.appending(".git").string, F_OK) == 0,
      let files = try? search(top, most: 5_000, withProjects: false)
    else { return nil }
    let first = files.sorted().first { file in
      let bytes = try? ModelFiles.bytes(of: top.appending(FilePath(file).components), limit: 4 << 20)
      return bytes?.mentionsModel == true
    }
    return first.map { top.appending(FilePath($0).components).removingLastComponent() }
  }

  /// Lists the files at or below a path.
  init(_ path: FilePath, limits: SourceLimits) throws(HopdError) {
    self.limits = limits
    if case .file = try ModelFiles.kind(of: path) {
      let parent = path.removingLastComponent()
      (top, folder, paths) = (parent.isEmpty ? "." : parent, "", [path.lastComponent?.string ?? ""])
      return
    }
    let found = try Self.search(path, most: limits.files)
    guard found.count <= limits.files else {
      throw HopdError(
        .sourceTooLarge, "the directory has more than \(limits.files) Swift files", at: Place(file: path),
        hint: "pass only the directory that declares the models")
    }
    let hasProject = found.contains { $0.hasSuffix("project.pbxproj") }
    if !hasProject, let (above, names, project) = Self.projectAbove(path) {
      top = above
      folder = names.joined(separator: "/")
      let prefix = folder
      paths = (found.map { "\(prefix)/\($0)" } + [project]).sorted()
    } else {
      (top, folder, paths) = (path, "", found.sorted())
    }
  }

  func bytes(of path: String) throws(HopdError) -> [UInt8] {
    try ModelFiles.bytes(
      of: top.appending(FilePath(path).components), limit: path.hasSuffix(".swift") ? limits.fileBytes : 32 << 20)
  }

  func mentionsModel(_ path: String) throws(HopdError) -> Bool { try bytes(of: path).mentionsModel }

  /// The nearest folder above with an Xcode project, up to the top of the checkout; the names from there to the path.
  private static func projectAbove(_ path: FilePath) -> (FilePath, [String], String)? {
    guard var current = path.resolvingLinks else { return nil }
    var names: [String] = []
    for _ in 0..<maximumFolders {
      guard let name = current.lastComponent?.string else { return nil }
      if access(current.appending(".git").string, F_OK) == 0 { return nil }
      names.insert(name, at: 0)
      current.removeLastComponent()
      let entries = (try? ModelFiles.names(in: current)) ?? []
      for entry in entries where entry.hasSuffix(".xcodeproj") {
        let project = "\(entry)/project.pbxproj"
        if access(current.appending(entry).appending("project.pbxproj").string, R_OK) == 0 {
          return (current, names, project)
        }
      }
    }
    return nil
  }

  /// Paths below a folder, at most one more than `most`. Links are not followed: they may lead anywhere.
  private static func search(
    _ folder: FilePath, most: Int, withProjects: Bool = true
  ) throws(HopdError) -> [String] {
    var (found, folders, entries): ([String], [(String, Int)], Int) = ([], [("", 0)], 0)
    while let (below, depth) = folders.popLast(), found.count <= most {
      let place = below.isEmpty ? folder : folder.appending(FilePath(below).components)
      for name in try ModelFiles.names(in: place) {
        entries += 1
        guard entries <= 500_000 else {
          throw HopdError(.sourceTooLarge, "the directory has more than 500000 entries", at: Place(file: folder))
        }
        let path = below.isEmpty ? name : "\(below)/\(name)"
        let isProject = withProjects && name == "project.pbxproj" && below.hasSuffix(".xcodeproj")
        guard !name.hasPrefix("."), let kind = kind(place.appending(name)) else { continue }
        switch kind {
        case S_IFREG where name.hasSuffix(".swift") || isProject: found.append(path)
        case S_IFDIR where !isForeign(name) && depth < 32: folders.append((path, depth + 1))
        default: break
        }
        if found.count > most { break }
      }
    }
    return found
  }

  private static func kind(_ path: FilePath) -> mode_t? {
    var info = stat()
    return path.withPlatformString { lstat($0, &info) } == 0 ? info.st_mode & S_IFMT : nil
  }
}
