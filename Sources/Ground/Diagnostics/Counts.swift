// Numbers for people: one form in every text, so that two numbers of one output can be compared.

extension BinaryInteger {
  /// The number with its thousands set apart: "1,234,567".
  package var grouped: String {
    let digits = Array(String(magnitude))
    var text = self < 0 ? "-" : ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index) % 3 == 0 { text += "," }
      text.append(digit)
    }
    return text
  }

  /// The number with a noun: "1 row", "2 rows".
  package func counted(_ noun: String) -> String { "\(grouped) \(noun)\(self == 1 ? "" : "s")" }
}
