// Finds the file of a configured program, and says why there is none.

import Diagnostics
import Glibc
import SystemPackage

/// Finds programs.
package enum ProgramPath {
  /// The directories in which a plain name is searched for, in the form of PATH.
  package static var folders: String {
    getenv("PATH").map { String(cString: $0) } ?? "/usr/local/bin:/usr/bin:/bin"
  }

  /// Returns the file of the program that a command begins with: an absolute path, or a plain name that is in PATH.
  /// `what` begins the message of an error, such as "the program of the policy BookPolicy".
  package static func of(_ command: [String], called what: String, code: HopdError.Code) throws(HopdError) -> FilePath {
    func unusable(_ message: String, hint: String) -> HopdError { HopdError(code, "\(what) \(message)", hint: hint) }
    guard let name = command.first, !name.isEmpty, !command.contains(where: { $0.utf8.contains(0) }) else {
      throw unusable("is not named", hint: "write a list: [\"/path/to/program\", \"argument\"]")
    }
    guard name.utf8.contains(UInt8(ascii: "/")) else {
      for folder in folders.split(separator: ":") where folder.hasPrefix("/") {
        let path = FilePath(String(folder)).appending(name)
        if isProgram(path) { return path }
      }
      throw unusable("\(name) is not in PATH", hint: "write its absolute path")
    }
    let path = FilePath(name)
    guard path.isAbsolute else {
      throw unusable("has a relative path: \(path.printable)", hint: "write the absolute path; programs run in /")
    }
    guard path.withPlatformString({ access($0, F_OK) }) == 0 else {
      throw unusable("does not exist: \(path.printable)", hint: "correct the path, or install the program")
    }
    guard isProgram(path) else {
      throw unusable("is not an executable file: \(path.printable)", hint: "chmod +x \(path.quotedForShell)")
    }
    return path
  }

  private static func isProgram(_ path: FilePath) -> Bool {
    path.withPlatformString { path in
      var status = stat()
      return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && access(path, X_OK) == 0
    }
  }
}
