// Lets the kernel write a file to the disk while its maker goes on working, so that the sync at the end has less to do.
// The kernel makes its caller wait while the disk has enough to do, so the call is in a thread of its own.

import CLinux
import Glibc

/// The writing of one file to the disk, in the background. It promises nothing: the file still needs `syncFile`, which
/// reports the errors of this writing, too (fsync(2)).
///
/// It keeps the file open as long as it exists: closing a file ends every POSIX lock of the process on it, so the last
/// connection to the file must be closed before.
package final class WriteBack {
  private let descriptor: Descriptor
  private var thread: pthread_t?

  init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

  deinit { end() }

  /// Begins to write what the file contains by now, after what was begun before; waits for neither.
  package func start() {
    let call = Call(descriptor: descriptor.number, previous: thread)
    var made = pthread_t()
    let context = Unmanaged.passRetained(call)
    let code = pthread_create(
      &made, nil,
      { context in
        if let context { Unmanaged<Call>.fromOpaque(context).takeRetainedValue().run() }
        return nil
      }, context.toOpaque())
    // Without a thread the sync has more to do.
    if code == 0 { thread = made } else { context.release() }
  }

  /// Waits until the kernel has accepted the writing.
  package func end() {
    if let thread { pthread_join(thread, nil) }
    thread = nil
  }
}

/// One call of the kernel, in a thread of its own.
private final class Call: Sendable {
  private let descriptor: Int32
  private let previous: pthread_t?

  init(descriptor: Int32, previous: pthread_t?) {
    self.descriptor = descriptor
    self.previous = previous
  }

  func run() {
    if let previous { pthread_join(previous, nil) }
    _ = clinux_start_write_back(descriptor)
  }
}
