import Testing

@testable import ManagedObjectModel

@Suite struct MemoTests {
  private struct Even: Hashable { let number: Int }
  private struct Odd: Hashable { let number: Int }
  private struct Refusal: Error {}

  @Test func aFactIsWorkedOutOncePerKindAndKey() {
    let memo = Memo()
    var made = 0
    func fact<Key: Hashable & Sendable>(_ key: Key, _ value: Int) -> Int {
      memo.fact(key) {
        made += 1
        return value
      }
    }
    for _ in 1...3 {
      #expect(fact(Even(number: 1), 10) == 10)
      #expect(fact(Even(number: 2), 20) == 20)
      #expect(fact(Odd(number: 1), 30) == 30)
    }
    #expect(made == 3)
  }

  @Test func nothingIsAFactTooAndAnErrorIsNone() throws {
    let memo = Memo()
    var made = 0
    for _ in 1...2 {
      let none: Int? = memo.fact(Even(number: 1)) {
        made += 1
        return nil
      }
      #expect(none == nil)
      #expect(throws: Refusal.self) {
        _ = try memo.fact(Odd(number: 1)) { () throws(Refusal) -> Int in throw Refusal() }
      }
    }
    #expect(made == 1)
    #expect(memo.count == 1)
  }

  @Test func aMemoIsBounded() {
    let memo = Memo(limit: 8)
    for number in 1...1000 { #expect(memo.fact(Even(number: number)) { number * 2 } == number * 2) }
    #expect(memo.count <= 8)
  }

  @Test func aModelThatIsMadeFromAnotherForgetsItsFacts() {
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
