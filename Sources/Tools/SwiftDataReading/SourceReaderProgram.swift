// Starts the reader of Swift source, gives it files, and takes its facts. It is a program of its own because the source
// may be anybody's, and because only users of SwiftData need swift-syntax (docs/decisions/0186).

import Diagnostics
import FoundationEssentials
import Glibc
import PolicyHost
import SwiftDataSource
import SystemPackage

extension HopdError.Code {
  /// The program that reads Swift source is not installed, or cannot be started.
  package static let noSourceReader = HopdError.Code("no-source-reader", exit: .configuration)
  /// The source is more than the reader takes.
  package static let sourceTooLarge = HopdError.Code("source-too-large", exit: .dataError)
  /// The reader ended before it had read the source.
  package static let sourceUnreadable = HopdError.Code("source-unreadable", exit: .dataError)
}

/// The reader's limits. An app of a million lines has 40 MB of source.
package struct SourceLimits: Sendable {
  package var time: Duration = .seconds(120)
  package var memory: Int64 = 2 << 30
  package var outputBytes = 256 << 20
  package var fileBytes = 4 << 20
  package var allBytes = 256 << 20
  package var files = 20_000

  package init() {}
}

/// The program.
package struct SourceReaderProgram: Sendable {
  static let name = "hopctl-swiftdata-reader"
  package let path: FilePath
  let limits: SourceLimits

  /// Takes the program at a path.
  package init(_ path: FilePath, limits: SourceLimits = SourceLimits()) {
    self.path = path
    self.limits = limits
  }

  /// Finds the program: where an installation has it, or in the checkout that this program was built in.
  package static func find() throws(HopdError) -> SourceReaderProgram {
    var buffer = [CChar](repeating: 0, count: 4096)
    let length = readlink("/proc/self/exe", &buffer, buffer.count - 1)
    let text = String(decoding: buffer.prefix(max(0, length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let places = places(for: FilePath(text))
    for place in places where access(place.string, X_OK) == 0 { return SourceReaderProgram(place) }
    throw HopdError(
      .noSourceReader,
      "models in Swift source are read by \(name), which is not installed; searched: "
        + places.map(\.string).joined(separator: ", "),
      hint: "build and install it in hopd's sources: make swiftdata && sudo make install")
  }

  static func places(for program: FilePath) -> [FilePath] {
    let programs = program.removingLastComponent()
    // `make install` puts it below /usr/lib whatever the prefix of the programs is.
    var places = [programs.removingLastComponent().appending("lib/hopd").appending(name)]
    places.append(FilePath("/usr/lib/hopd").appending(name))
    var folder = programs
    while folder.lastComponent != nil {
      if folder.lastComponent?.string.hasPrefix(".build") == true {
        // Built in a checkout: PACKAGE/.build/…/hopctl.
        places.append(
          folder.removingLastComponent().appending(".build-reader/release").appending(name))
        break
      }
      folder.removeLastComponent()
    }
    return places
  }

  /// Returns the facts of files, in their order.
  package func facts(
    of files: [(path: String, bytes: [UInt8])], definitions: [String: Bool] = [:]
  ) throws(HopdError) -> [SourceFile] {
    guard !files.isEmpty else { return [] }
    let input = try request(files, definitions)
    guard
      let answer = ProgramOutput.of(
        [path.string], environment: ["LANG": "C.UTF-8", "SWIFT_BACKTRACE": "enable=no"], input: input,
        memory: limits.memory, limit: limits.outputBytes, within: limits.time)
    else {
      throw HopdError(.noSourceReader, "the reader of Swift source cannot be started", at: Place(file: path))
    }
    let facts = try decode(answer.output, files.map(\.path))
    guard facts.count < files.count || answer.status != 0 else { return facts }
    // A line is written when its file is done.
    let place = Place(file: facts.count < files.count ? FilePath(files[facts.count].path) : nil)
    let reason = answer.errors.split(separator: "\n").first.map { ": \($0)" } ?? ""
    throw HopdError(
      .sourceUnreadable,
      answer.status == -1
        ? "the reader took more than \(limits.time), \(limits.memory >> 20) MiB of memory or "
          + "\(limits.outputBytes >> 20) MiB of output, or crashed, at this file"
        : "the reader ended with \(answer.status) at this file\(reason)", at: place,
      hint: "check that it compiles, and pass only the directory that declares the models")
  }

  private func request(
    _ files: [(path: String, bytes: [UInt8])], _ definitions: [String: Bool]
  ) throws(HopdError) -> [UInt8] {
    var input: [UInt8] = []
    func add(_ bytes: [UInt8]) {
      for shift in stride(from: 56, through: 0, by: -8) {
        input.append(UInt8(truncatingIfNeeded: UInt64(bytes.count) >> UInt64(shift)))
      }
      input += bytes
    }
    do {
      add(Array(try JSONEncoder().encode(SourceRequest(definitions: definitions))))
    } catch {
      throw HopdError(.internalError, "the request for the reader cannot be written", cause: error)
    }
    var total = 0
    for file in files {
      total += file.bytes.count
      guard file.bytes.count <= limits.fileBytes, total <= limits.allBytes else {
        throw HopdError(
          .sourceTooLarge,
          file.bytes.count > limits.fileBytes
            ? "the file has more than \(limits.fileBytes >> 20) MiB"
            : "the source has more than \(limits.allBytes >> 20) MiB", at: Place(file: FilePath(file.path)),
          hint: "pass only the directory that declares the models")
      }
      add(file.bytes)
    }
    return input
  }

  private func decode(_ output: [UInt8], _ paths: [String]) throws(HopdError) -> [SourceFile] {
    let decoder = JSONDecoder()
    var facts: [SourceFile] = []
    for line in output.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: true) {
      guard facts.count < paths.count else { break }
      do {
        facts.append(try decoder.decode(SourceFile.self, from: Data(line)))
      } catch {
        // The last line of a reader that was ended is not whole.
        break
      }
    }
    return facts
  }
}
