import Glibc
import Testing

@testable import StoreWatching

@Suite struct GlobTests {
  @Test func agreesWithTheSystemOnEverySmallPatternAndName() {
    // All patterns of up to four and all names of up to four characters from small alphabets, against fnmatch(3).
    let patterns = words(over: ["a", "b", "*", "?"], upTo: 4) + bracketed
    let names = words(over: ["a", "b", "c"], upTo: 4)
    for pattern in patterns {
      let glob = Glob(pattern)
      for name in names {
        let expected = fnmatch(pattern, name, 0) == 0
        if glob.matches(Array(name.utf8)) != expected {
          Issue.record("\(pattern) against \(name) should be \(expected)")
        }
      }
    }
  }

  private var bracketed: [String] {
    [
      "[ab]", "[!a]", "[a-b]c", "[!a-b]*", "*[bc]", "[]a]", "[!]a]b", "a[b", "[", "[]", "a\\*", "\\a", "[a-", "[a-]b",
      "*[a", "[b-a]",
    ]
  }

  private func words(over alphabet: [String], upTo length: Int) -> [String] {
    var all = [""]
    var last = [""]
    for _ in 0..<length {
      last = last.flatMap { word in alphabet.map { word + $0 } }
      all += last
    }
    return all
  }

  @Test func namesAreBytes() {
    #expect(Glob("*.sqlite").matches([0xff, 0xfe] + Array(".sqlite".utf8)))
    #expect(Glob("?").matches([0xff]))
    #expect(Glob("*").matches(Array("a\nb".utf8)))
    #expect(Glob("100%?.sqlite").matches(Array("100%x.sqlite".utf8)))
    #expect(!Glob("*.sqlite").matches(Array("a.sqlite-wal".utf8)))
    #expect(Glob("[a-]").matches(Array("-".utf8)))
    #expect(Glob("\\").matches(Array("\\".utf8)))
  }

  /// Trying every split of the name would never end.
  @Test(.timeLimit(.minutes(1))) func manyStarsAreMatchedInPolynomialTime() {
    let pattern = Glob(String(repeating: "*a", count: 60) + "b")
    let name = [UInt8](repeating: UInt8(ascii: "a"), count: 255)
    #expect(!pattern.matches(name))
  }
}
