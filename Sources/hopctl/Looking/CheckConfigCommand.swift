import ArgumentParser
import ConfigurationInspection
import Diagnostics
import DurableFiles
import HopdConfiguration
import SystemPackage

/// `hopctl check-config [FILE]`.
struct CheckConfigCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "check-config",
    abstract: "Checks the daemon's configuration and opens what it names: every mistake with file and line.",
    discussion: """
      Models, mapping models, programs of policies and directories are opened; directories must be there and writable for the \
      service. Without FILE, what is installed is checked: /usr/lib/hopd and /etc/hopd with their drop-ins, and where \
      hopd.service may write.
      """)

  @Argument(help: "A configuration file; its own drop-ins (FILE.d) belong to it.", completion: .file())
  var file: String?

  @OptionGroup var output: OutputOptions

  func execute() throws {
    let loaded: LoadedConfiguration
    if let file {
      let path = FilePath(file)
      loaded = try ConfigurationLoader.load(file: path.isAbsolute ? path : try absolute(path))
    } else {
      loaded = try ConfigurationLoader().load()
    }
    output.warn(loaded.warnings)
    let inspection = ConfigurationInspection(loaded, unit: file == nil ? UnitFile.installed() : nil)
    let findings = inspection.findings()
    if let error = ConfigurationInspection.error(findings) { throw error }
    output.warn(findings.remarks)
    let configuration = loaded.configuration
    let files = loaded.files.map(\.printable).joined(separator: ", ")
    try output.line(
      (files.isEmpty ? "no configuration file" : files) + ": ok, "
        + MessageFormatter.count(Int64(configuration.watches.count), "watch", "watches"))
    for line in MessageFormatter.table(configuration.watches.map { [$0.name, $0.directory.printable] }) {
      try output.line(line)
    }
    if !configuration.isConfigured {
      try output.line("  hopd has nothing to do: add a [[watch]] to \(file ?? "/etc/hopd/hopd.toml")")
    }
    try output.object(
      CheckConfigShape(
        files: loaded.files.map(\.string), configured: configuration.isConfigured,
        watches: configuration.watches.map {
          CheckConfigShape.Watch(
            name: $0.name, directory: $0.directory.string, models: $0.models.map(\.string),
            target: OrNull(wrappedValue: $0.target))
        }, warnings: (loaded.warnings + findings.remarks).map(ErrorShape.init)))
  }

  /// The folder resolved, the name kept: messages show the file that was named.
  private func absolute(_ path: FilePath) throws -> FilePath {
    guard let name = path.lastComponent else { return path }
    let folder = path.removingLastComponent()
    return try LinuxFileSystem().canonical(folder.isEmpty ? "." : folder).appending(name)
  }
}
