/// Values by property name that a policy gives an object: few, so a list in the order of their setting is quicker than
/// a dictionary.
package struct PolicyFields: Sendable, Hashable, ExpressibleByDictionaryLiteral {
  /// One value under its name.
  package struct Entry: Sendable {
    package let name: String
    package var value: PolicyValue
  }

  /// Each name once.
  package private(set) var entries: [Entry] = []

  /// No values yet.
  package init() {}

  /// The values of a dictionary, by name.
  package init(_ values: [String: PolicyValue]) {
    entries = values.sorted { $0.key < $1.key }.map { Entry(name: $0.key, value: $0.value) }
  }

  /// What was read from a message, where a name may stand twice: the last counts.
  init(read: [Entry]) {
    entries = read
    let isShort = read.count <= 8
    if isShort, !read.indices.contains(where: { at in read[..<at].contains { $0.name == read[at].name } }) { return }
    var places: [String: Int] = [:]
    entries.removeAll(keepingCapacity: true)
    for entry in read {
      if let place = places[entry.name] {
        entries[place].value = entry.value
      } else {
        places[entry.name] = entries.count
        entries.append(entry)
      }
    }
  }

  /// For literals; the last of a name counts.
  package init(dictionaryLiteral elements: (String, PolicyValue)...) {
    for (name, value) in elements { self[name] = value }
  }

  /// Are there none?
  package var isEmpty: Bool { entries.isEmpty }

  /// The value under a name; nil is not written.
  package subscript(name: String) -> PolicyValue? {
    get { entries.first { $0.name == name }?.value }
    set {
      guard let newValue else { return }
      if let index = entries.firstIndex(where: { $0.name == name }) {
        entries[index].value = newValue
      } else {
        entries.append(Entry(name: name, value: newValue))
      }
    }
  }

  /// The values by name.
  package var dictionary: [String: PolicyValue] {
    var values = [String: PolicyValue](minimumCapacity: entries.count)
    for entry in entries { values[entry.name] = entry.value }
    return values
  }

  package static func == (a: PolicyFields, b: PolicyFields) -> Bool { a.dictionary == b.dictionary }

  package func hash(into hasher: inout Hasher) { hasher.combine(dictionary) }
}
