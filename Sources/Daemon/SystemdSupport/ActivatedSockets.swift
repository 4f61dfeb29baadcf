// Sockets that the service manager created and holds open until the service takes them over (sd_listen_fds(3)).

import CSystemd
import Glibc

/// The sockets that the service manager passed to this process.
package enum ActivatedSockets {
  /// Returns the listening socket of that name (FileDescriptorName= of the socket unit), or the only one that was
  /// passed; nil if there is none. Unsets the environment variables, so that child processes ignore them.
  package static func take(named name: String) -> Int32? {
    var names: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
    let count = sd_listen_fds_with_names(1, &names)
    guard count > 0, let names else { return nil }
    var found: Int32?
    for index in 0..<Int(count) {
      let descriptor = Int32(3 + index)
      let isNamed = names[index].map { String(cString: $0) == name } ?? false
      free(names[index])
      guard sd_is_socket_unix(descriptor, Int32(SOCK_STREAM.rawValue), 1, nil, 0) > 0 else { continue }
      if isNamed || count == 1 { found = descriptor }
    }
    free(names)
    return found
  }
}
