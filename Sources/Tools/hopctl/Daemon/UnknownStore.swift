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
      HopdError(.notFound, "hopd does not know this store: \(message)", at: Place(store: location), hint: hint)
    }
    guard let status = location.linkStatus() else {
      return unknown("there is no such file", "check the path; `hopctl list` lists the stores that hopd knows")
    }
    switch status.st_mode & S_IFMT {
    case S_IFREG: break
    case S_IFLNK:
      let target = try? location.resolved()
      return unknown(
        "it is a symbolic link, and hopd leaves links alone",
        target.map { "watch the directory of the file itself: `hopctl status \($0.quotedForShell)`" }
          ?? "it leads nowhere: `ls -la \(location.quotedForShell)`")
    case S_IFDIR: return unknown("it is a folder", "`hopctl list` lists the stores that hopd knows")
    default: return unknown("it is no plain file", "`ls -la \(location.quotedForShell)`")
    }
    guard let watches = try? loaded().configuration.watches else {
      return unknown(
        "it is in no watched directory, or its name is not one of a store",
        "it must be in a watched directory and match `include`: `hopctl check-config` lists the watches")
    }
    let folder = location.removingLastComponent()
    let around = watches.first { watch in
      let directory = (try? watch.directory.resolved()) ?? watch.directory
      return directory == folder || (watch.recursive && folder.starts(with: directory))
    }
    guard let around else {
      return unknown(
        "no watch has its folder",
        watches.isEmpty
          ? "the configuration has no watch"
          : "watched are: \(watches.map { "\($0.directory.printable) (\($0.name))" }.joined(separator: ", "))")
    }
    let names = around.include.joined(separator: ", ").printableLine
    let excluded = around.exclude.isEmpty ? "" : " and not \(around.exclude.joined(separator: ", ").printableLine)"
    return unknown(
      "the watch \(around.name) has its folder, but has not taken it up",
      "its name must match \(names)\(excluded), and it must have been quiet for \(around.settle.seconds) s")
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
