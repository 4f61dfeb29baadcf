import ArgumentParser
import ConfigurationInspection
import Diagnostics
import DurableFiles
import Glibc
import HopdConfiguration
import HopdControl
import SQLite
import ServiceState
import SystemPackage

/// `hopctl doctor`.
struct DoctorCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor", abstract: "Print a diagnostic report for bug reports",
    discussion: """
      Contains versions, limits, file systems, permissions and counts, but no store, watch, directory or user names \
      and no data. Findings are marked with !; exit status 1 if there are any.
      """)

  @OptionGroup(title: "Daemon options") var daemon: DaemonOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  private struct Line {
    let topic: String
    let fact: String
    /// The action to take; nil if nothing is wrong.
    let finding: String?

    var json: JSONObject { ["topic": topic, "value": fact, "finding": finding] }
  }

  func execute() throws {
    let lines = programs() + kernel() + service() + configured()
    try output.lines(
      MessageFormatter.table(
        lines.map { line in
          ["\(line.finding == nil ? " " : "!") \(line.topic)", line.fact + (line.finding.map { ": \($0)" } ?? "")]
        }, indent: ""))
    try output.object(["report": lines.map(\.json)])
    if lines.contains(where: { $0.finding != nil }) { throw Finished(status: .failure) }
  }

  private func line(_ topic: String, _ fact: String, _ finding: String? = nil) -> Line {
    Line(topic: topic, fact: fact, finding: finding)
  }

  private func read(_ path: FilePath) -> String? {
    guard let bytes = try? LinuxFileSystem().read(path, limit: 1 << 20) else { return nil }
    let text = String(decoding: bytes, as: UTF8.self)
    return text.split(separator: "\n").first.map { String($0) } ?? ""
  }

  private func programs() -> [Line] {
    var system = utsname()
    uname(&system)
    let release = withUnsafeBytes(of: &system.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    let machine = withUnsafeBytes(of: &system.machine) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    // Debian has a symbolic link there, which the reader of files refuses.
    let file = (try? FilePath("/etc/os-release").resolved()) ?? "/etc/os-release"
    let distribution = (try? LinuxFileSystem().read(file, limit: 1 << 16)).flatMap { bytes in
      String(decoding: bytes, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("PRETTY_NAME=") }
    }
    return [
      line("hopctl", ProgramVersion.text(program: "hopctl", sqlite: Connection.libraryVersion)),
      line("system", "Linux \(release) \(machine)"),
      line("distribution", distribution.map { $0.dropFirst(12).filter { $0 != "\"" } } ?? "unknown"),
    ]
  }

  private func kernel() -> [Line] {
    var files = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
    let lease = read("/proc/sys/fs/leases-enable") ?? "?"
    return [
      line("processors", String(sysconf(Int32(_SC_NPROCESSORS_ONLN)))),
      line("memory", read("/proc/meminfo")?.split(separator: " ").dropFirst().joined(separator: " ") ?? "?"),
      line("open files", String(files.rlim_cur)),
      line("inotify watches", read("/proc/sys/fs/inotify/max_user_watches") ?? "?"),
      line(
        "leases", lease == "1" ? "supported by the kernel" : lease == "0" ? "disabled" : lease,
        lease == "0" ? "stores are replaced in place only: sysctl fs.leases-enable=1" : nil),
      pressure(),
    ]
  }

  /// Whether the kernel reports pressure stall information (how long programs wait for a resource), and whether the
  /// configuration needs it.
  private func pressure() -> Line {
    let isReported = ["/proc/pressure/io", "/sys/fs/cgroup/io.pressure"].contains { read(FilePath($0)) != nil }
    let isWanted = (try? load())?.configuration.throttle.isSet ?? false
    return line(
      "pressure", isReported ? "reported by the kernel" : "not reported by this kernel",
      isWanted && !isReported ? "[throttle] has no effect: boot the kernel with psi=1" : nil)
  }

  private func service() -> [Line] {
    let state: RecordedState
    do { state = try daemon.recorded() } catch {
      let error = ErrorReport.hopdError(error)
      return [line("state", error.message, error.hint)]
    }
    var lines = [
      line("hopd", state.facts[.program] ?? "unknown"),
      line(
        "daemon", state.process == nil ? "not running" : "running",
        state.process == nil ? "systemctl status hopd" : nil),
    ]
    if state.outdated != nil { lines.append(line("program", "older than the installed one", "restart the service")) }
    for change in state.changes {
      lines.append(line("set", "\(change.key) = \(change.value), configured \(change.configured)"))
    }
    if let process = state.process,
      let limits = try? LinuxFileSystem().read(FilePath("/proc/\(process)/limits"), limit: 1 << 14)
    {
      let text = String(decoding: limits, as: UTF8.self)
      for name in ["Max open files", "Max processes", "Max address space"] {
        guard let found = text.split(separator: "\n").first(where: { $0.hasPrefix(name) }) else { continue }
        let soft = found.dropFirst(name.count).split(separator: " ").first.map { String($0) } ?? "?"
        lines.append(line("daemon: \(name.lowercased())", soft))
      }
    }
    if state.process != nil {
      let socket = state.facts[.socket]
      var finding = socket == nil ? "hopctl cannot control hopd: journalctl -t hopd -p warning" : nil
      if socket != nil {
        do { _ = try daemon.client().call("GetStatus") } catch {
          finding = ErrorReport.hopdError(error).message
        }
      }
      lines.append(line("control socket", socket == nil ? "none" : "present", finding))
    }
    if state.facts[.note] != nil { lines.append(line("note", "present", "hopctl status")) }
    let unavailable = state.lines(.unavailable).count
    if unavailable > 0 { lines.append(line("unavailable watches", String(unavailable), "hopctl status")) }
    if let waits = state.facts[.waits] {
      lines.append(
        line("waits", waits.contains("pressure above") ? "for lower pressure" : "for the hours of its window"))
    }
    if state.facts[.paused] != nil { lines.append(line("paused", "yes", "hopctl resume")) }
    let counts = StoreText.sum(((try? state.reader.counts()) ?? [:]).values)
    lines.append(
      line("stores", StoreText.counts(counts), (counts[.failed] ?? 0) > 0 ? "hopctl list --failed" : nil))
    var causes: [String: Int] = [:]
    for store in (try? state.reader.stores(StateReader.Filter(conditions: [.failed, .retrying, .busy]))) ?? [] {
      causes[store.failure?.code ?? "?", default: 0] += 1
    }
    for (code, count) in causes.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
      lines.append(line("cause", "\(code) ×\(MessageFormatter.count(count))"))
    }
    return lines
  }

  /// The only file that this hopd reads, if it is an instance or was started with --config; nil for the installed
  /// configuration.
  private var file: FilePath? {
    if daemon.unit.hasPrefix("hopd@") {
      let file = FilePath("/etc/hopd/\(daemon.unit.dropFirst(5)).toml")
      if (try? LinuxFileSystem().status(file)) ?? nil != nil { return file }
    }
    guard let first = (try? daemon.recorded())?.lines(.configuration).first else { return nil }
    let file = FilePath(first)
    return ["/usr/lib/hopd", "/etc/hopd"].contains(file.removingLastComponent()) ? nil : file
  }

  private func load() throws(HopdError) -> LoadedConfiguration {
    guard let file else { return try ConfigurationLoader().load() }
    return try ConfigurationLoader.load(file: file)
  }

  private func configured() -> [Line] {
    let loaded: LoadedConfiguration
    let check = file == nil ? "hopctl check-config" : "hopctl check-config FILE"
    do { loaded = try load() } catch { return [line("configuration", error.code.name, check)] }
    let findings = ConfigurationInspection(loaded, unit: UnitFile.serving(file)).findings()
    var found: [String] = []
    if !loaded.configuration.isConfigured { found.append("no watch: hopd does not start") }
    for (count, what) in [(loaded.warnings.count, "unknown key"), (findings.mistakes.count, "mistake")]
    where count > 0 { found.append(MessageFormatter.count(count, what, what + "s")) }
    // The directories are checked below, but with this user's rights and not the service's.
    if !findings.obstacles.isEmpty {
      let count = MessageFormatter.count(findings.obstacles.count, "directory", "directories")
      found.append("\(count) unusable by the service")
    }
    var lines = [
      line(
        "configuration", MessageFormatter.count(loaded.configuration.watches.count, "watch", "watches"),
        found.isEmpty ? nil : "\(found.joined(separator: ", ")): \(check)")
    ]
    // Watches are numbered, because their names may be customers' names.
    for (number, watch) in loaded.configuration.watches.enumerated() {
      lines.append(directory(watch.directory, "watch \(number + 1)"))
    }
    lines.append(directory(daemon.directory, "state directory"))
    return lines
  }

  private func directory(_ path: FilePath, _ topic: String) -> Line {
    var status = stat()
    guard path.withPlatformString({ stat($0, &status) }) == 0 else {
      return line(topic, Errno(rawValue: errno).description, "create or mount it: hopctl check-config")
    }
    var space = statvfs()
    _ = path.withPlatformString { statvfs($0, &space) }
    let free = Int64(
      clamping: UInt64(space.f_bavail).multipliedReportingOverflow(by: UInt64(space.f_frsize)).partialValue)
    let isReadOnly = space.f_flag & UInt(ST_RDONLY) != 0
    let mode = String(status.st_mode & 0o7777, radix: 8)
    let owner =
      status.st_uid == 0 ? "root" : getpwnam("hopd")?.pointee.pw_uid == status.st_uid ? "hopd" : "another user"
    let room = "\(MessageFormatter.bytes(free)) and \(MessageFormatter.count(space.f_favail)) inodes free"
    return line(
      topic, "\(fileSystem(of: path)), mode \(mode), owner \(owner), \(room)",
      isReadOnly ? "mounted read-only" : free < 64 << 20 ? "nearly full" : nil)
  }

  /// The type of a path's file system, from the kernel's table of mounts.
  private func fileSystem(of path: FilePath) -> String {
    guard let bytes = try? LinuxFileSystem().read("/proc/self/mountinfo", limit: 4 << 20),
      let real = try? path.resolved()
    else { return "unknown" }
    var best: (length: Int, type: String) = (-1, "unknown")
    for row in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
      let words = row.split(separator: " ")
      guard words.count > 6, let dash = words.firstIndex(of: "-"), dash + 1 < words.count else { continue }
      let point = FilePath(String(words[4]).replacing("\\040", with: " "))
      if real.starts(with: point), point.string.utf8.count >= best.length {
        best = (point.string.utf8.count, String(words[dash + 1]))
      }
    }
    return best.type
  }
}
