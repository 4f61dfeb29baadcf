// Connects swift-log to the journal once per process, and makes the standard descriptors safe to log to.

import Glibc
import Logging

/// Sets up logging for a program.
package enum LoggingBootstrap {
  /// Connects every logger of the process to the journal or to standard error. Call it once, before anything else.
  ///
  /// A reload changes the level of all loggers through the returned threshold.
  package static func start(identifier: String, level: Logger.Level) -> LogThreshold {
    secureStandardDescriptors()
    let threshold = LogThreshold(level)
    let destination = LogDestination.detect()
    LoggingSystem.bootstrap { _ in
      JournalLogHandler(identifier: identifier, threshold: threshold, destination: destination)
    }
    return threshold
  }

  /// Makes sure that descriptors 0 to 2 are open, and ignores SIGPIPE and SIGXFSZ, so that neither a closed pipe nor a
  /// limit on the size of files ends the process.
  ///
  /// If descriptor 2 were free, the next opened file would get it, and log lines would be written into a store.
  package static func secureStandardDescriptors() {
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 && errno == EBADF {
      // open(2) returns the lowest free number, which is this one: the lower ones are open by now.
      _ = open("/dev/null", O_RDWR | O_NOCTTY)
    }
  }
}
