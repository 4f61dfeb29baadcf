// Users and groups as an operator knows them: by name. A number is told only where the system has no name for it.

import Glibc

/// Names of users and groups. The name service may wait for a directory server.
package enum AccountName {
  /// The maximum number of bytes of an entry: a group may have thousands of members.
  private static let longestEntry = 1 << 20

  /// The name of a user; the number if it has none.
  package static func ofUser(_ number: uid_t) -> String {
    name { buffer, size in
      var (entry, found) = (passwd(), UnsafeMutablePointer<passwd>?.none)
      let code = getpwuid_r(number, &entry, buffer, size, &found)
      return (code, found == nil ? nil : entry.pw_name.map { String(cString: $0) })
    } ?? String(number)
  }

  /// The name of a group; the number if it has none.
  package static func ofGroup(_ number: gid_t) -> String {
    name { buffer, size in
      var (entry, found) = (group(), UnsafeMutablePointer<group>?.none)
      let code = getgrgid_r(number, &entry, buffer, size, &found)
      return (code, found == nil ? nil : entry.gr_name.map { String(cString: $0) })
    } ?? String(number)
  }

  /// Calls `look` with a buffer that is large enough for the entry.
  private static func name(_ look: (UnsafeMutablePointer<CChar>, Int) -> (Int32, String?)) -> String? {
    var size = 4096
    while size <= longestEntry {
      let buffer = UnsafeMutablePointer<CChar>.allocate(capacity: size)
      defer { buffer.deallocate() }
      let (code, name) = look(buffer, size)
      if code != ERANGE { return name?.printableLine }
      size *= 4
    }
    return nil
  }
}
