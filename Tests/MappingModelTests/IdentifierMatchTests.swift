import Testing

@testable import MappingModel

@Suite struct IdentifierMatchTests {
  /// Every pair of two lists of two names with identifiers from a small alphabet.
  @Test func everySmallWorldIsMatchedByIdentifierOnly() {
    let names = ["A", "B", "C"]
    var sides: [[Identified]] = [[]]
    for first in names {
      for firstIdentifier in names {
        sides.append([Identified(name: first, identifier: firstIdentifier)])
        for second in names where second > first {
          for secondIdentifier in names {
            sides.append([
              Identified(name: first, identifier: firstIdentifier),
              Identified(name: second, identifier: secondIdentifier),
            ])
          }
        }
      }
    }
    var pairs = 0
    for source in sides {
      for destination in sides {
        let match = IdentifierMatch(source: source, destination: destination)
        // Nothing is continued twice, and identifiers of a pair are equal.
        #expect(Set(match.sourceByDestination.values).count == match.sourceByDestination.count)
        for (to, from) in match.sourceByDestination {
          let left = source.first { $0.name == from }?.identifier
          let right = destination.first { $0.name == to }?.identifier
          #expect(left != nil && left == right)
          pairs += 1
        }
        for item in destination {
          let alike = source.filter { $0.identifier == item.identifier }
          let rivals = destination.filter { $0.identifier == item.identifier }
          if alike.count == 1, rivals.count == 1 {
            #expect(match.sourceByDestination[item.name] == alike.first?.name)
          } else {
            #expect(match.sourceByDestination[item.name] == nil)
          }
        }
        // A name on both sides is matched with itself, doubtful, or reported.
        let shared = Set(source.map(\.name)).intersection(destination.map(\.name))
        let doubtful = Set(match.duplicatesInSource.values.joined()).union(
          match.duplicatesInDestination.values.joined())
        for name in shared where !doubtful.contains(name) {
          #expect((match.sourceByDestination[name] == name) != match.contradictions.contains(name))
        }
      }
    }
    #expect(pairs > 500)
  }
}
