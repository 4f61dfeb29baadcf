// The main loop of a policy program: it reads frames from standard input and writes frames to standard output until the
// input ends. It first redirects the program's own standard output, so that a `print` in a policy becomes a line for
// the journal and does not break a message.

import Glibc

/// The main program of an executable that contains policies.
public enum PolicyProgram {
  /// Serves hopd until the input ends, then ends the process.
  ///
  /// The keys of `policies` are the class names of the mapping models, with or without their module; the keys of
  /// `stages` are the names in the file of stages.
  ///
  /// ```swift
  /// PolicyProgram.run(["BookToBookPolicy": BookToBookPolicy.self])
  /// ```
  public static func run(
    _ policies: [String: EntityMigrationPolicy.Type] = [:], stages: [String: CustomMigrationStage.Type] = [:]
  ) -> Never {
    do {
      try PolicySession(PolicyClasses(policies: policies, stages: stages), PolicyPipe.takingStandardStreams()).serve()
    } catch {
      let line = Array("\(error)\n".utf8)
      _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
      exit(1)
    }
    exit(0)
  }
}

/// The program's end of the conversation with the engine.
final class PolicySession {
  private let classes: PolicyClasses
  private let pipe: PolicyPipe

  init(_ classes: PolicyClasses, _ pipe: PolicyPipe) {
    self.classes = classes
    self.pipe = pipe
  }

  func serve() throws {
    guard let first = try pipe.read() else { return }
    guard case .introduction(_, let introduction) = try PolicyWire.decodeEngine(first) else {
      throw PolicyWireError("the first message is not an introduction")
    }
    let runner: PolicyRunner
    do {
      runner = try PolicyRunner(introduction, classes: classes)
    } catch {
      return try send(PolicyWire.encode(.reply(.failed("\(error)"))))
    }
    try send(PolicyWire.encode(.hello(version: PolicyWire.version)))
    while let frame = try pipe.read() {
      let outcome = try run(frame, with: runner)
      switch outcome {
      case .done(let operations): try send(PolicyWire.encode(done: operations))
      case .results(let results, let operations):
        try send(PolicyWire.encode(results: results, operations))
      case .failed(let reason): try send(PolicyWire.encode(.reply(.failed(reason))))
      }
    }
    // The exit status tells hopd that a change was lost.
    try runner.close()
  }

  private func run(_ frame: [UInt8], with runner: PolicyRunner) throws -> PolicyRunner.Outcome {
    guard case .call(let call, let keys) = try PolicyWire.decodeEngine(frame) else {
      throw PolicyWireError("a call expected")
    }
    return runner.run(call, keys: keys) { [unowned self] request in try ask(request) }
  }

  private func ask(_ request: PolicyWireRequest) throws -> PolicyAnswer {
    switch request {
    case .apply(let operations): try send(PolicyWire.encode(apply: operations))
    case .plain(let request): try send(PolicyWire.encode(.request(request)))
    }
    guard let frame = try pipe.read(), case .answer(let answer) = try PolicyWire.decodeEngine(frame) else {
      throw PolicyWireError("an answer expected")
    }
    return answer
  }

  private func send(_ frame: [UInt8]?) throws {
    guard let frame else { throw PolicyWireError("a message is longer than 4 GiB") }
    try pipe.write(frame)
  }
}

/// Reads and writes frames over two file descriptors.
final class PolicyPipe {
  private let input: Int32
  private let output: Int32
  private var buffer: [UInt8] = []
  private var chunk = [UInt8](repeating: 0, count: 1 << 16)

  init(input: Int32, output: Int32) {
    self.input = input
    self.output = output
  }

  /// Takes standard input and output for frames; from now on the program's own output goes to standard error.
  static func takingStandardStreams() throws -> PolicyPipe {
    let output = dup(STDOUT_FILENO)
    guard output >= 0, dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 else {
      throw PolicyError("a policy program is started by hopd: it needs standard input, output and error")
    }
    _ = fcntl(output, F_SETFD, FD_CLOEXEC)
    return PolicyPipe(input: STDIN_FILENO, output: output)
  }

  /// Returns the JSON of the next frame; nil at the end of the input.
  func read() throws -> [UInt8]? {
    while true {
      if buffer.count >= JSONWriter.headLength {
        let length = buffer[..<JSONWriter.headLength].reduce(0) { $0 << 8 | Int($1) }
        let end = JSONWriter.headLength + length
        if buffer.count == end {
          defer { buffer = [] }
          buffer.removeFirst(JSONWriter.headLength)
          return buffer
        }
        if buffer.count > end {
          let json = Array(buffer[JSONWriter.headLength..<end])
          buffer.removeFirst(end)
          return json
        }
        buffer.reserveCapacity(end)
      }
      let count = Glibc.read(input, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw PolicyError("standard input cannot be read (error \(errno))") }
      guard count > 0 else {
        guard buffer.isEmpty else { throw PolicyWireError("the input ends within a message") }
        return nil
      }
      buffer.append(contentsOf: chunk[..<count])
    }
  }

  func write(_ frame: [UInt8]) throws {
    var written = 0
    while written < frame.count {
      let count = frame.withUnsafeBytes { bytes in
        Glibc.write(output, bytes.baseAddress.map { $0 + written }, bytes.count - written)
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw PolicyError("standard output cannot be written (error \(errno))") }
      written += count
    }
  }
}
