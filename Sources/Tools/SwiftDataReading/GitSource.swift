// Source in the commits of a git repository. Only objects are read: nothing is checked out, and the working tree may
// have any state. Each content is parsed once, however many commits have it.

import Diagnostics
import Glibc
import ManagedObjectModel
import PolicyHost
import SwiftDataSource
import SystemPackage

/// A repository, and the folder in it that has the source.
package final class GitSource {
  /// A tag with its commit.
  package struct Tag: Sendable, Hashable {
    package let name: String
    package let commit: String
  }

  private let repository: FilePath
  private let folder: String
  private let limits: SourceLimits
  /// Facts by the name of the object and the conditions.
  private var known: [String: SourceFile] = [:]
  /// Whether a Swift file may declare a model, by the name of the object.
  private var mentions: [String: Bool] = [:]
  /// Contents of the project files, by the name of the object.
  private var projects: [String: [UInt8]] = [:]

  /// Takes a repository and the path of a folder from its top.
  package init(repository: FilePath, folder: String, limits: SourceLimits = SourceLimits()) {
    (self.repository, self.folder, self.limits) = (repository, folder, limits)
  }

  /// Takes a folder of a working tree.
  package convenience init(folder: FilePath, limits: SourceLimits = SourceLimits()) throws(HopdError) {
    let path = folder.resolvingFolder
    let prefix = try Self.git(["rev-parse", "--show-prefix"], in: path)
    let text = String(decoding: prefix, as: UTF8.self).split(separator: "\n").first.map(String.init) ?? ""
    self.init(repository: path, folder: text.hasSuffix("/") ? String(text.dropLast()) : text, limits: limits)
  }

  // MARK: Tags

  /// Returns the tags that a pattern fits, in the order in which they were made; those of one time by their numbers.
  package func tags(_ pattern: String) throws(HopdError) -> [Tag] {
    guard !pattern.isEmpty, !pattern.hasPrefix("-") else { throw HopdError(.usage, "--tags takes a pattern: 'v*'") }
    let lines = try Self.git(
      [
        "for-each-ref", "--sort=version:refname", "--sort=creatordate",
        "--format=%(refname:strip=2)%00%(objecttype)%00%(objectname)%00%(*objecttype)%00%(*objectname)",
        "refs/tags/\(pattern)",
      ], in: repository)
    return lines.split(separator: UInt8(ascii: "\n")).compactMap { line in
      let parts = line.split(separator: 0, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
      guard parts.count == 5 else { return nil }
      if parts[1] == "commit" { return Tag(name: parts[0], commit: parts[2]) }
      return parts[3] == "commit" ? Tag(name: parts[0], commit: parts[4]) : nil
    }
  }

  /// Returns the commit of a tag, a branch or another name.
  package func commit(of name: String) throws(HopdError) -> String {
    guard !name.isEmpty, !name.hasPrefix("-") else { throw HopdError(.usage, "\(name) is not the name of a commit") }
    let answer: [UInt8]
    do throws(HopdError) {
      answer = try Self.git(
        ["rev-parse", "--verify", "--quiet", "--end-of-options", "\(name)^{commit}"], in: repository)
    } catch {
      throw HopdError(
        .notFound, "no tag, branch or commit \(name.printableLine)", at: Place(file: repository),
        hint: Self.hint(for: name, (try? tags("*")) ?? []))
    }
    return String(decoding: answer.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
  }

  /// Tags that look like a name that is not there.
  package static func hint(for name: String, _ tags: [Tag]) -> String {
    let known = tags.map(\.name)
    guard !known.isEmpty else { return "fetch the tags: git fetch --tags; in a pipeline, fetch-tags: true" }
    return NearestName.among(known, to: name).map { "use '\($0.printableLine)'" }
      ?? "use one of the last of \(known.count) tags: " + known.suffix(8).map(\.printableLine).joined(separator: ", ")
  }

  // MARK: Source of a commit

  /// The files of a commit.
  private struct Tree: SourceTree {
    let paths: [String]
    let folder: String
    let objects: [String: String]
    let projects: [String: [UInt8]]
    let mentions: [String: Bool]

    func bytes(of path: String) throws(HopdError) -> [UInt8] { objects[path].flatMap { projects[$0] } ?? [] }
    func mentionsModel(_ path: String) -> Bool { objects[path].flatMap { mentions[$0] } ?? false }
  }

  /// Returns the facts of the target at a commit, tag or branch.
  package func target(ofCommit name: String, choice: SourceChoice) throws(HopdError) -> SourceTarget {
    try target(at: commit(of: name), choice: choice)
  }

  /// Returns the facts of the target at a commit.
  package func target(at commit: String, choice: SourceChoice) throws(HopdError) -> SourceTarget {
    let objects = try files(of: commit)
    try fetch(Set(objects.filter { $0.key.hasSuffix("project.pbxproj") }.values).subtracting(projects.keys)) {
      projects[$0] = $1
    }
    let below = folder.isEmpty ? "" : folder + "/"
    let swift = objects.filter { $0.key.hasPrefix(below) && $0.key.hasSuffix(".swift") }
    var contents: [String: [UInt8]] = [:]
    try fetch(Set(swift.values).subtracting(mentions.keys)) { object, bytes in
      mentions[object] = bytes.mentionsModel
      contents[object] = bytes
    }
    let tree = Tree(
      paths: objects.keys.sorted(), folder: folder, objects: objects, projects: projects, mentions: mentions)
    let files = try TargetFiles.find(in: tree, target: choice.target)
    guard !files.paths.isEmpty else {
      throw HopdError(
        .noSourceModels, "no Swift file of the target at this commit",
        at: Place(file: FilePath(folder.isEmpty ? "." : folder)))
    }
    try read(files.paths, objects, contents, choice)
    return SourceTarget(
      module: files.module,
      files: files.paths.compactMap { path in
        objects[path].flatMap { known[key($0, choice)] }.map { (path: path, facts: $0) }
      })
  }

  /// Parses the contents that were not parsed before.
  private func read(
    _ paths: [String], _ objects: [String: String], _ contents: [String: [UInt8]], _ choice: SourceChoice
  ) throws(HopdError) {
    var unread: [String: String] = [:]
    for path in paths {
      if let object = objects[path], known[key(object, choice)] == nil { unread[object] = path }
    }
    var files: [(path: String, bytes: [UInt8])] = []
    var names: [String] = []
    func add(_ object: String, _ bytes: [UInt8]) {
      names.append(object)
      files.append((unread[object] ?? object, bytes))
    }
    try fetch(Set(unread.keys).subtracting(contents.keys), add)
    for object in unread.keys.sorted() {
      if let bytes = contents[object] { add(object, bytes) }
    }
    let program = SourceReaderProgram(try SourceReaderProgram.find().path, limits: limits)
    for (object, facts) in zip(names, try program.facts(of: files, definitions: choice.definitions)) {
      known[key(object, choice)] = facts
    }
  }

  private func key(_ object: String, _ choice: SourceChoice) -> String {
    let definitions = choice.definitions.map { "\($0.key)=\($0.value)" }.sorted().joined(separator: " ")
    return "\(object) \(definitions)"
  }

  /// The Swift files and project files of a commit, with the names of their objects. Links are left out.
  private func files(of commit: String) throws(HopdError) -> [String: String] {
    let lines = try Self.git(["ls-tree", "-r", "-z", "--full-tree", commit], in: repository)
    var result: [String: String] = [:]
    for line in lines.split(separator: 0) {
      guard let tab = line.firstIndex(of: 9), line[line.startIndex] == UInt8(ascii: "1") else { continue }
      let isSwift = line.suffix(6).elementsEqual(".swift".utf8)
      guard isSwift || line.suffix(26).elementsEqual(".xcodeproj/project.pbxproj".utf8) else { continue }
      let words = String(decoding: line[..<tab], as: UTF8.self).split(separator: " ")
      guard words.count >= 3, words[1] == "blob", words[0] != "120000" else { continue }
      result[String(decoding: line[line.index(after: tab)...], as: UTF8.self)] = String(words[2])
    }
    guard result.count <= limits.files else {
      throw HopdError(.sourceTooLarge, "the commit has more than \(limits.files) Swift files")
    }
    return result
  }

  /// Reads the contents of objects.
  private func fetch(_ objects: Set<String>, _ use: (String, [UInt8]) -> Void) throws(HopdError) {
    guard !objects.isEmpty else { return }
    let names = objects.sorted()
    let answer = try Self.git(
      ["cat-file", "--batch"], in: repository, input: Array(names.map { "\($0)\n" }.joined().utf8),
      limit: limits.allBytes + names.count * 128)
    var rest = answer[...]
    for name in names {
      // NAME TYPE SIZE, a line feed, the content, a line feed.
      guard let end = rest.firstIndex(of: UInt8(ascii: "\n")) else { throw incomplete(name) }
      let words = String(decoding: rest[..<end], as: UTF8.self).split(separator: " ")
      guard words.count == 3, words[1] == "blob", let size = Int(words[2]),
        rest.index(end, offsetBy: size + 1, limitedBy: rest.endIndex) != nil,
        size <= rest.distance(from: end, to: rest.endIndex) - 1
      else { throw incomplete(name) }
      let start = rest.index(after: end)
      use(name, Array(rest[start..<rest.index(start, offsetBy: size)]))
      rest = rest[rest.index(start, offsetBy: size)...].dropFirst()
    }
  }

  private func incomplete(_ name: String) -> HopdError {
    HopdError(
      .inputOutput, "git does not have the object \(name)", at: Place(file: repository),
      hint: "fetch the whole history: git fetch --unshallow; in a pipeline, fetch-depth: 0")
  }

  // MARK: git

  /// Runs git and returns its standard output.
  static func git(
    _ words: [String], in folder: FilePath, input: [UInt8] = [], limit: Int = 64 << 20
  ) throws(HopdError) -> [UInt8] {
    var environment: [String: String] = ["LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"]
    for name in [
      "PATH", "HOME", "GIT_DIR", "GIT_WORK_TREE", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0",
    ] {
      if let value = getenv(name) { environment[name] = String(cString: value) }
    }
    let answer = ProgramOutput.of(
      ["git", "-C", folder.string] + words, environment: environment, input: input, limit: limit)
    guard let answer else {
      throw HopdError(.usage, "--tags requires git, which cannot be started", hint: "install git")
    }
    guard answer.status == 0 else {
      throw HopdError(
        .usage, "git failed: \(answer.errors.split(separator: "\n").first ?? "")",
        at: Place(file: folder),
        hint: "fetch the commit first; in a pipeline, for example, with fetch-depth: 0")
    }
    return answer.output
  }
}

extension FilePath {
  /// The folder that has this path, if it is a file.
  fileprivate var resolvingFolder: FilePath {
    let path = resolvingLinks ?? self
    return path.extension == "swift" ? path.removingLastComponent() : path
  }
}
