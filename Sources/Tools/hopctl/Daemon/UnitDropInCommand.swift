import ArgumentParser
import ConfigurationInspection
import Diagnostics
import HopdConfiguration
import SystemPackage

/// `hopctl unit-dropin [FILE]`.
struct UnitDropInCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "unit-dropin",
    abstract: "Prints the drop-in that hopd.service needs for the configured watches.",
    discussion: """
      hopd.service may write only where its unit says so. The drop-in names the watched directories and those of their \
      backups and of the metrics file (ReadWritePaths=), and waits for their mounts (RequiresMountsFor=). Put it into \
      /etc/systemd/system/hopd.service.d/watches.conf, then: systemctl daemon-reload && systemctl restart hopd
      """)

  @OptionGroup var source: ConfigurationArgument
  @OptionGroup var output: OutputOptions

  func execute() throws {
    let loaded = try source.load()
    output.warn(loaded.warnings)
    let dropIn = try UnitDropIn(loaded)
    try output.line("# Printed by hopctl unit-dropin from \(loaded.files.map(\.printable).joined(separator: ", "))")
    try output.lines(
      dropIn.text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map { String($0) })
    try output.object([
      "readWritePaths": dropIn.writable.map(\.string), "requiresMountsFor": dropIn.mounted.map(\.string),
      "missing": dropIn.missing.map(\.string), "text": dropIn.text,
    ])
  }
}
