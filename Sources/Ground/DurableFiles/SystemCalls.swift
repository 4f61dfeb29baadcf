// The two things every call needs, written once: EINTR is repeated, and errno becomes a `HopdError`.

import CLinux
import Diagnostics
import Glibc
import SystemPackage

extension HopdError.Code {
  /// A file of that name exists already.
  package static let alreadyExists = HopdError.Code("already-exists", exit: .cannotCreate)
  /// The file under this name is unsuitable: a symbolic link, a device, a too long name.
  package static let unsuitableFile = HopdError.Code("unsuitable-file", exit: .dataError)
}

extension HopdError {
  /// The error of a system call that failed with `errno`.
  package init(errno code: Int32, _ doing: String, at path: FilePath) {
    let name = String(cString: clinux_error_name(code))
    self.init(
      HopdError.code(forErrno: code), "cannot \(doing): \(Errno(rawValue: code)) (\(name))", at: Place(file: path),
      cause: Errno(rawValue: code), hint: HopdError.hint(forErrno: code))
  }

  /// The errno at the bottom of this error, where a system call failed.
  package var errno: Errno? { cause as? Errno }

  private static func hint(forErrno code: Int32) -> String? {
    switch code {
    case ENAMETOOLONG: "shorten the name; files with longer names are created next to it"
    case EFBIG: "raise the limit on the size of files (ulimit -f, LimitFSIZE= in a unit)"
    default: nil
    }
  }

  private static func code(forErrno code: Int32) -> Code {
    switch code {
    case ENOSPC, EDQUOT, EFBIG: .noSpace
    case EACCES, EPERM, EROFS: .noPermission
    case ENOENT: .notFound
    case EEXIST, ENOTEMPTY: .alreadyExists
    case ELOOP, EXDEV, ENOTDIR, EISDIR, ENAMETOOLONG, EINVAL, ENXIO: .unsuitableFile
    default: .inputOutput
    }
  }
}

#if DEBUG
  /// Failures of system calls that a test injects.
  package enum SystemCallFault {
    /// The errno with which a call fails instead of being made, by its purpose; nil makes the call.
    @TaskLocal package static var answer: (@Sendable (_ doing: String) -> Int32?)?
  }
#endif

/// Creates a call that returns -1 with errno, repeats it while a signal interrupts it, and throws its error.
@discardableResult
func call<Result: FixedWidthInteger & SignedInteger>(
  _ doing: String, at path: @autoclosure () -> FilePath, _ body: () -> Result
) throws -> Result {
  while true {
    #if DEBUG
      // The one place where a test makes a call of the real file system fail; not in release builds.
      let injected = SystemCallFault.answer?(doing)
      let result = injected == nil ? body() : -1
      let code = injected ?? Glibc.errno
    #else
      let result = body()
      let code = Glibc.errno
    #endif
    if result != -1 { return result }
    if code != EINTR { throw HopdError(errno: code, doing, at: path()) }
  }
}

/// The same for a call that returns a null pointer where it fails.
func callForPointer<Pointer>(
  _ doing: String, at path: @autoclosure () -> FilePath, _ body: () -> Pointer?
) throws -> Pointer {
  while true {
    var found: Pointer?
    try call(doing, at: path()) {
      found = body()
      return found == nil ? -1 : Int32(0)
    }
    if let found { return found }
  }
}

/// A descriptor that closes itself. It ignores errors of close: what must be durable was synced before.
struct Descriptor: ~Copyable {
  let number: Int32
  init(_ number: Int32) { self.number = number }

  /// Leaves the descriptor open, to be closed by the caller.
  consuming func release() -> Int32 {
    let released = number
    discard self
    return released
  }
  deinit { _ = Glibc.close(number) }
}
