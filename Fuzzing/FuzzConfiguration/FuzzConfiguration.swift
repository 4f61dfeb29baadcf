// Fuzzes hopd's configuration within the bounds. The first byte chooses: a configuration file, a time zone file, or the
// text of a time zone's rule, a window of hours, an amount or a duration.

import Diagnostics
import FuzzBounds
import Glibc
import HopdConfiguration
import SystemPackage

/// A file without a name, which the loader opens by the path of its descriptor.
private let file: (descriptor: CInt, path: FilePath) = {
  var template = Array("/tmp/hopd.toml-XXXXXX".utf8CString)
  let descriptor = mkstemp(&template)
  unlink(template)
  return (descriptor, FilePath("/proc/self/fd/\(descriptor)"))
}()

/// Moments at which a zone's offset is computed: now, long ago, far ahead, and beyond every calendar.
private let moments: [Int64] = [0, 1_700_000_000, -5_000_000_000, 1 << 40, .max, .min]

/// One input: never a trap, whatever the bytes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  let bytes = UnsafeBufferPointer(start: data, count: size)
  guard let kind = bytes.first else { return 0 }
  let rest = [UInt8](bytes.dropFirst())
  guard ftruncate(file.descriptor, 0) == 0, pwrite(file.descriptor, rest, rest.count, 0) == rest.count else { return 0 }
  fuzz_bounds_begin()
  defer { fuzz_bounds_end() }
  switch kind {
  case UInt8(ascii: "z"):
    if let zone = TimeZoneRules(name: nil, file: rest) { ask(zone) }
  case UInt8(ascii: "t"):
    guard let text = String(validating: rest, as: UTF8.self) else { return 0 }
    if let zone = TimeZoneRules(rule: text) { ask(zone) }
    _ = (TimeWindow(text, zone: .utc), Quantity.bytes(text), Quantity.duration(text))
  default:
    do throws(HopdError) {
      _ = try ConfigurationLoader.load(file: file.path)
    } catch {
      _ = error.description
    }
  }
  return 0
}

private func ask(_ zone: TimeZoneRules) {
  let window = TimeWindow("22:00-06:00", zone: zone)
  for moment in moments {
    _ = zone.offset(at: moment)
    _ = window?.isOpen(at: moment)
  }
}
