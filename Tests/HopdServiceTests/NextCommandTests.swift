// The command to type next for a store that has failed.

import Diagnostics
import DurableFiles
import SystemPackage
import Testing

@testable import HopdService

@Suite struct NextCommandTests {
  private let next = NextCommand(store: "/srv/a.sqlite", watch: "w", configuration: "/etc/hopd/hopd.toml")

  /// A worker's lock is a folder beside the store: no process has the store open.
  @Test func aWorkersLockIsShownWhereItIs() {
    let lock = HopdError(
      .lockedByOther, "in the hands of a worker", at: Place(store: "/srv/a.sqlite", file: "/srv/.a.sqlite.hop-lock"))
    #expect(next.text(lock) == "ls -la /srv/.a.sqlite.hop-lock")
    #expect(next.text(HopdError(.lockedByOther, "open", at: Place(store: "/srv/a.sqlite"))) == "fuser -v /srv/a.sqlite")
  }
}
