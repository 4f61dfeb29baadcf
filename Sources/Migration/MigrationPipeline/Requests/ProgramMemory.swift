// The memory of this process, for reports and for a daemon that rests.

import CLinux

/// The memory of this process.
package enum ProgramMemory {
  /// The largest resident set so far, in bytes.
  package static var peak: Int64 { clinux_peak_resident_bytes() }

  /// Lets all threads share that many heaps, whatever their number. Must be called before there are threads. Each heap
  /// keeps free memory of its own; threads that share one wait for each other.
  package static func limitHeaps(to count: Int32) { clinux_limit_heaps(count) }

  /// Returns free heap memory to the kernel.
  package static func giveBack() { clinux_give_back_memory() }
}
