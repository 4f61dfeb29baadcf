// Sizes for people: one form in every text, so that two numbers of one output can be compared.

/// Sizes as text.
package enum ByteCount {
  /// Bytes in binary units: "12.3 MiB".
  package static func text(_ bytes: Int64) -> String {
    var value = Double(bytes)
    var unit = "B"
    for next in ["KiB", "MiB", "GiB", "TiB"] where value >= 1024 {
      value /= 1024
      unit = next
    }
    guard unit != "B" else { return "\(bytes) B" }
    let tenths = Int64((value * 10).rounded())
    return "\(tenths / 10).\(tenths % 10) \(unit)"
  }
}
