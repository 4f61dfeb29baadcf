import ArgumentParser
import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import SystemPackage

/// `hopctl mapping show FILE --models …`.
struct MappingShowCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Shows what a mapping model does, expression by expression.",
    discussion: """
      What Xcode's compiler would fill in is filled in. What could not be followed in a migration is a warning here: names that lead \
      nowhere, expressions that are not supported. One that fits no two versions is shown for those that are nearest; entity mappings \
      without effect there are called dead.
      """)

  @Argument(help: "A .xcmappingmodel, .cdm or .hopmap.toml, or a folder that holds one.", completion: .file())
  var file: String

  @Option(
    name: .customLong("models"),
    help: "The model with both versions: a .xcdatamodeld, .momd, versions one by one, or a folder; may be repeated.",
    completion: .file())
  var models: [String]

  @Option(
    name: .customLong("mappings"),
    help: "Other mapping models of the same hop, whose objects its relationships look for; may be repeated.",
    completion: .file())
  var mappings: [String] = []

  @Flag(help: "Show it as a text mapping, which hopd follows in the same way.")
  var text = false

  @OptionGroup var output: OutputOptions

  func execute() throws {
    let subject = try MappingSubject(file: file, models: models, mappings: mappings)
    let (mapping, source, destination) = (subject.mapping, subject.source, subject.destination)
    let warnings = subject.warnings + subject.findings
    output.warn(warnings)
    let text = text ? try mapping.text(source: source, destination: destination) : nil
    if let text {
      if !output.json { try StandardStreams.write(text, to: .output) }
    } else {
      try show(mapping)
    }
    try output.object(
      MappingShowShape(
        name: mapping.name, sourceVersion: mapping.sourceVersion, destinationVersion: mapping.destinationVersion,
        entityMappings: mapping.entityMappings.map(MappingShowShape.EntityMapping.init),
        warnings: warnings.map(ErrorShape.init), text: text))
  }

  private func show(_ mapping: ExplicitMapping) throws(HopdError) {
    try output.line(
      "\(mapping.name.printableLine): \(mapping.sourceVersion.printableLine) → \(mapping.destinationVersion.printableLine)"
    )
    for entity in mapping.entityMappings {
      for line in Self.lines(of: entity) { try output.line(line) }
    }
  }

  // MARK: Text

  private static func lines(of mapping: ExplicitEntityMapping) -> [String] {
    let ends = "\(mapping.source ?? "nothing") → \(mapping.destination ?? "nothing")"
    if let deadness = mapping.deadness {
      return ["", "\(mapping.name.printableLine)  dead", "  no effect: \(deadness.reason.printableLine)"]
    }
    var lines = ["", "\(mapping.name.printableLine)  \(mapping.type.word)  \(ends.printableLine)"]
    if let policy = mapping.policy { lines.append("  policy \(policy.printableLine)") }
    if let filter = mapping.filter { lines.append("  filter \(filter.text.printableLine)") }
    lines += MessageFormatter.table(
      (mapping.attributes + mapping.relationships).map {
        [$0.name.printableLine, ($0.value?.description ?? "(no expression)").printableLine]
      })
    return lines
  }
}

extension MappingShowShape.EntityMapping {
  init(_ mapping: ExplicitEntityMapping) {
    func texts(_ properties: [ExplicitPropertyMapping]) -> [String: OrNull<String>] {
      Dictionary(
        properties.map { ($0.name, OrNull(wrappedValue: $0.value?.description)) },
        uniquingKeysWith: { first, _ in first })
    }
    self.init(
      name: mapping.name, type: mapping.typeWord,
      source: OrNull(wrappedValue: mapping.source),
      destination: OrNull(wrappedValue: mapping.destination), policy: OrNull(wrappedValue: mapping.policy),
      filter: OrNull(wrappedValue: mapping.filter?.text), attributes: texts(mapping.attributes),
      relationships: texts(mapping.relationships), reason: OrNull(wrappedValue: mapping.deadness?.reason))
  }
}
