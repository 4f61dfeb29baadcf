// Opens everything that a configuration names once, for `hopctl check-config`, `hopd --check` and a reload of the unit.

import Diagnostics
import DurableFiles
import Glibc
import HopdConfiguration
import ManagedObjectModel
import MigrationPipeline
import PersistentStore
import PolicyHost
import StoreReplacement
import SystemPackage

/// Checks the files and directories that a valid configuration names.
package struct ConfigurationInspection {
  /// The result of an inspection.
  package struct Findings {
    /// Errors that must be fixed before the configuration can be put in force.
    package var mistakes: [HopdError] = []
    /// Directories that are missing or not writable: the watch waits until they are available.
    package var obstacles: [HopdError] = []
    /// Remarks that stop nothing.
    package var remarks: [HopdError] = []
  }

  private let loaded: LoadedConfiguration
  private let unit: UnitFile?
  private let user: ServiceUser

  /// Creates an inspection for the service that `unit` describes; nil for a daemon with the user and rights of this
  /// process.
  package init(_ loaded: LoadedConfiguration, unit: UnitFile? = nil) {
    self.loaded = loaded
    self.unit = unit
    user = ServiceUser(unit: unit)
  }

  /// Opens everything and returns the findings.
  package func findings() -> Findings {
    var findings = Findings()
    findings.mistakes = WatchOverlap.findings(in: loaded) + BackupOverlap.mistakes(in: loaded)
    findings.remarks = BackupOverlap.remarks(in: loaded) + PathTrust.remarks(in: loaded, user: user.number)
    for watch in loaded.configuration.watches {
      do throws(HopdError) {
        findings.remarks += try WatchModels.load(watch).warnings
        findings.mistakes += unreadable(watch)
      } catch {
        findings.mistakes.append(described(error, "the watch \(watch.name) is unavailable"))
      }
      check(watch.directory, "watch.\(watch.name).directory", into: &findings)
      // The folder for backups is made with the first backup; only its parent must exist.
      if let backups = watch.migration.backup.directory {
        let isThere = backups.withPlatformString { access($0, F_OK) } == 0
        check(
          isThere ? backups : backups.removingLastComponent(), "watch.\(watch.name).backup.directory", into: &findings)
      }
    }
    findings.mistakes += programs() + CommandPrograms.findings(in: loaded)
    findings.mistakes += unreadable(
      CommandPrograms.commands(of: loaded.configuration).compactMap { command, key in
        command.first.map { FilePath($0) }.flatMap { $0.isAbsolute ? ($0, key) : nil }
      })
    if let file = loaded.configuration.daemon.metricsFile {
      check(file.removingLastComponent(), "daemon.metrics_file", into: &findings)
    }
    findings.mistakes = sorted(findings.mistakes)
    findings.obstacles = sorted(findings.obstacles)
    return findings
  }

  /// Combines all findings into one error; nil if there is none. With `waits`, directories that a watch waits for do
  /// not count.
  package static func error(_ findings: Findings, waits: Bool = false) -> HopdError? {
    var reasons = findings.mistakes + (waits ? [] : findings.obstacles)
    // One remedy of several things stands once, with the last of them.
    for index in reasons.indices {
      let hint = reasons[index].hint
      if reasons[(index + 1)...].contains(where: { $0.hint == hint }) { reasons[index].hint = nil }
    }
    guard reasons.count != 1 else { return reasons.first }
    return reasons.isEmpty
      ? nil
      : HopdError(
        .configurationInvalid, "the configuration has \(reasons.count) unusable values", reasons: reasons)
  }

  /// The error for a configuration without a watch; a hopd that starts with it ends with the same error.
  package static func notConfigured(_ files: [FilePath]) -> HopdError {
    let list = files.map(\.printable).joined(separator: ", ")
    return HopdError(
      .notConfigured, "no directory is configured" + (list.isEmpty ? "" : " in \(list)"),
      hint: "add a [[watch]] with directory and models to /etc/hopd/hopd.toml; hopd(8) has the first steps, "
        + "/usr/lib/hopd/hopd.toml every key")
  }

  // MARK: Private helpers

  /// Errors for files of a watch that this process can read and the service cannot: models, mapping models and the
  /// reference store.
  private func unreadable(_ watch: Configuration.Watch) -> [HopdError] {
    let key = "watch.\(watch.name)"
    return unreadable(
      watch.models.map { ($0, "\(key).models") } + watch.mappings.map { ($0, "\(key).mappings") }
        + [watch.reference].compactMap(\.self).map { ($0, "\(key).migration.reference") })
  }

  /// The same for paths with the keys that name them.
  private func unreadable(_ named: [(path: FilePath, key: String)]) -> [HopdError] {
    named.compactMap { path, key in
      if let reason = unit?.hiding(path) {
        return HopdError(
          .configurationInvalid, "\(path.printable) \(reason)", at: loaded.place(of: key),
          hint:
            "move it to /srv or /etc/hopd, then run `hopctl check-config --drop-in --install`"
        )
      }
      guard let barred = user.firstUnreadable(below: path) else { return nil }
      return HopdError(
        .configurationInvalid, "permission denied: \(user.name) cannot read \(barred.printable)",
        at: loaded.place(of: key),
        hint: "grant access: `chmod -R go+rX`, a group, or `setfacl -R -m u:\(user.name):rX "
          + "\(barred.quotedForShell)`; or move it to a directory that everyone can read")
    }
  }

  /// Moves an error about a model or a program to the line of the configuration that names it.
  private func described(_ error: HopdError, _ what: String) -> HopdError {
    let key = error.place.key
    var reason = error
    reason.place.key = nil
    // A reason without a file of its own is about the line itself.
    return HopdError(
      .configurationInvalid, what, at: key.map { loaded.place(of: $0) } ?? Place(), reasons: [reason])
  }

  private func programs() -> [HopdError] {
    let programs = PolicyPrograms(
      loaded.configuration.policyBindings, isStopped: { false }, observer: { _, _, _ in })
    return loaded.configuration.policies.flatMap { policy -> [HopdError] in
      do {
        try programs.check(policy.name)
        // A name without a slash is searched in folders that all users may read.
        let program = policy.command.first.map { FilePath($0) }.flatMap { $0.isAbsolute ? $0 : nil }
        return unreadable(program.map { [($0, "policies.\(policy.name).command")] } ?? [])
      } catch {
        let error = HopdError.of(error)
        return [
          described(
            error.located(Place(key: "policies.\(policy.name).command")),
            "the program of the policy \(policy.name) cannot be started")
        ]
      }
    }
  }

  private func check(_ directory: FilePath, _ key: String, into findings: inout Findings) {
    func obstacle(_ message: String, _ hint: String) {
      findings.obstacles.append(HopdError(.configurationInvalid, message, at: loaded.place(of: key), hint: hint))
    }
    let name = directory.printable
    var status = stat()
    guard directory.withPlatformString({ stat($0, &status) }) == 0 else {
      let code = Errno(rawValue: errno)
      return obstacle(
        "\(name): \(code)",
        code == .permissionDenied
          ? "grant access to it to this user and to the user of hopd" : "create or mount it; hopd waits for it")
    }
    guard status.st_mode & S_IFMT == S_IFDIR else {
      return obstacle("\(name) is not a directory", "set a directory")
    }
    if let reason = unit?.obstacle(to: directory) {
      return obstacle(
        "\(name) \(reason)",
        "`hopctl check-config --drop-in --install\(fileWord)` writes the drop-in that allows it to "
          + "/etc/systemd/system/\(unitName).d/watches.conf, then `systemctl daemon-reload && systemctl restart "
          + "\((unitName.hasSuffix(".service") ? String(unitName.dropLast(8)) : unitName).quotedForShell)`")
    }
    guard user.mayWrite(directory) else {
      return obstacle(
        "permission denied: \(user.name) cannot write to \(name)",
        "grant read and write access: chown, a group, or `setfacl -m u:\(user.name):rwx "
          + "\(directory.quotedForShell)`")
    }
  }

  private var unitName: String { unit?.name ?? "hopd.service" }

  /// The configuration file as an argument, with a space in front; empty for hopd.service.
  private var fileWord: String {
    unitName == "hopd.service" ? "" : loaded.files.first.map { " \($0.quotedForShell)" } ?? ""
  }

  /// Sorts errors by file and line.
  private func sorted(_ errors: [HopdError]) -> [HopdError] {
    func rank(_ error: HopdError) -> (Int, Int) {
      (loaded.files.firstIndex { $0 == error.place.file } ?? -1, error.place.line ?? 0)
    }
    return errors.sorted { rank($0) < rank($1) }
  }
}
