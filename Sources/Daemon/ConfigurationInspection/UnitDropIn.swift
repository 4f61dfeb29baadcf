// The drop-in that hopd's unit needs for a configuration: with ProtectSystem=strict the service may write only to the
// paths that its unit names.

import Diagnostics
import DurableFiles
import HopdConfiguration
import MigrationPipeline
import StoreReplacement
import SystemPackage

/// Settings of a unit for the directories that a configuration names.
package struct UnitDropIn: Sendable, Hashable {
  /// Directories that the service writes to: those of watches, of their backups, and of the metrics file.
  package let writable: [FilePath]
  /// Directories whose file systems are mounted before the service starts: those with stores and backups.
  package let mounted: [FilePath]
  /// Configured paths that `ProtectHome=yes` hides.
  package let hiddenByHome: [FilePath]
  /// Configured paths that `PrivateTmp=yes` hides.
  package let hiddenByTmp: [FilePath]
  /// Directories to write that do not exist yet.
  package let missing: [FilePath]

  /// Collects the paths of a configuration. Throws if a unit cannot name a path, or if the configuration has no watch.
  package init(_ loaded: LoadedConfiguration) throws(HopdError) {
    let configuration = loaded.configuration
    guard configuration.isConfigured else {
      throw HopdError(
        .notConfigured, "the configuration has no watch, so the unit needs no drop-in",
        at: Place(file: loaded.files.last),
        hint: "add a [[watch]] with name, directory and models; hopd.toml(5) has an example")
    }
    let stores = configuration.watches.flatMap { [$0.directory] + [$0.migration.backup.directory].compactMap(\.self) }
    let metrics = configuration.daemon.metricsFile.map { [$0.removingLastComponent()] } ?? []
    let read =
      configuration.watches.flatMap { $0.models + $0.mappings + [$0.reference].compactMap(\.self) }
      + (configuration.policies.map(\.command) + CommandPrograms.commands(of: configuration).map(\.command))
      .compactMap { $0.first.map { FilePath($0) } }
    for path in stores + metrics where Self.setting(path) == nil {
      throw HopdError(
        .configurationInvalid, "a unit cannot name this path: it has a control character", at: Place(file: path),
        hint: "rename the directory")
    }
    mounted = Self.outermost(stores)
    writable = Self.outermost(stores + metrics)
    let all = stores + metrics + read
    hiddenByHome = Self.outermost(all.filter { path in UnitFile.homes.contains { path.starts(with: $0) } })
    hiddenByTmp = Self.outermost(all.filter { path in UnitFile.temporaries.contains { path.starts(with: $0) } })
    missing = writable.filter { path in (try? LinuxFileSystem().status(path))??.kind != .directory }
  }

  /// The text of the drop-in.
  package var text: String {
    var lines = ["[Unit]"]
    lines += mounted.compactMap { Self.setting($0).map { "RequiresMountsFor=\($0)" } }
    lines += ["", "[Service]"]
    for path in missing {
      lines.append("# \(path.printable) does not exist yet: create it, then restart the service.")
    }
    // With "-" the service starts even if the directory is missing; its watch waits for it.
    lines += writable.compactMap { Self.setting($0, prefix: "-").map { "ReadWritePaths=\($0)" } }
    if let first = hiddenByHome.first {
      lines += ["# The unit hides /home, /root and /run/user, where \(first.printable) is.", "ProtectHome=no"]
    }
    if let first = hiddenByTmp.first {
      lines += ["# The unit has its own /tmp and /var/tmp; \(first.printable) is in the system's.", "PrivateTmp=no"]
    }
    return lines.joined(separator: "\n") + "\n"
  }

  /// Writes the text of a drop-in where systemd reads those of a unit, and returns the file's path. An earlier drop-in
  /// of hopctl is replaced as a whole.
  package static func install(
    _ text: String, for unit: String, below directory: FilePath = "/etc/systemd/system", files: some DurableFileSystem
  ) throws -> FilePath {
    let folder = directory.appending("\(unit).d")
    try files.ensureDirectory(folder, mode: 0o755)
    let path = folder.appending("watches.conf")
    try files.writeDurably(Array(text.utf8), to: path, mode: 0o644)
    return path
  }

  /// Removes paths that are below another one; the order stays.
  private static func outermost(_ paths: [FilePath]) -> [FilePath] {
    var kept: [FilePath] = []
    for path in paths.map({ $0.lexicallyNormalized() }) where !kept.contains(path) {
      kept.append(path)
    }
    return kept.filter { path in !kept.contains { $0 != path && path.starts(with: $0) } }
  }

  /// Quotes a path for a unit file, because `%` begins a specifier and spaces separate words. Nil for a path that no
  /// setting can hold.
  private static func setting(_ path: FilePath, prefix: String = "") -> String? {
    guard !path.string.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7f }) else { return nil }
    let text = prefix + path.string.replacing("%", with: "%%")
    guard text.contains(where: { " \"'\\;#".contains($0) }) else { return text }
    return "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
  }
}
