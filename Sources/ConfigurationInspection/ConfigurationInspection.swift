// Everything that a configuration names, opened once: what `hopctl check-config`, `hopd --check` and a reload of the
// unit look at.

import Diagnostics
import DurableFiles
import Glibc
import HopdConfiguration
import ManagedObjectModel
import PersistentStore
import PolicyHost
import SystemPackage

/// Looks at what a valid configuration names.
package struct ConfigurationInspection {
  /// What was found.
  package struct Findings {
    /// What somebody has to change before the configuration can be put in force.
    package var mistakes: [HopdError] = []
    /// Directories that are missing or may not be written: the watch waits for them, and is served when they are there.
    package var obstacles: [HopdError] = []
    /// What is worth knowing and stops nothing.
    package var remarks: [HopdError] = []
  }

  private let loaded: LoadedConfiguration
  private let unit: UnitFile?
  private let user: ServiceUser

  /// Inspects for the service that `unit` describes; nil for a daemon that runs as this process does.
  package init(_ loaded: LoadedConfiguration, unit: UnitFile? = nil) {
    self.loaded = loaded
    self.unit = unit
    user = ServiceUser(unit: unit)
  }

  /// Opens everything.
  package func findings() -> Findings {
    var findings = Findings()
    findings.mistakes = WatchOverlap.findings(in: loaded)
    for watch in loaded.configuration.watches {
      do throws(HopdError) {
        findings.remarks += try WatchModels.load(watch).warnings
      } catch {
        findings.mistakes.append(told(error, "the watch \(watch.name) cannot be served"))
      }
      check(watch.directory, "watch.\(watch.name).directory", into: &findings)
      // A folder for backups is made with the first one; what must be there is the folder above.
      if let backups = watch.backup.directory {
        let isThere = backups.withPlatformString { access($0, F_OK) } == 0
        check(
          isThere ? backups : backups.removingLastComponent(), "watch.\(watch.name).backup.directory", into: &findings)
      }
    }
    findings.mistakes += programs()
    findings.mistakes = sorted(findings.mistakes)
    findings.obstacles = sorted(findings.obstacles)
    return findings
  }

  /// All findings as the one error to show; nil where there is none. With `waits` set, directories that a watch waits
  /// for are none.
  package static func error(_ findings: Findings, waits: Bool = false) -> HopdError? {
    let reasons = findings.mistakes + (waits ? [] : findings.obstacles)
    guard reasons.count != 1 else { return reasons.first }
    return reasons.isEmpty
      ? nil
      : HopdError(
        .configurationInvalid, "the configuration names \(reasons.count) things that cannot be used", reasons: reasons)
  }

  // MARK: Inside

  /// An error about a model or a program at the line of the configuration that names it.
  private func told(_ error: HopdError, _ what: String) -> HopdError {
    let key = error.place.key
    var reason = error
    reason.place.key = nil
    // A reason without a file of its own is about the line itself.
    return HopdError(
      .configurationInvalid, what, at: key.map { loaded.place(of: $0) } ?? Place(), reasons: [reason])
  }

  private func programs() -> [HopdError] {
    let bindings = Dictionary(
      loaded.configuration.policies.map { policy in
        (
          policy.name,
          PolicyBinding(command: policy.command, limits: PolicyLimits(timeout: policy.timeout, memory: policy.memory))
        )
      }
    ) { first, _ in first }
    let programs = PolicyPrograms(bindings, isStopped: { false }, observer: { _, _, _ in })
    return loaded.configuration.policies.compactMap { policy in
      do {
        try programs.check(policy.name)
        return nil
      } catch {
        let error = error as? HopdError ?? HopdError(.internalError, "an unexpected error", cause: error)
        return told(
          error.located(Place(key: "policies.\(policy.name).command")),
          "the program of the policy \(policy.name) cannot be started")
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
          ? "give the user who checks, and hopd's, the right to reach it" : "create or mount it; hopd waits for it")
    }
    guard status.st_mode & S_IFMT == S_IFDIR else {
      return obstacle("\(name) is not a directory", "name the directory")
    }
    if let reason = unit?.obstacle(to: directory) {
      return obstacle(
        "\(name) \(reason)",
        "systemctl edit hopd, add `ReadWritePaths=-\(name)` to [Service], then `systemctl restart hopd`")
    }
    guard user.mayWrite(directory, status) else {
      return obstacle(
        "\(user.name) may not write to \(name)",
        "give it the right to read and write there: chown, a group, or `setfacl -m u:\(user.name):rwx \(name)`")
    }
  }

  /// In the order of the files and lines.
  private func sorted(_ errors: [HopdError]) -> [HopdError] {
    func rank(_ error: HopdError) -> (Int, Int) {
      (loaded.files.firstIndex { $0 == error.place.file } ?? -1, error.place.line ?? 0)
    }
    return errors.sorted { rank($0) < rank($1) }
  }
}

/// The user that hopd runs as.
struct ServiceUser {
  /// Its name, for messages.
  let name: String
  /// Number and groups, where it is another one than this process's.
  private let other: (user: uid_t, groups: [gid_t])?

  init(unit: UnitFile?) {
    // Inside the unit the process is that user already, and the kernel itself answers best.
    guard let unit, let name = unit.user ?? Optional("root"), let entry = getpwnam(name) else {
      self.name = "this user"
      other = nil
      return
    }
    self.name = name
    let (user, group) = (entry.pointee.pw_uid, entry.pointee.pw_gid)
    guard user != geteuid() else {
      other = nil
      return
    }
    var count: Int32 = 64
    var groups = [gid_t](repeating: 0, count: Int(count))
    let found = getgrouplist(name, group, &groups, &count)
    other = (user, found >= 0 ? Array(groups.prefix(Int(count))) : [group])
  }

  /// May it make files in this directory? True where the rights alone do not tell.
  func mayWrite(_ directory: FilePath, _ status: stat) -> Bool {
    guard let other else {
      return directory.withPlatformString { faccessat(AT_FDCWD, $0, R_OK | W_OK | X_OK, AT_EACCESS) } == 0
    }
    if other.user == 0 { return true }
    // An access list may give more than the mode says.
    let files = LinuxFileSystem()
    let attributes = try? files.attributes(of: files.canonical(directory))
    if attributes?.extended["system.posix_acl_access"] != nil { return true }
    let shift: mode_t = status.st_uid == other.user ? 6 : other.groups.contains(status.st_gid) ? 3 : 0
    return (status.st_mode >> shift) & 7 == 7
  }
}
