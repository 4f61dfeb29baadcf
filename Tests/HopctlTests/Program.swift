// Runs the built hopctl as a user does: a process with arguments, an exit status and two streams.

import FoundationEssentials
import Glibc
import SystemPackage
import Testing

/// The built program.
enum Program {
  /// Where it is: in the folder HOPD_PROGRAMS, to try the programs that are shipped; else in the
  /// folder of the test bundle, where every build of the package puts it. nil where it is not built.
  static let path: FilePath? = {
    if let folder = getenv("HOPD_PROGRAMS") {
      let program = FilePath(String(cString: folder)).appending("hopctl")
      return access(program.string, X_OK) == 0 ? program : nil
    }
    var buffer = [CChar](repeating: 0, count: 4096)
    guard readlink("/proc/self/exe", &buffer, buffer.count - 1) > 0 else { return nil }
    let own = FilePath(String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
    // The runner of a test bundle may be another program; the bundle's own path stands in its arguments.
    let folders = ([own] + CommandLine.arguments.map { FilePath($0) }).map { $0.removingLastComponent() }
    return folders.map { $0.appending("hopctl") }.first { access($0.string, X_OK) == 0 }
  }()

  static var isBuilt: Bool { path != nil }
  static let absence: Comment = "hopctl is not built beside the tests: swift build --product hopctl"
}

/// What a run gave.
struct Outcome {
  let status: Int32
  let output: String
  let errors: String

  /// The output as JSON.
  func json() throws -> JSON { try JSONDecoder().decode(JSON.self, from: Data(output.utf8)) }

  /// The output as NDJSON.
  func lines() throws -> [JSON] {
    try output.split(separator: "\n").map { try JSONDecoder().decode(JSON.self, from: Data($0.utf8)) }
  }
}

/// Any JSON value.
@dynamicMemberLookup
enum JSON: Decodable, Equatable {
  case null
  case boolean(Bool)
  case number(Double)
  case string(String)
  case array([JSON])
  case object([String: JSON])

  init(from decoder: any Decoder) throws {
    let value = try decoder.singleValueContainer()
    if value.decodeNil() {
      self = .null
    } else if let boolean = try? value.decode(Bool.self) {
      self = .boolean(boolean)
    } else if let number = try? value.decode(Double.self) {
      self = .number(number)
    } else if let string = try? value.decode(String.self) {
      self = .string(string)
    } else if let array = try? value.decode([JSON].self) {
      self = .array(array)
    } else {
      self = .object(try value.decode([String: JSON].self))
    }
  }

  /// The member; nil where it is not there, `.null` where it is null.
  subscript(dynamicMember name: String) -> JSON? { if case .object(let members) = self { members[name] } else { nil } }

  var keys: Set<String> { if case .object(let members) = self { Set(members.keys) } else { [] } }
  var list: [JSON] { if case .array(let items) = self { items } else { [] } }
  var text: String? { if case .string(let text) = self { text } else { nil } }
  var int: Int? { if case .number(let number) = self { Int(exactly: number) } else { nil } }
}

/// A folder with a model of three versions and room for stores; removed at the end.
final class Room {
  let path: FilePath
  var model: String { path.appending("Zoo.xcdatamodeld").string }

  init() throws {
    var template = Array("/tmp/hopctl-test-XXXXXX".utf8CString)
    let made: String? = template.withUnsafeMutableBufferPointer { buffer in
      guard let start = buffer.baseAddress, mkdtemp(start) != nil else { return nil }
      return String(cString: start)
    }
    path = FilePath(try #require(made))
    try write(version("Zoo", ""))
    try write(version("Zoo 2", "<attribute name='born' optional='YES' attributeType='Date'/>"))
    try write(
      version("Zoo 10", "<attribute name='legs' attributeType='Integer 16' defaultValueString='4'/>", colour: false))
    try file(
      "Zoo.xcdatamodeld/.xccurrentversion",
      """
      <?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict><key>_XCCurrentVersionName</key>
      <string>Zoo 10.xcdatamodel</string></dict></plist>
      """)
  }

  deinit { try? FileManager.default.removeItem(atPath: path.string) }

  private func version(_ name: String, _ more: String, colour: Bool = true) -> (String, String) {
    let colour = colour ? "<attribute name='colour' optional='YES' attributeType='String'/>" : ""
    return (
      name,
      """
      <?xml version="1.0"?><model><entity name='Animal'><attribute name='name' attributeType='String'/>\(colour)\(more)
      <relationship name='keeper' optional='YES' maxCount='1' destinationEntity='Keeper' inverseName='animals'
        inverseEntity='Keeper'/></entity>
      <entity name='Bird' parentEntity='Animal'/>
      <entity name='Keeper'><relationship name='animals' optional='YES' toMany='YES' destinationEntity='Animal'
        inverseName='keeper' inverseEntity='Animal'/></entity></model>
      """
    )
  }

  private func write(_ version: (name: String, contents: String)) throws {
    try file("Zoo.xcdatamodeld/\(version.name).xcdatamodel/contents", version.contents)
  }

  /// Writes a file and the folders above it.
  func file(_ name: String, _ text: String) throws {
    let file = path.appending(name)
    try FileManager.default.createDirectory(
      atPath: file.removingLastComponent().string, withIntermediateDirectories: true)
    try Data(text.utf8).write(to: URL(filePath: file.string))
  }

  func path(_ name: String) -> String { path.appending(name).string }

  /// Names, sizes and times of everything in the folder of stores.
  func snapshot() throws -> [String] {
    let folder = path("stores")
    return try FileManager.default.contentsOfDirectory(atPath: folder).sorted().map { name in
      var status = stat()
      #expect(lstat("\(folder)/\(name)", &status) == 0)
      return "\(name) \(status.st_ino) \(status.st_size) \(status.st_mtim.tv_sec) \(status.st_mtim.tv_nsec)"
    }
  }

  /// A store of a version in the folder of stores.
  @discardableResult
  func store(_ name: String, version: String = "Zoo", rows: Int = 30) throws -> String {
    try FileManager.default.createDirectory(atPath: path("stores"), withIntermediateDirectories: true)
    let store = path("stores/\(name)")
    let outcome = try run(
      "create", store, "--models", model, "--model-version", version, "--rows", "\(rows)", "--seed", "3")
    try #require(outcome.status == 0, "\(outcome.errors)")
    return store
  }

  // MARK: Running

  /// Starts hopctl; its state lies in this folder and its streams in files.
  func start(
    _ arguments: [String], variables: [String] = []
  ) throws -> (process: pid_t, output: String, errors: String) {
    try start(program: try #require(Program.path), arguments, variables: variables)
  }

  func start(
    program: FilePath, _ arguments: [String], variables more: [String] = []
  ) throws -> (process: pid_t, output: String, errors: String) {
    let (output, errors) = (
      path(".out-\(UInt32.random(in: 0 ... .max))"), path(".err-\(UInt32.random(in: 0 ... .max))")
    )
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    // What a sanitizer is told holds for the program too.
    let sanitizers = ["ASAN_OPTIONS", "TSAN_OPTIONS"].compactMap { (name: String) -> String? in
      getenv(name).map { "\(name)=" + String(cString: $0) }
    }
    let variables =
      ["PATH=/usr/bin:/bin", "HOME=\(path.string)", "HOPD_STATE_DIRECTORY=\(path("state"))"] + sanitizers + more
    var argv = ([program.string] + arguments).map { $0.withCString { strdup($0) } } + [nil]
    var environment = variables.map { $0.withCString { strdup($0) } } + [nil]
    defer { for pointer in argv + environment { free(pointer) } }
    var process: pid_t = 0
    try #require(posix_spawn(&process, program.string, &actions, nil, &argv, &environment) == 0)
    return (process, output, errors)
  }

  func wait(_ started: (process: pid_t, output: String, errors: String)) throws -> Outcome {
    var status: Int32 = 0
    try #require(waitpid(started.process, &status, 0) == started.process)
    defer {
      unlink(started.output)
      unlink(started.errors)
    }
    func text(_ path: String) throws -> String {
      String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
    }
    // A signal's number with 128 added, as a shell tells it.
    let code = status & 0x7f == 0 ? status >> 8 & 0xff : 128 + status & 0x7f
    return Outcome(status: code, output: try text(started.output), errors: try text(started.errors))
  }

  /// Changes or asks a store by sqlite3; the answer without the end of its line.
  @discardableResult
  func sql(_ store: String, _ statement: String) throws -> String {
    let started = try start(program: "/usr/bin/sqlite3", [store, statement])
    let outcome = try wait(started)
    try #require(outcome.status == 0, "\(outcome.errors)")
    return outcome.output.split(separator: "\n").joined(separator: "\n")
  }

  /// Runs hopctl to its end.
  func run(_ arguments: String...) throws -> Outcome { try wait(start(arguments)) }

  /// The same with words from a table.
  func run(words: [String], variables: [String] = []) throws -> Outcome {
    try wait(start(words, variables: variables))
  }

  /// Runs hopctl and sends a signal after a while.
  func run(_ arguments: String..., signal: Int32, after milliseconds: UInt32) throws -> Outcome {
    let started = try start(arguments)
    usleep(milliseconds * 1000)
    kill(started.process, signal)
    return try wait(started)
  }
}
