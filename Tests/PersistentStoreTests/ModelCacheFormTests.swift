// Partial fetch indexes, fetch indexes over the row itself, and fetched properties in the copy of the model.

import BlockingTests
import Diagnostics
import ManagedObjectModel
import Testing

@testable import PersistentStore

@Suite(.blocking) struct ModelCacheFormTests {
  private func schema(_ indexes: String, framework: Int64 = 1344) throws -> StoreSchema {
    StoreSchema(
      model: try sampleModel(
        """
        <entity name='Asset'>
          <attribute name='state' optional='YES' attributeType='Integer 16'/>
          <attribute name='size' optional='YES' attributeType='Double'/>
          <attribute name='name' optional='YES' attributeType='String'/>
          <relationship name='owner' optional='YES' maxCount='1' destinationEntity='Asset'/>
          <relationship name='parts' optional='YES' toMany='YES' destinationEntity='Asset'/>
          \(indexes)
        </entity>
        """), frameworkVersion: framework)
  }

  /// As VUIndex's `hasMatchOnlyLabels`: the attribute of a partial index has an index of its own too.
  @Test func anAttributeOfAPartialIndexIsIndexed() throws {
    let names = try schema(
      "<fetchIndex name='i' partialIndexPredicate='state > 0'><fetchIndexElement property='state'/></fetchIndex>"
    ).indexes.map(\.name)
    #expect(names.contains("Z_Asset_state"))
    // One of the attribute's name is the partial one.
    let own = try schema(
      "<fetchIndex name='state' partialIndexPredicate='state > 0'><fetchIndexElement property='state'/></fetchIndex>")
    #expect(own.indexes.filter { $0.name == "Z_Asset_state" }.map(\.condition) == [" WHERE ZSTATE > 0"])
  }

  /// The copy of the model has them, with elements numbered through all entities, and older forms of those without a
  /// relationship.
  @Test func theCopyOfTheModelHasThem() throws {
    let indexes = """
      <fetchIndex name='i' partialIndexPredicate='state == 1 AND (owner == nil OR size > 0)'>
        <fetchIndexElement expression='self'/><fetchIndexElement property='size' order='descending'/>
      </fetchIndex>
      <fetchIndex name='j'><fetchIndexElement expression='entity'/><fetchIndexElement property='owner'/></fetchIndex>
      """
    let model = try schema(indexes).model
    let again = try ModelReader.read(compiled: model.archived(frameworkVersion: 973), name: "again").model
    let (was, now) = (try #require(model.entity(named: "Asset")), try #require(again.entity(named: "Asset")))
    #expect(now.fetchIndexes.map(\.partialPredicate) == ["state == 1 AND (owner == nil OR size > 0)", nil])
    #expect(now.fetchIndexes.map(\.elements) == was.fetchIndexes.map(\.elements))
    #expect(now.compoundIndexes.isEmpty)
    #expect(ModelCache.remark(on: try schema(indexes)) == nil)
  }

  @Test(arguments: [
    ("", true), ("predicateString='state == 1'", true),
    ("predicateString='name == $FETCH_SOURCE.name AND owner == $FETCH_SOURCE'", true),
    ("predicateString='name CONTAINS[c] $FETCHED_PROPERTY.userInfo.search'", true),
    ("predicateString='true == true'", true), ("predicateString='name BEGINSWITH $FETCH_SOURCE.name'", false),
    ("predicateString='state == 1' fetchLimit='3'", false),
  ])
  func fetchedPropertiesAreArchived(_ request: String, _ isKnown: Bool) throws {
    let schema = try schema(
      "<fetchedProperty name='found' optional='YES'><fetchRequest name='f' entity='Asset' \(request)/>"
        + "</fetchedProperty>"
    )
    let remark = ModelCache.remark(on: schema)
    #expect((remark == nil) == isKnown && remark?.place.property == (isKnown ? nil : "found"))
    guard isKnown else { return }
    let again = try ModelReader.read(compiled: schema.model.archived(frameworkVersion: 1344), name: "again").model
    let (was, now) = (schema.model.entities[0].fetchedProperties, again.entities[0].fetchedProperties)
    #expect(now.map(\.fetchEntityName) == was.map(\.fetchEntityName) && now.map(\.hasOptions) == [false])
    #expect(again.versionHashes == schema.model.versionHashes)
  }
}
