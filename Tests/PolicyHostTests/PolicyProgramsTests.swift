import BlockingTests
import Diagnostics
import Dispatch
import Glibc
import MigrationPolicy
import Synchronization
import SystemPackage
import Testing

@testable import PolicyHost

/// All possible failures of a program, and that nothing of it is left afterwards.
@Suite(.blocking) struct PolicyProgramsTests {
  /// A folder for a test's scripts.
  private final class Room {
    let path: FilePath

    init() throws {
      var template = Array("/tmp/hopd-policy-test.XXXXXX".utf8CString)
      try #require(mkdtemp(&template) != nil)
      path = FilePath(String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }

    func file(_ name: String, _ text: String, mode: mode_t = 0o755) throws -> String {
      let path = path.appending(name).string
      let file = try #require(fopen(path, "w"))
      fputs(text, file)
      fclose(file)
      chmod(path, mode)
      return path
    }

    func text(_ name: String) -> String? {
      guard let file = fopen(path.appending(name).string, "r") else { return nil }
      defer { fclose(file) }
      var buffer = [UInt8](repeating: 0, count: 1 << 16)
      return String(decoding: buffer[..<fread(&buffer, 1, buffer.count, file)], as: UTF8.self)
    }

    deinit {
      for name in ["policy", "pid", "child"] { unlink(path.appending(name).string) }
      rmdir(path.string)
    }
  }

  /// Lines of standard error.
  private final class Lines: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    func add(_ line: String) { lines.withLock { $0.append(line) } }
  }

  private static let prelude = """
    import os, sys, json, struct, time, signal
    sys.path.insert(0, '\(Programs.root.appending("python").string)')
    from hopd_policy import EntityMigrationPolicy, run
    open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'pid'), 'w').write(str(os.getpid()))
    def read():
        head = sys.stdin.buffer.read(4)
        return json.loads(sys.stdin.buffer.read(struct.unpack('>I', head)[0])) if head else None
    def write(text):
        body = text.encode()
        sys.stdout.buffer.write(struct.pack('>I', len(body)) + body)
        sys.stdout.buffer.flush()

    """

  /// Runs `call` on a program of that Python text; returns the error, and whether the program is gone.
  private func failure(
    _ script: String, limits: PolicyLimits = PolicyLimits(timeout: .seconds(20)), lines: Lines = Lines(),
    call: PolicyCall = .begin, stage: PolicyStage? = nil,
    isStopped: @escaping @Sendable () -> Bool = { false }
  ) throws -> HopdError {
    let room = try Room()
    let file = try room.file("policy", Self.prelude + script)
    let command = [try #require(Programs.python), "-S", file]
    let programs = PolicyPrograms(["Policy": PolicyBinding(command: command, limits: limits)], isStopped: isStopped) {
      policy, mapping, line in
      #expect(policy == "App.Policy" && mapping == "BookToBook")
      lines.add(line)
    }
    defer {
      for name in ["pid", "child"] {
        if let text = room.text(name), let number = pid_t(text) {
          #expect(isGone(number), "the program or its child is still there")
        }
      }
    }
    do {
      var introduction = PolicyIntroduction.books(policy: "App.Policy")
      introduction.stage = stage
      let conversation = try programs.open(introduction)
      defer { conversation.close() }
      _ = try conversation.call(call, keys: PolicyKeys(next: ["Book": 1])) { _ in .done }
    } catch let error as HopdError {
      return error
    }
    throw HopdError(.internalError, "nothing failed")
  }

  @Test func aProgramWhoseFileIsOpenForWritingForAMomentIsWaitedFor() throws {
    let room = try Room()
    let file = try room.file("policy", "#!/bin/sh\nexit 7\n")
    let descriptor = open(file, O_WRONLY | O_CLOEXEC)
    try #require(descriptor >= 0)
    DispatchQueue(label: "a child until its exec").async {
      usleep(50_000)
      close(descriptor)
    }
    let process = try PolicyProcess.start(FilePath(file), arguments: [file], environment: [:], memory: nil)
    #expect(process.finish(waiting: .seconds(20)) == .exit(7))
  }

  /// Neither running nor waiting for this process to reap it. A child of the program is reaped by the process that has
  /// that duty here.
  private func isGone(_ number: pid_t) -> Bool {
    for _ in 0..<100 {
      guard kill(number, 0) == 0 else { return true }
      if let file = fopen("/proc/\(number)/stat", "r") {
        defer { fclose(file) }
        var buffer = [UInt8](repeating: 0, count: 512)
        let text = String(decoding: buffer[..<fread(&buffer, 1, buffer.count, file)], as: UTF8.self)
        let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
        if fields.count > 1, fields[0] == "Z", fields[1] != "\(getpid())" { return true }
      }
      usleep(20_000)
    }
    return false
  }

  private static let policy = "class Policy(EntityMigrationPolicy):\n    def begin(self, mapping, manager):\n"

  @Test func aHookThatFailsIsReportedInItsWords() throws {
    let error = try failure(Self.policy + "        raise ValueError('no luck')\nrun(Policy)")
    #expect(
      error.code.name == "policy-failed" && error.message.contains("failed in begin: ValueError: no luck"), "\(error)")
    #expect(error.message.contains("App.Policy") && error.message.contains("BookToBook"))
    #expect(error.reasons.contains { $0.message.contains("ValueError: no luck") }, "the traceback is quoted")
  }

  @Test func aCrashNamesItsSignalAndTheLastLines() throws {
    let error = try failure(
      Self.policy
        + "        print('just before', file=sys.stderr); sys.stderr.flush(); os.kill(os.getpid(), "
        + "signal.SIGSEGV)\nrun(Policy)"
    )
    #expect(
      error.code.name == "policy-failed" && error.message.contains("crashed in begin with signal 11 (SIGSEGV)"),
      "\(error)")
    #expect(error.reasons.contains { $0.message == "the program wrote: just before" }, "\(error)")
    let killed = try failure(Self.policy + "        os.kill(os.getpid(), signal.SIGKILL)\nrun(Policy)")
    #expect(killed.message.contains("was killed in begin"), "\(killed)")
  }

  @Test func anEarlyEndNamesItsStatus() throws {
    let error = try failure(Self.policy + "        os._exit(3)\nrun(Policy)")
    #expect(error.message.contains("ended in begin with exit status 3"), "\(error)")
    // Without reading anything: what we write has no reader, and that must not kill us.
    let deaf = try failure("os.close(0)\nwrite('{\"hello\":1}')\ntime.sleep(0.2)\nos._exit(4)")
    #expect(deaf.message.contains("exit status 4"), "\(deaf)")
    let silent = try failure("os.close(1)\ntime.sleep(60)")
    #expect(silent.message.contains("closed its standard output"), "\(silent)")
  }

  /// The program, and what it has started, are gone when the time is up.
  @Test func aHangEndsWithTheTimeAndTheWholeGroup() throws {
    let error = try failure(
      Self.policy + """
                import subprocess
                child = subprocess.Popen(['/bin/sleep', '600'])
                open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'child'), 'w').write(str(child.pid))
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(600)
        run(Policy)
        """, limits: PolicyLimits(timeout: .milliseconds(1500)))
    #expect(
      error.code.name == "policy-limit" && error.message.contains("took longer than 1.5 seconds in begin"), "\(error)")
  }

  @Test func aStageHasTheTimeBetweenTwoMessages() throws {
    func policy(_ base: String, _ hook: String) -> String {
      "import sys\nsys.path.insert(0, '\(Programs.root.appending("python").string)')\n"
        + "from hopd_policy import \(base), PolicyError, run\nclass Policy(\(base)):\n"
        + "    def \(hook)(self, _, manager):\n"
        + "        for _ in range(5): time.sleep(0.5); manager.log('at work')\n        raise PolicyError('all done')\n"
        + "run(Policy)\n"
    }
    let limits = PolicyLimits(timeout: .milliseconds(1500))
    let stage = try failure(
      policy("CustomMigrationStage", "will_migrate"), limits: limits, call: .willMigrate, stage: .willMigrate)
    #expect(
      stage.message.hasPrefix("the program App.Policy of the stage ") && stage.message.contains("all done"), "\(stage)")
    let begin = try failure(policy("EntityMigrationPolicy", "begin"), limits: limits)
    #expect(begin.code.name == "policy-limit", "\(begin)")
    let wrong = try failure(policy("EntityMigrationPolicy", "begin"), call: .willMigrate, stage: .willMigrate)
    #expect(wrong.message.contains("Policy is no CustomMigrationStage"), "\(wrong)")
  }

  @Test func aStopEndsTheWait() throws {
    let error = try failure("time.sleep(600)", isStopped: { true })
    #expect(error.code == .interrupted)
  }

  @Test func textOnStandardOutputIsNoMessage() throws {
    let error = try failure("sys.stdout.write('Hello, world'); sys.stdout.flush(); time.sleep(60)")
    #expect(
      error.code.name == "policy-protocol" && error.hint?.contains("standard output belongs to the protocol") == true,
      "\(error)")
    let flood = try failure("while True: sys.stdout.write('y\\n' * 1000)")
    #expect(flood.code.name == "policy-protocol", "\(flood)")
    let garbage = try failure("write('{\"hello\":')\ntime.sleep(60)")
    #expect(garbage.code.name == "policy-protocol" && garbage.message.contains("cannot be read"), "\(garbage)")
    // In one write: what comes later may be taken for the answer to the next call.
    let twice = try failure(
      "bodies = [b'{\"hello\":1}', b'{\"reply\":\"done\"}']\n"
        + "sys.stdout.buffer.write(b''.join(struct.pack('>I', len(body)) + body for body in bodies))\n"
        + "sys.stdout.buffer.flush()\ntime.sleep(60)")
    #expect(twice.code.name == "policy-protocol", "\(twice)")
  }

  @Test func aMessageBeyondTheLimitIsRefusedByItsHead() throws {
    let error = try failure(
      "sys.stdout.buffer.write(b'\\x7f\\xff\\xff\\xff'); sys.stdout.buffer.flush(); time.sleep(60)")
    #expect(error.code.name == "policy-limit" && error.message.contains("2147483647 bytes"), "\(error)")
    // Ours are measured, too.
    let book = PolicyObject(
      id: PolicyObjectID(side: .source, entity: "Book", key: 1),
      values: ["title": .string(String(repeating: "x", count: 9000))])
    let ours = try failure(
      Self.policy + "        pass\nrun(Policy)", limits: PolicyLimits(messageBytes: 8000),
      call: .createDestinationInstances([PolicySourceInstance(source: book, standard: book)]))
    #expect(ours.code.name == "policy-limit" && ours.message.contains("8000 bytes"), "\(ours)")
  }

  @Test func aFloodOnStandardErrorIsCutAndHoldsNothingUp() throws {
    let lines = Lines()
    let error = try failure(
      Self.policy + "        for number in range(40000): print('line', number, 'x' * 20, file=sys.stderr)\n"
        + "        print('y' * 100000, file=sys.stderr)\n        raise ValueError('end')\nrun(Policy)", lines: lines)
    #expect(error.message.contains("ValueError: end"), "\(error)")
    #expect(lines.all.first == "line 0 " + String(repeating: "x", count: 20))
    #expect(lines.all.last?.contains("the rest is left out") == true)
    #expect(lines.all.reduce(0) { $0 + $1.utf8.count } < DiagnosticLines.totalLimit + 1000)
    #expect(
      error.reasons.count <= DiagnosticLines.lastCount && error.reasons.last?.message.contains("ValueError") == true)
  }

  /// `print` in a policy is a line for the journal.
  @Test func printedLinesReachTheObserver() throws {
    let lines = Lines()
    _ = try failure(
      Self.policy + "        print('printed'); sys.stdout.flush(); raise ValueError\nrun(Policy)", lines: lines)
    #expect(lines.all.first == "printed")
  }

  @Test func anotherVersionOfTheProtocolIsRefused() throws {
    let error = try failure("write('{\"hello\":9}')\ntime.sleep(60)")
    #expect(error.code.name == "policy-protocol" && error.message.contains("version 9"), "\(error)")
    let other = try failure("class Other(EntityMigrationPolicy): pass\nrun(Other)")
    #expect(other.message.contains("this program has no policy App.Policy; it has Other"), "\(other)")
  }

  @Test func memoryIsLimited() throws {
    let error = try failure(
      Self.policy + "        self.data = bytearray(1 << 30)\nrun(Policy)", limits: PolicyLimits(memory: 200 << 20))
    #expect(error.message.contains("MemoryError"), "\(error)")
  }

  @Test func aProgramSeesNothingOfOurs() throws {
    setenv("HOPD_TEST_SECRET", "x", 1)
    let lines = Lines()
    _ = try failure(
      Self.policy + """
                names = [n for n in os.environ if n != 'LC_CTYPE']
                print(os.getcwd(), ' '.join(sorted(names)), os.environ['HOPD_POLICY'], os.getpgrp() == os.getpid())
                files = [os.readlink('/proc/self/fd/' + n) for n in os.listdir('/proc/self/fd') \
                if os.path.exists('/proc/self/fd/' + n)]
                print(' '.join(sorted({f.split(':')[0] for f in files if not f.startswith('/proc')})), len(files) <= 5)
                import resource
                print(resource.getrlimit(resource.RLIMIT_CORE), \
                resource.getrlimit(resource.RLIMIT_DATA)[0] == 256 << 20)
                sys.stdout.flush()
                raise ValueError
        run(Policy)
        """, lines: lines)
    #expect(
      lines.all.first
        == "/ HOPD_MAPPING HOPD_POLICY HOPD_PROTOCOL LANG PATH PYTHONPATH SWIFT_BACKTRACE App.Policy True",
      "\(lines.all)")
    #expect(lines.all.dropFirst().first == "pipe True", "\(lines.all)")
    #expect(lines.all.dropFirst(2).first == "(0, 0) True", "\(lines.all)")
  }

  @Test func aProgramThatDoesNotEndIsEnded() throws {
    let room = try Room()
    let file = try room.file("policy", Self.prelude + "write('{\"hello\":1}')\nwhile True: time.sleep(60)")
    let conversation = try PolicyPrograms(["Policy": PolicyBinding(command: [try #require(Programs.python), file])])
      .open(.books(policy: "Policy"))
    conversation.close()
    let number = try #require(room.text("pid").flatMap { pid_t($0) })
    #expect(kill(number, 0) < 0 && errno == ESRCH)
  }

  @Test func methodsOfAPolicy() throws {
    let room = try Room()
    let file = try room.file(
      "policy",
      Self.prelude
        + "class Policy(EntityMigrationPolicy):\n    def hexOf_with(self, a, b): return (a or '') + str(b)\nrun(Policy)"
    )
    let conversation = try PolicyPrograms(["App.Policy": PolicyBinding(command: [try #require(Programs.python), file])])
      .open(.books(policy: "Policy"))
    defer { conversation.close() }
    let reply = try conversation.call(
      .method(selector: "hexOf:with:", arguments: [["a", 1], [.null, 2.5]]), keys: PolicyKeys(next: [:])
    ) { _ in .done }
    #expect(reply == .results(["a1", "2.5"]))
  }

  @Test func whatCannotBeStartedSaysWhy() throws {
    let room = try Room()
    func error(_ command: [String]) -> HopdError? {
      do {
        try PolicyPrograms(["Policy": PolicyBinding(command: command)]).open(.books(policy: "Policy")).close()
        return nil
      } catch { return error as? HopdError }
    }
    let cases: [([String], String)] = [
      ([], "is not named"), (["/nowhere/policy"], "does not exist: /nowhere/policy"),
      (["policies/mine"], "relative path"),
      (["no-such-program-of-hopd"], "not in PATH"), (["/tmp"], "not an executable file"),
      ([try room.file("policy", "#!/bin/sh\n", mode: 0o644)], "not an executable file"),
    ]
    for (command, text) in cases {
      let error = try #require(error(command))
      #expect(error.code == .policyUnusable && error.message.contains(text) && error.hint != nil, "\(error)")
    }
    let interpreter = try #require(error([try room.file("policy", "#!/nowhere/python\n")]))
    #expect(interpreter.code == .policyUnusable, "\(interpreter)")
    #expect(interpreter.hint?.contains("#!/usr/bin/python3") == true, "\(interpreter)")
  }

  @Test func classesAreFoundWithAndWithoutModule() throws {
    let one = PolicyBinding(command: ["/one"])
    let two = PolicyBinding(command: ["/two"])
    #expect(try PolicyPrograms(["Policy": one]).binding(for: "App.Policy") == one)
    #expect(try PolicyPrograms(["App.Policy": one]).binding(for: "Policy") == one)
    #expect(try PolicyPrograms(["App.Policy": one, "Policy": two]).binding(for: "App.Policy") == one)
    #expect(!PolicyPrograms(["Other.Policy": one]).isBound("App.Policy"))
    #expect(
      PolicyPrograms(["Policy": one]).isBound("App.Policy") && !PolicyPrograms(["Policy": one]).isBound("App.Police"))
    let both = PolicyPrograms(["A.Policy": one, "B.Policy": two])
    let ambiguous = #expect(throws: HopdError.self) { try both.binding(for: "Policy") }
    #expect(ambiguous?.message.contains("A.Policy, B.Policy") == true)
    let unbound = #expect(throws: HopdError.self) { try both.check("C.Other") }
    #expect(unbound?.hint?.contains("--policy Other=") == true)
  }
}
