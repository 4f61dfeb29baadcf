import Testing

@testable import ManagedObjectModel

@Suite struct CacheTests {
  private struct Even: Hashable { let number: Int }
  private struct Odd: Hashable { let number: Int }
  private struct Refusal: Error {}

  @Test func aValueIsComputedOncePerKindAndKey() {
    let cache = Cache()
    var made = 0
    func value<Key: Hashable & Sendable>(_ key: Key, _ computed: Int) -> Int {
      cache.value(for: key) {
        made += 1
        return computed
      }
    }
    for _ in 1...3 {
      #expect(value(Even(number: 1), 10) == 10)
      #expect(value(Even(number: 2), 20) == 20)
      #expect(value(Odd(number: 1), 30) == 30)
    }
    #expect(made == 3)
  }

  @Test func nilIsAValueTooAndAnErrorIsNone() throws {
    let cache = Cache()
    var made = 0
    for _ in 1...2 {
      let none: Int? = cache.value(for: Even(number: 1)) {
        made += 1
        return nil
      }
      #expect(none == nil)
      #expect(throws: Refusal.self) {
        _ = try cache.value(for: Odd(number: 1)) { () throws(Refusal) -> Int in throw Refusal() }
      }
    }
    #expect(made == 1)
    #expect(cache.count == 1)
  }

  @Test func aCacheIsBounded() {
    let cache = Cache(limit: 8)
    for number in 1...1000 { #expect(cache.value(for: Even(number: number)) { number * 2 } == number * 2) }
    #expect(cache.count <= 8)
  }

  @Test func aModelThatIsMadeFromAnotherHasItsOwnCache() {
    let model = ManagedObjectModel(
      name: "M",
      entities: [Entity(name: "A", attributes: [Attribute(name: "x", type: .string)])])
    let computed = model.versionHashes
    let stated = VersionHash(bytes: [UInt8](repeating: 7, count: 32))
    guard let stated else {
      Issue.record("32 bytes are a hash")
      return
    }
    #expect(model.declaring(["A": stated]).versionHashes == ["A": stated])
    #expect(model.versionHashes == computed)
    #expect(computed["A"] != stated)
  }
}
