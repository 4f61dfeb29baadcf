// Key paths as texts and archives spell them, made into steps. One place for both readers, so that `$source.a.@count`
// is the same node whichever way it came.

extension ExpressionNode {
  /// A key path on a base. Plain keys join the path that the base is already; what follows a collection operator's own
  /// path does not, because it would then be read once for every member (KVC).
  package static func path(_ base: ExpressionNode, _ steps: [KeyPathStep]) -> ExpressionNode {
    guard !steps.isEmpty else { return base }
    if case .keyPath(let inner, let first) = base, first.allSatisfy(\.isKey) {
      return .keyPath(inner, KeyPathSteps.joined(first + steps))
    }
    return .keyPath(base, steps)
  }
}

extension KeyPathStep {
  /// Is it a property's name?
  package var isKey: Bool { if case .key = self { true } else { false } }
}

extension CollectionOperator {
  /// Does the key path of what it works on follow? `@count` alone has none.
  package var takesPath: Bool { self != .count }
}

/// A key path that cannot be.
struct KeyPathProblem: Error {
  /// What is wrong.
  let message: String
  /// Which of the components it is.
  let component: Int
  /// Is it an operator of KVC that is not known here?
  var isUnsupported = false
}

/// Steps of key paths.
enum KeyPathSteps {
  /// The steps of a path's components: `objectID.URIRepresentation.path` at its end is one.
  static func steps(_ components: [String]) throws(KeyPathProblem) -> [KeyPathStep] {
    var steps: [KeyPathStep] = []
    steps.reserveCapacity(components.count)
    for (index, component) in components.enumerated() {
      if case .collection(let operation)? = steps.last, !operation.takesPath {
        throw KeyPathProblem(message: "nothing may follow \(operation.rawValue) in a key path", component: index)
      }
      guard component.utf8.first == UInt8(ascii: "@") else {
        steps.append(.key(component))
        continue
      }
      guard let operation = CollectionOperator(rawValue: component) else {
        throw KeyPathProblem(
          message: "the collection operator \(component) is not known; known are "
            + CollectionOperator.allCases.map(\.rawValue).joined(separator: " "), component: index, isUnsupported: true)
      }
      steps.append(.collection(operation))
    }
    if case .collection(let operation)? = steps.last, operation.takesPath {
      throw KeyPathProblem(
        message: "\(operation.rawValue) needs a key behind it, as in \(operation.rawValue).name",
        component: components.count)
    }
    return joined(steps)
  }

  /// The steps, with the three of an object's path at their end as one.
  static func joined(_ steps: [KeyPathStep]) -> [KeyPathStep] {
    guard steps.suffix(3) == [.key("objectID"), .key("URIRepresentation"), .key("path")] else { return steps }
    return steps.dropLast(3) + [.objectPath]
  }

  /// Is it a name as a model may have it: a letter or `_`, then letters, digits and `_`?
  static func isName(_ text: String) -> Bool {
    guard let first = text.unicodeScalars.first, isNameStart(first) else { return false }
    return text.unicodeScalars.allSatisfy(isNamePart)
  }

  /// May a name begin with it?
  static func isNameStart(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.isASCII {
      return scalar == "_" || (0x41...0x5a).contains(scalar.value) || (0x61...0x7a).contains(scalar.value)
    }
    return scalar.properties.isIDStart
  }

  /// May it stand in a name?
  static func isNamePart(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.isASCII { return isNameStart(scalar) || (0x30...0x39).contains(scalar.value) }
    return scalar.properties.isIDContinue
  }
}
