// The order of version names without a declared order.

import ManagedObjectModel
import Testing

@Suite struct NaturalOrderTests {
  @Test(arguments: [
    ["Model", "Model 2", "Model 10"], ["Model", "Modelv2", "Modelv4", "Modelv10"], ["1.8", "1.9", "1.10", "2.0"],
    ["MediaLibrary-2.4", "MediaLibrary-2.5", "MediaLibrary-2.10", "MediaLibrary-3"],
    ["MyModel_V1", "MyModel_V2", "MyModel_v10"], ["Data 99999999999999999999", "Data 100000000000000000000"],
    ["a 2", "A 3"], ["Model 2", "Model Final"], ["Model 2", "Model 02 b"],
    // Where each name ends in a number of its own, the words between do not count.
    ["Model_public_v2", "Model_paid_v10", "Model_beta_v31"],
    ["Model_beta_v2", "Model_beta_v31", "Model_paid_v2", "Model_paid_v10"], ["iOS 7 v9", "iOS 8 v3"],
  ])
  func namesStandAsPeopleReadThem(names: [String]) {
    #expect(VersionOrdering.byName(names.reversed(), bundle: nil, current: nil) == names)
    #expect(VersionOrdering.byName(names.sorted(), bundle: nil, current: nil) == names)
  }

  @Test(arguments: [
    // The bundle's own name leads, the current one is last.
    ("Zoo", nil, ["Zoo", "V1", "V2"]), ("Other", nil, ["V1", "V2"]),
    ("Zoo", "Ark 1", ["Zoo", "Zoo 2", "Zoo 10", "Ark 1"]),
    // The working version has the bundle's name; its earlier states are in copies.
    ("Data", "Data", ["DataV1", "DataV2", "DataV10", "Data"]),
    // A later number of the same words is a later version, current or not.
    ("Zoo", "Zoo 2", ["Zoo", "Zoo 2", "Zoo 3"]), ("Zoo", "Zoo", ["Zoo", "Zoo 2", "Zoo 3"]),
    ("Zoo", "Zoo 2", ["Zoo", "Ark 7", "Zoo 2", "Zoo 3"]),
    // One letter of a long word is a mistake, of a short one it is not.
    ("LibraryModel", "LibraryModel", ["LibraryModelV1", "LibraryModeV2", "LibraryModelV3", "LibraryModel"]),
    ("Zoo", nil, ["Zoo", "DataV1", "DataV3", "DatV2"]),
    ("Zoo", "Ark 3", ["Zoo 2", "Ark 3", "Bee 4"]),
  ])
  func theFirstLeadsAndTheCurrentOneIsLast(bundle: String, current: String?, names: [String]) {
    for shuffled in [names, names.reversed(), names.sorted()] {
      #expect(VersionOrdering.byName(shuffled, bundle: bundle, current: current) == names)
    }
  }

  @Test func aNameMentionsTwoVersionsInTheirOrder() {
    #expect(NaturalOrder.names("Model 2 to Model 3", "Model 2", before: "Model 3"))
    #expect(NaturalOrder.names("Model2_to_Model3", "Model 2", before: "model3"))
    #expect(!NaturalOrder.names("Model 2 to Model 3", "Model 3", before: "Model 2"))
    #expect(!NaturalOrder.names("Model 2 to Model 30", "Model 2", before: "Model 3"))
    #expect(!NaturalOrder.names("Model 2", "Model 2", before: "Model 2"))
    #expect(!NaturalOrder.names("", "", before: ""))
  }

  /// Sorting needs a strict total order: exactly one of before, after, equal; and no cycles.
  @Test func itIsATotalOrder() {
    let parts = ["", "a", "A", "1", "01", "2", "10", " ", ".", "b"]
    var names: Set<String> = []
    for one in parts { for two in parts { for three in ["", "1", "x"] { names.insert(one + two + three) } } }
    let sorted = names.sorted(by: NaturalOrder.precedes)
    for (index, left) in sorted.enumerated() {
      #expect(!NaturalOrder.precedes(left, left))
      for right in sorted[(index + 1)...] {
        #expect(NaturalOrder.precedes(left, right) && !NaturalOrder.precedes(right, left), "“\(left)” “\(right)”")
      }
    }
  }
}
