// What the programs do where the system gives less than they need: leases, threads, memory.

import Glibc
import SystemPackage
import Testing

@Suite(.enabled(if: Program.isBuilt, Program.absence))
struct LimitsTests {
  private func inode(_ path: String) -> UInt {
    var status = stat()
    return lstat(path, &status) == 0 ? UInt(status.st_ino) : 0
  }

  /// The capabilities of the example for stores of many owners, with and without CAP_LEASE.
  @Test(
    .enabled(if: geteuid() == 0 && access("/usr/bin/setpriv", X_OK) == 0, "needs root and setpriv"),
    arguments: [false, true])
  func aStoreOfAnotherOwnerIsReplacedInPlaceWithoutALease(_ hasLease: Bool) throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let program = try #require(Program.path)
    #expect(chown(store, 20_001, 20_001) == 0)
    #expect(chmod(room.path.string, 0o755) == 0)
    let before = inode(store)
    func migrate(_ more: String...) throws -> Outcome {
      try room.wait(
        room.start(
          program: "/usr/bin/setpriv",
          [
            "--bounding-set", "-all,+chown,+fowner,+dac_override" + (hasLease ? ",+lease" : ""), program.string,
            "migrate", store,
            "--models", room.model, "--no-progress",
          ] + more))
    }
    if !hasLease {
      let refused = try migrate("--replace", "rename")
      #expect(refused.status == 73, "\(refused.errors)")
      #expect(
        refused.errors.contains("CAP_LEASE") && refused.errors.contains("--replace in-place"), "\(refused.errors)")
      #expect(inode(store) == before)
    }
    let done = try migrate()
    #expect(done.status == 0, "\(done.errors)")
    #expect((inode(store) == before) == !hasLease)
    var status = stat()
    #expect(lstat(store, &status) == 0 && status.st_uid == 20_001)
    #expect(try room.run("identify", store, "--models", room.model, "--json").json().state?.text == "current")
  }

  /// It said that it was ready, and never did anything.
  @Test func tooLittleMemoryIsAnErrorAtTheStart() throws {
    let room = try Room()
    let hopd = try #require(Program.path).removingLastComponent().appending("hopd")
    try #require(access(hopd.string, X_OK) == 0)
    try room.file("stores/none", "")
    try room.file("state/none", "")
    try room.file(
      "hopd.toml",
      "[[watch]]\nname = \"w\"\ndirectory = \"\(room.path("stores"))\"\nmodels = [\"\(room.model)\"]\n")
    let outcome = try room.wait(
      room.start(
        program: "/bin/sh",
        [
          "-c", "ulimit -d 50000; exec timeout 60 \"$0\" --config \"$1\" --state-directory \"$2\"", hopd.string,
          room.path("hopd.toml"),
          room.path("state"),
        ]))
    #expect(outcome.status == 78, "\(outcome.status) \(outcome.output) \(outcome.errors)")
    #expect((outcome.output + outcome.errors).contains("that hopd needs"), "\(outcome.errors)")
  }
}
