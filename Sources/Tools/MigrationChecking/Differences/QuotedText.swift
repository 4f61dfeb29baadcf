// Escapes names of models for XML. The names come from strangers' files and may contain anything.

import Diagnostics
import ManagedObjectModel

extension String {
  /// Returns the text with some scalars replaced by other texts; nil keeps a scalar.
  func replacing(_ replacement: (Unicode.Scalar) -> String?) -> String {
    var result = ""
    for scalar in unicodeScalars {
      if let text = replacement(scalar) { result += text } else { result.unicodeScalars.append(scalar) }
    }
    return result
  }

  /// The text escaped for an XML attribute or element.
  package var inXML: String {
    replacing { scalar in
      switch scalar {
      case "&": "&amp;"
      case "<": "&lt;"
      case ">": "&gt;"
      case "\"": "&quot;"
      case "'": "&#39;"
      case "\n", "\t", "\r": nil
      // XML 1.0 forbids other control characters even as references, and these two noncharacters.
      case _ where scalar.value < 0x20 || scalar.value == 0xfffe || scalar.value == 0xffff: "\u{fffd}"
      default: nil
      }
    }
  }
}

extension String {
  /// The text escaped for a page, with places to break words that may be longer than a line of a phone: after a dot, a
  /// slash or an underscore, and in a long name before a capital letter.
  package var inPage: String {
    split(separator: " ", omittingEmptySubsequences: false).map { word in
      guard word.utf8.count > 24 else { return String(word).inXML }
      var (text, length): (String, Int) = ("", 0)
      var last: Unicode.Scalar = " "
      for scalar in word.unicodeScalars {
        let isAfterSeparator = "./_".unicodeScalars.contains(last) && scalar.properties.isAlphabetic
        let isHump = length >= 16 && last.properties.isLowercase && scalar.properties.isUppercase
        if isAfterSeparator || isHump {
          text += "<wbr>"
          length = 0
        }
        text += String(scalar).inXML
        (last, length) = (scalar, length + 1)
      }
      return text
    }.joined(separator: " ")
  }
}

extension Attribute {
  /// The declaration to paste: in Swift source, or the element of a `contents` file.
  package func declaration(isSource: Bool) -> String { isSource ? swift : xml }

  /// The declaration in a `@Model` class, with what matters for a hop.
  package var swift: String {
    let type = customClassName.map { $0.hasPrefix("Array<") ? "[\($0.dropFirst(6).dropLast())]" : $0 } ?? swiftType
    var text = renamingIdentifier == name ? "" : "@Attribute(originalName: \"\(renamingIdentifier)\") "
    text += "var \(name): \(type)\(isOptional ? "?" : "")"
    switch defaultValue {
    case .integer(let number)?: text += " = \(number)"
    case .boolean(let value)?: text += " = \(value)"
    case .double(let number)?: text += " = \(number)"
    case .decimal(let number)?: text += " = \(number)"
    case .string(let value)?: text += " = \"\(value.printableLine)\""
    case .date(let seconds)?: text += " = Date(timeIntervalSinceReferenceDate: \(seconds))"
    case .binary?: text += type.hasPrefix("[") ? " = []" : " = Data()"
    case .uuid?, .archived?, nil: break
    }
    return text
  }

  private var swiftType: String {
    switch type {
    case .integer16: "Int16"
    case .integer32: "Int32"
    case .integer64: "Int"
    case .boolean: "Bool"
    case .binary: "Data"
    case .uri: "URL"
    default: type.name
    }
  }

  /// The element of a `contents` file, with the attributes that matter for a hop.
  package var xml: String {
    var text = "<attribute name=\"\(name.inXML)\""
    if isOptional { text += " optional=\"YES\"" }
    if type != .undefined { text += " attributeType=\"\(type.name)\"" }
    switch defaultValue {
    case .integer(let number)?: text += " defaultValueString=\"\(number)\""
    case .boolean(let value)?: text += " defaultValueString=\"\(value ? "YES" : "NO")\""
    case .double(let number)?: text += " defaultValueString=\"\(number)\""
    case .decimal(let number)?: text += " defaultValueString=\"\(number.inXML)\""
    case .string(let value)?: text += " defaultValueString=\"\(value.inXML)\""
    case .date(let seconds)?: text += " defaultDateTimeInterval=\"\(seconds)\""
    case .uuid?, .binary?, .archived?, nil: break
    }
    if renamingIdentifier != name { text += " elementID=\"\(renamingIdentifier.inXML)\"" }
    return text + "/>"
  }
}
