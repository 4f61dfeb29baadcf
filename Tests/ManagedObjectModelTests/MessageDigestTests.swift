// SHA-2 against the vectors that NIST publishes for FIPS 180-4.

import Testing

@testable import ManagedObjectModel

@Suite struct MessageDigestTests {
  private static func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  /// The digest of a text that is added in pieces of the given length.
  private static func digest(_ algorithm: MessageDigest.Algorithm, of text: [UInt8], piece: Int = 1 << 20) -> String {
    var digest = MessageDigest(algorithm)
    var rest = text[...]
    while !rest.isEmpty {
      digest.add(rest.prefix(piece))
      rest = rest.dropFirst(piece)
    }
    return hexadecimal(digest.finish())
  }

  @Test func nothing() {
    #expect(
      Self.digest(.sha256, of: []) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    #expect(
      Self.digest(.sha512, of: [])
        == "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce"
        + "47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e")
    var digest = MessageDigest(.sha256)
    digest.add([])
    digest.add([UInt8]()[...])
    #expect(Self.hexadecimal(digest.finish()) == Self.digest(.sha256, of: []))
  }

  @Test func oneBlock() {
    #expect(
      Self.digest(.sha256, of: Array("abc".utf8))
        == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    #expect(
      Self.digest(.sha512, of: Array("abc".utf8))
        == "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
        + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f")
  }

  @Test func twoBlocks() {
    let text = Array("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8)
    #expect(
      Self.digest(.sha256, of: text) == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1")
  }

  @Test(arguments: [1, 63, 64, 65, 1000, 1 << 20]) func aMillionLettersInPieces(_ piece: Int) {
    let text = [UInt8](repeating: UInt8(ascii: "a"), count: 1_000_000)
    #expect(
      Self.digest(.sha256, of: text, piece: piece)
        == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
    #expect(
      Self.digest(.sha512, of: text, piece: piece)
        == "e718483d0ce769644e2e42c7bc15b4638e1f98b13b2044285632a803afa973eb"
        + "de0ff244877ea60a4cb0432ce577c31beb009c5c2c49aa2e4eadb217ad8cc09b")
  }

  /// Bytes that are not in one block of memory.
  @Test func everyKindOfSequence() {
    let text = Array("abc".utf8)
    #expect(ContentDigest.sha256(text.lazy.map { $0 }) == Self.digest(.sha256, of: text))
    #expect(ContentDigest.sha256(AnySequence(text)) == Self.digest(.sha256, of: text))
    var running = ContentDigest.Running()
    running.add(text[..<1])
    running.add("bc".utf8)
    #expect(running.sha256() == Self.digest(.sha256, of: text))
  }

  /// The daemon computes version hashes on several threads at once.
  @Test func severalThreads() async {
    let text = [UInt8](repeating: UInt8(ascii: "a"), count: 10_000)
    let expected = Self.digest(.sha256, of: text)
    await withTaskGroup(of: String.self) { group in
      for piece in 1...100 { group.addTask { Self.digest(.sha256, of: text, piece: piece) } }
      for await digest in group { #expect(digest == expected) }
    }
  }
}
