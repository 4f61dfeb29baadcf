// A decimal number in Foundation's archived form: in defaults of compiled models and in constants of mapping models.

import Diagnostics
import PropertyLists

extension ArchivedObject {
  /// The text of an archived NSDecimalNumber with its scale: mantissa 0 and exponent −1 are "0.0"; nil for other
  /// objects.
  package func decimalText() throws(HopdError) -> String? {
    guard isKind(of: "NSDecimalNumber") || isKind(of: "NSDecimalNumberPlaceholder"),
      case .data(let mantissa) = try value("NS.mantissa"), mantissa.count <= 16
    else { return nil }
    let isLittleEndian = try integer("NS.mantissa.bo") != 2
    // The mantissa consists of units of 16 bits.
    var units: [UInt16] = []
    for start in stride(from: 0, to: mantissa.count - 1, by: 2) {
      let (first, second) = (UInt16(mantissa[start]), UInt16(mantissa[start + 1]))
      units.append(isLittleEndian ? second << 8 | first : first << 8 | second)
    }
    return DecimalText.text(
      mantissa: units, exponent: try integer("NS.exponent") ?? 0, isNegative: try boolean("NS.negative"))
  }
}
