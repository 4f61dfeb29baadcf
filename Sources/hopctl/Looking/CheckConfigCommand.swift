import ArgumentParser
import ConfigurationInspection
import Diagnostics
import HopdConfiguration
import SystemPackage

/// `hopctl check-config [FILE]`.
struct CheckConfigCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "check-config",
    abstract: "Checks the daemon's configuration and opens what it names: every mistake with file and line.",
    discussion: """
      It opens models, mapping models, policy programs and directories; directories must exist, the service must be \
      able to write them, and to read the models. Without FILE it checks what is installed: /usr/lib/hopd and \
      /etc/hopd with their drop-ins, and what hopd.service may read and write. It checks /etc/hopd/NAME.toml for \
      hopd@NAME.service. Status 6: there is no watch.
      """)

  @OptionGroup var source: ConfigurationArgument
  @OptionGroup var output: OutputOptions

  func execute() throws {
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
}
