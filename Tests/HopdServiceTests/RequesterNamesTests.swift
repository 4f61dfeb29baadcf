// Who gave an order, by name; and what happens while a directory server does not tell it.

import Dispatch
import Glibc
import Testing

@testable import HopdService

@Suite("Names of the users behind orders") struct RequesterNamesTests {
  @Test("A user is named, and one without a name has its number")
  func names() {
    let names = RequesterNames()
    #expect(names.requester(0) == "user root")
    #expect(names.requester(3_999_999_999) == "user 3999999999")
  }

  @Test("An order does not wait for a name service that hangs")
  func hangs() {
    let mayEnd = DispatchSemaphore(value: 0)
    defer { mayEnd.signal() }
    let names = RequesterNames(patience: .milliseconds(50)) { user in
      if user == 1001 { mayEnd.wait() }
      return "somebody"
    }
    let began = ContinuousClock.now
    #expect(names.requester(1001) == "user 1001")
    // Nor does the next one, of another user.
    #expect(names.requester(0) == "user 0")
    #expect(ContinuousClock.now - began < .seconds(10))
  }
}
