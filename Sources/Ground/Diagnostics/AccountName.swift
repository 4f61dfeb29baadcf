// Users and groups as an operator knows them: by name. A number is told only where the system has no name for it.

import Glibc

/// Names of users and groups.
package enum AccountName {
  /// The name of a user; the number if it has none.
  package static func ofUser(_ number: uid_t) -> String {
    getpwuid(number).map { String(cString: $0.pointee.pw_name).printableLine } ?? String(number)
  }

  /// The name of a group; the number if it has none.
  package static func ofGroup(_ number: gid_t) -> String {
    getgrgid(number).map { String(cString: $0.pointee.gr_name).printableLine } ?? String(number)
  }
}
