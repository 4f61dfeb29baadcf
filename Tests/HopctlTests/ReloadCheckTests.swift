// What `systemctl reload hopd` runs first: a configuration that cannot be put in force fails the reload, and the error
// names file and line.

import BlockingTests
import Glibc
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct ReloadCheckTests {
  /// Checks a configuration with one watch.
  private func check(_ option: String, models: String? = nil, directory: String? = nil) throws -> Outcome {
    let room = try Room()
    try room.file("stores/none", "")
    try room.file(
      "hopd.toml",
      """
      [[watch]]
      name = "w"
      directory = "\(directory ?? room.path("stores"))"
      models = ["\(models ?? room.model)"]
      """)
    let hopd = try #require(Program.path).removingLastComponent().appending("hopd")
    return try room.wait(room.start(program: hopd, [option, "--config", room.path("hopd.toml")]))
  }

  @Test func aGoodConfigurationPasses() throws {
    for option in ["--check", "--check-reload"] {
      let outcome = try check(option)
      #expect(outcome.status == 0 && outcome.output.contains("the configuration is valid"), "\(outcome)")
    }
  }

  @Test func modelsThatAreMissingFailTheReload() throws {
    let check = try check("--check", models: "/nowhere/A.momd")
    #expect(check.status == 78 && check.errors.contains("hopd.toml:4"), "\(check)")
    let reload = try self.check("--check-reload", models: "/nowhere/A.momd")
    #expect(reload.status == 78 && reload.errors.contains("hopd.toml:4"), "\(reload)")
    // In the journal: `systemctl reload` shows no output of this command.
    #expect(reload.errors.contains("the old one remains in use") && reload.errors.contains("HOPD_"), "\(reload)")
  }

  /// A watch waits for its directory: a late mount must not keep the other watches from a reload.
  @Test func aDirectoryThatIsMissingFailsTheCheckAlone() throws {
    let check = try check("--check", directory: "/nowhere/stores")
    #expect(check.status == 78 && check.errors.contains("hopd.toml:3"), "\(check)")
    let reload = try self.check("--check-reload", directory: "/nowhere/stores")
    #expect(reload.status == 0 && reload.errors.contains("warning: "), "\(reload)")
    #expect(reload.errors.contains("hopd.toml:3") && reload.errors.contains("/nowhere/stores"), "\(reload)")
  }
}
