// The models and the lock file of the git commit that `--base` names. The program git reads them; the working tree is
// not touched.

import Diagnostics
import DurableFiles
import Glibc
import ManagedObjectModel
import MigrationChecking
import PolicyHost
import SystemPackage

/// A model in a git commit.
struct GitModel {
  let ref: String
  let bundle: FilePath

  /// Copies the model of the commit into a folder and reads it; nil if the commit has no such model.
  func read(into folder: FilePath) throws -> ModelBundle? {
    let files = LinuxFileSystem(isDurable: false)
    let path = try bundle.resolved()
    guard let name = path.lastComponent?.string else { return nil }
    let git = Git(ref: ref, subject: bundle, folder: path.removingLastComponent().string)
    let listed = try git.files(name, ["-r"])
    try files.makeDirectory(folder, mode: 0o700)
    var count = 0
    for (text, object) in listed {
      let below = FilePath(text)
      guard !below.isAbsolute, below.components.allSatisfy({ $0.kind == .regular }), count < 10_000 else { continue }
      let bytes = try git.content(of: object)
      var above = folder
      for part in below.components.dropLast() {
        above.append(part)
        try files.ensureDirectory(above)
      }
      try files.createUnsyncedFile(folder.appending(below.components), bytes, mode: 0o600)
      count += 1
    }
    guard count > 0 else { return nil }
    do throws(HopdError) {
      return try ModelReader.read(at: folder.appending(name))
    } catch {
      // The user cannot look at the copy, which is already removed.
      var error = error
      error.place.file = bundle
      throw error
    }
  }
}

/// A text file in a git commit.
struct GitFile {
  let ref: String
  let file: FilePath

  /// The text; nil if the commit has no such file, or its folder is in no repository.
  func text() throws -> String? {
    guard let name = file.lastComponent?.string else { return nil }
    let git = Git(ref: ref, subject: file, folder: try file.resolvedInFolder().removingLastComponent().string)
    // The models were found at that commit, so a failure here means that the file is outside the repository.
    guard let object = (try? git.files(name))?.first?.object else { return nil }
    return String(decoding: try git.content(of: object), as: UTF8.self)
  }
}

/// Runs git to read one commit.
struct Git {
  let ref: String
  /// The file that is searched for; used in messages.
  let subject: FilePath
  /// A folder in the repository.
  let folder: String

  /// The files of that name in the folder, or below it with "-r", and the objects that hold them. Links are left out.
  func files(_ name: String, _ options: [String] = []) throws(HopdError) -> [(path: String, object: String)] {
    try output(["ls-tree"] + options + ["-z", ref, "--", name]).split(separator: 0).compactMap { line in
      // MODE TYPE OBJECT, a tab, and the path below the folder.
      guard let tab = line.firstIndex(of: 9) else { return nil }
      let words = String(decoding: line[..<tab], as: UTF8.self).split(separator: " ")
      guard words.count >= 3, words[1] == "blob", words[0] != "120000" else { return nil }
      return (String(decoding: line[line.index(after: tab)...], as: UTF8.self), String(words[2]))
    }
  }

  /// The bytes of an object.
  func content(of object: String) throws(HopdError) -> [UInt8] { try output(["cat-file", "blob", object]) }

  /// Runs git and returns its standard output.
  private func output(_ words: [String]) throws(HopdError) -> [UInt8] {
    guard !ref.isEmpty, !ref.hasPrefix("-") else {
      throw HopdError(.usage, "--base expects a commit, tag or branch", hint: "pass e.g. origin/main or v1.2")
    }
    guard let answer = answer(words) else {
      throw HopdError(
        .usage, "--base requires git, which cannot be started",
        hint: "install git, or remove --base: the lock lists the properties too")
    }
    guard answer.status == 0 else {
      throw HopdError(
        .usage, "git cannot show the model of \(ref): \(answer.errors.split(separator: "\n").first ?? "")",
        at: Place(file: subject),
        hint: "fetch the commit first; in a pipeline, for example, with fetch-depth: 0")
    }
    return answer.output
  }

  /// Runs git in the folder; nil if it cannot be started.
  private func answer(
    _ words: [String], _ more: [String: String] = [:]
  ) -> (output: [UInt8], errors: String, status: Int32)? {
    var environment: [String: String] = ["LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"]
    for name in [
      "PATH", "HOME", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0",
      "GIT_CONFIG_VALUE_0",
    ] {
      if let value = getenv(name) { environment[name] = String(cString: value) }
    }
    return ProgramOutput.of(
      ["git", "-C", folder] + words, environment: environment.merging(more) { _, new in new })
  }
}

// MARK: Current commit

extension Git {
  /// The commit that is checked out where a model lies; nil if there is none, or if it lacks the model.
  ///
  /// The folder may be a stranger's, so only commands are used that start no programs of its configuration: contents
  /// are compared without filters, and nothing is fetched.
  static func commit(of model: FilePath) -> CheckedCommit? {
    guard let path = try? model.resolved(), let name = path.lastComponent?.string else { return nil }
    let git = Git(ref: "HEAD", subject: model, folder: path.removingLastComponent().string)
    guard let commit = git.lines(["rev-parse", "--verify", "HEAD"])?.first,
      let files = git.entries(["ls-tree", "-r", "-z", "HEAD", "--", name]), !files.isEmpty,
      let present = git.entries(["ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", name])
    else { return nil }
    var committed: [String: Substring] = [:]
    for file in files {
      guard let tab = file.firstIndex(of: "\t"), let object = file[..<tab].split(separator: " ").last else { continue }
      committed[String(file[file.index(after: tab)...])] = object
    }
    let paths = committed.keys.sorted()
    let isSame =
      Set(present) == Set(paths)
      && git.lines(["hash-object", "--no-filters", "--"] + paths) == paths.map { committed[$0].map(String.init) ?? "" }
    return CheckedCommit(name: commit, isChanged: !isSame)
  }

  /// The lines that git prints; nil if it fails.
  private func lines(_ words: [String]) -> [String]? { parts(words, "\n") }

  /// The entries that git prints, which end with a zero byte; nil if it fails.
  private func entries(_ words: [String]) -> [String]? { parts(words, "\0") }

  private func parts(_ words: [String], _ end: Character) -> [String]? {
    let options = ["--literal-pathspecs", "-c", "core.fsmonitor=false"]
    guard let answer = answer(options + words, ["GIT_ALLOW_PROTOCOL": "none"]), answer.status == 0 else { return nil }
    return String(decoding: answer.output, as: UTF8.self).split(separator: end).map(String.init)
  }
}
