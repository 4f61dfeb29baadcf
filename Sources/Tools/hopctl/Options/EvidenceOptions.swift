// The proof that a command did not change a store: the digests of its files before the first and after the last read.

import ArgumentParser
import Diagnostics
import Glibc
import ManagedObjectModel
import PersistentStore
import SystemPackage

/// `--read-only`.
struct EvidenceOptions: ParsableArguments {
  @Flag(
    name: .customLong("read-only"),
    help: ArgumentHelp(
      "Print the SHA-256 of the store and its -wal before and after; fail if they differ",
      discussion: "The command never writes to the store; this proves it in a report."))
  var readOnly = false

  /// Digests the files; nil without the option.
  func begin(_ location: StoreLocation, _ output: OutputOptions) throws -> Evidence? {
    readOnly ? try Evidence(location, isTold: !output.json) : nil
  }
}

extension HopdError.Code {
  /// A file of the store changed while a command read it.
  static let evidenceChanged = HopdError.Code("evidence-changed", exit: .dataError)
}

/// The files of a store and their digests.
final class Evidence {
  private let paths: [FilePath]
  private let before: [String?]
  /// Whether the statement goes to standard error.
  private let isTold: Bool
  private var isFinished = false

  init(_ location: StoreLocation, isTold: Bool) throws {
    paths = [location.database, location.writeAheadLog]
    before = try paths.map(Evidence.digest)
    self.isTold = isTold
    if isTold { tell("before", before) }
  }

  /// Digests the files again and makes the statement; throws if a file changed. A command that ends early calls it too.
  @discardableResult
  func finish() throws -> JSONObject {
    guard !isFinished else { return [:] }
    isFinished = true
    let after = try paths.map(Evidence.digest)
    if isTold { tell("after", after) }
    guard before == after else {
      let changed = zip(paths, zip(before, after)).filter { $0.1.0 != $0.1.1 }.map(\.0.printable)
      throw HopdError(
        .evidenceChanged, "the store changed while it was read: \(changed.joined(separator: ", "))",
        at: Place(store: paths.first),
        hint: "stop the program that has the store open, or use a copy or a read-only mount")
    }
    if isTold { StandardStreams.report("read-only: the store is unchanged") }
    let files = zip(paths, zip(before, after)).compactMap { path, digests -> JSONObject? in
      guard let old = digests.0 else { return nil }
      return ["path": path.string, "sha256Before": old, "sha256After": digests.1]
    }
    return ["readOnly": ["unchanged": true, "files": files] as JSONObject]
  }

  private func tell(_ when: String, _ digests: [String?]) {
    for (path, digest) in zip(paths, digests) {
      if let digest { StandardStreams.report("sha256 \(when): \(digest)  \(path.printable)") }
    }
  }

  /// The digest of a plain file; nil if there is none: the command itself refuses everything else.
  private static func digest(of path: FilePath) throws -> String? {
    let descriptor = path.withPlatformString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW) }
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var info = stat()
    guard fstat(descriptor, &info) == 0, info.st_mode & S_IFMT == S_IFREG else { return nil }
    var digest = ContentDigest.Running()
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    while true {
      let count = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else {
        throw HopdError(
          .inputOutput, "cannot be read", at: Place(store: path), cause: Errno(rawValue: errno),
          hint: "check the kernel log: dmesg")
      }
      if count == 0 { return digest.sha256() }
      digest.add(buffer[..<count])
    }
  }
}
