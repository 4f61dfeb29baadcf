/// The values that a policy gives an object, by property name. They are few, so a list in the order of setting is
/// faster than a dictionary.
package struct PolicyFields: Sendable, Hashable, ExpressibleByDictionaryLiteral {
  /// One value with its name.
  package struct Entry: Sendable {
    package let name: String
    package var value: PolicyValue
  }

  /// The entries; each name occurs once.
  package private(set) var entries: [Entry] = []

  /// No values.
  package init() {}

  /// The values of a dictionary, by name.
  package init(_ values: [String: PolicyValue]) {
    entries = values.sorted { $0.key < $1.key }.map { Entry(name: $0.key, value: $0.value) }
  }

  /// The values read from a message. If a name occurs twice, the last value counts.
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

  /// For literals. If a name occurs twice, the last value counts.
  package init(dictionaryLiteral elements: (String, PolicyValue)...) {
    for (name, value) in elements { self[name] = value }
  }

  /// Whether there are no values.
  package var isEmpty: Bool { entries.isEmpty }

  /// The value of a name. Setting nil has no effect.
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

/// The entities that a message refers to, by number. There are few, and most follow one of the same entity.
struct PackedEntities: Sendable {
  struct Entry: Hashable, Sendable {
    let side: PolicyObjectID.Side
    let name: ExactText
  }

  private(set) var all: [Entry] = []
  private var numbers: [Entry: Int] = [:]
  private var last = 0

  init() {}

  init(_ reader: inout PackedReader) throws {
    for _ in 0..<(try reader.count(ofAtLeast: 2)) {
      let side: PolicyObjectID.Side
      switch try reader.byte() {
      case 0: side = .source
      case 1: side = .destination
      default: throw reader.fault("an entity of the source or the destination expected")
      }
      all.append(Entry(side: side, name: ExactText(try reader.text())))
    }
  }

  mutating func number(of id: PolicyObjectID) -> Int { number(id.side, id.entity) }

  mutating func number(_ side: PolicyObjectID.Side, _ name: String) -> Int {
    let entry = Entry(side: side, name: ExactText(name))
    if last < all.count, all[last] == entry { return last }
    let number = numbers[entry] ?? all.count
    if number == all.count {
      all.append(entry)
      numbers[entry] = number
    }
    last = number
    return number
  }

  func write(to writer: inout PackedWriter) {
    writer.count(all.count)
    for entry in all {
      writer.byte(entry.side == .source ? 0 : 1)
      writer.text(entry.name.text)
    }
  }
}

/// A text that is equal only to a text with the same bytes: "é" may be one character or two.
struct ExactText: Hashable, Sendable {
  let text: String

  init(_ text: String) { self.text = text }

  static func == (a: ExactText, b: ExactText) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }

  // Equal bytes are equal text, and so have equal hashes.
  func hash(into hasher: inout Hasher) { hasher.combine(text) }
}

/// The side, entity and columns that rows of one kind have in common.
struct PolicyShape: Hashable {
  var side: PolicyObjectID.Side
  var entity: String
  /// In ascending order when written; in any order when read.
  var columns: [String]

  func id(_ key: Int64) -> PolicyObjectID { PolicyObjectID(side: side, entity: entity, key: key) }
}

/// The shapes of one message while it is written. Objects of one kind follow one another, so the last shape is tried
/// first.
struct PolicyShapes {
  private(set) var shapes: [PolicyShape] = []
  private var last: [PolicyObjectID.Side: Int] = [:]
  private var numbers: [PolicyShape: Int] = [:]

  /// Returns the number of an object's shape, counted from 0.
  mutating func number(of object: PolicyObject) -> Int {
    if let number = last[object.id.side] {
      let shape = shapes[number]
      if shape.entity == object.id.entity, shape.columns.count == object.values.count,
        shape.columns.allSatisfy({ object.values[$0] != nil })
      {
        return number
      }
    }
    let shape = PolicyShape(side: object.id.side, entity: object.id.entity, columns: object.values.keys.sorted())
    let number = numbers[shape] ?? shapes.count
    if number == shapes.count {
      shapes.append(shape)
      numbers[shape] = number
    }
    last[object.id.side] = number
    return number
  }
}
