// Whether two files hold the same bytes, read piece by piece: external files may be large.

import Diagnostics
import Glibc
import SystemPackage

extension DurableFileSystem {
  /// For file systems of tests: reads both files whole.
  package func hasSameContent(_ first: FilePath, _ second: FilePath) throws -> Bool {
    try read(first, limit: .max) == read(second, limit: .max)
  }
}

extension LinuxFileSystem {
  package func hasSameContent(_ first: FilePath, _ second: FilePath) throws -> Bool {
    guard let one = try status(first), let two = try status(second) else { return false }
    if one.identity == two.identity { return true }
    guard one.kind == .regular, two.kind == .regular, one.size == two.size else { return false }
    let left = try open(first, "read", O_RDONLY | O_NONBLOCK)
    let right = try open(second, "read", O_RDONLY | O_NONBLOCK)
    var (a, b) = ([UInt8](repeating: 0, count: 1 << 18), [UInt8](repeating: 0, count: 1 << 18))
    var offset: Int64 = 0
    while true {
      let count = try call("read", at: first) { pread(left.number, &a, a.count, off_t(offset)) }
      var filled = 0
      while filled < count {
        let start = off_t(offset + Int64(filled))
        let more = try call("read", at: second) {
          b.withUnsafeMutableBytes { pread(right.number, $0.baseAddress?.advanced(by: filled), count - filled, start) }
        }
        if more == 0 { return false }
        filled += more
      }
      guard a.prefix(count) == b.prefix(count) else { return false }
      if count == 0 { return true }
      offset += Int64(count)
    }
  }
}
