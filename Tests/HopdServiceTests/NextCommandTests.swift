// The command to type next for a store that has failed.

import Diagnostics
import DurableFiles
import MigrationPlanning
import StoreReplacement
import SystemPackage
import Testing

@testable import HopdService

@Suite struct NextCommandTests {
  private let next = NextCommand(store: "/srv/a.sqlite", watch: "w", configuration: "/etc/hopd/hopd.toml")

  /// A drop-in that is only printed changes nothing, and the running unit needs a restart.
  @Test func aReadOnlyFolderNeedsTheDropInAndARestart() {
    let error = HopdError(.noPermission, "cannot write here", cause: Errno.readOnlyFileSystem)
    let restart = " && systemctl daemon-reload && systemctl restart hopd"
    #expect(next.text(error) == "hopctl check-config --drop-in --install" + restart)
    var other = next
    (other.isInstalled, other.configuration) = (false, "/etc/hopd/tenant.toml")
    #expect(
      other.text(error) == "hopctl check-config --drop-in --install /etc/hopd/tenant.toml\(restart)@tenant")
    other.configuration = "/home/a/hopd.toml"
    #expect(other.text(error) == "hopctl check-config --drop-in /home/a/hopd.toml")
  }

  /// A library's hint says nothing of watches.
  @Test func aStoreThatIsNotForTheWatchIsLeftOut() {
    let foreign = HopdError(.foreignStore, "nothing in common", hint: "pass the model of the app that created it")
    #expect(
      foreign.hint(inWatch: "w")
        == "pass the model of the app that created it; add it to `exclude` of the watch w to ignore it")
    #expect(HopdError(.noRoute, "no way", hint: "add a mapping").hint(inWatch: "w") == "add a mapping")
  }

  /// hopctl finds the models of a store in a watch of the installed configuration.
  @Test("The command of a store that fits no version explains it, and names no installed configuration")
  func explanation() {
    let (newer, noRoute) = (HopdError(.perhapsNewer, "newer"), HopdError(.noRoute, "no way"))
    #expect(next.text(newer) == "hopctl explain /srv/a.sqlite" && next.text(noRoute) == "hopctl plan /srv/a.sqlite")
    var other = next
    (other.isInstalled, other.configuration) = (false, "/etc/hopd/tenant.toml")
    #expect(other.text(newer) == "hopctl explain /srv/a.sqlite --config /etc/hopd/tenant.toml --watch w")
  }

  @Test("hopd finds a store that took the place of another by itself")
  func replaced() {
    #expect(next.text(HopdError(.storeReplaced, "another store")) == "")
  }

  /// A worker's lock is a folder beside the store: no process has the store open.
  @Test func aWorkersLockIsShownWhereItIs() {
    let lock = HopdError(
      .lockedByOther, "in the hands of a worker", at: Place(store: "/srv/a.sqlite", file: "/srv/.a.sqlite.hop-lock"))
    #expect(next.text(lock) == "ls -la /srv/.a.sqlite.hop-lock")
    #expect(next.text(HopdError(.lockedByOther, "open", at: Place(store: "/srv/a.sqlite"))) == "fuser -v /srv/a.sqlite")
  }
}
