// Sockets that the service manager made and listens on until the service takes them over (sd_listen_fds(3)).

import CSystemd
import Glibc

/// What the service manager handed over.
package enum ActivatedSockets {
  /// The listening socket of that name (FileDescriptorName= of the socket unit), or the only one that was handed over;
  /// nil where there is none. The environment variables are taken away, so that no child believes them.
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
