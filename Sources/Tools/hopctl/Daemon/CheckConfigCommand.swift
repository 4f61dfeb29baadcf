import ArgumentParser
import ConfigurationInspection
import Diagnostics
import DurableFiles
import HopdConfiguration
import ServiceState
import SystemPackage

/// `hopctl check-config [FILE]`.
struct CheckConfigCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "check-config",
    abstract: "Validate the daemon's configuration",
    discussion: """
      Opens models, mapping models, policy programs and directories; checks that directories exist, that the service \
      can write to them, and that it can read the models. Without FILE, checks the installed files in /usr/lib/hopd \
      and /etc/hopd with their drop-ins, and the permissions of hopd.service. /etc/hopd/NAME.toml is checked for \
      hopd@NAME.service. Exit status 6: no watch.

      With --print, prints the files instead, each after a comment with its path, like systemd-analyze cat-config. \
      Later files take precedence. Settings changed by hopctl set follow as comments. hopctl status lists the files \
      that the running hopd uses.

      hopd.service can write only where its unit permits it. With --drop-in, prints the settings that let it write to \
      the watched directories, the backup directories and the directory of the metrics file (ReadWritePaths=) and wait \
      for their mounts (RequiresMountsFor=). With --install, writes them to \
      /etc/systemd/system/hopd.service.d/watches.conf or, for /etc/hopd/NAME.toml, to the directory of \
      hopd@NAME.service.
      """)

  @OptionGroup var source: ConfigurationArgument

  @Flag(name: .customLong("print"), help: "Print the configuration files in order, without checking them")
  var prints = false

  @Flag(name: .customLong("drop-in"), help: "Print the systemd drop-in for the watches")
  var dropIn = false

  @Flag(help: "Install the drop-in of --drop-in")
  var install = false

  @OptionGroup(title: "Daemon options") var daemon: DaemonOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  /// The maximum number of bytes to read of one file.
  private static let most = 4 << 20

  func validate() throws {
    if prints, dropIn { throw ValidationError("Pass either --print or --drop-in, not both.") }
    if install, !dropIn { throw ValidationError("--install requires --drop-in.") }
  }

  func execute() throws {
    if dropIn {
      let unit = UnitDropInOutput(source: source, output: output)
      return install ? try unit.install() : try unit.print()
    }
    if prints { try printFiles() } else { try check() }
  }

  private func check() throws {
    let loaded = try source.load()
    output.warn(loaded.warnings)
    let inspection = ConfigurationInspection(loaded, unit: UnitFile.serving(try source.path()))
    let findings = inspection.findings()
    if let error = ConfigurationInspection.error(findings) { throw error }
    output.warn(findings.remarks)
    let configuration = loaded.configuration
    guard configuration.isConfigured else { throw ConfigurationInspection.notConfigured(loaded.files) }
    let files = loaded.files.map(\.printable).joined(separator: ", ")
    try output.line(
      (files.isEmpty ? "no configuration file" : files) + ": ok, "
        + MessageFormatter.count(configuration.watches.count, "watch", "watches"))
    try output.lines(MessageFormatter.table(configuration.watches.map { [$0.name, $0.directory.printable] }))
    let watches = configuration.watches.map { watch -> JSONObject in
      [
        "name": watch.name, "directory": watch.directory.string, "models": watch.models.map(\.string),
        "target": watch.target,
      ]
    }
    try output.object([
      "files": loaded.files.map(\.string), "configured": configuration.isConfigured, "watches": watches,
      "warnings": (loaded.warnings + findings.remarks).map(\.json),
    ])
  }
  // MARK: Files

  private func printFiles() throws {
    let files = try source.path().map { try ConfigurationLoader.files(of: $0) } ?? ConfigurationLoader().files()
    var shown: [JSONObject] = []
    for file in files {
      let text = String(decoding: try LinuxFileSystem().read(file, limit: Self.most), as: UTF8.self)
      // An empty file, or a link to /dev/null, masks the vendor's file of the same name.
      try output.line("# \(file.printable)")
      try output.line(text.isEmpty ? "# (empty: masks the file of this name in /usr/lib)" : text, keepingNewlines: true)
      shown.append(["file": file.string, "content": text])
    }
    if files.isEmpty { try output.line("no configuration file") }
    let changed = changes(to: files)
    if !changed.isEmpty { try output.line("# hopctl set, until hopd restarts") }
    for change in changed { try output.line("# \(change.key) = \(change.value) (configured: \(change.configured))") }
    try output.object(["files": shown, "changed": changed.map(\.json)])
  }

  /// The changes by `hopctl set` in the hopd that runs with these files; none if its state cannot be read.
  private func changes(to files: [FilePath]) -> [RecordedState.Change] {
    guard let state = try? daemon.recorded() else { return [] }
    return Set(state.lines(.configuration)).isDisjoint(with: files.map(\.printable)) ? [] : state.changes
  }
}
