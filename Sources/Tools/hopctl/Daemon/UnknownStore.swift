// Why hopd has no record of a file that somebody named: what the file is, and what the watches say of its folder.

import ConfigurationInspection
import Diagnostics
import Glibc
import HopdConfiguration
import SystemPackage

/// A file that hopd has no record of.
struct UnknownStore {
  let location: FilePath
  /// Files of the configuration in force.
  let configurationFiles: [FilePath]

  /// The error that says why.
  var error: HopdError {
    func unknown(_ message: String, _ hint: String) -> HopdError {
      HopdError(.notFound, "unknown store: \(message)", at: Place(store: location), hint: hint)
    }
    guard let status = location.linkStatus() else {
      return unknown("no such file", "check the path; list the watched stores with `hopctl list`")
    }
    switch status.st_mode & S_IFMT {
    case S_IFREG: break
    case S_IFLNK:
      let target = try? location.resolved()
      return unknown(
        "it is a symbolic link, which hopd ignores",
        target.map { "watch the directory of the file itself: `hopctl status \($0.quotedForShell)`" }
          ?? "fix the broken link: `ls -la \(location.quotedForShell)`")
    case S_IFDIR: return unknown("it is a directory", "run `hopctl list` to list watched stores")
    default: return unknown("not a regular file", "`ls -la \(location.quotedForShell)`")
    }
    guard let watches = try? loaded().configuration.watches else {
      return unknown(
        "not in a watched directory, or its name does not match",
        "move it to a watched directory (`hopctl check-config`) under a name that matches `include`")
    }
    let folder = location.removingLastComponent()
    let around = watches.first { watch in
      let directory = (try? watch.directory.resolved()) ?? watch.directory
      return directory == folder || (watch.recursive && folder.starts(with: directory))
    }
    guard let around else {
      return unknown(
        "no watch includes its directory",
        watches.isEmpty
          ? "the configuration has no watch"
          : "watched directories: \(watches.map { "\($0.directory.printable) (\($0.name))" }.joined(separator: ", "))")
    }
    let names = around.include.joined(separator: ", ").printableLine
    let excluded = around.exclude.isEmpty ? "" : " and not \(around.exclude.joined(separator: ", ").printableLine)"
    return unknown(
      "it is in the directory of the watch \(around.name), but not accepted",
      "its name must match \(names)\(excluded), and it must be unchanged for \(around.settle.seconds) s")
  }

  /// The configuration in force. The files of an instance, or of `--config`, are one.
  private func loaded() throws(HopdError) -> LoadedConfiguration {
    if configurationFiles.count == 1, let file = configurationFiles.first,
      file.stem != "hopd" || !["/usr/lib/hopd", "/etc/hopd"].contains(file.removingLastComponent())
    {
      return try ConfigurationLoader.load(file: file)
    }
    return try ConfigurationLoader().load()
  }
}
