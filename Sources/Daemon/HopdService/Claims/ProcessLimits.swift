// Checks that the process may have the threads and memory that the daemon needs. With lower limits, the first job would
// wait silently for a thread that never starts, so the daemon tries before anything else.

import Diagnostics
import Glibc

extension HopdError.Code {
  /// The limits of the process are too low for the daemon.
  package static let limitsTooLow = HopdError.Code("limits-too-low", exit: .configuration)
}

/// The checks of threads and memory.
enum ProcessLimits {
  /// Throws `.limitsTooLow` unless the process can have the threads and memory that the daemon needs.
  static func check(jobs: Int, memory: Int64) throws(HopdError) {
    // Signals, the loop, the watcher, logging; an inspection and a migration per job. With jobs = 2: 11 threads.
    let threads = 8 &+ 2 &* min(max(1, jobs), 64)
    try checkMemory(min(max(32 << 20, memory), 256 << 20))
    try checkThreads(threads)
  }

  static func checkMemory(_ bytes: Int64) throws(HopdError) {
    let room = mmap(
      nil, Int(clamping: bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
    if let room, room != MAP_FAILED {
      munmap(room, Int(clamping: bytes))
      return
    }
    throw HopdError(
      .limitsTooLow,
      "the process is limited to less than the \(bytes >> 20) MiB of memory that hopd needs"
        + limits([("LimitDATA=", RLIMIT_DATA), ("LimitAS=", RLIMIT_AS)]),
      hint: "raise LimitDATA= and LimitAS= of the unit (ulimit -d, ulimit -v)")
  }

  static func checkThreads(_ wanted: Int) throws(HopdError) {
    var gate = pthread_mutex_t()
    pthread_mutex_init(&gate, nil)
    defer { pthread_mutex_destroy(&gate) }
    let started = withUnsafeMutablePointer(to: &gate) { gate in
      pthread_mutex_lock(gate)
      var threads: [pthread_t] = []
      while threads.count < wanted {
        var thread = pthread_t()
        // Each thread waits until all have started, because the number at the same time counts.
        let code = pthread_create(
          &thread, nil,
          { gate in
            guard let gate else { return nil }
            let mutex = gate.assumingMemoryBound(to: pthread_mutex_t.self)
            pthread_mutex_lock(mutex)
            pthread_mutex_unlock(mutex)
            return nil
          }, gate)
        guard code == 0 else { break }
        threads.append(thread)
      }
      pthread_mutex_unlock(gate)
      for thread in threads { pthread_join(thread, nil) }
      return threads.count
    }
    guard started < wanted else { return }
    throw HopdError(
      .limitsTooLow,
      "the process can start only \(started) of the \(wanted) threads that hopd needs"
        + limits([("LimitNPROC=", __RLIMIT_NPROC), ("LimitDATA=", RLIMIT_DATA), ("LimitAS=", RLIMIT_AS)]),
      hint:
        "raise TasksMax= of the unit to at least \(wanted + 8), and LimitNPROC=, LimitDATA= and LimitAS= where they "
        + "are set"
    )
  }

  /// The limits that are set, as text for the message.
  private static func limits(_ names: [(String, __rlimit_resource)]) -> String {
    let texts = names.compactMap { name, resource -> String? in
      var limit = rlimit()
      guard getrlimit(__rlimit_resource_t(resource.rawValue), &limit) == 0, limit.rlim_cur != rlim_t.max else {
        return nil
      }
      return "\(name)\(limit.rlim_cur)"
    }
    return texts.isEmpty ? "" : " (" + texts.joined(separator: ", ") + ")"
  }
}
