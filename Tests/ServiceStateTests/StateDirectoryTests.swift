// Where both programs look for the state.

import Glibc
import SystemPackage
import Testing

@testable import ServiceState

@Suite(.serialized) struct StateDirectoryTests {
  @Test func hopdsOwnVariableIsFirst() {
    defer { for name in ["HOPD_STATE_DIRECTORY", "STATE_DIRECTORY"] { unsetenv(name) } }
    #expect(StateDirectory.ofEnvironment == nil)
    setenv("STATE_DIRECTORY", "/var/lib/hopd:/var/lib/other", 1)
    #expect(StateDirectory.ofEnvironment == "/var/lib/hopd")
    setenv("HOPD_STATE_DIRECTORY", "/srv/a:b", 1)
    #expect(StateDirectory.ofEnvironment == "/srv/a:b")
    setenv("HOPD_STATE_DIRECTORY", "", 1)
    #expect(StateDirectory.ofEnvironment == "/var/lib/hopd")
  }
}
