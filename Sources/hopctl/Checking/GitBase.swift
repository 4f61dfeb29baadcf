// What `--base` names: models and the lock as a commit of git holds them. git itself is asked; nothing of the working
// tree is touched.

import Diagnostics
import DurableFiles
import Glibc
import ManagedObjectModel
import PolicyHost
import SystemPackage

/// A model as git keeps it.
struct GitModel {
  let ref: String
  let bundle: FilePath

  /// Copies the model of the commit into a folder and reads it; nil where the commit has no such model.
  func read(into folder: FilePath) throws -> ModelBundle? {
    let files = LinuxFileSystem(isDurable: false)
    let path = try bundle.resolved()
    guard let name = path.lastComponent?.string else { return nil }
    let parent = path.removingLastComponent().string
    let git = Git(ref: ref, subject: bundle)
    let listed = try git.output(["-C", parent, "ls-tree", "-r", "-z", ref, "--", name])
    try files.makeDirectory(folder, mode: 0o700)
    var count = 0
    for line in listed.split(separator: 0) {
      // MODE TYPE OBJECT, a tab, and the path below `parent`.
      guard let tab = line.firstIndex(of: 9) else { continue }
      let words = String(decoding: line[..<tab], as: UTF8.self).split(separator: " ")
      let below = FilePath(String(decoding: line[line.index(after: tab)...], as: UTF8.self))
      guard words.count >= 3, words[1] == "blob", words[0] != "120000", !below.isAbsolute,
        below.components.allSatisfy({ $0.kind == .regular }), count < 10_000
      else { continue }
      let bytes = try git.output(["-C", parent, "cat-file", "blob", String(words[2])])
      let target = folder.appending(below.components)
      var above = folder
      for part in below.components.dropLast() {
        above.append(part)
        try files.ensureDirectory(above)
      }
      try files.createUnsyncedFile(target, bytes, mode: 0o600)
      count += 1
    }
    guard count > 0 else { return nil }
    do throws(HopdError) {
      return try ModelReader.read(at: folder.appending(name))
    } catch {
      // The copy is gone when this is read.
      var error = error
      error.place.file = bundle
      throw error
    }
  }
}

/// A text file as git keeps it.
struct GitFile {
  let ref: String
  let file: FilePath

  /// The text; nil where the commit has no such file, or its folder is in no repository.
  func text() throws -> String? {
    guard let name = file.lastComponent?.string else { return nil }
    let folder = try file.resolvedInFolder().removingLastComponent().string
    let git = Git(ref: ref, subject: file)
    // The models were found at that commit, so what fails here is that the file lies elsewhere.
    guard let listed = try? git.output(["-C", folder, "ls-tree", "-z", ref, "--", name]) else { return nil }
    guard let line = listed.split(separator: 0).first, let tab = line.firstIndex(of: 9) else { return nil }
    let words = String(decoding: line[..<tab], as: UTF8.self).split(separator: " ")
    guard words.count >= 3, words[1] == "blob", words[0] != "120000" else { return nil }
    return String(decoding: try git.output(["-C", folder, "cat-file", "blob", String(words[2])]), as: UTF8.self)
  }
}

/// git, asked about one commit.
struct Git {
  let ref: String
  /// What is looked for, for messages.
  let subject: FilePath

  /// What git prints.
  func output(_ words: [String]) throws(HopdError) -> [UInt8] {
    guard !ref.isEmpty, !ref.hasPrefix("-") else {
      throw HopdError(.usage, "--base takes a commit, tag or branch", hint: "such as origin/main or v1.2")
    }
    var environment: [String: String] = ["LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"]
    for name in [
      "PATH", "HOME", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0",
      "GIT_CONFIG_VALUE_0",
    ] {
      if let value = getenv(name) { environment[name] = String(cString: value) }
    }
    guard let answer = ProgramOutput.of(["git"] + words, environment: environment) else {
      throw HopdError(
        .usage, "git cannot be started, and --base needs it",
        hint: "install git, or leave --base out: the lock names the properties too")
    }
    guard answer.status == 0 else {
      throw HopdError(
        .usage, "git cannot show the model of \(ref): \(answer.errors.split(separator: "\n").first ?? "")",
        at: Place(file: subject),
        hint: "is the commit there? In a pipeline: fetch it first, for example with fetch-depth: 0")
    }
    return answer.output
  }
}
