// The order of version names when nobody declared one.

import ManagedObjectModel
import Testing

@Suite struct NaturalOrderTests {
  @Test(arguments: [
    ["Model", "Model 2", "Model 10"], ["Model", "Modelv2", "Modelv4", "Modelv10"], ["1.8", "1.9", "1.10", "2.0"],
    ["MediaLibrary-2.4", "MediaLibrary-2.5", "MediaLibrary-2.10", "MediaLibrary-3"],
    ["MyModel_V1", "MyModel_V2", "MyModel_v10"], ["Data 99999999999999999999", "Data 100000000000000000000"],
    ["a 2", "A 3"], ["Model 2", "Model Final"], ["Model 2", "Model 02 b"],
  ])
  func namesStandAsPeopleReadThem(names: [String]) {
    #expect(NaturalOrder.sorted(names.reversed()) == names)
    #expect(NaturalOrder.sorted(names.sorted()) == names)
  }

  @Test func theBundlesOwnNameLeads() {
    #expect(NaturalOrder.sorted(["V1", "V2", "Zoo"], first: "Zoo") == ["Zoo", "V1", "V2"])
    #expect(NaturalOrder.sorted(["V2", "V1"], first: "Other") == ["V1", "V2"])
  }

  /// Sorting needs a strict total order: exactly one of before, after, equal; and no circles.
  @Test func itIsATotalOrder() {
    let parts = ["", "a", "A", "1", "01", "2", "10", " ", ".", "b"]
    var names: Set<String> = []
    for one in parts { for two in parts { for three in ["", "1", "x"] { names.insert(one + two + three) } } }
    let sorted = NaturalOrder.sorted(Array(names))
    for (index, left) in sorted.enumerated() {
      #expect(!NaturalOrder.precedes(left, left))
      for right in sorted[(index + 1)...] {
        #expect(NaturalOrder.precedes(left, right) && !NaturalOrder.precedes(right, left), "“\(left)” “\(right)”")
      }
    }
  }
}
