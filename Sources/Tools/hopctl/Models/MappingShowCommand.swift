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
    commandName: "show", abstract: "Print the contents of a mapping model",
    discussion: """
      Adds the defaults that Xcode's compiler adds. Warns about unresolved names and unsupported expressions. A \
      mapping model that matches no two versions is shown for the closest two; entity mappings without effect there \
      are marked as dead.
      """)

  @Argument(help: "Mapping model (.xcmappingmodel, .cdm, .hopmap.toml) or its directory", completion: .file())
  var file: String

  @Option(
    name: .customLong("models"),
    help: "Model with both versions (.xcdatamodeld, .momd), single versions, or a directory; repeatable",
    completion: .file())
  var models: [String] = []

  @Option(
    name: .customLong("mappings"),
    help: "Other mapping models of the same hop; repeatable",
    completion: .file())
  var mappings: [String] = []

  @Flag(help: "Print an equivalent text mapping")
  var text = false

  @OptionGroup(title: "Swift source options") var source: SourceOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func execute() throws {
    let subject = try MappingSubject(file: file, models: models, mappings: mappings, source.reader)
    let (mapping, source, destination) = (subject.mapping, subject.source, subject.destination)
    let warnings = subject.warnings + subject.findings
    output.warn(warnings)
    let text = text ? try mapping.text(source: source, destination: destination) : nil
    if let text {
      if !output.json { try StandardStreams.write(text, to: .output) }
    } else {
      try show(mapping)
    }
    let object: JSONObject = [
      "name": mapping.name, "sourceVersion": mapping.sourceVersion, "destinationVersion": mapping.destinationVersion,
      "entityMappings": mapping.entityMappings.map(\.json), "warnings": warnings.map(\.json),
    ]
    try output.object(text.map { object + ["text": $0] } ?? object)
    if let text { try requireAccepted(text, subject) }
  }

  /// Throws if hopd would refuse the text: a mapping model that hopd refuses is refused as text too, and a name may
  /// have another meaning in a text.
  private func requireAccepted(_ text: String, _ subject: MappingSubject) throws {
    var reasons = subject.findings
    // The text is checked alone, so it is not checked if it may look up objects of the hop's other mapping models.
    if reasons.isEmpty, subject.others.isEmpty {
      let file = FilePath(file).removingLastComponent().appending("\(FilePath(file).stem ?? "text").hopmap.toml")
      do {
        let loaded = try TextMapping(text: text, file: file).load(
          source: subject.source, destination: subject.destination)
        reasons = MappingChecker.findings(
          in: [loaded.mapping], source: subject.source, destination: subject.destination)
      } catch {
        reasons = [error]
      }
    }
    guard !reasons.isEmpty else { return }
    throw HopdError(
      .invalidMapping, "hopd cannot run the mapping model, so it would refuse this text too",
      at: Place(file: FilePath(file)), hint: "fix these problems in the text mapping, then run `hopctl mapping lint`",
      reasons: reasons)
  }

  private func show(_ mapping: ExplicitMapping) throws(HopdError) {
    let versions = "\(mapping.sourceVersion.printableLine) → \(mapping.destinationVersion.printableLine)"
    try output.line("\(mapping.name.printableLine): \(versions)")
    try output.lines(mapping.entityMappings.flatMap(Self.lines))
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

extension ExplicitEntityMapping {
  /// Expressions are strings, or null if there is none; `reason` says why a "dead" mapping has no effect.
  fileprivate var json: JSONObject {
    [
      "name": name, "type": typeWord, "source": source, "destination": destination, "policy": policy,
      "filter": filter?.text, "attributes": JSONObject(attributes.map { ($0.name, $0.value?.description) }),
      "relationships": JSONObject(relationships.map { ($0.name, $0.value?.description) }), "reason": deadness?.reason,
    ]
  }
}
