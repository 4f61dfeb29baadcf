// What the programs do where the system gives less than they need: leases, threads, memory.

import BlockingTests
import Glibc
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
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

  /// hopd with a watch of an empty directory, started by a line of the shell in which "$0" is the program.
  private func hopd(_ line: String, shell: [String] = ["/bin/sh"]) throws -> Outcome {
    let room = try Room()
    let hopd = try #require(Program.path).removingLastComponent().appending("hopd")
    try #require(access(hopd.string, X_OK) == 0)
    try room.file("stores/none", "")
    try room.file("state/none", "")
    try room.file(
      "hopd.toml",
      "[[watch]]\nname = \"w\"\ndirectory = \"\(room.path("stores"))\"\nmodels = [\"\(room.model)\"]\n")
    let words = shell + ["-c", line, hopd.string, room.path("hopd.toml"), room.path("state")]
    return try room.wait(room.start(program: FilePath(words[0]), Array(words.dropFirst())))
  }

  /// It said that it was ready, and never did anything.
  @Test func tooLittleMemoryIsAnErrorAtTheStart() throws {
    let outcome = try hopd("ulimit -d 50000; exec timeout 60 \"$0\" --config \"$1\" --state-directory \"$2\"")
    #expect(outcome.status == 78, "\(outcome.status) \(outcome.output) \(outcome.errors)")
    #expect((outcome.output + outcome.errors).contains("that hopd needs"), "\(outcome.errors)")
  }

  /// With too few threads hopd reported that it was ready, and never did anything.
  @Test func tooFewThreadsAreAnErrorAtTheStart() throws {
    // Each thread has a stack of a gigabyte in an address space of six: a handful can start.
    let outcome = try hopd(
      """
      ulimit -s 1048576 && ulimit -v 6000000 || exit 99
      exec timeout -s KILL 20 "$0" --config "$1" --state-directory "$2"
      """)
    guard outcome.status != 99 else { return }  // a hard limit of the stack is set here
    let text = outcome.output + outcome.errors
    #expect(outcome.status == 78, "\(outcome.status) \(text)")
    #expect(text.contains("threads that hopd needs") && text.contains("TasksMax="), "\(text)")
  }

  /// A daemon that was killed leaves the lock files of its stores.
  @Test func lockFilesOfKilledProcessesAreRemoved() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    try room.file("state/locks/store-dead.lock", "4711\n")
    #expect(try room.run("migrate", store, "--models", room.model).status == 0)
    #expect(try room.shell(#"ls -A "$STATE/locks""#, ["STATE=\(room.path("state"))"]).output == "")
    let outcome = try hopd(
      """
      mkdir -p "$2/locks" && echo 4711 >"$2/locks/store-dead.lock"
      timeout -s TERM 3 "$0" --config "$1" --state-directory "$2"
      ls -A "$2/locks" | sed 's/^/left: /'
      """)
    #expect(!outcome.output.contains("left: "), "\(outcome.output) \(outcome.errors)")
  }

  /// It was told as "Bad file descriptor".
  @Test(.enabled(if: access("/proc/sys/user/max_inotify_instances", R_OK) == 0, "no user namespaces"))
  func inotifyInstancesThatAreUsedUpAreReportedAsThat() throws {
    // A user namespace has a limit of its own.
    let outcome = try hopd(
      """
      echo 0 > /proc/sys/user/max_inotify_instances || exit 99
      timeout -s TERM 5 "$0" --config "$1" --state-directory "$2"
      """, shell: ["/usr/bin/unshare", "-Ur", "/bin/sh"])
    guard outcome.status != 99, outcome.status != 1 else { return }  // namespaces are switched off here
    let text = outcome.output + outcome.errors
    #expect(text.contains("fs.inotify.max_user_instances"), "\(text)")
    #expect(!text.contains("Bad file descriptor"))
  }
}
