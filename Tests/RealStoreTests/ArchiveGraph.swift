// Compares two keyed archives as graphs: the same objects along the same paths, whatever their numbers. Permitted
// differences are listed here, because a comparison is only as strict as its exceptions:
// - NSClassNameForEntity: source and store come from different builds (docs/formats/model-files.md, "Differences
//   between source and compiled model");
// - mutable and immutable classes of the same collection or text; empty collections, null and none at all;
// - the order of dictionaries, sets and fetch indexes;
// - fw 754 writes an inherited attribute as a proxy (entity, attribute): taken as that attribute of that entity;
// - a Boolean default as the number 0 or 1, as compilers before 2013 wrote it.

import PropertyLists

struct ArchiveGraph {
  let objects: [PropertyListValue]
  let root: UInt64

  init?(_ list: PropertyListValue) {
    guard case .array(let objects)? = list.dictionary?["$objects"],
      case .uid(let root)? = list.dictionary?["$top"]?.dictionary?["root"]
    else { return nil }
    self.objects = objects
    self.root = root
  }

  /// Returns the graph of the object that the keys lead to; nil if there is none.
  func part(_ keys: [String]) -> ArchiveGraph? {
    var number = root
    for key in keys {
      let fields: [String: PropertyListValue]
      switch node(.uid(number)) {
      case .dictionary(let entries), .object(_, let entries): fields = entries
      default: return nil
      }
      guard case .uid(let next)? = fields[key], next != 0 else { return nil }
      number = next
    }
    return ArchiveGraph(objects: objects, root: number)
  }

  private init(objects: [PropertyListValue], root: UInt64) {
    self.objects = objects
    self.root = root
  }

  private enum Node {
    case null
    case scalar(PropertyListValue)
    case list([PropertyListValue])
    case set([PropertyListValue])
    case dictionary([String: PropertyListValue])
    case object(String, [String: PropertyListValue])

    /// Returns the list as a set if its order follows no rule.
    func asSet(_ isUnordered: Bool) -> Node {
      if isUnordered, case .list(let elements) = self { .set(elements) } else { self }
    }
  }

  private func raw(_ value: PropertyListValue?) -> PropertyListValue {
    guard let value else { return .string("$null") }
    guard case .uid(let number) = value else { return value }
    return number < UInt64(objects.count) ? objects[Int(number)] : .string("(no object \(number))")
  }

  private func text(_ value: PropertyListValue?) -> String {
    let found = raw(value)
    return found.string ?? found.dictionary?["NS.string"]?.string ?? "?"
  }

  private func node(_ value: PropertyListValue?) -> Node {
    if value == .uid(0) || value == nil { return .null }
    let found = raw(value)
    guard let fields = found.dictionary, let name = raw(fields["$class"]).dictionary?["$classname"]?.string else {
      return .scalar(found)
    }
    switch name {
    case "NSMutableString": return .scalar(.string(text(value)))
    case "NSArray", "NSMutableArray": return .list(fields["NS.objects"]?.array ?? [])
    case "NSSet", "NSMutableSet": return .set(fields["NS.objects"]?.array ?? [])
    case "NSDictionary", "NSMutableDictionary":
      return .dictionary(entries(fields["NS.keys"]?.array ?? [], fields["NS.objects"]?.array ?? []))
    case "NSKnownKeysDictionary1":
      let keys = raw(raw(fields["searchMapping"]).dictionary?["keys"]).dictionary?["NS.objects"]?.array ?? []
      return .dictionary(entries(keys, raw(fields["values"]).dictionary?["NS.objects"]?.array ?? []))
    case "_NSPropertyDescriptionProxy":
      guard case .object(let name, var inner) = node(fields["NSUnderlyingProperty"]) else { return .null }
      inner["NSEntity"] = fields["NSEntityDescription"]
      return .object(name, inner)
    default:
      var fields = fields
      fields["$class"] = nil
      if name == "NSEntityDescription" { fields["NSClassNameForEntity"] = nil }
      return .object(name, fields)
    }
  }

  private func entries(_ keys: [PropertyListValue], _ values: [PropertyListValue]) -> [String: PropertyListValue] {
    Dictionary(zip(keys.map { text($0) }, values), uniquingKeysWith: { first, _ in first })
  }

  /// Returns the text that identifies an element of a set.
  private func label(_ value: PropertyListValue) -> String {
    if case .object(_, let fields) = node(value) { return text(fields["NSEntityName"] ?? fields["NSIndexName"]) }
    return text(value)
  }

  private func isEmpty(_ node: Node) -> Bool {
    switch node {
    case .null: true
    case .list(let elements), .set(let elements): elements.isEmpty
    case .dictionary(let entries): entries.isEmpty
    default: false
    }
  }

  /// Returns the path to every difference; empty for equal graphs.
  func differences(from other: ArchiveGraph) -> [String] {
    var found: [String] = []
    var seen: Set<[PropertyListValue]> = []
    var queue: [(mine: PropertyListValue?, theirs: PropertyListValue?, path: String)] = [
      (.uid(root), .uid(other.root), "")
    ]
    while let (mine, theirs, path) = queue.popLast() {
      if let mine, let theirs, case .uid = mine, case .uid = theirs {
        guard seen.insert([mine, theirs]).inserted else { continue }
      }
      let isUnordered = path.hasSuffix("NSFetchIndexDescriptions")
      let (left, right) = (node(mine).asSet(isUnordered), other.node(theirs).asSet(isUnordered))
      if isEmpty(left) && other.isEmpty(right) { continue }
      switch (left, right) {
      case (.scalar(let a), .scalar(let b)):
        if a != b && !(path.hasSuffix("NSDefaultValue") && Self.truth(a) == Self.truth(b) && Self.truth(a) != nil) {
          found.append("\(path): \(a) is \(b)")
        }
      case (.list(let a), .list(let b)) where a.count == b.count:
        for (index, pair) in zip(a, b).enumerated() { queue.append((pair.0, pair.1, "\(path)[\(index)]")) }
      case (.set(let a), .set(let b)) where a.map({ label($0) }).sorted() == b.map({ other.label($0) }).sorted():
        let pairs = zip(a.sorted { label($0) < label($1) }, b.sorted { other.label($0) < other.label($1) })
        for (a, b) in pairs { queue.append((a, b, "\(path){\(label(a))}")) }
      case (.dictionary(let a), .dictionary(let b)):
        for key in Set(a.keys).union(b.keys) { queue.append((a[key], b[key], "\(path)/\(key)")) }
      case (.object(let nameA, let a), .object(let nameB, let b)) where nameA == nameB:
        for key in Set(a.keys).union(b.keys) { queue.append((a[key], b[key], "\(path).\(key)")) }
      default: found.append("\(path): \(describe(left)) is \(other.describe(right))")
      }
    }
    return found.sorted()
  }

  private static func truth(_ value: PropertyListValue) -> Bool? {
    switch value {
    case .boolean(let flag): flag
    case .integer(0): false
    case .integer(1): true
    default: nil
    }
  }

  private func describe(_ node: Node) -> String {
    switch node {
    case .null: "null"
    case .scalar(let value): "\(value)"
    case .list(let list): "list of \(list.count)"
    case .set(let set): "set of \(set.map { label($0) })"
    case .dictionary(let entries): "dictionary of \(entries.keys.sorted())"
    case .object(let name, _): name
    }
  }
}
