// Fuzzes the lines of a fleet within the bounds: the same bytes are read as a manifest, which is counted and sampled,
// and as results, from which a report and its page are made; or an error with its message comes out.

import Diagnostics
import FuzzBounds
import Glibc
import StoreFleet
import SystemPackage

/// A file without a name, which both readers open by the path of its descriptor.
private let file: (descriptor: CInt, path: FilePath) = {
  var template = Array("/tmp/fleet-XXXXXX".utf8CString)
  let descriptor = mkstemp(&template)
  unlink(template)
  return (descriptor, FilePath("/proc/self/fd/\(descriptor)"))
}()

/// One input: never a trap, whatever the bytes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  guard ftruncate(file.descriptor, 0) == 0, pwrite(file.descriptor, data, size, 0) == size else { return 0 }
  fuzz_bounds_begin()
  defer { fuzz_bounds_end() }
  do throws(HopdError) {
    var manifest = try Manifest(path: file.path)
    var (summary, lines) = (FleetSummary(), [StoreLine]())
    while let line = try manifest.next() {
      summary.add(line)
      _ = Shard.whole.holds(line.shardKey)
      lines.append(line)
    }
    for order in WorkOrder.allCases { _ = order.sorted(lines) }
    _ = CanarySample.of(lines, count: 5)
    _ = FleetPage.text(of: summary)
  } catch {
    mustNameFile(error)
  }
  do throws(HopdError) {
    var builder = FleetReportBuilder()
    try builder.read(file.path)
    let report = builder.made()
    _ = (report.exit, FleetPage.text(of: report))
  } catch {
    mustNameFile(error)
  }
  return 0
}

/// An error must name its file, or the reader has to search for it.
private func mustNameFile(_ error: HopdError) {
  if error.place.file == nil { fatalError("an error of a fleet's file names no file") }
  _ = error.description
}
