// The drop-in of the unit, printed or installed by `hopctl check-config --drop-in`.

import ConfigurationInspection
import Diagnostics
import DurableFiles
import HopdConfiguration
import SystemPackage

/// Prints or installs the drop-in that a unit needs for a configuration.
struct UnitDropInOutput {
  let source: ConfigurationArgument
  let output: OutputOptions

  /// Prints the drop-in.
  func print() throws {
    let (dropIn, text) = try made()
    try output.lines(text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map { String($0) })
    try output.object(json(dropIn))
  }

  /// Writes the drop-in where systemd reads it, and prints the commands that put it into force.
  func install() throws {
    let file = try source.path()
    guard let unit = UnitFile.name(serving: file) else {
      throw HopdError(
        .usage, "no unit reads this configuration", at: Place(file: file),
        hint: "move it to /etc/hopd/NAME.toml for hopd@NAME.service, or print the drop-in with --drop-in alone")
    }
    let (dropIn, text) = try made()
    let path: FilePath
    do { path = try UnitDropIn.install(text, for: unit, files: LinuxFileSystem()) } catch let error as HopdError {
      throw error.hinted("run it as root")
    }
    try output.line("installed: \(path.printable)")
    let service = unit.hasSuffix(".service") ? String(unit.dropLast(8)) : unit
    try output.line("next: systemctl daemon-reload")
    try output.line("next: systemctl restart \(service.quotedForShell)")
    try output.object(json(dropIn) + ["installed": path.string])
  }

  private func made() throws -> (dropIn: UnitDropIn, text: String) {
    let loaded = try source.load()
    output.warn(loaded.warnings)
    let dropIn = try UnitDropIn(loaded)
    let files = loaded.files.map(\.printable).joined(separator: ", ")
    return (dropIn, "# Printed by hopctl check-config --drop-in from \(files)\n" + dropIn.text)
  }

  private func json(_ dropIn: UnitDropIn) -> JSONObject {
    [
      "readWritePaths": dropIn.writable.map(\.string), "requiresMountsFor": dropIn.mounted.map(\.string),
      "missing": dropIn.missing.map(\.string), "text": dropIn.text,
    ]
  }
}
