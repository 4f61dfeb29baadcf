// The dictionary that an author attached to an entity mapping, and that policies read as `mapping.userInfo`. The
// archive's plain values become a property list, bounded in depth and count because the archive may contain a cycle.

import Diagnostics
import PropertyLists

/// Reads user info.
struct ArchivedUserInfo {
  private var entries = 0
  /// Classes of values that a property list cannot hold; these values are left out.
  private(set) var unknownClasses: [String] = []
  private(set) var values: [String: PropertyListValue] = [:]

  /// Reads the dictionary that `object` holds; throws if it is not a dictionary, or too large.
  init(_ object: ArchivedObject) throws(HopdError) { values = try dictionary(object, depth: 0) }

  private mutating func dictionary(
    _ object: ArchivedObject, depth: Int
  ) throws(HopdError) -> [String: PropertyListValue] {
    var result: [String: PropertyListValue] = [:]
    for (key, element) in try object.entries() {
      guard let key = key.string else { throw object.damaged("a key of it is \(key.kind), not text") }
      if let converted = try value(element, of: object, depth: depth + 1) { result[key] = converted }
    }
    return result
  }

  private mutating func value(
    _ value: ArchivedValue, of owner: ArchivedObject, depth: Int
  ) throws(HopdError) -> PropertyListValue? {
    entries += 1
    guard entries <= MappingLimits.userInfoEntries, depth <= 8 else {
      throw owner.damaged("the user info is larger or deeper than any real one")
    }
    switch value {
    case .null: return nil
    case .string(let text): return .string(text)
    case .integer(let number): return .integer(number)
    case .real(let number): return .real(number)
    case .boolean(let flag): return .boolean(flag)
    case .date(let seconds): return .date(seconds)
    case .data(let bytes): return .data(bytes)
    case .object(let object):
      if object.isDictionary { return .dictionary(try dictionary(object, depth: depth)) }
      if object.isList {
        var elements: [PropertyListValue] = []
        for element in try object.elements() {
          if let converted = try self.value(element, of: object, depth: depth + 1) { elements.append(converted) }
        }
        return .array(elements)
      }
      unknownClasses.append(object.className)
      return nil
    }
  }
}
