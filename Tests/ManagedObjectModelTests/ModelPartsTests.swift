// Parts of models and merged models, over all small models of three entities.

import Diagnostics
import ManagedObjectModel
import Testing

@Suite struct ModelPartsTests {
  private static let names = ["Alpha", "Beta", "Gamma"]

  /// How Alpha and Beta may depend on another entity.
  private enum Link: CaseIterable { case none, stored, transient }

  private func subsets(_ names: [String]) -> [[String]] {
    names.reduce([[]]) { sets, name in sets + sets.map { $0 + [name] } }
  }

  @Test func everyConfigurationOfEverySmallModelIsItsEntitiesOrRefused() throws {
    var refused = 0
    var kept = 0
    for parent in [nil, "Alpha"] as [String?] {
      for (toBeta, toGamma) in Link.allCases.flatMap({ left in Link.allCases.map { (left, $0) } }) {
        func link(_ kind: Link, to destination: String) -> [Relationship] {
          kind == .none
            ? []
            : [
              Relationship(
                name: "to" + destination, destinationEntityName: destination, isTransient: kind == .transient)
            ]
        }
        let entities = [
          Entity(
            name: "Alpha", attributes: [Attribute(name: "a", type: .string)], relationships: link(toBeta, to: "Beta")),
          Entity(name: "Beta", parentName: parent, relationships: link(toGamma, to: "Gamma")),
          Entity(name: "Gamma", uniquenessConstraints: [["g"]]),
        ]
        for members in subsets(Self.names) {
          let model = ManagedObjectModel(name: "V", entities: entities, configurations: ["Part": members])
          let inside = Set(members)
          var outside: Set<String> = []
          if inside.contains("Beta"), let parent, !inside.contains(parent) { outside.insert("Beta") }
          if inside.contains("Alpha"), toBeta == .stored, !inside.contains("Beta") { outside.insert("Alpha.toBeta") }
          if inside.contains("Beta"), toGamma == .stored, !inside.contains("Gamma") { outside.insert("Beta.toGamma") }
          do {
            let part = try model.restricted(toConfiguration: "Part")
            #expect(outside.isEmpty && !members.isEmpty)
            #expect(part.entities.map(\.name) == members.sorted())
            let wanted = model.versionHashes.filter { inside.contains($0.key) }
            #expect(part.versionHashes == wanted)
            #expect(part.versionHashesDigest == VersionHash.digest(of: wanted))
            #expect(part.versionChecksum == VersionHash.checksum(of: wanted))
            #expect((part.versionChecksum == model.versionChecksum) == (members.count == 3))
            kept += 1
          } catch {
            #expect(error.code == .configurationNotClosed)
            let reported = error.reasons.map {
              [$0.place.entity, $0.place.property].compactMap(\.self).joined(separator: ".")
            }
            #expect(Set(reported) == outside)
            #expect(!outside.isEmpty || members.isEmpty)
            refused += 1
          }
        }
      }
    }
    #expect(refused > 40 && kept > 40)
  }

  @Test func aConfigurationThatIsNotThereIsRefusedWithThoseThatAre() {
    let model = ManagedObjectModel(
      name: "V", entities: [Entity(name: "Alpha")], configurations: ["Cloud": ["Alpha"], "Archive": ["Alpha"]])
    let error = #expect(throws: HopdError.self) { try model.restricted(toConfiguration: "Local") }
    #expect(error?.code == .noSuchConfiguration)
    #expect(error?.hint == "use one of: \"Archive\", \"Cloud\"")
  }

  @Test func modelsArePutTogetherUnlessTheyContradictEachOther() throws {
    func model(_ name: String, _ entities: [String: String]) -> ManagedObjectModel {
      ManagedObjectModel(
        name: name, versionIdentifiers: [name],
        entities: entities.map { Entity(name: $0.key, attributes: [Attribute(name: $0.value, type: .string)]) })
    }
    let variants = ["x", "y"]
    for left in subsets(Self.names) {
      for right in subsets(Self.names) {
        for (leftKind, rightKind) in variants.flatMap({ one in variants.map { (one, $0) } }) {
          let first = model("One", Dictionary(uniqueKeysWithValues: left.map { ($0, leftKind) }))
          let second = model("Two", Dictionary(uniqueKeysWithValues: right.map { ($0, rightKind) }))
          let shared = Set(left).intersection(right)
          do {
            let merged = try ManagedObjectModel.merging([first, second], name: "One + Two")
            #expect(shared.isEmpty || leftKind == rightKind)
            #expect(merged.versionHashes == first.versionHashes.merging(second.versionHashes) { one, _ in one })
            #expect(merged.versionIdentifiers == ["One", "Two"])
          } catch {
            #expect(leftKind != rightKind)
            #expect(Set(error.reasons.compactMap(\.place.entity)) == shared && !shared.isEmpty)
          }
        }
      }
    }
  }

  /// Otherwise the hashes that an app's VersionInfo.plist decides would be lost, and the store written with computed
  /// ones.
  @Test func whatTheAppStatesOfAnEntityHoldsInEveryPart() throws {
    let alpha = Entity(name: "Alpha", versionHashModifier: "m")
    let stated = try #require(VersionHash(bytes: [UInt8](repeating: 7, count: 32)))
    let model = ManagedObjectModel(
      name: "V", entities: [alpha, Entity(name: "Beta", parentName: "Alpha"), Entity(name: "Gamma")],
      configurations: ["Part": ["Alpha", "Beta"]]
    ).declaring(["Alpha": stated]).compiled(to: [1, 2, 3])
    let wanted = model.versionHashes
    #expect(wanted["Alpha"] == stated)
    #expect(try model.restricted(toConfiguration: "Part").versionHashes == wanted.filter { $0.key != "Gamma" })
    #expect(try model.restricted(toConfiguration: "Part").compiledForm == nil)
    #expect(model.renamed("W").versionHashes == wanted)
    #expect(model.renamed("W").compiledForm == [1, 2, 3])
    let other = ManagedObjectModel(name: "O", entities: [Entity(name: "Other")])
    for models in [[model, other], [other, model]] {
      let merged = try ManagedObjectModel.merging(models, name: "V + O")
      #expect(merged.versionHashes == wanted.merging(other.versionHashes) { first, _ in first })
      #expect(merged.uncertainHashes.isEmpty && merged.compiledForm == nil)
    }
  }
}
