// Files of strangers: whatever is in them, the answer is an error about the file, in lines that stay what they are, and
// never a crash or an internal error.

import FoundationEssentials
import Glibc
import SystemPackage
import Testing

@Suite(.enabled(if: Program.isBuilt, Program.absence))
struct HostileInputTests {
  /// A compiled bundle whose VersionInfo.plist names one version, of which there is no `.mom`.
  private func bundle(_ room: Room, naming version: String) throws -> String {
    try room.file(
      "Odd.momd/VersionInfo.plist",
      """
      <?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict><key>NSManagedObjectModel_VersionHashes</key>
      <dict><key>\(version)</key><dict/></dict></dict></plist>
      """)
    return room.path("Odd.momd")
  }

  /// A name can neither begin a line of its own nor send the terminal a command.
  @Test func namesOfStrangersStayWithinTheirLine() throws {
    let room = try Room()
    let outcome = try room.run(
      "model", "list", try bundle(room, naming: "a&#x9b;31m&#10;hopctl: all is well&#x2028;&#x202e;"))
    #expect(outcome.status == 65)
    #expect(outcome.errors.contains("“a\\x9b31m\\x0ahopctl: all is well\\u{2028}\\u{202e}”"))
    let lines = outcome.errors.split(separator: "\n")
    #expect(lines.dropFirst().allSatisfy { $0.hasPrefix("  ") } && lines.count > 1, "\(outcome.errors)")
    // The same of names in a store.
    let store = try room.store("a.sqlite")
    try room.sql(
      store,
      "INSERT INTO Z_PRIMARYKEY VALUES (16500, 'X' || char(27, 10) || 'hopctl: fine', 0, 0); "
        + "CREATE TABLE \"Y\u{1b}[31m\" (a)")
    let plan = try room.run("plan", store, "--models", room.model)
    #expect(plan.status == 65)
    #expect(plan.errors.contains("X\\x1b\\x0ahopctl: fine") && plan.errors.contains("Y\\x1b[31m"), "\(plan.errors)")
    #expect(!plan.errors.contains("\u{1b}"))
  }

  /// What helps stands at the end, and is not buried under a name.
  @Test func longNamesAreShortened() throws {
    let room = try Room()
    let outcome = try room.run("model", "list", try bundle(room, naming: String(repeating: "V", count: 100_000)))
    #expect(outcome.status == 65)
    #expect(outcome.errors.utf8.count < 8000)
    #expect(outcome.errors.contains("characters left out") && outcome.errors.contains("hint: Copy the whole .momd"))
  }
}
