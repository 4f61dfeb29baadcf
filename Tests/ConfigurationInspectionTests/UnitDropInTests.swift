// The drop-in that hopctl prints: what it names, and that a unit that has it may write there.

import Diagnostics
import DurableFiles
import Glibc
import HopdConfiguration
import SystemPackage
import Testing

@testable import ConfigurationInspection

@Suite struct UnitDropInTests {
  private static let unit = "[Service]\nProtectSystem=strict\nProtectHome=yes\nPrivateTmp=yes\nStateDirectory=hopd\n"

  /// A configuration of watches, each by name, directory, place of backups and models.
  private func loaded(
    _ watches: [(name: String, directory: String, backup: String)], models: String = "/srv/models", metrics: String = ""
  ) throws -> LoadedConfiguration {
    func quoted(_ text: String) -> String {
      "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n") + "\""
    }
    let tables = watches.map { name, directory, backup in
      """
      [[watch]]
      name = "\(name)"
      directory = \(quoted(directory))
      models = [\(quoted(models))]
      backup = { directory = \(quoted(backup)) }

      """
    }
    var template = Array("/tmp/hopd-dropin-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let folder = FilePath(platformString: template)
    let path = folder.appending("hopd.toml")
    let file = try #require(fopen(path.string, "w"))
    fputs("[daemon]\nmetrics_file = \(quoted(metrics))\n" + tables.joined(), file)
    fclose(file)
    defer {
      remove(path.string)
      remove(folder.string)
    }
    return try ConfigurationLoader.load(file: path)
  }

  @Test(arguments: [
    "/srv/a", "/srv/two words", "/srv/100%", "/srv/%h", "/srv/it's", "/srv/\"q\"", "/srv/back\\slash", "/srv/ä;#",
    "/srv/-a", "/home/me/stores", "/root/x", "/tmp/x", "/var/tmp/x y",
  ])
  func aUnitWithItMayWriteThere(path: String) throws {
    let loaded = try loaded([("a", path, path + " backup")])
    #expect(UnitFile([Self.unit]).obstacle(to: FilePath(path)) != nil)
    let unit = UnitFile([Self.unit, try UnitDropIn(loaded).text])
    #expect(unit.obstacle(to: FilePath(path)) == nil)
    #expect(unit.obstacle(to: FilePath(path + " backup")) == nil)
    #expect(unit.obstacle(to: FilePath("/srv/other")) != nil, "it allows more than it must")
  }

  @Test func itNamesStoresBackupsAndMetricsOnceEach() throws {
    let dropIn = try UnitDropIn(
      loaded(
        [("a", "/srv/a", ""), ("b", "/srv/a/below", ""), ("c", "/srv/c", "/backup/c")],
        metrics: "/var/lib/prometheus/node-exporter/hopd.prom"))
    #expect(dropIn.mounted == ["/srv/a", "/srv/c", "/backup/c"])
    #expect(dropIn.writable == ["/srv/a", "/srv/c", "/backup/c", "/var/lib/prometheus/node-exporter"])
    #expect(!dropIn.text.contains("ProtectHome") && !dropIn.text.contains("PrivateTmp"))
  }

  @Test("An installed drop-in is where systemd reads it, for everyone, and replaces the one before")
  func installation() throws {
    var template = Array("/tmp/hopd-units-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let units = FilePath(platformString: template)
    let folder = units.appending("hopd@tenant.service.d")
    defer {
      remove(folder.appending("watches.conf").string)
      remove(folder.string)
      remove(units.string)
    }
    for text in ["[Service]\n# a longer text that is replaced\n", "[Service]\n"] {
      let path = try UnitDropIn.install(text, for: "hopd@tenant.service", below: units, files: LinuxFileSystem())
      #expect(path == folder.appending("watches.conf"))
      #expect(try String(decoding: LinuxFileSystem().read(path, limit: 4096), as: UTF8.self) == text)
      var status = stat()
      #expect(stat(path.string, &status) == 0 && status.st_mode & 0o777 == 0o644)
      #expect(stat(folder.string, &status) == 0 && status.st_mode & 0o777 == 0o755)
    }
    #expect(UnitFile.name(serving: nil) == "hopd.service")
    #expect(UnitFile.name(serving: "/etc/hopd/tenant.toml") == "hopd@tenant.service")
    #expect(UnitFile.name(serving: "/home/me/hopd.toml") == nil)
  }

  @Test func modelsBelowHomeMustBeSeen() throws {
    let text = try UnitDropIn(loaded([("a", "/srv/a", "")], models: "/home/me/Library.xcdatamodeld")).text
    #expect(text.contains("ProtectHome=no") && !text.contains("ReadWritePaths=-/home"))
  }

  @Test func whatCannotBeNamedIsRefused() throws {
    #expect(throws: HopdError.self) { try UnitDropIn(loaded([("a", "/srv/new\nline", "")])) }
    let error = #expect(throws: HopdError.self) { try UnitDropIn(loaded([])) }
    #expect(error?.code == .notConfigured)
  }
}
